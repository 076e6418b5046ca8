"""Annotations of Grafana: what people and pipelines noted on their dashboards, as changes of services."""

import re
from collections.abc import Sequence

from pydantic import Field

from opsleuth.analysis.records import Change, Span
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.http import Session
from opsleuth.tools.sources.http_source import HttpSource, Reply, clock_check
from opsleuth.tools.sources.live import Check, Fetched
from opsleuth.tools.sources.settings import Grafana

MOST = 1_000
_MARKUP = re.compile(r"<[^>]*>")
_KINDS = ("deploy", "config", "scale", "flag", "migration", "rollback")


class _Annotation(Reply):
    time: float
    end: float | None = Field(default=None, alias="timeEnd")
    text: str = ""
    tags: list[str] | None = None
    alert: str | None = Field(default=None, alias="alertName")
    login: str | None = None


class _Many(Reply):
    rows: list[_Annotation]


class _Health(Reply):
    version: str = "not told"


class GrafanaSource(HttpSource[Grafana]):
    """The source of kind `grafana`."""

    product = "Grafana"
    capabilities: frozenset[Capability] = frozenset({"changes"})

    async def ask(self, session: Session, capability: Capability, window: Span) -> Fetched:
        del capability
        start = window.start - self.settings.before
        answer = await session.get(
            "/api/annotations",
            **{"from": f"{start * 1000:.0f}", "to": f"{window.end * 1000:.0f}"},
            limit=str(MOST),
        )
        rows = self.parsed(_Many, {"rows": answer.document}).rows
        wanted = set(self.settings.tags)
        # What Grafana itself notes when an alert changes its state is no change of a service.
        noted = [row for row in rows if not row.alert and wanted <= set(row.tags or ())]
        cut = (f"more than {MOST:,} annotations: the rest was not read",) if len(rows) >= MOST else ()
        changes = sorted(map(self._change, noted), key=lambda change: change.time)
        return Fetched({"changes": changes}, missed=cut)

    def _change(self, row: _Annotation) -> Change:
        tags = row.tags or []
        front = f"{self.settings.service_tag}:"
        service = next((tag.removeprefix(front) for tag in tags if tag.startswith(front)), "unknown")
        text = " ".join(_MARKUP.sub(" ", row.text).split())
        kind = next((kind for kind in _KINDS if kind in tags), "deploy" if "deployment" in tags else "other")
        return Change(
            time=row.time / 1000,
            service=self.named(service),
            kind=kind,
            summary=text[:1_000] or ", ".join(tags) or "annotation",
            author=row.login or None,
            extra={"tags": tags} if tags else None,
        )

    async def check(self) -> Sequence[Check]:
        api, now = self.api(), self.clock.now().timestamp()
        async with api.session() as session:
            version = self.parsed(_Health, (await session.get("/api/health")).document).version
            found = await self.ask(session, "changes", Span(now - self.settings.before, now))
        number = len(found.rows["changes"])
        return [
            Check("version", "ok", version),
            clock_check(api.skew),
            Check("annotations", "ok", f"{number} of the last {self.settings.before / 3_600:g} h"),
        ]
