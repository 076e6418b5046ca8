"""Taking in: a request becomes a run and a place in the queue, in one transaction; what came before joins its run."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from opsleuth.checkpoints.alerts import Seen
from opsleuth.checkpoints.control import ANOTHER_ALERT
from opsleuth.checkpoints.errors import Conflict
from opsleuth.checkpoints.intake import Taken
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.alerts import declared_calls, received
from opsleuth.graph.prepare import Settings, StartRequest
from opsleuth.graph.queued import queue
from opsleuth.service.documents import TaskAsked
from opsleuth.service.severity import rank
from opsleuth.state.alerts import WITHIN, ReceivedAlert, fingerprint, incidents
from opsleuth.state.canonical import digest
from opsleuth.state.clock import Clock
from opsleuth.state.run_id import new_run_id

ID_LENGTH = 10
"""Letters and digits after the date: many machines draw at once, and none may be guessed by trying."""
_DRAWS = 5


Enqueue = Callable[[Store, Taken], None]
"""Puts a run in line, in the transaction that goes on in this store."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends, for which team; `request` is the idempotency key."""

    name: str
    team: str
    request: str | None = None


class Placed(NamedTuple):
    """The run that something led to, and whether it was there before."""

    run: str
    joined: bool


class ReusedKey(Conflict):
    """An idempotency key came again with another request."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Where requests are taken in. `settings` are of every run: what may be looked at is the operator's word."""

    settings: Settings
    enqueue: Enqueue
    clock: Clock
    within: timedelta = WITHIN

    def take(self, store: Store, asked: TaskAsked, sender: Sender) -> Placed:
        """The run of a request: a new one, or the one that it joins. Raises UsageError, ReusedKey."""
        document = asked.model_dump(mode="json", exclude_defaults=True)
        with store.transaction():
            store.intake.one_at_a_time(sender.team)
            if known := self._sent_before(store, sender, document):
                return Placed(known, joined=True)
            if asked.alert and asked.question is None:
                return self._alert(store, asked, sender, document)
            return Placed(self._start(store, asked, sender, document).id, joined=False)

    def receive(self, store: Store, alerts: tuple[ReceivedAlert, ...], sender: Sender) -> list[Placed]:
        """The run of each alert that fires. Those that are over start nothing."""
        with store.transaction():
            store.intake.one_at_a_time(sender.team)
            _forget_over(store, alerts, sender.team)
        placed = []
        for alert in alerts:
            if alert.over is None:
                with store.transaction():
                    store.intake.one_at_a_time(sender.team)
                    asked = TaskAsked(alert=_own_form(alert))
                    placed.append(self._place(store, alert, asked, sender, {}))
        return placed

    def _sent_before(self, store: Store, sender: Sender, document: Mapping[str, Any]) -> str | None:
        known = store.intake.of_request(sender.team, sender.request) if sender.request else None
        if known is None:
            return None
        if known.digest != digest(document):
            raise ReusedKey(
                f"the idempotency key was used for another request, {known.run}: draw a new key for each request"
            )
        return known.run

    def _alert(self, store: Store, asked: TaskAsked, sender: Sender, document: Mapping[str, Any]) -> Placed:
        """One document of alerts is one request, about its first incident; whatever it joins, it joins as a whole."""
        alerts = received(asked.alert or {}) or (_plain(asked.alert or {}),)
        _forget_over(store, alerts, sender.team)
        firing = [alert for alert in alerts if alert.over is None] or list(alerts)
        return self._place(store, firing[0], asked, sender, document)

    def _place(
        self,
        store: Store,
        alert: ReceivedAlert,
        asked: TaskAsked,
        sender: Sender,
        document: Mapping[str, Any],
    ) -> Placed:
        kind, since = fingerprint(alert), self.clock.now() - self.within
        if run := store.alerts.again(sender.team, kind, since):
            return Placed(run, joined=True)
        if run := self._incident_of(store, alert, sender.team, since):
            store.alerts.put(sender.team, kind, run, _to_json(alert))
            store.control.set(run, "note", f"{ANOTHER_ALERT}{alert.text}"[:900])
            return Placed(run, joined=True)
        row = self._start(store, asked, sender, document, rank(alert.severity))
        store.alerts.put(sender.team, kind, row.id, _to_json(alert))
        return Placed(row.id, joined=False)

    def _incident_of(self, store: Store, alert: ReceivedAlert, team: str, since: datetime) -> str | None:
        """The run of the incident that this alert belongs to, as times and the calls between services say."""
        known = [(_of_json(seen), seen) for seen in store.alerts.recent(team, since)]
        calls = declared_calls(self.settings.sources)
        now = self.clock.now()
        for incident in incidents([alert, *(other for other, _ in known)], calls, now):
            if any(member is alert for member in incident.alerts):
                return next((seen.run for other, seen in known if _is_in(other, incident.alerts)), None)
        return None

    def _start(
        self,
        store: Store,
        asked: TaskAsked,
        sender: Sender,
        document: Mapping[str, Any],
        severity: int | None = None,
    ) -> RunRow:
        row = self._queued(store, asked, sender)
        taken = Taken(
            run=row.id,
            team=sender.team,
            severity=rank(None) if severity is None else severity,
            sender=sender.name,
            request=sender.request,
            digest=digest(document),
        )
        store.intake.put(taken)
        self.enqueue(store, taken)
        return row

    def _queued(self, store: Store, asked: TaskAsked, sender: Sender) -> RunRow:
        """The run's row, under an id that nobody has."""
        for _ in range(_DRAWS):
            try:
                return queue(store, self._request(asked, sender), self.clock)
            except Conflict:
                continue
        raise Conflict(f"no free id was found in {_DRAWS} draws: try again")

    def _request(self, asked: TaskAsked, sender: Sender) -> StartRequest:
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
            settings=Settings.of(self.settings.to_json() | {"read_only": read_only}),
        )


