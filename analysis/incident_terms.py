"""The terms by which an incident that comes back is recognised: they survive other times, pod names and hashes.

Names of services, kinds and metrics appear in them as they are; the words of log lines and alerts only as digests, so that no term
holds what a line held.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

WEIGHTS: Mapping[str, float] = {
    "cause": 4.0,
    "object": 1.0,
    "trigger": 1.0,
    "alert": 2.0,
    "harmed": 1.0,
    "finding": 1.0,
    "line": 1.0,
}
"""How much a shared term of each kind says."""
ENOUGH = 0.5
"""The share of all terms of two incidents that they have in common, from which on one is the other again."""
_MOST_FINDINGS = 8
_MOST_LINES = 6
_WORDS = 12
_POD_HASH = re.compile(r"-[a-f0-9]{6,10}-[a-z0-9]{5}\b|-[bcdf-hj-np-tv-xz2456789]{5}\b|-\d+\b")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{3,}")
_TOKEN = re.compile(r"\S+")


def strip_instance(name: str) -> str:
    """The name of a workload out of the name of one of its pods: `checkout-7d9f8b6c5-x2x7k` as `checkout`."""
    return _POD_HASH.sub("", _UUID.sub("", name.casefold())).strip("-") or name.casefold()


def digest_words(text: str) -> str:
    """The words of a text as a digest: without figures, times, and every token that holds a digit."""
    tokens = (strip_instance(token) for token in _TOKEN.findall(text))
    words = [word for token in tokens if not any(c.isdigit() for c in token) for word in _WORD.findall(token)]
    return hashlib.sha256(" ".join(words[:_WORDS]).encode()).hexdigest()[:12] if words else ""


def collect_incident_terms(
    report: Mapping[str, Any], findings: Sequence[Mapping[str, Any]], lines: Iterable[tuple[str, str]]
) -> frozenset[str]:
    """The terms of an incident: of its report, its detectors' findings, and its failing lines as (service, pattern)."""
    return frozenset(
        (
            *_list_cause_terms(report),
            *_list_alert_terms(report.get("alert") or {}),
            *(_name_finding(finding) for finding in findings[:_MOST_FINDINGS]),
            *_list_line_terms(lines),
        )
    )


def _list_cause_terms(report: Mapping[str, Any]) -> Iterator[str]:
    for cause in (report.get("causes") or [])[:1]:
        service = strip_instance(str(cause["service"]))
        yield f"cause:{service}|{cause['kind']}"
        if entity := cause.get("entity"):
            yield f"object:{entity['kind']}|{strip_instance(str(entity.get('name') or ''))}".casefold()
        if change := cause.get("change"):
            yield f"trigger:{change['kind']}|{strip_instance(str(change['service']))}"


def _list_alert_terms(alert: Mapping[str, Any]) -> Iterator[str]:
    labels = alert.get("labels") or {}
    name = str(labels.get("alertname") or "")
    service = strip_instance(str(alert.get("service") or ""))
    said = name or digest_words(str(alert.get("text") or ""))
    if said:
        yield f"alert:{service}|{said}"
    if service:
        yield f"harmed:{service}"


def _name_finding(finding: Mapping[str, Any]) -> str:
    metric = str(finding.get("metric") or finding.get("kind") or "")
    service = strip_instance(str(finding.get("service") or ""))
    return (
        f"finding:{service}|{finding.get('signal')}|{strip_instance(metric)}|{finding.get('direction') or ''}"
    )


def _list_line_terms(lines: Iterable[tuple[str, str]]) -> list[str]:
    found = (
        f"line:{strip_instance(service)}|{digest}"
        for service, text in lines
        if (digest := digest_words(text))
    )
    return list(dict.fromkeys(found))[:_MOST_LINES]


def weigh_terms(terms: Collection[str]) -> float:
    """The weight of all these terms together."""
    return sum(WEIGHTS[term.partition(":")[0]] for term in terms if term.partition(":")[0] in WEIGHTS)


def compare_incidents(one: Collection[str], other: Collection[str]) -> float:
    """How alike two incidents are: the weight of what they share over the weight of all that either has, 0 to 1.

    Incidents with different causes are not alike, whatever else they share.
    """
    causes = [{term for term in terms if term.startswith("cause:")} for terms in (one, other)]
    if causes[0] != causes[1]:
        return 0.0
    both = weigh_terms(set(one) | set(other))
    return weigh_terms(set(one) & set(other)) / both if both else 0.0
