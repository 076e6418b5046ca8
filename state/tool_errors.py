"""The errors that a tool may raise: each has a class of result and an exit code. Drawn in `opsleuth.state.errors`."""

from opsleuth.state.errors import OpsleuthError
from opsleuth.state.results import ResultStatus
from opsleuth.state.run_status import ExitCode


class ToolError(OpsleuthError):
    """A failure that a tool foresaw; `status` is its error class."""

    status = ResultStatus.INTERNAL


class InvalidArgumentsError(ToolError):
    """The request itself is wrong; the text says the accepted form and the nearest valid name."""

    exit_code = ExitCode.USAGE

    status = ResultStatus.INVALID_ARGUMENTS


class NotPermittedError(ToolError):
    """The backend or the policy refuses this request."""

    exit_code = ExitCode.CONFIG

    status = ResultStatus.NOT_PERMITTED


class TransientError(ToolError):
    """May heal by itself (a reset connection, 429, 503). `retry_after` in seconds, if the backend said so."""

    exit_code = ExitCode.UNREACHABLE

    status = ResultStatus.TRANSIENT

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class UnavailableError(ToolError):
    """The backend is down, or no such backend is configured."""

    exit_code = ExitCode.UNREACHABLE

    status = ResultStatus.UNAVAILABLE


class OutcomeUnknownError(ToolError):
    """An effect was sent and its outcome was not seen: never retried blindly."""

    exit_code = ExitCode.EFFECT_UNKNOWN

    status = ResultStatus.UNKNOWN
