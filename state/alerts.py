"""Alerts as they come in, and which of them are one incident: by what they name, who calls whom, and when."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations, pairwise
from typing import Any

WITHIN = timedelta(minutes=30)
"""Alerts further apart belong to one incident only if others lie between them."""
MOST_HOPS = 3
"""How far along the calls trouble is taken to spread: from what is called to those that call it."""

# Where it runs, who measured it, how bad it is by now: the same trouble has others of them a minute later.
_VOLATILE = re.compile(
    r"severity|priority|instance|host(name)?|node|ip|address|endpoint|pod(_?name)?|pod_template_hash|uid|container_?id|"
    r"replica|prometheus(_replica)?|monitor|receive|job_name|value|id|html_url|tags|reason"
)


@dataclass(frozen=True, slots=True)
class ReceivedAlert:
    """One alert as a system sent it: what it says, since when, and how it stands.

    `fired_at` is when it was sent, `onset` the start that it claims; both carry a zone. `over` says in words since
    when it no longer fires, None while it does.
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

    @property
    def began(self) -> datetime | None:
        return self.onset or self.fired_at


@dataclass(frozen=True, slots=True)
class Incident:
    """Alerts that belong together, in the order in which they began."""

    alerts: tuple[ReceivedAlert, ...]

    @property
    def services(self) -> frozenset[str]:
        return frozenset(alert.service for alert in self.alerts if alert.service)


def fingerprint(alert: ReceivedAlert) -> str:
    """Which trouble the alert is about, as 16 hex digits: its name, service, and labels without the volatile ones."""
    lasting = {k: v for k, v in alert.labels.items() if not _VOLATILE.fullmatch(k.casefold())}
    text = json.dumps([alert.name, alert.service, lasting], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def incidents(
    alerts: Iterable[ReceivedAlert],
    calls: Mapping[str, Collection[str]],
    now: datetime,
    within: timedelta = WITHIN,
) -> tuple[Incident, ...]:
    """The alerts by incident, the one that began first at the front; in whatever order they came.

    Two belong together if they began `within` of each other, and have one fingerprint, are of one service, or the
    service of one calls that of the other, directly or through others (`calls`: service to those it calls). What
    belongs to one alert of an incident belongs to it. An alert without a time began `now`; one without a service
    joins only its like: nothing is guessed.
    """
    ordered = sorted(alerts, key=lambda alert: _order(alert, now))
    groups = _Groups(len(ordered))
    for related in _related(ordered, calls):
        for one, next_one in pairwise(related):
            if _began(ordered[next_one], now) - _began(ordered[one], now) <= within:
                groups.join(one, next_one)
    return tuple(Incident(tuple(ordered[place] for place in group)) for group in groups.listed())


def _related(alerts: Sequence[ReceivedAlert], calls: Mapping[str, Collection[str]]) -> Iterator[list[int]]:
    """Places of alerts of which any two may belong together, each list in the order of time."""
    by_service: dict[str, list[int]] = defaultdict(list)
    by_fingerprint: dict[str, list[int]] = defaultdict(list)
    for place, alert in enumerate(alerts):
        by_fingerprint[fingerprint(alert)].append(place)
        if alert.service:
            by_service[alert.service].append(place)
    yield from by_fingerprint.values()
    yield from by_service.values()
    reached = {service: _reached(service, calls) for service in by_service}
    for one, other in combinations(by_service, 2):
        if other in reached[one] or one in reached[other]:
            yield sorted(by_service[one] + by_service[other])


def _reached(service: str, calls: Mapping[str, Collection[str]]) -> set[str]:
    """Whom it calls, directly or through others."""
    reached, front = {service}, {service}
    for _ in range(MOST_HOPS):
        front = {callee for caller in front for callee in calls.get(caller, ())} - reached
        reached |= front
    return reached


def _began(alert: ReceivedAlert, now: datetime) -> datetime:
    return alert.began or now


def _order(alert: ReceivedAlert, now: datetime) -> tuple[datetime, str, str]:
    return _began(alert, now), fingerprint(alert), repr(alert)


class _Groups:
    """The places 0 to `size`, each in a group of its own until groups are joined."""

    def __init__(self, size: int) -> None:
        self._first = list(range(size))

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self._find(one), self._find(other)))
        self._first[second] = first

    def listed(self) -> list[list[int]]:
        groups: dict[int, list[int]] = defaultdict(list)
        for place in range(len(self._first)):
            groups[self._find(place)].append(place)
        return list(groups.values())

    def _find(self, place: int) -> int:
        while self._first[place] != place:
            self._first[place] = self._first[self._first[place]]
            place = self._first[place]
        return place
