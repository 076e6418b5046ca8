"""Intake: a request becomes a run and a place in the queue, in one transaction; a repeated one joins its run."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from opsleuth.alerts.documents import all_muted, declared_calls, parse_alert_document
from opsleuth.alerts.grouping import WITHIN, ReceivedAlert, alert_fingerprint, group_into_incidents
from opsleuth.alerts.severity import rank_severity
from opsleuth.alerts.subject import select_firing_alerts, sort_incidents, subject_of
from opsleuth.checkpoints.errors import ConflictError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.intake import IntakeRow
from opsleuth.checkpoints.service.received_alerts import AlertReceipt
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.service_settings import WebhookSettings
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.queued import queue_run
from opsleuth.service.alert_forms import alert_as_request, alert_from_json, alert_from_own_form
from opsleuth.service.alert_placement import AlertPlacer, IncomingAlert, PlacedRun, ServiceReach, StartRun
from opsleuth.service.documents import TaskAsked
from opsleuth.state.canonical_json import canonical_sha256
from opsleuth.state.clock import Clock
from opsleuth.state.errors import UsageError
from opsleuth.state.limit_caps import LimitCaps
from opsleuth.state.run_id import new_run_id

ID_LENGTH = 10
"""Letters and digits after the date: many machines draw at once, and none may be guessed by trying."""
_DRAWS = 5


Enqueue = Callable[[Store, Sequence[IntakeRow]], None]
"""Puts runs in line, in the transaction that goes on in this store."""


@dataclass(frozen=True, slots=True)
class RequestSender:
    """Who sends, for which team; `request` is the idempotency key."""

    name: str
    team: str
    request: str | None = None


class ReusedKeyError(ConflictError):
    """An idempotency key came again with another request."""


@dataclass(frozen=True, slots=True)
class RequestIntake:
    """Where requests are taken in. `settings` are of every run: what may be looked at is the operator's word."""

    settings: RunSettings
    enqueue: Enqueue
    clock: Clock
    within: timedelta = WITHIN
    webhooks: Mapping[str, WebhookSettings] = field(default_factory=dict)
    """Who hears of what is new about the alerts of a run."""
    _reach: ServiceReach = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reach", ServiceReach(declared_calls(self.settings.sources)))

    def take(self, store: Store, asked: TaskAsked, sender: RequestSender) -> PlacedRun:
        """The run of a request: a new one, or the one that it joins. Raises UsageError, ReusedKeyError."""
        self.refuse_limits_above_caps(asked.limits.model_dump(mode="json", exclude_none=True))
        document = asked.model_dump(mode="json", exclude_defaults=True)
        with store.transaction():
            store.intake.one_at_a_time(sender.team)
            if known := self._sent_before(store, sender, document):
                return PlacedRun(known, joined=True)
            if asked.alert and asked.question is None:
                return self._take_alerts(store, asked, sender, document)
            run = self._start(store, asked, sender, document).run
            if asked.alert:
                self._note_companions(store, parse_alert_document(asked.alert), sender, run)
            return PlacedRun(run, joined=False)

    @property
    def caps(self) -> LimitCaps:
        """The operator's upper bounds of what a request may ask for."""
        return LimitCaps.model_validate(self.settings.caps or {})

    def refuse_limits_above_caps(self, limits: Mapping[str, Any]) -> None:
        """Raises UsageError where a request asks for more than the operator allows."""
        if excess := self.caps.describe_excess(limits):
            raise UsageError(f"{excess}: ask for less, or leave it out to get what is allowed")

    @contextmanager
    def _placing(self, store: Store) -> Iterator[AlertPlacer]:
        """Places alerts; the runs that they start are put in line together, when the block ends."""
        started: list[IntakeRow] = []

        def start(own: Store, incoming: IncomingAlert, follows: str | None) -> str:
            started.append(self._store_run_of_alert(own, incoming, follows))
            return started[-1].run

        yield self._placer_with(start)
        if started:
            self.enqueue(store, started)

    def _placer_with(self, start: StartRun) -> AlertPlacer:
        return AlertPlacer(self.clock, start, self._reach, self.webhooks, self.within)

    def receive_batch(
        self,
        store: Store,
        alerts: Sequence[ReceivedAlert],
        sender: RequestSender,
        firing: Collection[str] = (),
    ) -> list[PlacedRun]:
        """The run of each alert that fires, in one transaction. Those that are over or kept quiet start nothing.

        `firing` are the fingerprints that fire somewhere in the same message: they are not over for one pod that recovered.
        """
        now, placed = self.clock.now(), []
        with store.transaction(), self._placing(store) as placer:
            store.intake.one_at_a_time(sender.team)
            for alert in alerts:
                incoming = IncomingAlert.of(alert, sender.team, sender.name, now)
                if alert.over is None and alert.muted is None:
                    placed.append(placer.place(store, incoming))
                    continue
                if alert.over is not None and incoming.kind.fingerprint not in firing:
                    store.alerts.over(sender.team, incoming.kind.fingerprint)
                placer.note_quiet(store, incoming)
        return placed

    def follow_unheard(self, store: Store, run: str, team: str) -> list[PlacedRun]:
        """Place the alerts again that joined a run just before its end, so that it never heard of them."""
        with store.transaction(), self._placing(store) as placer:
            store.intake.one_at_a_time(team)
            notes, placed = store.receipts.list_of_notes(run), []
            for wish in store.control.pending(run):
                if wish.kind == "note" and (receipt := notes.get(wish.id)):
                    alert = alert_from_json(receipt.document)
                    incoming = IncomingAlert.of(alert, team, receipt.sender, self.clock.now())
                    placed.append(placer.place(store, incoming))
                    store.control.drop_request(wish.id)
        return placed

    def note_unreadable(self, store: Store, sender: RequestSender, count: int) -> None:
        """Write down that a message held entries that are not alerts."""
        reason = f"{count} entries in the list of alerts are not JSON objects"
        store.receipts.put(
            AlertReceipt(
                team=sender.team,
                sender=sender.name,
                fingerprint="",
                name="",
                outcome="unreadable",
                reason=reason,
            )
        )

    def _sent_before(self, store: Store, sender: RequestSender, document: Mapping[str, Any]) -> str | None:
        known = store.intake.of_request(sender.team, sender.request) if sender.request else None
        if known is None:
            return None
        if known.digest != canonical_sha256(document):
            raise ReusedKeyError(
                f"the idempotency key was used for another request, {known.run}: draw a new key for each request"
            )
        return known.run

    def _take_alerts(
        self, store: Store, asked: TaskAsked, sender: RequestSender, document: Mapping[str, Any]
    ) -> PlacedRun:
        """One document of alerts is one request, about its first incident; whatever it joins, it joins as a whole."""
        alerts = parse_alert_document(asked.alert or {}) or (alert_from_own_form(asked.alert or {}),)
        forget_resolved_alerts(store, alerts, sender.team)
        asking, now = select_firing_alerts(alerts), self.clock.now()
        if not asking:
            raise UsageError(all_muted(alerts))
        [first, *_] = sort_incidents(
            group_into_incidents(asking, declared_calls(self.settings.sources), now), "", now
        )
        subject = subject_of(first, "")

        def start(own: Store, incoming: IncomingAlert, follows: str | None) -> str:
            severity = rank_severity(incoming.alert.severity)
            return self._start(own, asked, sender, document, severity, follows).run

        placer = self._placer_with(start)
        placed = placer.place(store, IncomingAlert.of(subject, sender.team, sender.name, now))
        self._note_companions(store, [alert for alert in alerts if alert is not subject], sender, placed.run)
        return placed

    def _note_companions(
        self, store: Store, others: Sequence[ReceivedAlert], sender: RequestSender, run: str
    ) -> None:
        """Write down the alerts that came in one request with the one that the run is about."""
        with self._placing(store) as placer:
            for alert in others:
                incoming = IncomingAlert.of(alert, sender.team, sender.name, self.clock.now())
                if alert.over is not None or alert.muted is not None:
                    placer.note_quiet(store, incoming)
                else:
                    placer.note_companion(store, incoming, run)

    def _store_run_of_alert(self, store: Store, incoming: IncomingAlert, follows: str | None) -> IntakeRow:
        asked = TaskAsked(alert=alert_as_request(incoming.alert))
        sender = RequestSender(incoming.sender, incoming.team)
        return self._store_run(store, asked, sender, {}, rank_severity(incoming.alert.severity), follows)

    def _start(
        self,
        store: Store,
        asked: TaskAsked,
        sender: RequestSender,
        document: Mapping[str, Any],
        severity: int | None = None,
        follows: str | None = None,
    ) -> IntakeRow:
        taken = self._store_run(store, asked, sender, document, severity, follows)
        self.enqueue(store, [taken])
        return taken

    def _store_run(
        self,
        store: Store,
        asked: TaskAsked,
        sender: RequestSender,
        document: Mapping[str, Any],
        severity: int | None = None,
        follows: str | None = None,
    ) -> IntakeRow:
        """A run that is not in line yet."""
        row = self._queued(store, asked, sender)
        taken = IntakeRow(
            run=row.id,
            team=sender.team,
            severity=rank_severity(None) if severity is None else severity,
            sender=sender.name,
            request=sender.request,
            digest=canonical_sha256(document),
            follows=follows,
        )
        store.intake.put(taken)
        return taken

    def _queued(self, store: Store, asked: TaskAsked, sender: RequestSender) -> RunRow:
        """The run's row, under an id that nobody has."""
        for _ in range(_DRAWS):
            try:
                return queue_run(store, self._request(asked, sender), self.clock)
            except ConflictError:
                continue
        raise ConflictError(f"no free id was found in {_DRAWS} draws: try again")

    def _request(self, asked: TaskAsked, sender: RequestSender) -> StartRequest:
        read_only = self.settings.read_only or asked.read_only
        return StartRequest(
            run=new_run_id(self.clock.now(), length=ID_LENGTH),
            question=asked.question,
            alert=asked.alert,
            since=asked.since,
            until=asked.until,
            name=asked.name,
            project=sender.team,
            limits=asked.limits.model_dump(mode="json", exclude_none=True),
            settings=replace(self.settings, read_only=read_only),
        )


def forget_resolved_alerts(store: Store, alerts: Sequence[ReceivedAlert], team: str) -> None:
    """Kinds of alerts that are over; not those of which another one, of another pod perhaps, still fires."""
    for kind in {alert_fingerprint(alert) for alert in alerts} - firing_fingerprints(alerts):
        store.alerts.over(team, kind)


def firing_fingerprints(alerts: Iterable[ReceivedAlert]) -> set[str]:
    """The kinds of alerts that fire now."""
    return {alert_fingerprint(alert) for alert in alerts if alert.over is None}
