"""Alertmanager: the alerts that fire, as events, and the silences that keep quiet about some, as objects."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import AwareDatetime, Field

from opsleuth.analysis.records import ObjectState, PlatformEvent, Span
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.http import Session
from opsleuth.tools.sources.http_source import HttpSource, Reply, clock_check
from opsleuth.tools.sources.live import Check, Fetched
from opsleuth.tools.sources.settings import Alertmanager


class _State(Reply):
    state: str = ""
    silenced_by: list[str] = Field(default_factory=list, alias="silencedBy")
    inhibited_by: list[str] = Field(default_factory=list, alias="inhibitedBy")


class _Alert(Reply):
    labels: dict[str, str]
    annotations: dict[str, str] = Field(default_factory=dict)
    starts: AwareDatetime = Field(alias="startsAt")
    updated: AwareDatetime = Field(alias="updatedAt")
    status: _State


class _Matcher(Reply):
    name: str
    value: str
    regex: bool = Field(default=False, alias="isRegex")
    equal: bool = Field(default=True, alias="isEqual")


class _Silence(Reply):
    id: str
    matchers: list[_Matcher]
    starts: AwareDatetime = Field(alias="startsAt")
    ends: AwareDatetime = Field(alias="endsAt")
    author: str = Field(default="", alias="createdBy")
    comment: str = ""
    status: _State


class _Many(Reply):
    alerts: list[_Alert] = Field(default_factory=list)
    silences: list[_Silence] = Field(default_factory=list)


class _Version(Reply):
    version: str = "not told"


class _Status(Reply):
    version: _Version = Field(default_factory=_Version, alias="versionInfo")


class AlertmanagerSource(HttpSource[Alertmanager]):
    """The source of kind `alertmanager`."""

    product = "Alertmanager"
    capabilities: frozenset[Capability] = frozenset({"events", "objects"})

    async def discover(self) -> None:
        async with self.api().session() as session:
            for alert in await self._alerts(session):
                self._service(alert.labels)

    async def ask(self, session: Session, capability: Capability, window: Span) -> Fetched:
        if capability == "objects":
            answer = await session.get("/api/v2/silences")
            silences = self.parsed(_Many, {"silences": answer.document}).silences
            now = self.clock.now().timestamp()
            return Fetched(
                {"objects": [_silence(s, now) for s in silences if s.ends.timestamp() > window.start]}
            )
        alerts = [a for a in await self._alerts(session) if a.starts.timestamp() < window.end]
        return Fetched({"events": [self._event(alert) for alert in alerts]})

    async def _alerts(self, session: Session) -> Sequence[_Alert]:
        return self.parsed(_Many, {"alerts": (await session.get("/api/v2/alerts")).document}).alerts

    def _service(self, labels: Mapping[str, str]) -> str:
        name = next((labels[label] for label in self.settings.service_labels if labels.get(label)), "")
        return self.named(name) if name else ""

    def _event(self, alert: _Alert) -> PlatformEvent:
        name = alert.labels.get("alertname", "alert")
        said = alert.annotations.get("summary") or alert.annotations.get("description") or ""
        rest = ", ".join(f"{k}={v}" for k, v in sorted(alert.labels.items()) if k != "alertname")
        quiet = [
            *(f"silenced by {id_}" for id_ in alert.status.silenced_by),
            *(f"inhibited by {id_}" for id_ in alert.status.inhibited_by),
        ]
        return PlatformEvent(
            time=max(alert.updated, alert.starts).timestamp(),
            source="alertmanager",
            object=f"Alert/{self._service(alert.labels) or name}",
            type="Warning",
            reason=name,
            message="; ".join(filter(None, ["fires", said, rest, *quiet])),
            first_time=alert.starts.timestamp(),
        )

    async def check(self) -> Sequence[Check]:
        api = self.api()
        async with api.session() as session:
            version = self.parsed(_Status, (await session.get("/api/v2/status")).document).version.version
            alerts = await self._alerts(session)
        return [
            Check("version", "ok", version),
            clock_check(api.skew),
            Check("alerts", "ok", f"{len(alerts)} are firing"),
        ]


def _silence(silence: _Silence, captured: float) -> ObjectState:
    matchers = [f"{m.name}{'=' if m.equal else '!'}{'~' if m.regex else '' if m.equal else '='}{m.value}" for m in silence.matchers]  # fmt: skip
    status: dict[str, Any] = {
        "state": silence.status.state,
        "startsAt": silence.starts.isoformat(),
        "endsAt": silence.ends.isoformat(),
        "createdBy": silence.author,
        "comment": silence.comment,
    }
    return ObjectState(
        time=captured, kind="Silence", name=silence.id, status=status, spec={"matchers": matchers}
    )
