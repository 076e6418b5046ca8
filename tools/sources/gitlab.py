"""A project of GitLab: its deployments that went well, and the merge requests that were merged."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pydantic import AwareDatetime, Field

from opsleuth.analysis.records import ServiceChange
from opsleuth.configuration.source_settings import GitLabSettings
from opsleuth.state.clock import format_timestamp
from opsleuth.tools.sources.code_host import (
    MOST_PAGES,
    PER_PAGE,
    CodeHostSource,
    Reader,
    is_last,
    note_cut,
)
from opsleuth.tools.sources.http_client import HttpSession
from opsleuth.tools.sources.http_source import BackendReply
from opsleuth.tools.sources.live_source import SourceRuntime


class _GitLabUser(BackendReply):
    username: str = ""


class _GitLabEnvironment(BackendReply):
    name: str = ""


class _GitLabDeployment(BackendReply):
    created: AwareDatetime = Field(alias="created_at")
    finished: AwareDatetime | None = Field(default=None, alias="finished_at")
    sha: str
    ref: str = ""
    status: str = ""
    environment: _GitLabEnvironment | None = None
    user: _GitLabUser | None = None


class _MergeRequest(BackendReply):
    iid: int
    title: str
    merged: AwareDatetime | None = Field(default=None, alias="merged_at")
    author: _GitLabUser | None = None
    sha: str | None = Field(default=None, alias="merge_commit_sha")


class _GitLabRows(BackendReply):
    deployments: list[_GitLabDeployment] = Field(default_factory=list)
    merges: list[_MergeRequest] = Field(default_factory=list)


class _GitLabProject(BackendReply):
    path: str = Field(alias="path_with_namespace")


class GitLabSource(CodeHostSource[GitLabSettings]):
    """The source of kind `gitlab`."""

    product = "GitLab"

    def __init__(self, name: str, settings: GitLabSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self.before = settings.before
        self.service = self.named(settings.service or settings.project.rpartition("/")[2])
        self._path = f"/api/v4/projects/{quote(settings.project, safe='')}"

    def readers(self) -> Mapping[str, Reader]:
        return {"deployments": self._deployments, "merge requests": self._merged}

    async def _deployments(self, session: HttpSession, since: float) -> Sequence[ServiceChange]:
        rows = await self._pages(session, "deployments", since, order_by="updated_at", sort="desc")
        wanted = self.settings.environments
        found = self.parsed(_GitLabRows, {"deployments": rows}).deployments
        return [
            self._deployed(d, name)
            for d in found
            if (name := d.environment.name if d.environment else "") in wanted or not wanted
            if d.status in ("success", "running", "failed")
        ]

    def _deployed(self, deployment: _GitLabDeployment, environment: str) -> ServiceChange:
        ref = deployment.ref or deployment.sha[:12]
        how = "" if deployment.status == "success" else f" ({deployment.status})"
        return ServiceChange(
            time=(deployment.finished or deployment.created).timestamp(),
            service=self.service,
            kind="deploy",
            summary=f"deployed {ref} to {environment}{how}" if environment else f"deployed {ref}{how}",
            version=ref,
            author=deployment.user.username if deployment.user else None,
            extra={"commit": deployment.sha[:12], "environment": environment},
        )

    async def _merged(self, session: HttpSession, since: float) -> Sequence[ServiceChange]:
        rows = await self._pages(session, "merge_requests", since, state="merged")
        return [
            ServiceChange(
                time=merge.merged.timestamp(),
                service=self.service,
                kind="merge",
                summary=f"!{merge.iid} {merge.title}",
                author=merge.author.username if merge.author else None,
                extra={"commit": (merge.sha or "")[:12]},
            )
            for merge in self.parsed(_GitLabRows, {"merges": rows}).merges
            if merge.merged is not None
        ]

    async def _pages(self, session: HttpSession, what: str, since: float, **parameters: str) -> Sequence[Any]:
        """What was updated since then."""
        after = format_timestamp(datetime.fromtimestamp(since, UTC))
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
            if is_last(answer, more):
                break
        else:
            note_cut(session, what)
        return rows

    async def place(self, session: HttpSession) -> str:
        return self.parsed(_GitLabProject, (await session.get(self._path)).document).path
