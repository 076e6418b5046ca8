"""A repository of GitHub: its deployments, and the pull requests that were merged."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import AwareDatetime, Field

from opsleuth.analysis.records import Change
from opsleuth.tools.sources.code_host import MOST_PAGES, PER_PAGE, CodeHost, Reader
from opsleuth.tools.sources.http import Session
from opsleuth.tools.sources.http_source import Reply
from opsleuth.tools.sources.live import Surroundings
from opsleuth.tools.sources.settings import GitHub


class _User(Reply):
    login: str = ""


class _Deployment(Reply):
    created: AwareDatetime = Field(alias="created_at")
    sha: str
    ref: str = ""
    environment: str = ""
    description: str | None = None
    creator: _User | None = None


class _Pull(Reply):
    number: int
    title: str
    merged: AwareDatetime | None = Field(default=None, alias="merged_at")
    updated: AwareDatetime = Field(alias="updated_at")
    user: _User | None = None
    sha: str | None = Field(default=None, alias="merge_commit_sha")


class _Many(Reply):
    deployments: list[_Deployment] = Field(default_factory=list)
    pulls: list[_Pull] = Field(default_factory=list)


class _Repository(Reply):
    full_name: str


class GitHubSource(CodeHost[GitHub]):
    """The source of kind `github`."""

    product = "GitHub"

    def __init__(self, name: str, settings: GitHub, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self.before = settings.before
        self.service = self.named(settings.service or settings.repository.partition("/")[2])

    def readers(self) -> Mapping[str, Reader]:
        return {"deployments": self._deployments, "pull requests": self._merged}

    async def _deployments(self, session: Session, since: float) -> Sequence[Change]:
        found: list[_Deployment] = []
        for page in range(1, MOST_PAGES + 1):
            document = await self._page(session, "deployments", page)
            found += (more := self.parsed(_Many, {"deployments": document}).deployments)
            if len(more) < PER_PAGE or more[-1].created.timestamp() < since:
                break
        wanted = self.settings.environments
        return [self._deployed(d) for d in found if not wanted or d.environment in wanted]

    def _deployed(self, deployment: _Deployment) -> Change:
        ref = deployment.ref or deployment.sha[:12]
        to = f" to {deployment.environment}" if deployment.environment else ""
        said = f": {deployment.description}" if deployment.description else ""
        return Change(
            time=deployment.created.timestamp(),
            service=self.service,
            kind="deploy",
            summary=f"deployed {ref}{to}{said}"[:1_000],
            version=ref,
            author=deployment.creator.login if deployment.creator else None,
            extra={"commit": deployment.sha[:12], "environment": deployment.environment},
        )

    async def _merged(self, session: Session, since: float) -> Sequence[Change]:
        found: list[_Pull] = []
        for page in range(1, MOST_PAGES + 1):
            document = await self._page(
                session, "pulls", page, state="closed", sort="updated", direction="desc"
            )
            found += (more := self.parsed(_Many, {"pulls": document}).pulls)
            if len(more) < PER_PAGE or more[-1].updated.timestamp() < since:
                break
        return [
            Change(
                time=pull.merged.timestamp(),
                service=self.service,
                kind="merge",
                summary=f"#{pull.number} {pull.title}",
                author=pull.user.login if pull.user else None,
                extra={"commit": (pull.sha or "")[:12]},
            )
            for pull in found
            if pull.merged is not None
        ]

    async def _page(self, session: Session, what: str, page: int, **parameters: str) -> Any:  # noqa: ANN401 - any JSON value
        path = f"/repos/{self.settings.repository}/{what}"
        return (await session.get(path, per_page=str(PER_PAGE), page=str(page), **parameters)).document

    async def place(self, session: Session) -> str:
        answer = await session.get(f"/repos/{self.settings.repository}")
        return self.parsed(_Repository, answer.document).full_name
