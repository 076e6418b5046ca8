"""Name resolution that fails for several services at once: one fault of the resolver, not one of each of them."""

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from opsleuth.analysis import message_meaning
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.fault_phrases import NAMES_CAUSE
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, Recording
from opsleuth.analysis.silence import silent_services
from opsleuth.analysis.topology import callees_by_caller

# Two services may each have a wrong name in their configuration; these ask for names of their own.
ENOUGH_SERVICES = 2
_RESOLVERS = ("kube-dns", "coredns", "node-local-dns", "dns")
# The resolver is there, and answers that it cannot.
_ANSWERED = re.compile(r"server misbehaving|servfail|nxdomain|no such host|enotfound|refused", re.IGNORECASE)
# The resolver is well, and says that there is no such name.
_NOT_THERE = re.compile(
    r"no such host|enotfound|nxdomain|name or service not known|could not resolve host|unknown ?host|not found in upstream"
    r"|domain name not found|zero addresses|could not translate host name",
    re.IGNORECASE,
)
_OTHER_SERVER = re.compile(r"lookup \S+ on ([\d.]+):53")


def blame_resolver(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; where several services fail to resolve several names, they are victims of the resolver."""
    speakers = [
        f
        for f in findings
        if f.detector == "messages" and f.kind == "dns" and f.direction == "cause" and f.size > 0
    ]
    services = sorted({f.service for f in speakers} - set(_RESOLVERS))
    if len(services) < ENOUGH_SERVICES or not _from_one_resolver(recording, services):
        return list(findings)
    name = _name_resolver(recording)
    quote = next(
        (str(f.figures.get("message", "")) for f in speakers if _ANSWERED.search(str(f.figures))), ""
    )
    quote = quote or str(speakers[0].figures.get("message", ""))
    blamed = Finding(
        detector="shared_dns",
        signal="logs",
        service=name,
        kind="dns",
        size=max([2.0 * NAMES_CAUSE, *(f.size for f in speakers)]),
        text=f'Names do not resolve for {", ".join(services)}: one fault of dns, not of each of them. "{quote}".',
        figures={
            "services": services,
            "message": quote,
            "answered": bool(_ANSWERED.search(quote)),
            **_make_resolver_figures(quote),
        },
        onset=min((f.onset for f in speakers if f.onset is not None), default=None),
    )
    told = [
        replace(f, direction="victim") if f in speakers or _follows_from_dns(f, services) else f
        for f in findings
    ]
    return [*told, blamed]


def blame_missing_names(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; where one name alone does not exist and the other callees are reached, its service is to blame.

    That is what a deleted or renamed Service looks like to those who call it.
    """
    callees = callees_by_caller(recording.topology)
    silent = silent_services(recording).keys()
    unknown: dict[str, dict[str, str]] = defaultdict(dict)
    onset = assumed_onset_of(recording)
    measured = {series.service for series in recording.metrics or ()}
    for line in recording.logs or ():
        if (
            line.time is not None
            and line.time >= onset - 60.0
            and (missing := _NOT_THERE.search(line.message))
        ):
            for name in _names_in(line.message, callees.get(line.service, ())):
                unknown[line.service].setdefault(
                    name, line.message[max(0, missing.start() - 120) : missing.end()]
                )
    added: list[Finding] = []
    victims: set[str] = set()
    for speaker, names in sorted(unknown.items()):
        others = callees[speaker] - names.keys()
        if len(names) != 1 or 2 * len(others & silent) > len(others):
            continue
        name, words = next(iter(names.items()))
        if not others and not _lacks_service(name, speaker, recording):
            continue
        if (name in measured and name not in silent) or _asks_outside(words):
            continue
        victims.add(speaker)
        added.append(_report_missing_name(name, speaker, words, recording))
    told = [
        replace(f, direction="victim") if f.kind == "dns" and f.service in victims else f for f in findings
    ]
    return [*told, *{f.service: f for f in added}.values()]


def _lacks_service(name: str, speaker: str, recording: Recording) -> bool:
    """Whether the Services beside the speaker were recorded, and none of them has the name."""
    cluster = Cluster.of(recording)
    places = {w.ref.namespace for w in cluster.of_kind("Deployment", "StatefulSet") if w.ref.name == speaker}
    listed = [place for place in places if cluster.lists("Service", place)]
    return bool(listed) and not any(cluster.get("Service", place, name) for place in listed)


def _asks_outside(words: str) -> bool:
    """Whether the resolver that was asked has a public address: it cannot know the names of a cluster."""
    asked = _OTHER_SERVER.search(words)
    try:
        return asked is not None and ipaddress.ip_address(asked[1]).is_global
    except ValueError:
        return False


def _names_in(message: str, callees: Iterable[str]) -> list[str]:
    heads = {target.partition(".")[0] for target in message_meaning.find_named_hosts(message)}
    return [name for name in callees if name in heads]


def _report_missing_name(name: str, speaker: str, words: str, recording: Recording) -> Finding:
    namespaces = [o.namespace for o in recording.objects or () if o.name == name and o.namespace]
    ref = {"kind": "Service", "namespace": next(iter(namespaces), None), "name": name}
    return Finding(
        detector="missing_name",
        signal="logs",
        service=name,
        kind="dns",
        size=2.0 * NAMES_CAUSE,
        text=f'The name {name} does not exist for {speaker}, while the others that it calls are found: "{words}".',
        figures={"caller": speaker, "message": words, "entity": ref},
        onset=assumed_onset_of(recording),
    )


def _follows_from_dns(finding: Finding, services: Iterable[str]) -> bool:
    return finding.service in services and finding.detector == "messages" and finding.direction == "cause"


def _from_one_resolver(recording: Recording, services: Sequence[str]) -> bool:
    """Whether the services, as far as their lines say whom they asked, asked the same resolver."""
    asked: dict[str, set[str]] = defaultdict(set)
    targets: set[str] = set()
    for line in recording.logs or ():
        if line.service not in services:
            continue
        targets.update(message_meaning.find_named_hosts(line.message))
        if found := _OTHER_SERVER.search(line.message):
            asked[found[1]].add(line.service)
    return len(asked) <= 1 and len(targets) != 1


def _name_resolver(recording: Recording) -> str:
    """The resolver's name where anything was recorded of it; else what every line calls it."""
    names = {edge.callee for edge in recording.topology or ()} | {s.service for s in recording.metrics or ()}
    names |= {o.name for o in recording.objects or ()} | {c.service for c in recording.changes or ()}
    names |= {line.service for line in recording.logs or ()}
    return next((name for name in _RESOLVERS if name in names), _RESOLVERS[-1])


def _make_resolver_figures(quote: str) -> dict[str, object]:
    """A resolver that answers wrongly does as its configuration says; one that does not answer is not well itself."""
    kind = "ConfigMap" if _ANSWERED.search(quote) else "Deployment"
    ref = {"kind": kind, "namespace": "kube-system", "name": "coredns"}
    return {"entity": ref, "show": f"kubectl -n kube-system get {kind.lower()} coredns -o yaml"}
