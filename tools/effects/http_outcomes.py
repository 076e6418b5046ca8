"""What the status of an HTTP answer says of a change (made, not made, not known) and of a read (wrong, refused, may heal)."""

from http import HTTPStatus

from opsleuth.tools.spec import (
    InvalidArgumentsError,
    NotPermittedError,
    OutcomeUnknownError,
    TransientError,
    UnavailableError,
)

REFUSED_STATUSES = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.CONFLICT,
        HTTPStatus.PRECONDITION_FAILED,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
INVALID_REQUEST_STATUSES = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)


def check_change_made(status: int, what: str, said: str) -> None:
    """Return where `what` was made. Raises NotPermittedError and InvalidArgumentsError where it certainly was not, else OutcomeUnknownError."""
    if status in REFUSED_STATUSES:
        raise NotPermittedError(f"{what} was refused ({status}): {said}")
    if status in INVALID_REQUEST_STATUSES:
        raise InvalidArgumentsError(f"{what} cannot be done ({status}): {said}")
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise OutcomeUnknownError(f"{what} was answered {status}: {said}")


_HEALING_STATUSES = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)


def check_read_answered(status: int, what: str, said: str) -> None:
    """Return where `what` was answered. Raises TransientError only where the same read may succeed later.

    Else InvalidArgumentsError for a request that is wrong, NotPermittedError for one that is refused, UnavailableError for
    an address that leads elsewhere or takes no reads.
    """
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    if status in _HEALING_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise TransientError(f"{what} answered {status}: {said}")
    if status in REFUSED_STATUSES:
        raise NotPermittedError(f"{what} refuses ({status}): {said}")
    if status in INVALID_REQUEST_STATUSES:
        raise InvalidArgumentsError(f"{what} does not take this request ({status}): {said}")
    raise UnavailableError(f"{what} cannot be read at this address ({status}): {said}")
