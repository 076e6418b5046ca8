"""What the status of an HTTP answer says of a change: made, certainly not made, or nobody knows."""

from http import HTTPStatus

from opsleuth.tools.spec import InvalidArguments, NotPermitted, OutcomeUnknown

REFUSED = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.CONFLICT,
        HTTPStatus.PRECONDITION_FAILED,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
WRONG = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)


def check_made(status: int, what: str, said: str) -> None:
    """Return where `what` was made. Raises NotPermitted and InvalidArguments where it certainly was not, else OutcomeUnknown."""
    if status in REFUSED:
        raise NotPermitted(f"{what} was refused ({status}): {said}")
    if status in WRONG:
        raise InvalidArguments(f"{what} cannot be done ({status}): {said}")
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise OutcomeUnknown(f"{what} was answered {status}: {said}")
