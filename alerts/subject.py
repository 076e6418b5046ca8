"""Choose the subject of a run among several alerts: the requested one first, then the most severe; age only breaks ties.

Alerts that people or other alerts keep quiet, and those that always fire to prove that alerting works, are never the subject.
"""

import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from opsleuth.alerts.grouping import AlertIncident, ReceivedAlert

_SEVERITIES: tuple[tuple[str, ...], ...] = (
    (
        "critical",
        "page",
        "fatal",
        "emergency",
        "disaster",
        "blocker",
        "urgent",
        "p0",
        "p1",
        "sev0",
        "sev1",
        "s1",
        "1",
    ),
    ("error", "high", "major", "p2", "sev2", "s2", "2"),
    ("warning", "warn", "medium", "minor", "average", "p3", "sev3", "s3", "3"),
    ("low", "p4", "sev4", "s4", "4"),
    ("info", "informational", "information", "notice", "none", "ok", "p5", "sev5", "s5", "5"),
)
_RANKS = {word: rank for rank, words in enumerate(_SEVERITIES) for word in words}
_USUAL = _RANKS["warning"]
_OLD = timedelta(hours=1)
"""An alert that began so long before the latest one of the same severity is not why somebody was called now."""
_HEARTBEATS = re.compile(
    r"watchdog|infoinhibitor|.*dead-?mans?(switch|snitch).*|alwaysfiring|(prometheus|alertmanager)heartbeat"
)


def severity_rank(word: str | None) -> int:
    """0 for the worst. An unknown word, and none, counts as a warning."""
    return _RANKS.get((word or "").strip().casefold(), _USUAL)


def is_heartbeat(name: str) -> bool:
    """Whether an alert of this name always fires: Watchdog, InfoInhibitor, a dead man's switch."""
    return bool(_HEARTBEATS.fullmatch(re.sub(r"[\s_']|(?<!dead)-", "", name.casefold())))


def sort_incidents(
    incidents: Sequence[AlertIncident], question: str, now: datetime
) -> tuple[AlertIncident, ...]:
    """The incident that a run is about at the front, the others behind it."""
    latest = max(
        (_choose_onset(alert, now) for incident in incidents for alert in incident.alerts), default=now
    )

    def key(incident: AlertIncident) -> tuple[object, ...]:
        best = min(_rank_urgency(alert, question) for alert in incident.alerts)
        began = max(_choose_onset(alert, now) for alert in incident.alerts)
        return *best, latest - began > _OLD

    return tuple(sorted(incidents, key=key))


def subject_of(incident: AlertIncident, question: str) -> ReceivedAlert:
    """The alert that stands for its incident; of equally bad ones that which began first."""
    return min(incident.alerts, key=lambda a: (*_rank_urgency(a, question), a.began is None, a.began))


def words_asked_about(alert: ReceivedAlert, question: str) -> int:
    """How many words of the question name the alert or its service; of `mail` and `mail-db` the longer is meant."""
    return max((_words_in_common(name, question) for name in (alert.name, alert.service) if name), default=0)


def select_firing_alerts(alerts: Collection[ReceivedAlert]) -> list[ReceivedAlert]:
    """Those that may be the subject: not kept quiet, and not over unless all are."""
    heard = [alert for alert in alerts if alert.muted is None]
    return [alert for alert in heard if alert.over is None] or heard


def _rank_urgency(alert: ReceivedAlert, question: str) -> tuple[int, bool, int]:
    """Smaller is more urgent. A rule without data says nothing about the service, however bad it calls itself."""
    return -words_asked_about(alert, question), alert.unevaluated is not None, severity_rank(alert.severity)


def _words_in_common(name: str, text: str) -> int:
    """Also as people say it: `orders-api` as "Orders API", `DiskFull` as "disk full"; all of the name or nothing."""
    words = _plain_words(name)
    return len(words.split()) if words and f" {words} " in f" {_plain_words(text)} " else 0


def _plain_words(text: str) -> str:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return " ".join(re.findall(r"[^\W_]+", parted.casefold()))


def _choose_onset(alert: ReceivedAlert, now: datetime) -> datetime:
    return alert.began or now
