"""Verify that a run is stored as it was written: its events, and every row and body that they point to.

Found without help: any change, and any removal inside. What removes the end of both chains, or the whole run, leaves a shorter run that
fits in itself: that shows against a head that was noted elsewhere.
"""

import hashlib
import os
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from opsleuth.checkpoints.chain import FIRST, LOG_KEY, describe_misfit, is_keyed, read_log_key
from opsleuth.checkpoints.database import Database, Row
from opsleuth.checkpoints.row_digests import RowKey, read_row_digests
from opsleuth.checkpoints.seals import (
    REMOVED,
    START,
    UNSEALED,
    ChainHead,
    Seal,
    fold_seals,
    read_heads,
    seal_link,
)
from opsleuth.checkpoints.trace.events import EventsTable

_SEALS = "SELECT seq, kind, key, digest FROM seals WHERE run = ? ORDER BY seq"
_BODIES = """
SELECT sha256, size, left_out, data FROM bodies WHERE sha256 IN (
    SELECT body FROM results WHERE run = :run UNION SELECT body FROM observations WHERE run = :run
    UNION SELECT body FROM evidence WHERE run = :run
)
"""
_POINTERS = """
SELECT body FROM results WHERE run = :run UNION SELECT body FROM observations WHERE run = :run
UNION SELECT body FROM evidence WHERE run = :run
"""
_SNAPSHOTS = "SELECT id, data FROM snapshots WHERE run = ?"
_NAMES = {"results": "result", "observations": "observation", "evidence": "evidence", "approvals": "approval", "effects": "effect", "reports": "report",
          "checkpoints": "checkpoint", "writes": "write"}  # fmt: skip
_HEAD = re.compile(r"(\d{1,15})-(\d{1,15})-([0-9a-f]{32})")
NOT_COVERED = "the run's row (status, settings, name), notes, and the notices sent to others"
"""What no chain covers, whatever the run."""

_READINGS = 5
ANCHORS = "OPSLEUTH_LOG_ANCHORS"
"""The variable with the file that every ended run's head is noted in."""


@dataclass(frozen=True, slots=True)
class RecordCheck:
    """What a check found. `problems` name what does not fit, `warnings` what could not be seen; `head` is where the run ends now."""

    lines: int
    broken_at: int | None
    rows: Mapping[str, int]
    problems: Sequence[str]
    warnings: Sequence[str]
    head: str
    keyed: bool

    @property
    def is_intact(self) -> bool:
        return not self.problems


@dataclass(slots=True)
class _Findings:
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class AnchoredHead(NamedTuple):
    """A head that was given back: the ends of both chains, and the hash over their last links."""

    events: int
    seals: int
    hash: str


def verify_record(events: EventsTable, db: Database, run: str, anchor: str | None = None) -> RecordCheck:
    """Check everything that is stored of a run. `anchor` is a head that was printed when the run ended, earlier.

    A run that goes on meanwhile is checked again: rows that were written between two readings are no problem.
    """
    for _ in range(_READINGS):
        before = current_head(db, run)
        checked = _check_once(events, db, run, anchor)
        if checked.is_intact or current_head(db, run) == before:
            break
    return checked


def _check_once(events: EventsTable, db: Database, run: str, anchor: str | None) -> RecordCheck:
    chain, seals = events.verify(run), _read_seals(db, run)
    found = _Findings()
    rows = read_row_digests(db, run, found.problems)
    if not read_log_key() and any(is_keyed(seal.digest) for seal in seals):
        found.problems.append(
            f"the run was written under {LOG_KEY}, which is not set: set it to check its events and rows"
        )
    else:
        found.problems += [chain.problem] if chain.problem else []
        _check_seals(db, run, seals, found)
        _check_rows(seals, rows, found, is_sealed=read_heads(db, run).seals != UNSEALED)
        _check_against_head(db, run, seals, anchor, found)
    _check_bodies(db, run, found)
    _check_snapshots(db, run, found)
    return RecordCheck(
        lines=chain.lines,
        broken_at=chain.broken_at,
        rows=Counter(table for table, _ in rows),
        problems=tuple(dict.fromkeys(found.problems)),
        warnings=tuple(found.warnings),
        head=current_head(db, run),
        keyed=bool(read_log_key()) and not found.problems,
    )


