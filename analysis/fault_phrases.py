"""The standing phrases of kernels, runtimes, drivers, databases and Kubernetes, and the kind of fault they report.

They are what the programs themselves print (Linux, systemd, glibc, OpenSSL, Go, the JVM, CPython, Node, curl,
PostgreSQL, MySQL, Oracle, Redis, Kafka, RabbitMQ, Elasticsearch, nginx, Envoy, the kubelet, cloud databases), so
they hold on any system. A phrase's weight says how much it gives away: it names the cause, it tells what the
platform did or whom it could not reach, or it only shows that something suffers.
"""

import re
from typing import NamedTuple

# Against 3 for a figure that just noticeably leaves its usual level: a program's own word is no matter of chance.
NAMES_CAUSE, ACTS, SHOWS = 12.0, 8.0, 1.0


class PhraseRule(NamedTuple):
    """One group of phrases; a lower-case message without any of the `anchors` cannot match the pattern."""

    kind: str
    weight: float
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]


def _build_phrase_rule(kind: str, weight: float, anchors: str, *phrases: str) -> PhraseRule:
    return PhraseRule(kind, weight, tuple(anchors.split("|")), re.compile("|".join(phrases), re.IGNORECASE))


_OF_NETWORK = (
    r".{0,160}?(\b(get|post|put|patch|delete|head|options) request\b|https?://|\bconnect|\bsocket|\btimed? ?out"
    r"|\bend of file from|\bserver\b|\bpeer\b|\bhandshake|\bhost\b)"
)

_CALLS = (
    _build_phrase_rule(
        "dependency",
        ACTS,
        "i/o error|unexpected end|premature|hang up|respon|closed connection|closed the connection|contact|eof",
        rf"\bi/o error\b{_OF_NETWORK}",
        r"unexpected (end of file|eof) (from|while reading from|on) |(upstream|connection|server) prematurely closed",
        r"premature(ly)? (end|close)\w* .{0,40}(connection|response|stream|header)|\bsocket hang up\b|no response from \S+",
        r"(remote host|server|peer|upstream) closed (the )?connection|fail(ed|ing) to contact \S+",
        r"\bfailed to respond\b|\b(get|post|put|patch|delete|head) \"?https?://\S+: (unexpected )?eof\b",
    ),
)

_PLATFORM = (
    _build_phrase_rule(
        "image_pull",
        NAMES_CAUSE,
        "image|manifest|pull access",
        r"errimage(pull|neverpull)|imagepullbackoff|invalidimagename",
        r"(failed to|back-?off) pull(ing)?( and unpack)? image",
        r"manifest (for \S+ )?(unknown|not found)|pull access denied",
    ),
    _build_phrase_rule(
        "probe",
        ACTS,
        "probe",
        r"(liveness|readiness|startup) probe (failed|errored|warning)",
        r"failed (liveness|readiness|startup) probe",
    ),
    _build_phrase_rule(
        "scheduling",
        NAMES_CAUSE,
        "nodes are available|unschedulable|no nodes|insufficient",
        r"(?<!\d)\d{1,9}/\d{1,9} nodes are available|\bunschedulable\b|no nodes available to schedule",
        r"\binsufficient (cpu|memory|pods|ephemeral-storage|\S+/\S+)",
    ),
    _build_phrase_rule("memory", NAMES_CAUSE, "low on resource", r"low on resource: memory"),
    _build_phrase_rule(
        "storage_full",
        NAMES_CAUSE,
        "ephemeral",
        r"low on resource: ephemeral|ephemeral[- ](local )?storage.{0,40}exceed",
    ),
    _build_phrase_rule(
        "quota",
        NAMES_CAUSE,
        "quota|exceeded|throttl|rate limit|toomanyrequests|too many requests|resource_exhausted",
        r"exceeded quota|quota[ _]?exceeded|\bquota (limit|has been)|limitexceeded\w*",
        r"rate exceeded|throttling(exception|ed)?\b|rate limit (exceeded|reached)",
        r"toomanyrequests|too many requests|provisionedthroughputexceeded\w*|\bresource_exhausted\b",
        r"exceeded (the |its )?(configured |provisioned )(throughput|capacity|iops)",
    ),
    _build_phrase_rule(
        "config",
        NAMES_CAUSE,
        "not found|couldn't find key|does not exist",
        r"\b(namespace|configmap|secret|serviceaccount|service account|persistentvolumeclaim|storageclass)(s|\.\S+)?"
        r" \"?\S+\"? (does )?not (found|exist)",
        r"couldn't find key \S+ in",
    ),
)

