"""What a message says in plain words: the standing phrases of kernels, runtimes, drivers, databases, Kubernetes.

The phrases are those that the programs themselves print (Linux, glibc, OpenSSL, Go, the JVM, CPython, Node,
curl, PostgreSQL, MySQL, Oracle, Redis, Kafka, nginx, kubelet, cloud databases), so they hold on any system.
`WEIGHT` tells how much a phrase gives away: it names the cause, it tells what the platform did about it, or
it only shows that something suffers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

NAMES_CAUSE, ACTS, SHOWS = 3.0, 2.0, 1.0


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one message says: the kind of fault, how plainly (`weight`), its words, and whom it names."""

    kind: str
    weight: float
    quote: str
    target: str | None = None


class _Rule(NamedTuple):
    kind: str
    weight: float
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(kind: str, weight: float, anchors: str, pattern: str) -> _Rule:
    """One phrase; a lower-case message without any of the `anchors` (separated by `|`) cannot match it."""
    return _Rule(kind, weight, tuple(anchors.split("|")), re.compile(pattern, re.IGNORECASE))


# The first rule that matches decides, so what names a cause stands before what only shows it, and the
# narrow phrase before the wide one.
_RULES: tuple[_Rule, ...] = (
    # what the kubelet says stands first: it quotes the reason of others inside its own
    _rule(
        "image_pull",
        NAMES_CAUSE,
        "image|manifest",
        r"errimage(pull|neverpull)|imagepullbackoff|invalidimagename|(failed to|back-?off) pull(ing)?( and unpack)? image|manifest (for \S+ )?(unknown|not found)|pull access denied",
    ),
    _rule(
        "probe",
        ACTS,
        "probe",
        r"(liveness|readiness|startup) probe (failed|errored|warning)|failed (liveness|readiness|startup) probe",
    ),
    # kernel, cgroups, runtimes
    _rule(
        "out_of_memory",
        NAMES_CAUSE,
        "out of memory|oom|137",
        r"\bout of memory\b|\boom[-_ ]?kill\w*|\boomkill\w*",
    ),
    _rule(
        "out_of_memory",
        NAMES_CAUSE,
        "memory|bad_alloc",
        r"outofmemoryerror|cannot allocate memory|bad_alloc\b|\bmemoryerror\b",
    ),
    _rule(
        "out_of_memory",
        NAMES_CAUSE,
        "heap",
        r"heap (space )?(limit|exhausted|out of memory)|reached heap limit",
    ),
    # storage
    _rule(
        "storage_full",
        NAMES_CAUSE,
        "space",
        r"no space left|(ran|running|run) out of (disk |storage )?space|insufficient (disk|storage|free) space",
    ),
    _rule(
        "storage_full",
        NAMES_CAUSE,
        "enospc|disk|extend|watermark",
        r"\benospc\b|\bdisk(space)? (is )?full\b|could not extend file|disk quota exceeded|flood[- ]stage",
    ),
    _rule(
        "storage_full",
        NAMES_CAUSE,
        "low",
        r"(storage|disk)( space)?( is( getting)?)? critically low|critically low (storage|disk)",
    ),
    _rule(
        "storage_full",
        ACTS,
        "low|storage|disk",
        r"low (storage|disk)( space)?\b|(storage|disk)( space)? is (getting )?low\b|diskpressure",
    ),
    _rule("disk", NAMES_CAUSE, "checkpoint", r"checkpoints are occurring too frequently|checkpoint storm"),
    _rule(
        "disk",
        NAMES_CAUSE,
        "read-only|i/o|fsync|blocked for",
        r"read-only file ?system|\bi/o error\b|fsync (failed|error)|blocked for more than \d+ sec",
    ),
    _rule(
        "disk",
        ACTS,
        "i/o|queue",
        r"high (disk )?i/o wait|disk ?queue ?depth\w* (has )?exceed\w*|i/o (queue )?saturat\w*",
    ),
    # certificates
    _rule(
        "certificate",
        NAMES_CAUSE,
        "cert",
        r"(certificate|\bcert)\b.{0,40}\b(has |is |was )?(expired|not yet valid)|expired.{0,5}cert\w*|certexpired",
    ),
    _rule(
        "certificate",
        NAMES_CAUSE,
        "certificate|x509|cert_|pkix|self",
        r"certificate[_ ]verify[_ ]failed|x509: |pkix path|unable to get local issuer|self[- ]signed certificate|unknown certificate authority|unknown ca\b|bad certificate|certificate signed by unknown",
    ),
    # names
    _rule(
        "dns",
        NAMES_CAUSE,
        "resolv|name",
        r"could not resolve host\b|name or service not known|temporary failure in name resolution|failed to resolve (host|name|address)|name resolution (failed|error)",
    ),
    _rule(
        "dns",
        NAMES_CAUSE,
        "no such host|getaddrinfo|enotfound|eai_again|unknownhost|nxdomain|servfail|nodename|upstream",
        r"no such host\b|getaddrinfo|\benotfound\b|\beai_again\b|unknownhost\w*|\bnxdomain\b|\bservfail\b|nodename nor servname|host not found in upstream",
    ),
    _rule(
        "dns",
        NAMES_CAUSE,
        "dns|lookup",
        r"\bdns\b.{0,30}\b(fail\w*|time\w* ?out|error)|lookup \S+( on \S+)?: (i/o timeout|server misbehaving)",
    ),
    # scheduling, quotas
    _rule(
        "quota",
        NAMES_CAUSE,
        "quota|exceeded|throttl|rate limit|toomanyrequests|too many requests",
        r"exceeded quota|quota[ _]?exceeded|\bquota (limit|has been)|limitexceeded\w*|rate exceeded|throttling(exception|ed)?\b|rate limit (exceeded|reached)|toomanyrequests|too many requests",
    ),
    _rule(
        "scheduling",
        NAMES_CAUSE,
        "nodes are available|unschedulable|no nodes|insufficient",
        r"\d+/\d+ nodes are available|\bunschedulable\b|no nodes available to schedule|\binsufficient (cpu|memory|pods|ephemeral-storage|\S+/\S+)",
    ),
    # rights
    _rule(
        "permission",
        NAMES_CAUSE,
        "auth|password|credential|token",
        r"(password )?authentication failed|invalid (credentials|password|api key|token)|token (has |is )?expired|not authorized|unauthorized(operation|exception)?\b|unauthenticated\b|noauth\b",
    ),
    _rule(
        "config",
        NAMES_CAUSE,
        "not found",
        r"\b(namespace|configmap|secret|serviceaccount|service account|persistentvolumeclaim|storageclass)s? \"?\S+\"? (does )?not (found|exist)|couldn't find key \S+ in",
    ),
    _rule(
        "permission",
        NAMES_CAUSE,
        "denied|forbidden|eacces|eperm",
        r"permission denied|access ?denied\w*|\beacces\b|\beperm\b|\bis forbidden\b|\b403 forbidden",
    ),
    # settings
    _rule(
        "config",
        NAMES_CAUSE,
        "env",
        r"\benv(ironment)?[ _-]?var(iable)?s?\b.{0,60}\b(not set|unset|undefined|missing|not defined|not found|required|empty|must be set)|(missing|undefined|unset)\b.{0,30}\benv(ironment)?[ _-]?var",
    ),
    _rule(
        "config",
        NAMES_CAUSE,
        "config|setting|option|propert|placeholder|directive",
        r"(invalid|missing|bad|malformed|incorrect|unknown) (required )?(config\w*|settings?|option|property|directive)\b|config(uration)? (error|file not found|is invalid|invalid)|configerror\b|could not resolve placeholder|(failed|unable) to (load|parse|read) (the )?\S{0,40} ?config\w*|unknown directive",
    ),
    _rule(
        "config",
        NAMES_CAUSE,
        "executable|exec format|address already|no matches for kind|immutable|keyerror",
        r"executable file not found|exec format error|address already in use|no matches for kind|field is immutable|keyerror: ['\"][A-Z][A-Z0-9_]{2,}['\"]",
    ),
    # databases
    _rule(
        "locks",
        NAMES_CAUSE,
        "lock",
        r"deadlock (detected|found)|lock wait timeout|due to lock timeout|could not obtain lock|database (table )?is locked|still waiting for \w*lock|lock request time ?out",
    ),
    _rule(
        "connections",
        NAMES_CAUSE,
        "connection|clients|pool",
        r"too many (connections|clients)|connection slots are reserved|max_connections\b|(connection )?pool (is |was )?(exhausted|empty|timed out|limit)|queuepool limit|connection is not available, request timed out|(acquir\w*|obtain\w*|get\w*) (a |jdbc )?connection.{0,20}time\w* ?out",
    ),
    _rule(
        "slow_query",
        NAMES_CAUSE,
        "quer|statement",
        r"\bslow quer(y|ies)\b|due to statement timeout|(query|statement) (execution )?(time ?out|exceeded|was interrupted)|maximum (statement )?execution time exceeded",
    ),
    _rule(
        "replication_lag",
        NAMES_CAUSE,
        "replica|standby|wal segment",
        r"replica(tion)? lag\b|(replica|standby) (is |has )?(fall\w* |fell )?(significantly )?behind|wal segment \S+ has already been removed",
    ),
    _rule(
        "failover",
        ACTS,
        "failover|leader|primary|read only replica|recovery mode|starting up|shutting down|administrator command",
        r"failover (has been )?(initiated|started|in progress|triggered)|lost leader\w*|no longer (the )?(leader|primary|master)|\bnot (the )?(leader|primary|master)\b|read only replica|database system is (starting up|shutting down|in recovery mode)|due to administrator command",
    ),
    # processes
    _rule(
        "crash",
        ACTS,
        "crashloop|back-off restarting|segmentation|sigsegv|core dumped|panic|start request repeated|backofflimit|backoff limit",
        r"crashloopbackoff|back-off restarting failed|segmentation fault|\bsigsegv\b|core dumped|^panic: |\bkernel panic\b|start request repeated too quickly|(specified )?backoff ?limit(exceeded)?",
    ),
    # whom a process could not reach
    _rule(
        "network_loss",
        ACTS,
        "link|peer down|neighbor|packet|unreachable",
        r"\blink (is |went )?down\b|\bpeer (is )?down\b|neighbor \S+ (is )?down|packet loss|network is unreachable",
    ),
    _rule(
        "dependency",
        ACTS,
        "refused|no route|unreach",
        r"connection refused|\beconnrefused\b|no route to host|\behostunreach\b|host unreachable",
    ),
    _rule(
        "dependency",
        ACTS,
        "connect|upstream|broker|hosts|host(s)|serverselection|unavailable|circuit",
        r"(could not|cannot|can't|unable to|failed to|error) (connect|connecting|establish \w* ?connection)\b|upstream connect error|no healthy upstream|brokers? (\S+ )?(is |are )?(not available|down)|all hosts?(\(s\))? tried|no available connection|serverselectiontimeout|communications link failure|has become unavailable|circuit ?breaker (\S+ )?is open|connect(ion)? (attempt )?timed out",
    ),
    _rule(
        "cpu",
        SHOWS,
        "cpu",
        r"\bcpu (usage|utili[sz]ation|throttl\w*)\b.{0,60}\b(exceed\w*|above|over|high|\d{3,}%)|high cpu\b|soft lockup",
    ),
    _rule(
        "memory",
        SHOWS,
        "memory",
        r"memory pressure|memorypressure|high memory usage|memory usage.{0,40}(exceed\w*|above)",
    ),
    _rule(
        "latency",
        SHOWS,
        "timeout|timed out|deadline",
        r"context deadline exceeded|read timed out|\betimedout\b|gateway time-?out|i/o timeout",
    ),
)

