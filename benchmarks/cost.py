"""What an investigation costs: CPU and memory of the largest recorded case, growth with its rows, a log of 5 GB.

Every figure is measured in a process of its own. Run: python benchmarks/cost.py INCIDENTS_DIR [LOG_GIGABYTES]
"""

import asyncio
import json
import resource
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from opsleuth.analysis.records import TimeRange
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.secret_references import Vault
from opsleuth.configuration.source_settings import LogFilesSettings
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_id import new_run_id
from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.sources.live_source import SourceRuntime
from opsleuth.tools.sources.logfiles import LogFilesSource
from opsleuth.tools.sources.source_protocols import LogFilter

COPIES = 10
TABLES = ("*.csv", "*.jsonl")
LINE_SECONDS = 0.01
RARE = "orders/7777 "
MEGABYTE = 1e6


def main() -> None:
    incidents, gigabytes = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
    largest = max((p.parent for p in incidents.glob("*/*/incident.json")), key=weight)
    with TemporaryDirectory() as made:
        print(f"largest case: {largest.parent.name}/{largest.name}, {weight(largest) / MEGABYTE:.1f} MB")
        once = measured("investigate", largest)
        print(f"  {once}")
        tenfold = copied(largest, Path(made) / "tenfold")
        print(f"the same with {COPIES} times its rows, {weight(tenfold) / MEGABYTE:.1f} MB")
        print(f"  {measured('investigate', tenfold)}")
        log = long_log(Path(made) / "long", gigabytes)
        print(f"a log of {(log / 'logs.jsonl').stat().st_size / 1e9:.1f} GB, ten minutes out of its middle")
        print(f"  {measured('search', log)}")
        print("a text in a tenth of it, with ripgrep and without")
        print(f"  {measured('ripgrep', log)}")
        print(f"  {measured('no ripgrep', log)}")


def measured(what: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, __file__, what, str(folder)], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def told(start: float, what: str) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {time.process_time() - start:.2f} s CPU, peak memory {peak:.0f} MB")


def investigated(folder: Path) -> None:
    """A whole run without a model, with everything that has to be loaded for it."""
    clock = SystemClock()
    with TemporaryDirectory() as made, Store.open(Path(made) / "runs.db", clock, Redactor()) as store:
        settings = RunSettings(case=str(folder), planner="offline", read_only=True)
        request = StartRequest(run=new_run_id(clock.now()), settings=settings)
        outcome = asyncio.run(Runner(store, clock=clock).start(request))
    told(0.0, f"investigated ({(outcome.report or {}).get('verdict')})")


def searched(folder: Path) -> None:
    """Stream ten minutes out of the middle of a long log."""
    case = CaseSource.open(folder)
    middle = (case.incident.span.start + case.incident.span.end) / 2
    start, wall = time.process_time(), time.perf_counter()
    lines = sum(1 for line in case.scan_logs(span=TimeRange(middle, middle + 600)) if line.time is not None)
    told(start, f"{lines} lines in {time.perf_counter() - wall:.2f} s")


def sought(folder: Path, *, with_ripgrep: bool) -> None:
    """The lines with a rare text in a tenth of a long log."""
    whole = CaseSource.open(folder).incident.span
    span = TimeRange(whole.start, whole.start + (whole.end - whole.start) / 10)
    settings = LogFilesSettings(files=(str(folder / "logs.jsonl"),))
    source = LogFilesSource("logs", settings, SourceRuntime(Vault(), SystemClock()))
    start, wall = time.process_time(), time.perf_counter()
    sifted = asyncio.run(source.filter_logs(LogFilter(text=RARE), span)) if with_ripgrep else None
    lines = sifted.lines if sifted else source.scan_logs(span=span)
    number = sum(RARE in line.message for line in lines)
    told(start, f"{number} lines in {time.perf_counter() - wall:.2f} s")


def weight(folder: Path) -> int:
    return sum(path.stat().st_size for pattern in TABLES for path in folder.glob(pattern))


def copied(folder: Path, to: Path) -> Path:
    """The case with each table's rows written ten times, spans and series under names of their own."""
    shutil.copytree(folder, to)
    for path in (path for pattern in TABLES for path in to.glob(pattern)):
        head, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if path.suffix == ".jsonl":
            head, rows = "", [head, *rows]
        if path.name in ("topology.csv", "incident.json"):
            continue
        path.write_text(head + "".join(row for row in rows for _ in range(COPIES)), encoding="utf-8")
    return to


def long_log(folder: Path, gigabytes: float) -> Path:
    """A case of nothing but a log in order of time, a hundred lines a second."""
    folder.mkdir()
    begin, written, number = 1_700_000_000.0, 0, 0
    with (folder / "logs.jsonl").open("w", encoding="utf-8") as file:
        while written < gigabytes * 1e9:
            block = "".join(_line(begin, number + i) for i in range(10_000))
            written += file.write(block)
            number += 10_000
    window = {"start": _stamp(begin), "end": _stamp(begin + number * LINE_SECONDS)}
    document = {"id": "long", "alert": {"text": "a long log", "service": "web"}, "window": window}
    (folder / "incident.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def _line(begin: float, number: int) -> str:
    moment = _stamp(begin + number * LINE_SECONDS)
    return f'{{"timestamp": "{moment}", "service": "web", "level": "INFO", "message": "GET /orders/{number} 200 12 ms {"x" * 200}"}}\n'


def _stamp(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"


if __name__ == "__main__":
    parts = {
        "investigate": investigated,
        "search": searched,
        "ripgrep": partial(sought, with_ripgrep=True),
        "no ripgrep": partial(sought, with_ripgrep=False),
    }
    if sys.argv[1] in parts:
        parts[sys.argv[1]](Path(sys.argv[2]))
    else:
        main()
