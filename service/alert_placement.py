"""Place an alert: in a run in progress, in a new one, or nowhere; and always in the ledger, with the reason.

A run that has ended is never changed: an alert that belongs to it starts another one that follows it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from opsleuth.alerts.grouping import (
    WITHIN,
    ReceivedAlert,
    alert_fingerprint,
    named_service,
    services_within_reach,
)
from opsleuth.alerts.severity import rank_severity
from opsleuth.checkpoints.control_requests import ANOTHER_ALERT
from opsleuth.checkpoints.service.alert_runs import AlertKind, AlertRun
from opsleuth.checkpoints.service.notices import OutgoingNotice
from opsleuth.checkpoints.service.received_alerts import AlertOutcome, AlertReceipt
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.service_settings import WebhookSettings
from opsleuth.service.alert_forms import alert_to_json
from opsleuth.state.clock import Clock

FLAPPING = 3
"""Returns after an end in one run; from then on, and at each doubling, the run and people are notified of it."""
MOST_NOTES = 30
"""The most notes of alerts that wait for one run; a planner reads no more."""


class PlacedRun(NamedTuple):
    """The run that something led to, and whether it was there before."""

    run: str
    joined: bool


class ServiceReach:
    """Which services belong to the incident of another one: those it calls and those that call it, up to three steps away."""

    def __init__(self, calls: Mapping[str, tuple[str, ...]]) -> None:
        self._calls = calls
        self._callers: dict[str, list[str]] = {}
        for caller, callees in calls.items():
            for callee in callees:
                self._callers.setdefault(callee, []).append(caller)
        self._known: dict[str, frozenset[str]] = {}

    def related_to(self, service: str) -> frozenset[str]:
        """The service itself and those that belong to its incident."""
        if service not in self._calls and service not in self._callers:
            return frozenset({service})
        if service not in self._known:
            found = services_within_reach(service, self._calls) | services_within_reach(
                service, self._callers
            )
            self._known[service] = frozenset(found)
        return self._known[service]


@dataclass(frozen=True, slots=True)
class IncomingAlert:
    """An alert on its way in: who sent it for which team, and what kind it is."""

    alert: ReceivedAlert
    team: str
    sender: str
    kind: AlertKind

    @classmethod
    def of(cls, alert: ReceivedAlert, team: str, sender: str, now: datetime) -> "IncomingAlert":
        """The alert with its kind."""
        kind = AlertKind(
            team=team,
            fingerprint=alert_fingerprint(alert),
            service=named_service(alert),
            severity=alert.severity,
            began=alert.began or now,
        )
        return cls(alert, team, sender, kind)


StartRun = Callable[[Store, IncomingAlert, str | None], str]
"""Starts a run about an alert, which may follow an ended one; its id."""


@dataclass(frozen=True, slots=True)
class AlertPlacer:
    """Places alerts, each within a transaction of the caller. `webhooks` hear of what is new about a run's alerts."""

    clock: Clock
    start: StartRun
    reach: ServiceReach
    webhooks: Mapping[str, WebhookSettings] = field(default_factory=dict)
    within: timedelta = WITHIN

    def place(self, store: Store, incoming: IncomingAlert) -> PlacedRun:
        """The run of an alert that fires; its row in the ledger is written with it."""
        known = store.alerts.find(incoming.team, incoming.kind.fingerprint)
        if known is not None and known.is_live:
            return self._repeat(store, incoming, known)
        related = self._find_related(store, incoming)
        if related is not None and related.is_live:
            return self._join(store, incoming, related)
        return self._start(store, incoming, known or related)

    def note_quiet(self, store: Store, incoming: IncomingAlert) -> None:
        """Write down an alert that starts nothing: it is over, or somebody keeps it quiet."""
        alert = incoming.alert
        known = store.alerts.find(incoming.team, incoming.kind.fingerprint)
        run = known.run if known is not None else None
        if alert.muted is not None:
            self._write(store, incoming, "muted", f"nothing was started: it is {alert.muted}", run)
        else:
            reason = "it is over" if run else "it is over, and no run is known for it"
            self._write(store, incoming, "resolved", reason, run)

    def note_companion(self, store: Store, incoming: IncomingAlert, run: str) -> None:
        """Write down an alert that came in one request with the one that the run is about, and is mentioned in its text."""
        known = store.alerts.find(incoming.team, incoming.kind.fingerprint)
        if known is None or not known.is_live:
            store.alerts.put(incoming.kind, run, alert_to_json(incoming.alert))
        self._write(
            store, incoming, "joined", f"it came in the same request as the alert of {run} is about", run
        )

    def _repeat(self, store: Store, incoming: IncomingAlert, known: AlertRun) -> PlacedRun:
        store.alerts.count_again(incoming.kind)
        outcome, reason = _describe_repetition(incoming.alert, known)
        note = None
        if outcome != "repeated":
            note = self._tell(store, incoming, known.run, outcome, f"{incoming.alert.name}: {reason}")
        self._write(store, incoming, outcome, reason, known.run, note=note)
        return PlacedRun(known.run, joined=True)

    def _join(self, store: Store, incoming: IncomingAlert, related: AlertRun) -> PlacedRun:
        run, service = related.run, incoming.kind.service
        store.alerts.put(incoming.kind, run, alert_to_json(incoming.alert))
        same = related.service == service
        reason = (
            f"{run} is about the same service, {service}"
            if same
            else f"{run} is about {related.service}, which {service} calls or is called by"
        )
        note = self._tell(store, incoming, run, "joined", incoming.alert.text)
        self._write(store, incoming, "joined", reason, run, note=note)
        return PlacedRun(run, joined=True)

    def _start(self, store: Store, incoming: IncomingAlert, earlier: AlertRun | None) -> PlacedRun:
        linked = earlier.run if earlier is not None else None
        run = self.start(store, incoming, linked)
        store.alerts.put(incoming.kind, run, alert_to_json(incoming.alert))
        if earlier is None:
            self._write(store, incoming, "started", "no run goes on about it", run)
            return PlacedRun(run, joined=False)
        store.control.add_note(run, f"an earlier run about this alert or its incident has ended: {linked}")
        reason = (
            f"it would belong to {linked}, which is {earlier.status}: a run that has ended is not changed"
        )
        self._write(store, incoming, "linked", reason, run, linked=linked)
        return PlacedRun(run, joined=False)

    def _find_related(self, store: Store, incoming: IncomingAlert) -> AlertRun | None:
        """The alert whose incident this one belongs to: of its service, or of one that calls it or that it calls."""
        service, began = incoming.kind.service, incoming.kind.began
        if service is None:
            return None
        services = sorted(self.reach.related_to(service))
        found = store.alerts.find_related(incoming.team, services, began - self.within, began + self.within)
        lately = self.clock.now() - self.within
        return next((one for one in found if one.is_live or (one.last and one.updated >= lately)), None)

    def _tell(
        self, store: Store, incoming: IncomingAlert, run: str, outcome: AlertOutcome, text: str
    ) -> int | None:
        """Tell the run, and people, what is new about its alerts; the number of the note, None where the run has enough of them."""
        alert = incoming.alert
        document = {
            "kind": f"alert_{outcome}",
            "task_id": run,
            "team": incoming.team,
            "detail": text,
            "alert": {"name": alert.name, "service": alert.service, "severity": alert.severity},
        }
        key = f"alert_{outcome}:{alert.name[:100]}:{alert.severity}"
        for name, webhook in self.webhooks.items():
            if not webhook.teams or incoming.team in webhook.teams:
                store.notices.put(
                    OutgoingNotice(run=run, key=key, target=name, kind=f"alert_{outcome}", document=document)
                )
        if store.control.count_notes(run, MOST_NOTES) >= MOST_NOTES:
            return None
        return store.control.add_note(run, f"{ANOTHER_ALERT}{text}"[:900])

    def _write(
        self,
        store: Store,
        incoming: IncomingAlert,
        outcome: AlertOutcome,
        reason: str,
        run: str | None,
        *,
        linked: str | None = None,
        note: int | None = None,
    ) -> None:
        alert = incoming.alert
        store.receipts.put(
            AlertReceipt(
                team=incoming.team,
                sender=incoming.sender,
                fingerprint=incoming.kind.fingerprint,
                name=alert.name,
                service=alert.service,
                severity=alert.severity,
                outcome=outcome,
                run=run,
                linked=linked,
                note=note,
                reason=reason,
                document=alert_to_json(alert),
            )
        )


def _describe_repetition(alert: ReceivedAlert, known: AlertRun) -> tuple[AlertOutcome, str]:
    """What a repeated alert reports to its run: that it got worse, that it flaps, or nothing new."""
    if rank_severity(alert.severity) > rank_severity(known.severity):
        return "escalated", f"its severity rose from {known.severity or 'none'} to {alert.severity}"
    if known.last:
        return "repeated", f"{known.run} is still investigating it"
    returns = known.refired + 1
    if returns >= FLAPPING and (returns % FLAPPING == 0) and _is_power_of_two(returns // FLAPPING):
        return "flapping", f"it was over and came back {returns} times since {known.run} began"
    return "repeated", f"it was over and fires again; {known.run} is still investigating it"


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
