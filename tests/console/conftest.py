"""Stores with a few runs in them, the command line over them, and golden screens."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from stored_runs import DOCUMENT, DONE, TRACE, Program, fill

from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The command line over a store with three runs."""
    made = Program(tmp_path / "opsleuth.db", tmp_path)
    with opened(made.database):
        return made


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Store]:
    """The store itself, with three runs."""
    with opened(tmp_path / "opsleuth.db") as store:
        yield store


def opened(path: Path) -> Store:
    """A store with three runs, made at a fixed time."""
    clock = FakeClock(datetime(2026, 11, 29, 13, 5, 7, tzinfo=UTC))
    store = Store.open(path, clock, Redactor(key="0" * 64))
    fill(store, clock)
    return store


@pytest.fixture
def bare(tmp_path: Path) -> Program:
    """The command line where nothing was ever stored."""
    return Program(tmp_path / "none" / "opsleuth.db", tmp_path)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a screen with the kept one; `OPSLEUTH_GOLDEN=write` keeps what is drawn now."""
    folder = Path(request.path).parent / "golden"

    def compare(name: str, screen: str) -> None:
        path = folder / f"{name}.txt"
        if os.environ.get("OPSLEUTH_GOLDEN") == "write":
            path.write_text(screen, "utf-8")
        assert screen == path.read_text("utf-8")

    return compare


@pytest.fixture
def case_trace() -> list[dict[str, Any]]:
    """The trace of a run as the store returns it."""
    return [
        {
            "v": 1,
            "seq": seq,
            "ts": f"2026-11-29T14:05:{seq:02d}.000Z",
            "run": DONE,
            "attempt": 1,
            "turn": turn,
            "ckpt": "",
            "step": 0,
            "node": node,
            "type": kind,
            "data": dict(data),
            "hash": "",
        }
        for seq, (kind, turn, node, data) in enumerate(TRACE, start=1)
    ]


@pytest.fixture
def document() -> dict[str, Any]:
    """The report of a concluded run."""
    return dict(DOCUMENT)
