"""Incoming alerts, and which of them are one incident: by their names, the call graph and their times."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from opsleuth.alerts.labels import is_exporter

WITHIN = timedelta(minutes=30)
"""Alerts further apart belong to one incident only if others lie between them."""
MOST_HOPS = 3
"""How far along the calls trouble is taken to spread: from what is called to those that call it."""

# Where it runs, who measured it, how bad it is by now: the same trouble has others of them a minute later.
_VOLATILE = re.compile(
    r"severity|priority|endpoint|pod(_?name)?|pod_template_hash|uid|container_?id|"
    r"replica|prometheus(_replica)?|monitor|receive|job_name|value|id|html_url|tags|reason"
)
# Volatile where a service is named, which runs here or there; without one the host is what is in trouble.
_HOSTS = re.compile(r"instance|host(_?name)?|node(_?name)?|ip|address")


@dataclass(frozen=True, slots=True)
class ReceivedAlert:
    """One alert as a system sent it: what it says, since when, and its status.

    `fired_at` is when it was sent, `onset` the start that it claims; both carry a zone. `over` says in words since
    when it no longer fires, None while it does; `muted` what keeps it quiet, None for nothing. `unevaluated` says why its
    rule could not be evaluated: then it says nothing about the service. `unread` are times that could not be read.
    """

    name: str
    text: str
    service: str | None = None
    metric: str | None = None
    severity: str | None = None
    fired_at: datetime | None = None
    onset: datetime | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    over: str | None = None
    muted: str | None = None
    unevaluated: str | None = None
    unread: Sequence[str] = ()

    @property
    def began(self) -> datetime | None:
        return self.onset or self.fired_at

    @property
    def full_text(self) -> str:
        """Its text, with what has to be known before one believes it."""
        remarks = [f"resolved {self.over}"] if self.over else []
        remarks += [self.unevaluated] if self.unevaluated else []
        remarks += [f"{time} cannot be read as a time with a zone" for time in self.unread]
        return self.text + "".join(f" ({remark})" for remark in remarks)


@dataclass(frozen=True, slots=True)
class AlertIncident:
    """Alerts that belong together, in the order in which they began."""

    alerts: tuple[ReceivedAlert, ...]

    @property
    def services(self) -> frozenset[str]:
        return frozenset(alert.service for alert in self.alerts if alert.service)


def alert_fingerprint(alert: ReceivedAlert) -> str:
    """Which trouble the alert is about, as 16 hex digits: its name, service, and labels without the volatile ones.

    Where no service is named, or only the exporter that measured it, the host is part of it: three hosts are three troubles.
    """
    by_host = named_service(alert) is None
    lasting = {k: v for k, v in alert.labels.items() if not _is_volatile(k.casefold(), by_host=by_host)}
    text = json.dumps([alert.name, alert.service, lasting], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def named_service(alert: ReceivedAlert) -> str | None:
    """The service that the alert is about; None where it names none, or only the exporter that measured it."""
    return None if alert.service is None or is_exporter(alert.service) else alert.service


def _is_volatile(label: str, *, by_host: bool) -> bool:
    return bool(_VOLATILE.fullmatch(label) or (not by_host and _HOSTS.fullmatch(label)))


def group_into_incidents(
    alerts: Iterable[ReceivedAlert],
    calls: Mapping[str, Collection[str]],
    now: datetime,
    within: timedelta = WITHIN,
) -> tuple[AlertIncident, ...]:
    """The alerts by incident, the one that began first at the front; in whatever order they came.

    Two belong together if they began `within` of each other, and have one fingerprint, are of one service, or the
    service of one calls that of the other, directly or through others (`calls`: service to those it calls). What
    belongs to one alert of an incident belongs to it. An alert without a time began `now`; one without a service
    joins only its like: nothing is guessed.
    """
    ordered = sorted(alerts, key=lambda alert: _alert_sort_key(alert, now))
    groups = _UnionFind(len(ordered))
    for related in _find_related_alerts(ordered, calls):
        for one, next_one in pairwise(related):
            if _alert_start(ordered[next_one], now) - _alert_start(ordered[one], now) <= within:
                groups.join(one, next_one)
    return tuple(AlertIncident(tuple(ordered[place] for place in group)) for group in groups.listed())


def _find_related_alerts(
    alerts: Sequence[ReceivedAlert], calls: Mapping[str, Collection[str]]
) -> Iterator[list[int]]:
    """Places of alerts of which any two may belong together, each list in the order of time."""
    by_service: dict[str, list[int]] = defaultdict(list)
    by_fingerprint: dict[str, list[int]] = defaultdict(list)
    for place, alert in enumerate(alerts):
        by_fingerprint[alert_fingerprint(alert)].append(place)
        if service := named_service(alert):
            by_service[service].append(place)
    yield from by_fingerprint.values()
    yield from by_service.values()
    for one, places in by_service.items():
        for other in sorted(services_within_reach(one, calls) & by_service.keys() - {one}):
            yield sorted(places + by_service[other])


def services_within_reach(service: str, calls: Mapping[str, Collection[str]]) -> set[str]:
    """Whom it calls, directly or through others."""
    reached, front = {service}, {service}
    for _ in range(MOST_HOPS):
        front = {callee for caller in front for callee in calls.get(caller, ())} - reached
        reached |= front
    return reached


def _alert_start(alert: ReceivedAlert, now: datetime) -> datetime:
    return alert.began or now


def _alert_sort_key(alert: ReceivedAlert, now: datetime) -> tuple[datetime, str, str]:
    return _alert_start(alert, now), alert_fingerprint(alert), repr(alert)


class _UnionFind:
    """The places 0 to `size`, each in a group of its own until groups are joined."""

    def __init__(self, size: int) -> None:
        self._first = list(range(size))

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self._find_root(one), self._find_root(other)))
        self._first[second] = first

    def listed(self) -> list[list[int]]:
        groups: dict[int, list[int]] = defaultdict(list)
        for place in range(len(self._first)):
            groups[self._find_root(place)].append(place)
        return list(groups.values())

    def _find_root(self, place: int) -> int:
        while self._first[place] != place:
            self._first[place] = self._first[self._first[place]]
            place = self._first[place]
        return place
