"""Who may do what over HTTP. Every token sees and touches the runs of its own team alone (`find_team_run`).

`view` reads tasks, reports, events, alerts and metrics; `run` starts, cancels and resumes tasks, whoever started them;
`approve` answers calls that wait. An address asks for its role by the type of its argument `token`.
"""

from typing import Annotated

from fastapi import Depends

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.tokens import ApiToken, Role
from opsleuth.checkpoints.store import Store
from opsleuth.service.api_context import RequestRefusedError, authenticate_caller

NO_TASK = "there is no such task"
"""The one answer for a run that does not exist and for another team's: neither can be told from the other."""


def _require_role(role: Role) -> object:
    def check(token: Annotated[ApiToken, Depends(authenticate_caller)]) -> ApiToken:
        if role not in token.roles:
            has = ", ".join(sorted(token.roles))
            raise RequestRefusedError(
                403, "forbidden", f"this needs a token with the role {role}; this one has {has}"
            )
        return token

    return Depends(check)


ViewToken = Annotated[ApiToken, _require_role("view")]
RunToken = Annotated[ApiToken, _require_role("run")]
ApproveToken = Annotated[ApiToken, _require_role("approve")]


def find_team_run(store: Store, run: str, token: ApiToken) -> RunRow:
    """The run with exactly this id, if it is this team's. Raises NotFoundError, the same for every other."""
    row = store.runs.get(run)
    if row is None or row.project != token.team:
        raise NotFoundError(NO_TASK)
    return row
