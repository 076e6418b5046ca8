"""Alertmanager: the alerts that fire, as events, and the silences that keep quiet about some, as objects."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import AwareDatetime, Field

from opsleuth.alerts.labels import behind_exporter
from opsleuth.alerts.subject import is_heartbeat
from opsleuth.analysis.records import ObjectState, PlatformEvent, TimeRange
from opsleuth.configuration.source_settings import AlertmanagerSettings
from opsleuth.tools.sources.http_client import HttpSession
from opsleuth.tools.sources.http_source import BackendReply, HttpSource, check_clock_skew
from opsleuth.tools.sources.live_source import FetchedRows, SourceCheck
from opsleuth.tools.sources.source_protocols import Capability


class _AlertState(BackendReply):
    state: str = ""
    silenced_by: list[str] = Field(default_factory=list, alias="silencedBy")
    inhibited_by: list[str] = Field(default_factory=list, alias="inhibitedBy")


class _FiringAlert(BackendReply):
    labels: dict[str, str]
    annotations: dict[str, str] = Field(default_factory=dict)
    starts: AwareDatetime = Field(alias="startsAt")
    updated: AwareDatetime = Field(alias="updatedAt")
    status: _AlertState


class _SilenceMatcher(BackendReply):
    name: str
    value: str
    regex: bool = Field(default=False, alias="isRegex")
    equal: bool = Field(default=True, alias="isEqual")


class _AlertmanagerSilence(BackendReply):
    id: str
    matchers: list[_SilenceMatcher]
    starts: AwareDatetime = Field(alias="startsAt")
    ends: AwareDatetime = Field(alias="endsAt")
    author: str = Field(default="", alias="createdBy")
    comment: str = ""
    status: _AlertState


class _AlertmanagerRows(BackendReply):
    alerts: list[_FiringAlert] = Field(default_factory=list)
    silences: list[_AlertmanagerSilence] = Field(default_factory=list)


class _AlertmanagerVersion(BackendReply):
    version: str = "not told"


class _AlertmanagerStatus(BackendReply):
    version: _AlertmanagerVersion = Field(default_factory=_AlertmanagerVersion, alias="versionInfo")


class AlertmanagerSource(HttpSource[AlertmanagerSettings]):
    """The source of kind `alertmanager`."""

    product = "Alertmanager"
    capabilities: frozenset[Capability] = frozenset({"events", "objects"})

    async def discover(self) -> None:
        async with self.api().session() as session:
            for alert in await self._alerts(session):
                self._service(alert.labels)

    async def ask(self, session: HttpSession, capability: Capability, window: TimeRange) -> FetchedRows:
        if capability == "objects":
            answer = await session.get("/api/v2/silences")
            silences = self.parsed(_AlertmanagerRows, {"silences": answer.document}).silences
            now = self.clock.now().timestamp()
            return FetchedRows(
                {
                    "objects": [
                        _silence_as_object(s, now) for s in silences if s.ends.timestamp() > window.start
                    ]
                }
            )
        alerts = [
            alert
            for alert in await self._alerts(session)
            if alert.starts.timestamp() < window.end and not is_heartbeat(alert.labels.get("alertname", ""))
        ]
        return FetchedRows({"events": [self._event(alert) for alert in alerts]})

    async def _alerts(self, session: HttpSession) -> Sequence[_FiringAlert]:
        return self.parsed(
            _AlertmanagerRows, {"alerts": (await session.get("/api/v2/alerts")).document}
        ).alerts

    def _service(self, labels: Mapping[str, str]) -> str:
        named = next((labels[label] for label in self.settings.service_labels if labels.get(label)), "")
        name = behind_exporter(named, labels)
        return self.named(name) if name else ""

    def _event(self, alert: _FiringAlert) -> PlatformEvent:
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

    async def check(self) -> Sequence[SourceCheck]:
        api = self.api()
        async with api.session() as session:
            version = self.parsed(
                _AlertmanagerStatus, (await session.get("/api/v2/status")).document
            ).version.version
            alerts = await self._alerts(session)
        return [
            SourceCheck("version", "ok", version),
            check_clock_skew(api.skew),
            SourceCheck("alerts", "ok", f"{len(alerts)} are firing"),
        ]


def _silence_as_object(silence: _AlertmanagerSilence, captured: float) -> ObjectState:
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
