"""Annotations of Grafana: what people and pipelines noted on their dashboards, as changes of services."""

import re
from collections.abc import Sequence

from pydantic import Field

from opsleuth.analysis.records import ServiceChange, TimeRange
from opsleuth.configuration.source_settings import GrafanaSettings
from opsleuth.tools.sources.http_client import HttpSession
from opsleuth.tools.sources.http_source import BackendReply, HttpSource, check_clock_skew
from opsleuth.tools.sources.live_source import FetchedRows, SourceCheck
from opsleuth.tools.sources.source_protocols import Capability

MOST_ANNOTATIONS = 1_000
_MARKUP = re.compile(r"<[^>]*>")
_KINDS = ("deploy", "config", "scale", "flag", "migration", "rollback")


class _GrafanaAnnotation(BackendReply):
    time: float
    end: float | None = Field(default=None, alias="timeEnd")
    text: str = ""
    tags: list[str] | None = None
    alert: str | None = Field(default=None, alias="alertName")
    login: str | None = None


class _AnnotationRows(BackendReply):
    rows: list[_GrafanaAnnotation]


class _GrafanaHealth(BackendReply):
    version: str = "not told"


class GrafanaSource(HttpSource[GrafanaSettings]):
    """The source of kind `grafana`."""

    product = "Grafana"
    capabilities: frozenset[Capability] = frozenset({"changes"})

    async def ask(self, session: HttpSession, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability
        start = window.start - self.settings.before
        answer = await session.get(
            "/api/annotations",
            **{"from": f"{start * 1000:.0f}", "to": f"{window.end * 1000:.0f}"},
            limit=str(MOST_ANNOTATIONS),
        )
        rows = self.parsed(_AnnotationRows, {"rows": answer.document}).rows
        wanted = set(self.settings.tags)
        # What Grafana itself notes when an alert changes its state is not a change to a service.
        noted = [row for row in rows if not row.alert and wanted <= set(row.tags or ())]
        cut = (
            (f"more than {MOST_ANNOTATIONS:,} annotations: the rest was not read",)
            if len(rows) >= MOST_ANNOTATIONS
            else ()
        )
        changes = sorted(map(self._change, noted), key=lambda change: change.time)
        return FetchedRows({"changes": changes}, missed=cut)

    def _change(self, row: _GrafanaAnnotation) -> ServiceChange:
        tags = row.tags or []
        front = f"{self.settings.service_tag}:"
        service = next((tag.removeprefix(front) for tag in tags if tag.startswith(front)), "unknown")
        text = " ".join(_MARKUP.sub(" ", row.text).split())
        kind = next((kind for kind in _KINDS if kind in tags), "deploy" if "deployment" in tags else "other")
        return ServiceChange(
            time=row.time / 1000,
            service=self.named(service),
            kind=kind,
            summary=text[:1_000] or ", ".join(tags) or "annotation",
            author=row.login or None,
            extra={"tags": tags} if tags else None,
        )

    async def check(self) -> Sequence[SourceCheck]:
        api, now = self.api(), self.clock.now().timestamp()
        async with api.session() as session:
            version = self.parsed(_GrafanaHealth, (await session.get("/api/health")).document).version
            found = await self.ask(session, "changes", TimeRange(now - self.settings.before, now))
        number = len(found.rows["changes"])
        return [
            SourceCheck("version", "ok", version),
            check_clock_skew(api.skew),
            SourceCheck("annotations", "ok", f"{number} of the last {self.settings.before / 3_600:g} h"),
        ]
