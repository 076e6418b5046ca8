"""How an attempt ended, for the process that made it: the row, the last event, the exit code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opsleuth.checkpoints.store import Store
from opsleuth.state.outcome import ExitCode, Status, StopReason, Verdict, exit_code

LAST_EVENT = {
    Status.COMPLETED: "run.completed",
    Status.WAITING: "run.waiting",
    Status.PAUSED: "run.paused",
    Status.FAILED: "run.failed",
    Status.INTERRUPTED: "run.interrupted",
    Status.CANCELED: "run.canceled",
    Status.TERMINATED: "run.terminated",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run stands after an attempt. `report` is None where there is none yet."""

    run: str
    status: Status
    stop_reason: StopReason | None
    verdict: Verdict | None
    exit_code: ExitCode
    detail: str = ""
    report: Mapping[str, Any] | None = None


def outcome_of(
    store: Store,
    run: str,
    status: Status,
    stop_reason: StopReason | None,
    detail: str = "",
    signaled: ExitCode | None = None,
) -> Outcome:
    """The outcome of a run in this condition; effects and refusals are read from the store."""
    report = store.reports.get(run) if status in LAST_EVENT and stop_reason is not None else None
    verdict = Verdict(report["verdict"]) if report and report.get("verdict") else None
    effects = store.effects.list(run)
    code = exit_code(
        status,
        stop_reason,
        verdict,
        unknown_effects=any(effect.status in ("started", "unknown") for effect in effects),
        failed_checks=any(effect.verified is False for effect in effects),
        denied=bool(report and report.get("denied")),
    )
    if signaled is not None and code is ExitCode.OK:
        code = signaled
    return Outcome(run, status, stop_reason, verdict, code, detail, report)