_MACHINE = (
    _build_phrase_rule(
        "out_of_memory",
        NAMES_CAUSE,
        "maxmemory|memory alarm|memory resource",
        r"oom command not allowed|used memory > 'maxmemory'|memory (resource )?(limit )?alarm",
    ),
    _build_phrase_rule(
        "quota",
        NAMES_CAUSE,
        "open files|emfile|enfile",
        r"too many open files|\bemfile\b|\benfile\b|file table overflow",
    ),
    _build_phrase_rule(
        "certificate",
        NAMES_CAUSE,
        "clock|before issued|not yet valid|not valid yet|ntp",
        r"clock (skew|offset|drift)|used before issued|(token|certificate|cert) (is )?not (yet valid|valid yet)",
        r"ntp service is down|not active before|time (is )?skewed too",
    ),
    _build_phrase_rule(
        "out_of_memory",
        NAMES_CAUSE,
        "out of memory|oom|outofmemory|allocate memory|bad_alloc|memoryerror|heap|due to memory|as a result of limit",
        r"\bsystemd-oomd killed\b|\bkilled \S+ due to memory (pressure|used)\b|killed as a result of limit of|\bsystem ?oom\b",
        r"\bout of memory\b|\boom[-_ ]?kill\w*|outofmemoryerror",
        r"cannot allocate memory|\bbad_alloc\b|\bmemoryerror\b",
        r"heap (space )?(limit|exhausted)|reached heap limit",
    ),
    _build_phrase_rule(
        "storage_full",
        NAMES_CAUSE,
        "space|enospc|disk|extend|storage|flood",
        r"no space left|(ran|running|run) out of (disk |storage )?space|insufficient (disk|storage|free) space",
        r"\benospc\b|\bdisk(space)? (is )?full\b|could not extend file|disk quota exceeded|flood[- ]stage",
        r"(storage|disk)( space)?( is( getting)?)? critically low|critically low (on )?(storage|disk)",
        r"not enough space on (the |this )?(disk|device|volume|drive)|(disk|drive|volume) (is|was) full\b",
        r"(allocated|provisioned) storage .{0,40}(exhausted|full)|exhausted (its|the) \w* ?storage",
    ),
    _build_phrase_rule(
        "storage_full",
        ACTS,
        "low|pressure",
        r"low (on )?(storage|disk)( space)?\b|(storage|disk)( space| capacity)?\b.{0,40}\bis (getting )?low\b|diskpressure",
    ),
    _build_phrase_rule(
        "disk", NAMES_CAUSE, "checkpoint", r"checkpoints are occurring too frequently|checkpoint storm"
    ),
    _build_phrase_rule(
        "disk",
        NAMES_CAUSE,
        "read-only|i/o|fsync|datasync|blocked for",
        # Runtimes call a broken connection an I/O error too: what follows tells which of the two is meant.
        r"read-only file ?system|fsync (failed|error)|blocked for more than \d+ sec",
        r"\bslow (disk |wal )?f(data)?sync\b|f(data)?sync\b.{0,30}\b(took|taking) too long",
        rf"\bi/o error\b(?!{_OF_NETWORK})",
    ),
    _build_phrase_rule(
        "disk",
        ACTS,
        "i/o|queue",
        r"high (disk )?i/o wait|disk ?queue ?depth\w* (has )?exceed\w*|i/o (queue )?saturat\w*",
    ),
    _build_phrase_rule(
        "network_loss",
        NAMES_CAUSE,
        "partition|split|packet|down|unreachable|conntrack|ip addresses|neighbour",
        r"nf_conntrack: table full|no ip addresses available|neighbou?r table overflow",
        r"network partition|partitioned[_ ]network|split[- ]brain|packet loss|network is unreachable",
        r"\b(link|peer) (is |went )?down\b|neighbor \S+ (is )?down",
    ),
    _build_phrase_rule(
        "cpu",
        SHOWS,
        "cpu|lockup",
        r"\bcpu (usage|utili[sz]ation|throttl\w*)\b.{0,60}\b(exceed\w*|above|over|high|\d{3,}%)",
        r"high cpu\b|soft lockup",
    ),
    _build_phrase_rule(
        "memory", SHOWS, "memory", r"memory ?pressure|high memory usage|memory usage.{0,40}(exceed\w*|above)"
    ),
)