# What takes a phrase back: it is over, or it is said not to be so.
_OVER = re.compile(
    r"\b(resolved|recovered|back to normal|has since|have since|subsequently|retried successfully"
    r"|(auto(matically)?[- ])?rolled back|restored to|no longer|cleared|self-healed"
    r"|successfully (promoted|assigned|started|completed|restored|recovered)"
    r"|(maintenance|upgrade|failover|backup|recovery|promotion|rollback|restart|reboot)\b.{0,30}\b(complete|finished|successful)"
    r"|finished (a |an |the )?\S*( \S+)? ?(failover|maintenance|upgrade|recovery)"
    r"|is (now |again )?(available|healthy|ready|running))\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(no|not|without|zero|0|never|any|if|avoid|prevent\w*)\s+(\w+\s+)?$", re.IGNORECASE)
# "12 GB free of 200 GB", "4.1 GiB remaining of 20 GiB".
_ROOM = re.compile(
    r"([\d.]+) ?([KMGT]i?B) (?:free|remaining|left|available) (?:out )?of ([\d.]+) ?\2", re.IGNORECASE
)
_ROOMY = 0.2  # common monitors warn at a tenth to a fifth left; above it a volume is not short of space
_HOST = re.compile(
    r"(?:https?|tcp|grpc|amqp|redis|postgres(?:ql)?|mysql|mongodb)://(?:[^@/\s]*@)?([\w.-]+)"
    r"|(?:resolve host|lookup|resolve|ENOTFOUND|EAI_AGAIN)[:\s]+['\"]?([\w-]+(?:\.[\w-]+)*)"
    r"|\b([a-z][\w-]*(?:\.[\w-]+)*):\d{2,5}\b",
    re.IGNORECASE,
)


