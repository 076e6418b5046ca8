"""Whether an incident that comes back is recognised, and how long that takes among many: `python benchmarks/recall.py --help`.

`replay` investigates cases of sets in order, each in one database, and then some of them again under other times, pod names and
hashes. Counted: repeats whose first entry of "seen before" is a run with the same answer in the key, other runs that show an entry at
all although no earlier run has their answer, and causes that a database without any memory would have put first instead.
`speed` stores many incidents and measures the look-up, in a file or on a server.
"""

import argparse
import asyncio
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from opsleuth.analysis.incident_terms import compare_incidents
from opsleuth.checkpoints.database_urls import Place, PostgresServer
from opsleuth.checkpoints.incidents import IncidentRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_id import new_run_id

TEXTS = frozenset({".json", ".jsonl", ".csv", ".txt", ".log", ".md"})
SETS = ("holmes", "nezha", "opensre-eks", "opensre-rds", "petshop", "rootcausebench", "k8s-state")
DAY = re.compile(r"\b(20[0-3]\d-[01]\d-[0-3]\d)(?=[T ]\d\d:\d\d)")
EPOCH = re.compile(r"(?<![\w.])(1[4-9]\d{8})(\d{3}|\d{6}|\d{9})?(?=[^\w]|$)")
POD = re.compile(r"\b([a-z][a-z0-9-]*?)-([a-f0-9]{8,10})-([a-z0-9]{5})\b")
SAFE = "bcdfghjklmnpqrstvwxz2456789"


class ReplayedRun(NamedTuple):
    """A case that was investigated, what its key says, what the run blames first, and what it had seen before."""

    case: str
    answer: tuple[str, str]
    repeat: bool
    first: tuple[str, str]
    run: str
    seen: Sequence[Mapping[str, Any]]


def choose_place(url: str | None, home: Path) -> Place:
    """The database on a server, or a new file."""
    return PostgresServer(url, home) if url else home / "recall.db"


def shift_text(text: str, days: int, seed: str) -> str:
    """The text with every time so many days later, and other hashes in the names of pods."""

    def move_day(found: re.Match[str]) -> str:
        try:
            return str(datetime.fromisoformat(found[1]).date() + timedelta(days=days))
        except ValueError:
            return found[0]

    def rename_pod(found: re.Match[str]) -> str:
        chooser = random.Random(f"{seed} {found[0]}")
        replica, pod = ("".join(chooser.choices(SAFE, k=n)) for n in (9, 5))
        return (
            f"{found[1]}-{replica.replace('z', 'a')[:8]}0-{pod}"
            if not any(c.isdigit() for c in found[2])
            else f"{found[1]}-{_hex(chooser)}-{pod}"
        )

    text = DAY.sub(move_day, text)
    text = EPOCH.sub(lambda m: f"{int(m[1]) + days * 86_400}{m[2] or ''}", text)
    return POD.sub(rename_pod, text)


def _hex(chooser: random.Random) -> str:
    return "".join(chooser.choices("0123456789abcdef", k=9))


def copy_shifted(source: Path, target: Path, days: int) -> Path:
    """A copy of a case, shifted."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix in TEXTS:
                place.write_text(shift_text(path.read_text("utf-8"), days, str(target)), "utf-8")
            else:
                shutil.copy(path, place)
    return target


def choose_cases(folder: Path, names: Sequence[str], count: int) -> list[tuple[Path, tuple[str, str]]]:
    """Cases with a cause in their key, spread over the sets, each answer once, so that none repeats another by itself."""
    by_set = []
    for name in names:
        key = json.loads((folder / name / "answers.json").read_text())
        rows = key.get("answers", key)
        by_set.append(
            [
                (folder / name / case, read_answer(rows[case]))
                for case in sorted(rows)
                if (folder / name / case).is_dir()
            ]
        )
    chosen: dict[tuple[str, str], Path] = {}
    while len(chosen) < count and any(by_set):
        for cases in by_set:
            while cases:
                path, answer = cases.pop(0)
                if answer[0] and answer not in chosen:
                    chosen[answer] = path
                    break
    return [(path, answer) for answer, path in list(chosen.items())[:count]]


def read_answer(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Service and kind of an entry of a key; empty where it names no cause."""
    service = entry.get("root_cause_service") or ""
    return (str(service[0] if isinstance(service, list) else service), str(entry.get("kind") or ""))


def investigate(store: Store, case: Path, answer: tuple[str, str], *, repeat: bool) -> ReplayedRun:
    runner = Runner(store, clock=SystemClock())
    request = StartRequest(
        run=new_run_id(SystemClock().now(), length=8),
        settings=RunSettings(case=str(case), planner="offline", read_only=True),
    )
    report = asyncio.run(runner.start(request)).report or {}
    causes = report.get("causes") or [{}]
    first = (str(causes[0].get("service", "")), str(causes[0].get("kind", "")))
    return ReplayedRun(case.name, answer, repeat, first, request.run, report.get("seen_before") or [])