_NAMES_AND_RIGHTS = (
    _build_phrase_rule(
        "certificate",
        NAMES_CAUSE,
        "cert|x509|pkix|self|unknown ca",
        r"(certificate|\bcert)\b.{0,40}\b(has |is |was )?(expired|not yet valid)|expired.{0,5}cert\w*|certexpired",
        r"certificate[_ ]verify[_ ]failed|failed to verify certificate|x509: |pkix path|unable to get local issuer",
        r"self[- ]signed certificate|unknown certificate authority|unknown ca\b|bad certificate|signed by unknown",
        r"remote certificate (is|was) (invalid|rejected)|\bnottimevalid\b|remotecertificate(chainerrors|namemismatch)",
    ),
    _build_phrase_rule(
        "dns",
        NAMES_CAUSE,
        "resolv|not known|no such host|getaddrinfo|enotfound|eai_again|unknownhost|nxdomain|servfail|nodename|dns|lookup|not found in upstream",
        r"could not resolve host\b|name or service not known|temporary failure in name resolution",
        r"failed to resolve (host|name|address)|name resolution (failed|error)|no such host\b|getaddrinfo",
        r"\benotfound\b|\beai_again\b|unknownhost\w*|\bservfail\b|nodename nor servname",
        # Resolvers answer so all day long, and write every answer down.
        r"\bnxdomain\b(?!,? (qr\b|mitigating\b)|.{0,120}\bretrying\b)",
        r"host not found in upstream|\bdns\b.{0,30}\b(fail\w*|time\w* ?out|error)",
        r"lookup \S+( on \S+)?: .{0,80}(i/o timeout|server misbehaving)",
    ),
    _build_phrase_rule(
        "permission",
        NAMES_CAUSE,
        "auth|password|credential|token|denied|forbidden|eacces|eperm|api key",
        r"(password )?authentication failed|invalid (credentials|password|api key|token)|token (has |is )?expired",
        r"not authorized|unauthorized(operation|exception)?\b|unauthenticated\b|\bnoauth\b",
        r"permission ?denied|access ?denied\w*|\beacces\b|\beperm\b|\bis forbidden\b|\b403 forbidden",
    ),
)

_SETTINGS = (
    _build_phrase_rule(
        "config",
        NAMES_CAUSE,
        "env",
        r"\benv(ironment)?[ _-]?var(iable)?s?\b.{0,60}\b(not set|unset|undefined|missing|not defined|not found)",
        r"\benv(ironment)?[ _-]?var(iable)?s?\b.{0,60}\b(is (required|empty)|must be set)",
        r"(missing|undefined|unset)\b.{0,30}\benv(ironment)?[ _-]?var",
    ),
    _build_phrase_rule(
        "config",
        NAMES_CAUSE,
        "config|setting|option|propert|placeholder|directive",
        r"(invalid|missing|bad|malformed|incorrect|unknown) (required )?(config\w*|settings?|option|property|directive)\b",
        r"config(uration)? (error|file not found|is invalid|invalid)|\bconfigerror\b|could not resolve placeholder",
        r"(failed|unable) to (load|parse|read) (the )?\S{0,40} ?config\w*",
    ),
    _build_phrase_rule(
        "config",
        NAMES_CAUSE,
        "executable|exec format|address already|no matches for kind|immutable|keyerror",
        r"executable file not found|exec format error|address already in use|no matches for kind|field is immutable",
        r"keyerror: ['\"](?-i:[A-Z][A-Z0-9_]{2,})['\"]",
    ),
)

