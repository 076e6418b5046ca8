"""The result of a call, as the store keeps it and every room reads it. Plain dataclasses: no framework is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class ResultStatus(StrEnum):
    """The result of a call. The last two before the errors are not errors: only `none_matched` supports absence."""

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

    @classmethod
    def not_run(
        cls,
        call_id: str,
        status: ResultStatus,
        text: str,
        *,
        record: Mapping[str, Any] | None = None,
        source: str = "",
        from_record: str | None = None,
    ) -> Self:
        """The result of a call for which no tool ran: `text` says why, and is the record too unless one is given."""
        return cls(
            call_id=call_id,
            status=status,
            record={"error": text} if record is None else record,
            headline=text[:300],
            source=source,
            from_record=from_record,
            tries=0,
        )


@dataclass(frozen=True, slots=True)
class Observation:
    """What one call gave back.

    `evidence` is the id to cite: its own, or the earlier call's it repeats. `tests` is the hypothesis that the
    call was made to test. `reason` is the planner's for the whole turn, kept with the turn's first call.
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
    reason: str = ""

    @property
    def has_own_evidence(self) -> bool:
        """Whether the evidence is this call's own: an answer from the record cites an earlier call's."""
        return self.evidence == f"E{self.number}"
