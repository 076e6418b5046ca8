"""Servers that refuse: the client writes the line, but whose fault it is depends on whom else the server refuses.

A server that is full, or that refuses every client it has, is the cause. A client that alone is refused where others
are served has the wrong credentials, and is the cause itself.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from opsleuth.analysis import message_meaning
from opsleuth.analysis.cluster.deviation import entity_figure, format_describe_command
from opsleuth.analysis.cluster.memory import object_of_change
from opsleuth.analysis.cluster.model import Cluster, config_uses
from opsleuth.analysis.cluster.objects import ObjectRef, rows_of
from opsleuth.analysis.fault_phrases import NAMES_CAUSE
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, LogLine, Recording
from opsleuth.analysis.topology import callees_by_caller, measure_call_distances
from opsleuth.state.plurals import format_count

# Families of servers: the words by which lines, drivers, images and names of services show which one it is.
_FAMILIES: Mapping[str, re.Pattern[str]] = {
    "redis": re.compile(
        r"redis|valkey|keydb|dragonfly|jedis|lettuce|\bnoauth\b|\bwrongpass\b|maxmemory|misconf redis",
        re.IGNORECASE,
    ),
    "postgresql": re.compile(
        r"postgres|npgsql|psycopg|pgbouncer|\bpq:|\bpgx\b|pg_hba|sqlstate", re.IGNORECASE
    ),
    "mysql": re.compile(r"mysql|mariadb|percona|error 1045|innodb", re.IGNORECASE),
    "mongodb": re.compile(r"mongo|\bscram-sha|not authorized on \w+ to execute", re.IGNORECASE),
    "kafka": re.compile(r"kafka|sasl|topicauthorization", re.IGNORECASE),
    "rabbitmq": re.compile(r"rabbit|amqp|access_refused", re.IGNORECASE),
    "elasticsearch": re.compile(r"elastic|opensearch|cluster_block_exception", re.IGNORECASE),
    "memcached": re.compile(r"memcache", re.IGNORECASE),
}
# What a server says of its own state, whoever asks.
_OWN_STATE = re.compile(
    r"oom command not allowed|maxmemory|misconf redis|loading redis|readonly you can|flood[- ]stage|cluster_block"
    r"|server is out of memory|serverisfull|no space left|low on disk|memory (resource )?alarm|disk (free )?alarm",
    re.IGNORECASE,
)
# Refusals of a client's credentials or rights.
_CREDENTIALS = re.compile(
    r"authentication failed|\bnoauth\b|\bwrongpass\b|access denied for user|not authorized|access_refused"
    r"|authentication required|role \"\S+\" does not exist|user .{0,40}(does not exist|not found)|invalid username"
    r"|sasl authentication|permission denied for",
    re.IGNORECASE,
)
# The server has started to ask for what it never asked for.
_DEMANDS = re.compile(r"\bnoauth\b|authentication required", re.IGNORECASE)


_RECENT_SECONDS = 3600.0
# An alert is sent after its rule held for minutes: what began so long before it may be the incident.
_ALERT_DELAY_SECONDS = 600.0


@dataclass(slots=True)
class Refusal:
    """All lines in which clients of one server report one kind of refusal: by client, with a quote and the first time."""

    server: str
    kind: str
    lines: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    quote: str = ""
    first: float | None = None
    demands: bool = False
    own_state: bool = False

    def add(self, line: LogLine, meaning: message_meaning.MessageMeaning) -> None:
        self.lines[line.service] += 1
        self.quote = self.quote or meaning.quote
        self.demands = self.demands or _DEMANDS.search(line.message) is not None
        self.own_state = self.own_state or _OWN_STATE.search(line.message) is not None
        if line.time is not None and (self.first is None or line.time < self.first):
            self.first = line.time


def attribute_refusals(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with each refusal at the server or at the client, and the other side its victim."""
    refusals = read_refusals(recording)
    added: list[Finding] = []
    victims: set[tuple[str, str]] = set()
    for refusal in refusals:
        culprit = _choose_blamed_service(refusal, recording)
        sides = {refusal.server, *refusal.lines} - {culprit}
        victims |= {
            (side, kind) for side in sides for kind in (refusal.kind, "exception", "errors", "dependency")
        }
        added.append(_report_refusal(refusal, culprit, recording))
    told = [
        replace(f, direction="victim")
        if (f.signal == "logs" or f.figures.get("latent")) and (f.service, f.kind) in victims
        else f
        for f in findings
    ]
    return [*told, *added]