def _check_against_head(
    db: Database, run: str, seals: Sequence[Seal], anchor: str | None, found: _Findings
) -> None:
    if anchor is not None:
        _check_anchor(db, run, seals, anchor, found)
    else:
        found.warnings.append(
            "no head was given: a removal of the last lines with their rows, or of the whole run, cannot be seen"
        )
    if not read_log_key():
        found.warnings.append(
            f"{LOG_KEY} is not set: whoever can write the database could rewrite the whole chain; only a saved head shows that"
        )
    found.warnings.append(f"no seal covers {NOT_COVERED}")


def current_head(db: Database, run: str) -> str:
    """Where a run ends now, to be noted elsewhere: number of events, number of seals, and one hash over both chains."""
    heads = read_heads(db, run)
    end = fold_seals(heads.sealed_so_far, heads.new)
    events = heads.events or START
    return _format_head(events, end)


def read_anchors(path: Path) -> dict[str, str]:
    """The last head of each run in an anchor file: lines with a run and a head."""
    pairs = (line.split() for line in path.read_text("utf-8").splitlines())
    return {parts[0]: parts[1] for parts in pairs if len(parts) >= 2}


def append_anchor(path: Path, run: str, head: str, now: str) -> None:
    """Note where a run ends, in a file that is better kept on another machine."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{run} {head} {now}\n")


def note_end(db: Database, run: str, now: str) -> tuple[str, str]:
    """Where a run ends now, noted in the file that OPSLEUTH_LOG_ANCHORS names; and why it could not be noted, if so."""
    head = current_head(db, run)
    path = os.environ.get(ANCHORS)
    if not path:
        return head, ""
    try:
        append_anchor(Path(path), run, head, now)
    except OSError as error:
        return head, f"cannot note the head of {run} in {path}: {error.strerror}; the head is {head}"
    return head, ""


def _read_seals(db: Database, run: str) -> list[Seal]:
    return [Seal(row["seq"], row["kind"], row["key"], row["digest"]) for row in db.rows(_SEALS, (run,))]


def _check_seals(db: Database, run: str, seals: Sequence[Seal], found: _Findings) -> None:
    """Whether the chain of seals is whole and fits its head."""
    if [seal.seq for seal in seals] != list(range(1, len(seals) + 1)):
        found.problems.append("a seal is missing or was added")
    heads = read_heads(db, run)
    if heads.seals is None:
        if seals or heads.events is not None:
            found.problems.append("the head of the seals is missing")
        return
    if heads.seals == UNSEALED:
        return
    chained = [seal for seal in seals if seal.seq <= heads.seals.seq]
    if len(chained) < heads.seals.seq:
        found.problems.append("seals are missing at the end")
    elif chained:
        before = fold_seals(START, chained[:-1]).hash
        if problem := describe_misfit(heads.seals.hash, before, seal_link(chained[-1]), read_log_key()):
            found.problems.append(f"the chain of seals {problem}")
    elif heads.seals != START:
        found.problems.append("the head of the seals was changed")
    if heads.new:
        found.warnings.append(
            f"{len(heads.new)} rows were written after the last event: each is sealed, but in no chain yet"
        )


def _check_rows(
    seals: Sequence[Seal], rows: Mapping[RowKey, str], found: _Findings, *, is_sealed: bool
) -> None:
    """Whether each row is as its last seal says. Of an unsealed run only the rows that were written since have seals."""
    last = {(seal.kind, seal.key): seal.digest for seal in seals}
    for place, digest in last.items():
        if digest != REMOVED and (problem := _problem_of_row(place, rows.get(place), digest)):
            found.problems.append(problem)
    unsealed = rows.keys() - {place for place, digest in last.items() if digest != REMOVED}
    if is_sealed:
        found.problems += [
            f"{_describe_row(*place)} was added: nothing says that this run wrote it"
            for place in sorted(unsealed)
        ]
    elif unsealed:
        found.warnings.append(
            f"{', '.join(sorted({table for table, _ in unsealed}))} are not covered: the run was stored by a version that sealed no rows, "
            "and has not gone on since"
        )


def _problem_of_row(place: RowKey, now: str | None, sealed: str) -> str:
    if now is None:
        return f"{_describe_row(*place)} was removed, or cannot be read"
    return _describe_change(_describe_row(*place), sealed) if now != sealed else ""


def _describe_change(name: str, digest: str) -> str:
    if is_keyed(digest) and not read_log_key():
        return f"rows were sealed under {LOG_KEY}, which is not set: set it to check this run"
    if read_log_key() and not is_keyed(digest):
        return f"{name} was not sealed under {LOG_KEY}"
    return f"{name} was changed"


def _describe_row(table: str, key: str) -> str:
    name = _NAMES.get(table, table)
    return {"observations": f"O{key}", "evidence": f"E{key}", "reports": "the report"}.get(
        table, f"{name} {key}"
    )


def _check_bodies(db: Database, run: str, found: _Findings) -> None:
    """Whether each body is there, and is what its hash says."""
    there = {}
    for row in db.rows(_BODIES, {"run": run}):
        there[row["sha256"]] = _problem_of_body(row)
    for row in db.rows(_POINTERS, {"run": run}):
        problem = there.get(row["body"], "is missing")
        if problem:
            found.problems.append(f"body {str(row['body'])[:12]} {problem}")


def _problem_of_body(row: Row) -> str:
    raw = _unpack_body(row["data"])
    if raw is None:
        return "is damaged"
    if hashlib.sha256(raw).hexdigest() != row["sha256"]:
        return "was changed: its bytes do not have this hash"
    return "" if len(raw) == row["size"] else "was changed: its size is not that of its bytes"


def _check_snapshots(db: Database, run: str, found: _Findings) -> None:
    """Whether what models were sent and said has the ids that it is found by."""
    for row in db.rows(_SNAPSHOTS, (run,)):
        raw = _unpack_body(row["data"])
        if raw is None or hashlib.sha256(raw).hexdigest()[:16] != row["id"]:
            found.problems.append(f"snapshot {row['id']} was changed: its bytes do not have this hash")


def _unpack_body(data: bytes) -> bytes | None:
    """The bytes that were compressed; None for anything that is not a whole stream, or has something behind it."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(data)
    except zlib.error:
        return None
    return raw if stream.eof and not stream.unused_data else None


