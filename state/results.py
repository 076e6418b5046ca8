"""What came of a call, as the store keeps it and every room reads it. Plain dataclasses: no framework is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ResultStatus(StrEnum):
    """What came of a call. The last two before the errors are no errors: only `none_matched` supports absence."""

    OK = "ok"
    NONE_MATCHED = "none_matched"
    NOT_RECORDED = "not_recorded"
    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"
    INVALID_ARGUMENTS = "invalid_arguments"
    NOT_PERMITTED = "not_permitted"
    CANCELED = "canceled"
    UNKNOWN = "unknown"

    @property
    def is_error(self) -> bool:
        return self not in (ResultStatus.OK, ResultStatus.NONE_MATCHED, ResultStatus.NOT_RECORDED)


@dataclass(frozen=True, slots=True)
class CallResult:
    """The outcome of one call after the executor: redacted, bounded, with its error class.

    `record` holds the redacted record, or `{"error": text}`. `tries` counts attempts, `ms` the time of all of them.
    """

    call_id: str
    status: ResultStatus
    record: Mapping[str, Any]
    headline: str
    source: str = ""
    query: str = ""
    scanned: int | None = None
    matched: int | None = None
    spark: tuple[float, ...] = ()
    tries: int = 1
    ms: int = 0
    from_record: str | None = None
    redactions: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """What one call gave back.

    `evidence` is the id to cite: its own, or the earlier call's it repeats. `tests` is the hypothesis that the
    call was made to test.
    """

    number: int
    call_id: str
    turn: int
    tool: str
    arguments: Mapping[str, Any]
    purpose: str
    status: ResultStatus
    evidence: str
    headline: str
    record: Mapping[str, Any]
    target: str | None = None
    source: str = ""
    tests: str | None = None