def read_refusals(recording: Recording) -> list[Refusal]:
    """Refusals by servers that the topology knows as callees of whoever wrote the lines, new since the onset."""
    onset = assumed_onset_of(recording)
    callees = callees_by_caller(recording.topology)
    families = _family_of_services(recording)
    found: dict[tuple[str, str], Refusal] = {}
    before: set[tuple[str, str]] = set()
    unsure: list[tuple[Sequence[str], str, LogLine, message_meaning.MessageMeaning]] = []
    for line in [*(recording.logs_baseline or ()), *(recording.logs or ())]:
        if not (_CREDENTIALS.search(line.message) or _OWN_STATE.search(line.message)):
            continue
        meaning = message_meaning.read_message_meaning(line.message)
        servers = _find_refusing_servers(line, callees, families)
        if meaning is None or not servers:
            continue
        kind = "out_of_memory" if "maxmemory" in line.message else meaning.kind
        if line.time is None or line.time < onset - _ALERT_DELAY_SECONDS:
            before.add((line.service, kind))
        elif (line.service, kind) not in before and len(servers) > 1:
            unsure.append((servers, kind, line, meaning))
        elif (line.service, kind) not in before:
            found.setdefault((servers[0], kind), Refusal(servers[0], kind)).add(line, meaning)
    # A client of several servers of one family means the one that others name.
    for servers, kind, line, meaning in unsure:
        named = [server for server in servers if (server, kind) in found]
        if len(named) == 1:
            found[named[0], kind].add(line, meaning)
    return [found[key] for key in sorted(found)]


def _family_of_services(recording: Recording) -> dict[str, str]:
    """The family of each service whose name, or whose containers' images, show it."""
    names = {edge.callee for edge in recording.topology or ()}
    texts = {name: name for name in names}
    for workload, template in Cluster.of(recording).templates():
        if workload.ref.name in texts:
            images = [str(c.get("image", "")) for c in rows_of(template, "containers")]
            texts[workload.ref.name] += " " + " ".join(image.rpartition("/")[2] for image in images)
    return {
        name: family
        for name, text in texts.items()
        for family, words in _FAMILIES.items()
        if words.search(text)
    }


def _find_refusing_servers(
    line: LogLine, callees: Mapping[str, set[str]], families: Mapping[str, str]
) -> Sequence[str]:
    """The callee of the writer that refuses: by host, else those nearest of the family that the line is about."""
    mine = callees.get(line.service, set())
    for target in message_meaning.find_named_hosts(line.message):
        host = target.partition(".")[0]
        if host in mine:
            return [host]
    family = next((name for name, words in _FAMILIES.items() if words.search(line.message)), None)
    if family is None:
        return []
    # A caller further up passes on what its callee was told.
    steps = measure_call_distances(callees, line.service)
    fitting = sorted(
        (steps[name], name) for name in steps if name != line.service and families.get(name) == family
    )
    return [name for step, name in fitting if step == fitting[0][0]]


def _choose_blamed_service(refusal: Refusal, recording: Recording) -> str:
    """The server, unless it refuses one of several clients, by the credentials that this one brings."""
    clients = {edge.caller for edge in recording.topology or () if edge.callee == refusal.server}
    refused = clients & refusal.lines.keys()
    if refusal.own_state or refusal.demands or len(refused) != 1 or len(clients) == 1:
        return refusal.server
    return next(iter(refused))


def _find_refusal_entity(refusal: Refusal, culprit: str, recording: Recording) -> ObjectRef | None:
    """A client alone has stale credentials: their Secret. A server's own state is that of its running pod."""
    cluster = Cluster.of(recording)
    if culprit != refusal.server:
        if changed := _changed_secret(refusal, culprit, recording):
            return changed
        used = [
            use.ref
            for workload, template in cluster.templates()
            if workload.ref.name == culprit
            for use in config_uses(workload, template)
            if use.ref.kind == "Secret"
        ]
        named = [ref for ref in used if refusal.server in ref.name] or used
        return named[0] if named else ObjectRef("Secret", None, "")
    pods = (
        pod
        for pod in cluster.of_kind("Pod")
        if (owner := cluster.workload_of(pod)) and owner.ref.name == refusal.server
    )
    return next((pod.ref for pod in pods), None)


def _changed_secret(refusal: Refusal, culprit: str, recording: Recording) -> ObjectRef | None:
    onset = assumed_onset_of(recording)
    found = [
        (change.time, ref)
        for change in recording.changes or ()
        if change.service in {refusal.server, culprit}
        and onset - _RECENT_SECONDS <= change.time <= onset + 60.0
        and (ref := object_of_change(change))
        and ref.kind == "Secret"
    ]
    return max(found, default=(0.0, None), key=lambda pair: pair[0])[1]


def _report_refusal(refusal: Refusal, culprit: str, recording: Recording) -> Finding:
    lines = sum(refusal.lines.values())
    entity = _find_refusal_entity(refusal, culprit, recording)
    named = (
        {"entity": entity_figure(entity), "show": format_describe_command(entity) if entity.name else ""}
        if entity
        else {}
    )
    clients = " and ".join(sorted(refusal.lines))
    others = " and serves its other clients" if culprit != refusal.server else ""
    return Finding(
        detector="refusals",
        signal="logs",
        service=culprit,
        kind=refusal.kind,
        size=2.0 * NAMES_CAUSE,
        text=f'{refusal.server} refuses {clients}{others} ({format_count(lines, "log line")}): "{refusal.quote}".',
        figures={
            "lines": lines,
            "message": refusal.quote,
            "server": refusal.server,
            "clients": sorted(refusal.lines),
            **named,
            **({"refused_client": culprit} if culprit != refusal.server else {}),
        },
        onset=refusal.first,
    )
