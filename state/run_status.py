"""The status of a run and how it ended: one table for screens, JSON and exit codes."""

from enum import IntEnum, StrEnum


class Status(StrEnum):
    """Where a run is. `interrupted` is never stored: it is `running` without a live lock."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    TERMINATED = "terminated"


class StopReason(StrEnum):
    """Why a run ended."""

    CONCLUDED = "concluded"
    TURN_LIMIT = "turn_limit"
    TIME_LIMIT = "time_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 - a reason, no password
    COST_LIMIT = "cost_limit"
    STAGNATION = "stagnation"
    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_REFUSED = "model_refused"
    MALFORMED_DECISIONS = "malformed_decisions"
    INTERNAL_ERROR = "internal_error"
    CANCELED = "canceled"
    TERMINATED = "terminated"

    @classmethod
    def _missing_(cls, value: object) -> "StopReason | None":
        """Older versions had a reason of its own for a source that is gone; their rows are read as its nearest kin."""
        return cls.MODEL_UNAVAILABLE if value == "source_unavailable" else None


class Verdict(StrEnum):
    """What the investigation found."""

    CAUSE_FOUND = "cause_found"
    HEALTHY = "healthy"
    ANSWERED = "answered"
    INCONCLUSIVE = "inconclusive"


class ExitCode(IntEnum):
    """Exit codes of the command line, with their meaning as text in `MEANING`."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    WAITING = 4
    DENIED = 5
    LIMIT = 6
    UNREACHABLE = 7
    CONFIG = 8
    NOT_FOUND = 9
    BUSY = 10
    UNREADABLE = 11
    CHECK_FAILED = 12
    EFFECT_UNKNOWN = 13
    CANCELED = 14
    WORSE = 15
    SIGINT = 130
    SIGPIPE = 141
    SIGTERM = 143


EXIT_CODE_MEANING: dict[ExitCode, str] = {
    ExitCode.OK: "concluded: what is claimed is measured, computed or marked as inferred, and every demand is met",
    ExitCode.INTERNAL: "internal error (the traceback goes to the log file only)",
    ExitCode.USAGE: "usage",
    ExitCode.INCONCLUSIVE: "finished, but inconclusive, or a demand is not met, or an objection of the reviewer stands",
    ExitCode.WAITING: "waiting or paused: approval needed, nobody to ask",
    ExitCode.DENIED: "finished, but policy or an operator denied a required call",
    ExitCode.LIMIT: "turn, time, token or cost limit, or stagnation; partial report; resumable",
    ExitCode.UNREACHABLE: "model or data source unreachable or unusable; partial report; worth retrying",
    ExitCode.CONFIG: "configuration, trust or credential problem, or a case that cannot be read",
    ExitCode.NOT_FOUND: "run, checkpoint, evidence or approval not found, or ambiguous",
    ExitCode.BUSY: "run is busy: lock held by another live process",
    ExitCode.UNREADABLE: "stored state cannot be read (schema or graph version), nothing changed",
    ExitCode.CHECK_FAILED: "an action ran, its check failed",
    ExitCode.EFFECT_UNKNOWN: "effect unknown after a crash or interrupt",
    ExitCode.CANCELED: "canceled or terminated by an operator",
    ExitCode.WORSE: "eval: worse than the gate allows, or an unsafe action",
    ExitCode.SIGINT: "SIGINT",
    ExitCode.SIGPIPE: "broken pipe",
    ExitCode.SIGTERM: "SIGTERM",
}

# When several codes apply, the highest danger wins.
EXIT_CODES_BY_DANGER = (
    ExitCode.EFFECT_UNKNOWN,
    ExitCode.CHECK_FAILED,
    ExitCode.INTERNAL,
    ExitCode.SIGINT,
    ExitCode.SIGTERM,
    ExitCode.CANCELED,
    ExitCode.DENIED,
    ExitCode.WAITING,
    ExitCode.LIMIT,
    ExitCode.CONFIG,
    ExitCode.UNREACHABLE,
    ExitCode.INCONCLUSIVE,
    ExitCode.OK,
)

# How each stop reason is shown: the status it leads to and the code a process ends with.
ENDING_BY_STOP_REASON: dict[StopReason, tuple[Status, ExitCode]] = {
    StopReason.CONCLUDED: (Status.COMPLETED, ExitCode.OK),
    StopReason.TURN_LIMIT: (Status.COMPLETED, ExitCode.LIMIT),
    StopReason.TIME_LIMIT: (Status.COMPLETED, ExitCode.LIMIT),
    StopReason.TOKEN_LIMIT: (Status.COMPLETED, ExitCode.LIMIT),
    StopReason.COST_LIMIT: (Status.COMPLETED, ExitCode.LIMIT),
    StopReason.STAGNATION: (Status.COMPLETED, ExitCode.LIMIT),
    StopReason.MODEL_UNAVAILABLE: (Status.FAILED, ExitCode.UNREACHABLE),
    StopReason.MODEL_REFUSED: (Status.FAILED, ExitCode.CONFIG),
    StopReason.MALFORMED_DECISIONS: (Status.FAILED, ExitCode.UNREACHABLE),
    StopReason.INTERNAL_ERROR: (Status.FAILED, ExitCode.INTERNAL),
    StopReason.CANCELED: (Status.CANCELED, ExitCode.CANCELED),
    StopReason.TERMINATED: (Status.TERMINATED, ExitCode.CANCELED),
}

FINISHED_STATUSES = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELED, Status.TERMINATED})


UNFINISHED = ExitCode.UNREACHABLE
"""For a run that was interrupted without a signal: it is worth a resume, and not a success."""


def choose_exit_code(
    status: Status,
    stop_reason: StopReason | None,
    verdict: Verdict | None,
    *,
    unknown_effects: bool = False,
    failed_checks: bool = False,
    denied: bool = False,
    open_points: bool = False,
) -> ExitCode:
    """The code a process ends with for a run in this condition (the table of the command line).

    OK takes a conclusion: a run that ended without a reason, or has not ended, never has it.
    """
    if status in (Status.WAITING, Status.PAUSED):
        applies = {ExitCode.WAITING}
    elif status is Status.INTERRUPTED:
        applies = {UNFINISHED}
    elif stop_reason is None:
        applies = {ExitCode.INTERNAL}
    else:
        applies = {ExitCode.OK}
    if stop_reason is not None:
        applies.add(ENDING_BY_STOP_REASON[stop_reason][1])
    if stop_reason is StopReason.CONCLUDED and verdict in (Verdict.INCONCLUSIVE, None):
        applies.add(ExitCode.INCONCLUSIVE)
    if open_points and stop_reason is StopReason.CONCLUDED:
        applies.add(ExitCode.INCONCLUSIVE)
    if denied:
        applies.add(ExitCode.DENIED)
    if failed_checks:
        applies.add(ExitCode.CHECK_FAILED)
    if unknown_effects:
        applies.add(ExitCode.EFFECT_UNKNOWN)
    return next(code for code in EXIT_CODES_BY_DANGER if code in applies)
