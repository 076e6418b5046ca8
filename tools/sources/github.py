"""A repository of GitHub: its deployments, and the pull requests that were merged."""

from collections.abc import Mapping, Sequence

from pydantic import AwareDatetime, Field

from opsleuth.analysis.records import ServiceChange
from opsleuth.configuration.source_settings import GitHubSettings
from opsleuth.tools.sources.code_host import (
    MOST_PAGES,
    PER_PAGE,
    CodeHostSource,
    Reader,
    is_last,
    note_cut,
)
from opsleuth.tools.sources.http_client import HttpSession, JsonResponse
from opsleuth.tools.sources.http_source import BackendReply
from opsleuth.tools.sources.live_source import SourceRuntime


class _GitHubUser(BackendReply):
    login: str = ""


class _GitHubDeployment(BackendReply):
    created: AwareDatetime = Field(alias="created_at")
    sha: str
    ref: str = ""
    environment: str = ""
    description: str | None = None
    creator: _GitHubUser | None = None


class _PullRequest(BackendReply):
    number: int
    title: str
    merged: AwareDatetime | None = Field(default=None, alias="merged_at")
    updated: AwareDatetime = Field(alias="updated_at")
    user: _GitHubUser | None = None
    sha: str | None = Field(default=None, alias="merge_commit_sha")


class _GitHubRows(BackendReply):
    deployments: list[_GitHubDeployment] = Field(default_factory=list)
    pulls: list[_PullRequest] = Field(default_factory=list)


class _GitHubRepository(BackendReply):
    full_name: str


class GitHubSource(CodeHostSource[GitHubSettings]):
    """The source of kind `github`."""

    product = "GitHub"

    def __init__(self, name: str, settings: GitHubSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self.before = settings.before
        self.service = self.named(settings.service or settings.repository.partition("/")[2])

    def readers(self) -> Mapping[str, Reader]:
        return {"deployments": self._deployments, "pull requests": self._merged}

    async def _deployments(self, session: HttpSession, since: float) -> Sequence[ServiceChange]:
        found: list[_GitHubDeployment] = []
        for page in range(1, MOST_PAGES + 1):
            answer = await self._page(session, "deployments", page)
            found += (more := self.parsed(_GitHubRows, {"deployments": answer.document}).deployments)
            if is_last(answer, more) or more[-1].created.timestamp() < since:
                break
        else:
            note_cut(session, "deployments")
        wanted = self.settings.environments
        return [self._deployed(d) for d in found if not wanted or d.environment in wanted]

    def _deployed(self, deployment: _GitHubDeployment) -> ServiceChange:
        ref = deployment.ref or deployment.sha[:12]
        to = f" to {deployment.environment}" if deployment.environment else ""
        said = f": {deployment.description}" if deployment.description else ""
        return ServiceChange(
            time=deployment.created.timestamp(),
            service=self.service,
            kind="deploy",
            summary=f"deployed {ref}{to}{said}"[:1_000],
            version=ref,
            author=deployment.creator.login if deployment.creator else None,
            extra={"commit": deployment.sha[:12], "environment": deployment.environment},
        )

    async def _merged(self, session: HttpSession, since: float) -> Sequence[ServiceChange]:
        found: list[_PullRequest] = []
        for page in range(1, MOST_PAGES + 1):
            answer = await self._page(
                session, "pulls", page, state="closed", sort="updated", direction="desc"
            )
            found += (more := self.parsed(_GitHubRows, {"pulls": answer.document}).pulls)
            if is_last(answer, more) or more[-1].updated.timestamp() < since:
                break
        else:
            note_cut(session, "pull requests")
        return [
            ServiceChange(
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

    async def _page(self, session: HttpSession, what: str, page: int, **parameters: str) -> JsonResponse:
        path = f"/repos/{self.settings.repository}/{what}"
        return await session.get(path, per_page=str(PER_PAGE), page=str(page), **parameters)

    async def place(self, session: HttpSession) -> str:
        answer = await session.get(f"/repos/{self.settings.repository}")
        return self.parsed(_GitHubRepository, answer.document).full_name
