"""Stored rows as JSON documents: the same fields wherever a command prints a run or a piece of evidence."""

from dataclasses import fields
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.checkpoints.processes import status_to_show
from opsleuth.checkpoints.runs import RunRow
from opsleuth.state.clock import format_timestamp
from opsleuth.state.json_types import JSON


def run_to_json(row: RunRow, *without: str) -> dict[str, Any]:
    """A run's columns except `without`; `status` is the status of the run now, whatever its row says."""
    return _columns_to_json(row, without) | {
        "status": status_to_show(row).value,
        "resumable": row.resumable,
        "replay": is_replay(row),
    }


def is_replay(row: RunRow) -> bool:
    """Whether the run replayed a recording: nothing of it was executed."""
    return bool(row.settings.get("replay"))


def evidence_to_json(row: EvidenceRow) -> dict[str, Any]:
    """The columns of a piece of evidence, with its id."""
    return _columns_to_json(row) | {"id": row.id}


def _columns_to_json(row: RunRow | EvidenceRow, without: tuple[str, ...] = ()) -> dict[str, Any]:
    return {f.name: _column_to_json(getattr(row, f.name)) for f in fields(row) if f.name not in without}


def _column_to_json(value: object) -> JSON:
    """Times as RFC 3339 text, money as decimal text, enumerations as their values."""
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    return value
