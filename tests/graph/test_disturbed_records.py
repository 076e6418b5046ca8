"""Whole investigations of records that are damaged or disguised: the answer is in what happened, not in its dress."""

import asyncio
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from tiers import full_product

from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.redaction.redactor import Redactor
from opsleuth.scenarios.generator import AnswerKey, generate_incident
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_id import new_run_id

TABLES = ("*.csv", "*.jsonl")
STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z")
LATER = timedelta(days=123, hours=5)


def investigated(folder: Path, store: Path) -> tuple[str, str]:
    """Service and kind of the first cause of a run without a model."""
    clock = SystemClock()
    with Store.open(store, clock, Redactor()) as opened:
        settings = RunSettings(case=str(folder), planner="offline", read_only=True)
        request = StartRequest(run=new_run_id(clock.now()), settings=settings)
        report = asyncio.run(Runner(opened, clock=clock).start(request)).report or {}
    assert report["verdict"] == "cause_found"
    return report["causes"][0]["service"], report["causes"][0]["kind"]


def rewrite_rows(folder: Path, tables: str, change: Callable[[list[str]], list[str]]) -> None:
    """Change the rows of tables; the head of a `.csv` stays where it is."""
    for path in sorted(folder.glob(tables)):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        head = 1 if path.suffix == ".csv" else 0
        path.write_text("".join([*lines[:head], *change(lines[head:])]), encoding="utf-8")


def rewrite_text(folder: Path, change: Callable[[str], str]) -> None:
    for path in sorted(folder.iterdir()):
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def lossy(folder: Path) -> None:
    random = Random(3)
    rewrite_rows(folder, "metrics*.csv", lambda rows: [row for row in rows if random.random() > 0.3])


def without_topology(folder: Path) -> None:
    (folder / "topology.csv").unlink()


def shuffled(folder: Path) -> None:
    random = Random(4)
    for tables in TABLES:
        rewrite_rows(folder, tables, lambda rows: random.sample(rows, len(rows)))


def shifted(folder: Path) -> None:
    rewrite_text(folder, lambda text: STAMP.sub(_later, text))


def _later(found: re.Match[str]) -> str:
    moment = datetime.fromisoformat(found[0]) + LATER
    width = len(found[0]) - 1
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f").ljust(width, "0")[:width] + "Z"


def renamed(folder: Path, names: dict[str, str]) -> None:
    """Every service by another name, wherever it stands."""
    either = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
    rewrite_text(folder, lambda text: either.sub(lambda found: names[found[0]], text))


def case(folder: Path, kind: str) -> AnswerKey:
    """A case in plain files. Some seeds compress their tables: those are passed over."""
    for seed in range(100, 140):
        to = folder / f"{kind}-{seed}"
        key = generate_incident(kind, "high", seed, to)
        if not list(to.glob("*.gz")):
            to.rename(folder / "case")
            return key
    raise AssertionError(f"no plain case of kind {kind}")


@pytest.mark.parametrize(
    ("kind", "disturb"),
    full_product(["errors", "slow_query", "crash"], [lossy, without_topology, shuffled, shifted]),
)
def test_damage_and_disguise_leave_the_answer(
    tmp_path: Path, kind: str, disturb: Callable[[Path], None]
) -> None:
    key = case(tmp_path, kind)
    disturb(tmp_path / "case")
    service, found = investigated(tmp_path / "case", tmp_path / "runs.db")
    assert service in {key["root_cause_service"], *key["acceptable_services"]}
    assert found in key["acceptable_kinds"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["errors", "crash"])
def test_other_names_give_the_same_answer(tmp_path: Path, kind: str) -> None:
    case(tmp_path, kind)
    before = investigated(tmp_path / "case", tmp_path / "before.db")
    text = (tmp_path / "case" / "topology.csv").read_text(encoding="utf-8")
    services = sorted({name for row in text.splitlines()[1:] for name in row.split(",")})
    names = {name: f"thing{chr(97 + place)}" for place, name in enumerate(services)}
    renamed(tmp_path / "case", names)
    after = investigated(tmp_path / "case", tmp_path / "after.db")
    assert after == (names[before[0]], before[1])