def _check_anchor(db: Database, run: str, seals: Sequence[Seal], anchor: str, found: _Findings) -> None:
    """Whether the run that was noted is a beginning of the run that is stored."""
    noted = _parse_head(anchor)
    if noted is None:
        found.problems.append(
            f"{anchor[:80]!r} is not a head: it looks like 84-52-0f3c… and is printed when a run ends"
        )
        return
    event = db.row("SELECT hash FROM events WHERE run = ? AND seq = ?", (run, noted.events))
    if event is None and noted.events:
        found.problems.append(f"events were removed: the run had {noted.events} when the head was noted")
        return
    chained = [seal for seal in seals if seal.seq <= noted.seals]
    if len(chained) < noted.seals:
        found.problems.append(f"seals were removed: the run had {noted.seals} when the head was noted")
        return
    end = fold_seals(START, chained)
    last = ChainHead(noted.events, event["hash"] if event else FIRST)
    if _format_head(last, end) != anchor.strip():
        found.problems.append("the run is not the one whose head was noted: it was rewritten")


def _format_head(events: ChainHead, seals: ChainHead) -> str:
    both = hashlib.sha256(f"{events.hash} {seals.hash}".encode()).hexdigest()
    return f"{events.seq}-{seals.seq}-{both[:32]}"


def _parse_head(text: str) -> AnchoredHead | None:
    match = _HEAD.fullmatch(text.strip())
    return AnchoredHead(int(match[1]), int(match[2]), match[3]) if match else None