def _forget_over(store: Store, alerts: tuple[ReceivedAlert, ...], team: str) -> None:
    """Kinds of alerts that are over; not those of which another one, of another pod perhaps, still fires."""
    firing = {fingerprint(alert) for alert in alerts if alert.over is None}
    for kind in {fingerprint(alert) for alert in alerts} - firing:
        store.alerts.over(team, kind)


def _is_in(alert: ReceivedAlert, alerts: tuple[ReceivedAlert, ...]) -> bool:
    return any(member is alert for member in alerts)


def _plain(document: Mapping[str, Any]) -> ReceivedAlert:
    """An alert in our own form."""
    labels = document.get("labels")
    return ReceivedAlert(
        name=str(document.get("name") or document.get("text") or ""),
        text=str(document.get("text") or ""),
        service=_word(document.get("service")),
        metric=_word(document.get("metric")),
        severity=_word(document.get("severity")),
        fired_at=_moment(document.get("fired_at")),
        onset=_moment(document.get("onset")),
        labels=labels if isinstance(labels, Mapping) else {},
    )


def _word(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, str) and value else None


def _moment(value: Any) -> datetime | None:  # noqa: ANN401 - any JSON value
    """A time with a zone; what is none is refused later, where the alert is read for the run."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None


def _own_form(alert: ReceivedAlert) -> dict[str, Any]:
    """The alert as a request of its own."""
    document = _to_json(alert)
    return {key: value for key, value in document.items() if value and key not in ("name", "over")}


def _to_json(alert: ReceivedAlert) -> dict[str, Any]:
    times = {
        name: moment.isoformat() if (moment := getattr(alert, name)) else None
        for name in ("fired_at", "onset")
    }
    return {**asdict(alert), **times, "labels": dict(alert.labels)}


def _of_json(seen: Seen) -> ReceivedAlert:
    times = {name: _moment(seen.document[name]) for name in ("fired_at", "onset")}
    return ReceivedAlert(**{**seen.document, **times})
