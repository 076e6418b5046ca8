"""A project of GitLab: its deployments that went well, and the merge requests that were merged."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pydantic import AwareDatetime, Field

from opsleuth.analysis.records import Change
from opsleuth.state.clock import stamp
from opsleuth.tools.sources.code_host import MOST_PAGES, PER_PAGE, CodeHost, Reader
from opsleuth.tools.sources.http import Session
from opsleuth.tools.sources.http_source import Reply
from opsleuth.tools.sources.live import Surroundings
from opsleuth.tools.sources.settings import GitLab


class _User(Reply):
    username: str = ""


class _Environment(Reply):
    name: str = ""


class _Deployment(Reply):
    created: AwareDatetime = Field(alias="created_at")
    finished: AwareDatetime | None = Field(default=None, alias="finished_at")
    sha: str
    ref: str = ""
    status: str = ""
    environment: _Environment | None = None
    user: _User | None = None


class _Merge(Reply):
    iid: int
    title: str
    merged: AwareDatetime | None = Field(default=None, alias="merged_at")
    author: _User | None = None
    sha: str | None = Field(default=None, alias="merge_commit_sha")


class _Many(Reply):
    deployments: list[_Deployment] = Field(default_factory=list)
    merges: list[_Merge] = Field(default_factory=list)


class _Project(Reply):
    path: str = Field(alias="path_with_namespace")


class GitLabSource(CodeHost[GitLab]):
    """The source of kind `gitlab`."""

    product = "GitLab"

    def __init__(self, name: str, settings: GitLab, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self.before = settings.before
        self.service = self.named(settings.service or settings.project.rpartition("/")[2])
        self._path = f"/api/v4/projects/{quote(settings.project, safe='')}"

    def readers(self) -> Mapping[str, Reader]:
        return {"deployments": self._deployments, "merge requests": self._merged}

    async def _deployments(self, session: Session, since: float) -> Sequence[Change]:
        rows = await self._pages(session, "deployments", since, order_by="updated_at", sort="desc")
        wanted = self.settings.environments
        found = self.parsed(_Many, {"deployments": rows}).deployments
        return [
            self._deployed(d, name)
            for d in found
            if (name := d.environment.name if d.environment else "") in wanted or not wanted
            if d.status in ("success", "running", "failed")
        ]

    def _deployed(self, deployment: _Deployment, environment: str) -> Change:
        ref = deployment.ref or deployment.sha[:12]
        how = "" if deployment.status == "success" else f" ({deployment.status})"
        return Change(
            time=(deployment.finished or deployment.created).timestamp(),
            service=self.service,
            kind="deploy",
            summary=f"deployed {ref} to {environment}{how}" if environment else f"deployed {ref}{how}",
            version=ref,
            author=deployment.user.username if deployment.user else None,
            extra={"commit": deployment.sha[:12], "environment": environment},
        )

    async def _merged(self, session: Session, since: float) -> Sequence[Change]:
        rows = await self._pages(session, "merge_requests", since, state="merged")
        return [
            Change(
                time=merge.merged.timestamp(),
                service=self.service,
                kind="merge",
                summary=f"!{merge.iid} {merge.title}",
                author=merge.author.username if merge.author else None,
                extra={"commit": (merge.sha or "")[:12]},
            )
            for merge in self.parsed(_Many, {"merges": rows}).merges
            if merge.merged is not None
        ]

    async def _pages(self, session: Session, what: str, since: float, **parameters: str) -> Sequence[Any]:
        """What was updated since then; a page that is not full is the last."""
        after = stamp(datetime.fromtimestamp(since, UTC))
        rows: list[Any] = []
        for page in range(1, MOST_PAGES + 1):
            answer = await session.get(
                f"{self._path}/{what}",
                updated_after=after,
                per_page=str(PER_PAGE),
                page=str(page),
                **parameters,
            )
            more = answer.document if isinstance(answer.document, list) else [answer.document]
            rows += more
            if len(more) < PER_PAGE:
                break
        return rows

    async def place(self, session: Session) -> str:
        return self.parsed(_Project, (await session.get(self._path)).document).path
