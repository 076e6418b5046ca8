"""How an attempt ended, for the process that made it: the row, the last event, the exit code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opsleuth.checkpoints.store import Store
from opsleuth.state.run_status import UNFINISHED, ExitCode, Status, StopReason, Verdict, choose_exit_code

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
class AttemptOutcome:
    """The status of a run after an attempt. `report` is None where there is none yet."""

    run: str
    status: Status
    stop_reason: StopReason | None
    verdict: Verdict | None
    exit_code: ExitCode
    detail: str = ""
    report: Mapping[str, Any] | None = None


def attempt_outcome(
    store: Store,
    run: str,
    status: Status,
    stop_reason: StopReason | None,
    detail: str = "",
    signaled: ExitCode | None = None,
) -> AttemptOutcome:
    """The outcome of a run in this condition; effects and refusals are read from the store."""
    report = store.reports.get(run) if status in LAST_EVENT and stop_reason is not None else None
    verdict = Verdict(report["verdict"]) if report and report.get("verdict") else None
    effects = store.effects.list(run)
    inherited = store.effects.along(run)
    code = choose_exit_code(
        status,
        stop_reason,
        verdict,
        unknown_effects=any(effect.status in ("started", "unknown") for effect in inherited),
        failed_checks=any(effect.verified is False or effect.check_missing for effect in effects),
        denied=bool(report and report.get("denied")),
        open_points=bool(report and (report.get("unmet_demands") or report.get("objections"))),
    )
    if signaled is not None and code is UNFINISHED:
        code = signaled
    return AttemptOutcome(run, status, stop_reason, verdict, code, detail, report)