_DATABASES = (
    _build_phrase_rule(
        "locks",
        NAMES_CAUSE,
        "lock",
        r"deadlock (detected|found)|lock wait timeout|due to lock timeout|could not obtain lock",
        r"database (table )?is locked|still waiting for \w*lock|lock request time ?out",
    ),
    _build_phrase_rule(
        "connections",
        NAMES_CAUSE,
        "connection|clients|pool",
        r"too many (open )?(connections|clients)|connection slots are reserved|\bmax_connections\b|no more connections",
        r"max\w{0,30} (number of )?(client |database )?connections? (has been |was |is )?(reached|exceeded)",
        r"reached .{0,30}\bmax\w{0,30} (number of )?(client |database )?connections?|connection limit .{0,20}(reached|exceeded)",
        r"(connection )?pool (is |was |has been )?(exhausted|empty|timed out)|queuepool limit|max(imum)? pool size (was |is |has been )?reached",
        r"time\w{0,8} ?out\b.{0,60}\b(obtain\w{0,8}|acquir\w{0,8}|get\w{0,8}|wait\w{0,8}( for)?) a (\w{1,20} )?connection from (the|a) (\w{1,20} )?pool",
        r"connection is not available, request timed out|(acquir\w*|obtain\w*|get\w*) (a |jdbc )?connection.{0,20}time\w* ?out",
    ),
    _build_phrase_rule(
        "slow_query",
        NAMES_CAUSE,
        "quer|statement|duration",
        # Statements are logged with their time for many reasons; a tenth of a second is what a person notices.
        r"\bduration: \d{3,}(\.\d+)? ms\b.{0,20}\b(statement|execute|parse|bind)",
        r"\bslow quer(y|ies)\b|due to statement timeout|maximum (statement )?execution time exceeded",
        r"(query|statement) (execution )?(time ?out|timed out|was interrupted)",
    ),
    _build_phrase_rule(
        "replication_lag",
        NAMES_CAUSE,
        "replica|standby|wal segment|conflict with recovery",
        r"due to conflict with recovery",
        r"replica(tion)? lag\b|replication (on .{0,40} )?(has |was |is )(been )?(stopped|terminated|broken|halted)",
        r"(replica|standby) (is |has )?(fall\w* |fell )?(significantly )?behind",
        r"wal segment \S+ has already been removed",
    ),
    _build_phrase_rule(
        "failover",
        NAMES_CAUSE,
        "failover|leader|master|primary|read only replica",
        r"failover\b.{0,70}\b(initiated|started|in progress|triggered|completed?|finished)|(initiated|started|finished) a .{0,20}failover",
        r"lost leader\w*|no longer (the )?(leader|primary|master)|\bnot (the )?(leader|primary|master)\b|read only replica",
    ),
    _build_phrase_rule(
        "failover",
        ACTS,
        "recovery mode|starting up|shutting down|administrator command",
        r"database system is (starting up|shutting down|in recovery mode)|due to administrator command",
    ),
    _build_phrase_rule(
        "deploy",
        ACTS,
        "maintenance|applying|patches",
        r"applying .{0,30}\b(upgrade|patch|update)|maintenance (has |was )?(started|begun)|off-?line patches",
    ),
    _build_phrase_rule(
        "errors",
        ACTS,
        "syntax error|constraint|does not exist|doesn't exist|unknown column|duplicate",
        r"syntax error (at or near|in sql)|violates (unique|foreign key|not-null|check) constraint|duplicate (key|entry)",
        r"(relation|column|table) \S+ (does not|doesn't) exist|unknown column",
    ),
)

_PROCESSES = (
    _build_phrase_rule("network_loss", ACTS, "reset", r"connection reset( by peer)?\b|\beconnreset\b"),
    _build_phrase_rule(
        "dependency",
        ACTS,
        "refused|no route|unreach|is down|no server",
        r"\bserver [\w.-]+/[\w.-]+ is (going )?down\b|\bhas no server available\b|no server is available to handle",
        r"connection refused|\beconnrefused\b|no route to host|\behostunreach\b|host unreachable",
    ),
    _build_phrase_rule(
        "dependency",
        ACTS,
        "connect|upstream|broker|hosts|host(s)|serverselection|unavailable|circuit|communications",
        r"(could not|cannot|can't|unable to|failed to|error) (connect|connecting|establish \w* ?connection)\b",
        r"upstream connect error|no healthy upstream|brokers? (\S+ )?(is |are )?(not available|down)",
        r"all hosts?(\(s\))? tried|no available connection|serverselectiontimeout|communications link failure",
        r"has become unavailable|circuit ?breaker (\S+ )?is open|connect(ion)? (attempt )?timed out",
    ),
    _build_phrase_rule(
        "crash",
        ACTS,
        "crashloop|back-off restarting|segmentation|sigsegv|core dumped|panic|start request repeated|backofflimit|backoff limit",
        r"crashloopbackoff|back-off restarting failed|segmentation fault|\bsigsegv\b|core dumped|^panic: |\bkernel panic\b",
        r"start request repeated too quickly|(specified )?backoff ?limit(exceeded)?",
    ),
    _build_phrase_rule(
        "crash", SHOWS, "instance", r"\binstance (was |has been |is being )?(restarted|shut ?down|rebooted)"
    ),
    _build_phrase_rule(
        "exception",
        ACTS,
        "traceback|exception|unhandled|uncaught|fatal error",
        r"^\s*traceback \(most recent call last\)|exception in thread|un(handled|caught)\b.{0,20}(exception|error|rejection)",
        r"^fatal error: ",
    ),
    _build_phrase_rule(
        "latency",
        ACTS,
        "slow|too long",
        r"\bslow (request|response|call|operation|handler|command|log entry)s?\b|took too long",
    ),
    _build_phrase_rule(
        "latency",
        SHOWS,
        "timeout|timed out|deadline|time-out",
        r"context deadline exceeded|read timed out|\betimedout\b|gateway time-?out|i/o timeout",
    ),
)

# The first rule that matches decides. What the kubelet says stands first, for it quotes the reason of others
# inside its own; what names a cause stands before what only shows one.
PHRASE_RULES: tuple[PhraseRule, ...] = (
    *_PLATFORM,
    *_CALLS,
    *_MACHINE,
    *_NAMES_AND_RIGHTS,
    *_SETTINGS,
    *_DATABASES,
    *_PROCESSES,
)