def replay(folder: Path, names: Sequence[str], count: int, repeats: int, place: str | None) -> int:
    """Investigate in order, then again shifted; print what was recognised."""
    cases = choose_cases(folder, names, count)
    again = cases[:: max(1, len(cases) // repeats)][:repeats]
    made: list[ReplayedRun] = []
    with tempfile.TemporaryDirectory() as home:
        database = choose_place(place, Path(home))
        with Store.open(database, SystemClock(), Redactor()) as store:
            for path, answer in cases:
                made.append(investigate(store, path, answer, repeat=False))
                show_progress(made[-1])
            for number, (path, answer) in enumerate(again):
                shifted = copy_shifted(path, Path(home) / f"again-{number}", 7 + number)
                made.append(investigate(store, shifted, answer, repeat=True)._replace(case=path.name))
                show_progress(made[-1])
            alone = find_changed_causes(cases, made, Path(home))
    return print_recall(made, alone)


def show_progress(run: ReplayedRun) -> None:
    seen = ", ".join(f"{entry['cause']} ({entry['run']})" for entry in run.seen) or "-"
    sys.stderr.write(
        f"{'again' if run.repeat else 'first'} {run.case}: blames {run.first[0]} {run.first[1]}; seen before: {seen}\n"
    )


def find_changed_causes(
    cases: Sequence[tuple[Path, tuple[str, str]]], made: Sequence[ReplayedRun], home: Path
) -> list[str]:
    """Cases of which a database without memory blames another cause first."""
    known = {run.case: run.first for run in made if run.repeat}
    changed = []
    for path, answer in cases:
        if path.name in known:
            with Store.open(home / f"alone-{path.name}.db", SystemClock(), Redactor()) as store:
                if investigate(store, path, answer, repeat=False).first != known[path.name]:
                    changed.append(path.name)
    return changed


def print_recall(made: Sequence[ReplayedRun], changed: Sequence[str]) -> int:
    by_run = {run.run: run for run in made}
    again = [run for run in made if run.repeat]
    named = [run.case for run in again if run.seen and by_run[run.seen[0]["run"]].case == run.case]
    firsts = [run for run in made if not run.repeat]
    wrongly = [run.case for run in firsts if run.seen]
    result = {
        "repeats": len(again),
        "repeats_named_first": len(named),
        "missed": sorted({run.case for run in again} - set(named)),
        "others": len(firsts),
        "others_shown": len(wrongly),
        "shown": wrongly,
        "top_1_changed": list(changed),
    }
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    return 0 if len(named) * 10 >= len(again) * 9 and len(wrongly) * 20 <= len(firsts) and not changed else 1


def make_terms(number: int) -> frozenset[str]:
    """The terms of one of many incidents of a shop with 60 services, most of them alike in something."""
    chooser = random.Random(number)
    services = [f"service-{chooser.randrange(60)}" for _ in range(4)]
    kind = chooser.choice(("cpu", "memory", "deploy", "slow_query", "network_delay"))
    return frozenset(
        (
            f"cause:{services[0]}|{kind}",
            f"alert:{services[1]}|HighLatency",
            f"harmed:{services[1]}",
            f"trigger:deploy|{services[0]}",
            *(f"finding:{services[n % 4]}|metrics|metric-{chooser.randrange(40)}|up" for n in range(8)),
            *(f"line:{services[n % 4]}|{chooser.randrange(16**6):06x}" for n in range(6)),
        )
    )


def measure_speed(place: str | None, count: int) -> int:
    """Store so many incidents and print how long look-ups take, in milliseconds."""
    with tempfile.TemporaryDirectory() as home:
        database = choose_place(place, Path(home))
        with Store.open(database, SystemClock(), Redactor()) as store:
            fill_store(store, count)
            took = sorted(time_lookups(store, count))
    print_times({"stored": count, "look_ups": len(took)}, took)
    return 0 if took[int(len(took) * 0.95)] < 50 else 1


def fill_store(store: Store, count: int) -> None:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    for block in range(0, count, 500):
        with store.transaction():
            for number in range(block, min(block + 500, count)):
                began = (start + timedelta(minutes=number)).isoformat()
                row = IncidentRow(
                    run=f"inv-recall-{number}", project="", began=began, document={"cause": "a cause"}
                )
                store.incidents.put(row, make_terms(number))


def time_lookups(store: Store, count: int) -> Iterator[float]:
    for number in random.Random(1).sample(range(count), min(200, count)):
        terms = make_terms(number)
        began = time.perf_counter()
        found = store.incidents.find_sharing("", terms)
        best = max(found, key=lambda run: compare_incidents(terms, found[run]))
        store.incidents.get(best)
        yield (time.perf_counter() - began) * 1_000


def print_times(facts: Mapping[str, Any], took: Sequence[float]) -> None:
    places = {"median_ms": 0.5, "p95_ms": 0.95, "max_ms": 1.0}
    figures = {
        name: round(took[min(int(len(took) * share), len(took) - 1)], 2) for name, share in places.items()
    }
    sys.stdout.write(json.dumps({**facts, **figures}) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("replay", "speed"))
    parser.add_argument(
        "--sets", type=Path, default=Path("../shared/incidents/dev"), help="the folder with the sets of cases"
    )
    parser.add_argument("--names", nargs="+", default=list(SETS), help="which sets")
    parser.add_argument("--count", type=int, default=None, help="cases (40), or stored incidents (10000)")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--db", help="an empty database on a server instead of a new file")
    asked = parser.parse_args()
    if asked.what == "speed":
        return measure_speed(asked.db, asked.count or 10_000)
    return replay(asked.sets, asked.names, asked.count or 40, asked.repeats, asked.db)


if __name__ == "__main__":
    sys.exit(main())