def over(text: str) -> bool:
    """Whether the text says that what it tells of has ended."""
    return _OVER.search(text) is not None


def read(text: str) -> Meaning | None:
    """What `text` says, or None where no phrase is known, or where the text itself denies it."""
    lowered = text.lower()
    for rule in _RULES:
        if not any(anchor in lowered for anchor in rule.anchors):
            continue
        found = rule.pattern.search(text)
        if found and not _denied(rule.kind, text, found.start()):
            return Meaning(rule.kind, rule.weight, _around(text, found), _target(text))
    return None


def _denied(kind: str, text: str, at: int) -> bool:
    """Whether the words before the phrase negate it, or a figure in the text contradicts it."""
    if _NEGATED.search(text, max(0, at - 24), at):
        return True
    room = _ROOM.search(text) if kind == "storage_full" else None
    return room is not None and float(room[1]) > _ROOMY * float(room[3])


def targets(text: str) -> Iterator[str]:
    """The hosts that the text names as URL, `host:port`, or object of a failed lookup."""
    for found in _HOST.finditer(text):
        yield next(group for group in found.groups() if group)


def _target(text: str) -> str | None:
    return next(targets(text), None)


def _around(text: str, found: re.Match[str]) -> str:
    """The phrase with the rest of its sentence, one line, at most 160 characters."""
    start = max(0, found.start() - 40)
    if start and (space := text.find(" ", start, found.start())) != -1:
        start = space + 1
    return " ".join(text[start : start + 160].split())
