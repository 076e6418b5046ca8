"""Phrases that programs print, and ordinary talk that must not be taken for them."""

import pytest
from growth import assert_grows_at_most

from opsleuth.analysis.fault_phrases import PHRASE_RULES
from opsleuth.analysis.message_meaning import find_named_hosts, read_message_meaning, reports_end

SAID = [
    ("image_pull", 'Failed to pull image "registry.example/app:v9": rpc error: code = NotFound'),
    ("image_pull", "Error: ImagePullBackOff"),
    ("image_pull", "manifest for registry.example/app:v9 not found: manifest unknown"),
    ("probe", "Liveness probe failed: Get http://10.1.2.3:80/healthz: connection refused"),
    ("probe", "Container web failed liveness probe, will be restarted"),
    ("scheduling", "0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: gpu}"),
    ("scheduling", "Pod is unschedulable"),
    ("memory", "The node was low on resource: memory. Threshold quantity: 100Mi"),
    ("storage_full", "The node was low on resource: ephemeral-storage."),
    (
        "quota",
        'pods "x" is forbidden: exceeded quota: compute, requested: cpu=2, used: cpu=4, limited: cpu=4',
    ),
    ("quota", "ThrottlingException: Rate exceeded"),
    ("config", 'MountVolume.SetUp failed for volume "settings" : configmap "settings" not found'),
    ("config", 'storageclass.storage.k8s.io "fast" not found'),
    ("config", "couldn't find key token in Secret shop/api"),
    ("quota", "accept4: too many open files"),
    ("certificate", "Token used before issued: clock skew exceeds 300 s"),
    ("certificate", "NTP service is down or clock offset exceeds threshold"),
    ("network_loss", "nf_conntrack: table full, dropping packet"),
    ("out_of_memory", "OOM command not allowed when used memory > 'maxmemory'"),
    ("out_of_memory", "Out of memory: Killed process 4711 (java) total-vm:8GB"),
    ("out_of_memory", "java.lang.OutOfMemoryError: Java heap space"),
    ("out_of_memory", "fork: Cannot allocate memory"),
    ("out_of_memory", "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"),
    ("storage_full", "write /var/lib/data: no space left on device"),
    ("storage_full", "System.IO.IOException: There is not enough space on the disk. : 'D:\\in\\a.dat'"),
    ("disk", '{"level":"warn","msg":"slow fdatasync","took":"2.8s","expected-duration":"1s"}'),
    (
        "connections",
        "Timeout expired. The timeout period elapsed prior to obtaining a connection from the pool.",
    ),
    ("connections", "all pooled connections were in use and max pool size was reached"),
    ("dns", "lookup of ledger.shop failed: NXDOMAIN"),
    ("storage_full", 'ERROR:  could not extend file "base/1/2": No space left on device'),
    ("storage_full", "flood stage disk watermark [95%] exceeded on node"),
    ("storage_full", "The database instance has exhausted its allocated storage"),
    ("storage_full", "The free storage capacity for DB instance is low at 4% of the provisioned storage"),
    ("disk", "LOG:  checkpoints are occurring too frequently (9 seconds apart)"),
    ("disk", "EXT4-fs (sda1): remounting read-only file system"),
    ("disk", "INFO: task postgres:99 blocked for more than 120 seconds."),
    ("disk", "DiskQueueDepth has exceeded normal threshold"),
    ("network_loss", "Mnesia: running_partitioned_network after network partition"),
    ("network_loss", "eth0: NIC Link is Down"),
    ("network_loss", "read tcp 10.1.1.1:4->10.1.1.2:80: connection reset by peer"),
    ("cpu", "High CPU usage over the last 5 minutes"),
    ("memory", "node condition MemoryPressure is now true"),
    ("certificate", "x509: certificate has expired or is not yet valid"),
    ("certificate", "ssl.SSLCertVerificationError: certificate verify failed: self-signed certificate"),
    ("certificate", "sun.security.validator.ValidatorException: PKIX path building failed"),
    ("dns", "curl: (6) Could not resolve host: db.example.com"),
    ("dns", "dial tcp: lookup api.shop on 10.0.0.10:53: no such host"),
    ("dns", "dial tcp: lookup api.shop on 10.0.0.10:53: read udp 10.1.1.1:4->10.0.0.10:53: i/o timeout"),
    ("dns", "Error: getaddrinfo ENOTFOUND redis"),
    ("dns", "java.net.UnknownHostException: ledger"),
    ("dns", "psycopg2.OperationalError: could not translate host name: Name or service not known"),
    ("permission", 'FATAL:  password authentication failed for user "app"'),
    ("permission", "open /etc/tls/key.pem: permission denied"),
    ("permission", "AccessDeniedException: not allowed to perform this action"),
    ("permission", 'pods is forbidden: User "system:serviceaccount:a:b" cannot list resource "pods"'),
    ("config", "required environment variable API_KEY is not set"),
    ("config", "KeyError: 'DATABASE_URL'"),
    ("config", 'nginx: [emerg] unknown directive "proxy_pas" in /etc/nginx/nginx.conf:12'),
    ("config", "Could not resolve placeholder 'payment.url' in value"),
    ("config", "failed to load config: yaml: line 3"),
    ("config", 'exec: "serve": executable file not found in $PATH'),
    ("config", "listen tcp :8080: bind: address already in use"),
    ("locks", "ERROR:  deadlock detected"),
    ("locks", "Lock wait timeout exceeded; try restarting transaction"),
    ("locks", "sqlite3.OperationalError: database is locked"),
    ("connections", "FATAL:  sorry, too many clients already"),
    ("connections", "remaining connection slots are reserved for superusers"),
    ("connections", "HikariPool-1 - Connection is not available, request timed out after 30000ms."),
    ("connections", "QueuePool limit of size 5 overflow 10 reached"),
    ("connections", "The instance has reached its maximum number of connections"),
    ("slow_query", "canceling statement due to statement timeout"),
    ("slow_query", "Slow query: 4.2 s"),
    ("replication_lag", "Replica lag on standby exceeded 300 seconds"),
    ("replication_lag", "Replication on the read replica was terminated"),
    ("failover", "A Multi-AZ failover that resulted in the promotion of a standby instance has started"),
    ("failover", "READONLY You can't write against a read only replica."),
    ("failover", "FATAL:  the database system is in recovery mode"),
    ("deploy", "Applying minor version upgrade; the instance will be unavailable"),
    ("errors", 'ERROR:  relation "orders" does not exist'),
    ("errors", "duplicate key value violates unique constraint"),
    ("dependency", 'I/O error on PUT request for "http://stock/items": Connection reset'),
    ("dependency", "dial tcp 10.2.3.4:5432: connect: connection refused"),
    ("dependency", "Error: connect ECONNREFUSED 10.2.3.4:6379"),
    ("dependency", "upstream connect error or disconnect/reset before headers"),
    ("dependency", "Communications link failure"),
    ("crash", "Back-off restarting failed container web in pod web-1"),
    ("crash", "panic: runtime error: index out of range [3] with length 3"),
    ("crash", "web.service: Start request repeated too quickly."),
    ("crash", "The DB instance was restarted"),
    ("exception", "Traceback (most recent call last):"),
    ("exception", 'Exception in thread "main" java.lang.IllegalStateException'),
    ("latency", "slow request 7f2a: 1030 ms"),
    ("latency", "rpc error: code = DeadlineExceeded desc = context deadline exceeded"),
]

QUIET = [
    "Server returned error NXDOMAIN, mitigating potential DNS violation DVE-2018-0001, retrying transaction with reduced feature level UDP.",
    '10.1.0.9:41231 - 7 "A IN cart.shop.svc. udp 41 false 512" NXDOMAIN qr,aa,rd 134 0.0002s',
    "",
    "Started HTTP server on :8080",
    'GET /metrics HTTP/1.1" 200 OK',
    "loaded configuration from /etc/app.yaml",
    "auth token refreshed",
    "connection pool initialised with 10 connections",
    "certificate valid until 2031-01-01",
    "free storage 180 GB",
    "acquired lock in 2 ms",
    "the image gallery was rendered",
    "no errors, zero OOMKilled containers",
    "run without connection refused",
    "low storage space: 99.0 GB remaining of 200 GB",
    "query finished in 12 ms",
    "leader heartbeat ok",
]


@pytest.mark.parametrize(("kind", "text"), SAID, ids=[text[:40] for _, text in SAID])
def test_phrases_of_programs_are_read(kind: str, text: str) -> None:
    meaning = read_message_meaning(text)
    assert meaning is not None
    assert meaning.kind == kind
    assert len(meaning.quote) <= 160


@pytest.mark.parametrize("text", QUIET)
def test_ordinary_talk_says_nothing(text: str) -> None:
    assert read_message_meaning(text) is None


def test_every_rule_decides_some_example() -> None:
    deciding = set()
    for _, text in SAID:
        lowered = text.lower()
        hits = (r for r in PHRASE_RULES if any(a in lowered for a in r.anchors) and r.pattern.search(text))
        deciding.add(next(hits))
    assert set(PHRASE_RULES) == deciding


def test_anchors_are_lower_case_for_they_are_sought_in_lowered_text() -> None:
    assert all(anchor == anchor.lower() for rule in PHRASE_RULES for anchor in rule.anchors)


@pytest.mark.parametrize(
    "text",
    [
        "Maintenance complete. The instance is available.",
        "failed to mount volume: transient issue, retried successfully",
        "memory pressure resolved",
        "deployment has since auto-rolled back",
        "Storage autoscaling completed",
        "the replica caught up",
    ],
)
def test_messages_that_close_a_matter(text: str) -> None:
    assert reports_end(text)


@pytest.mark.parametrize(
    "text", ["instance is running out of memory", "the service is not available", "restoring"]
)
def test_messages_that_close_nothing(text: str) -> None:
    assert not reports_end(text)


def test_hosts_are_found_in_urls_addresses_and_lookups() -> None:
    text = "GET http://user:pw@cart.shop/x failed: lookup cart.shop: then db-1:5432 refused"
    assert list(find_named_hosts(text)) == ["cart.shop", "cart.shop", "db-1"]


@pytest.mark.parametrize(
    "filler", ["a-", "a.", "x", "lookup ", "config ", "failover ", "1.0 GB ", "env var "]
)
def test_time_is_linear_for_long_lines(filler: str) -> None:
    def work(times: int) -> None:
        text = filler * times
        read_message_meaning(text + "connection refused")
        read_message_meaning("connection refused " + text)
        reports_end(text)

    assert_grows_at_most(40, lambda: work(20_000), lambda: work(200_000))  # ten times the text


@pytest.mark.parametrize(
    "text",
    [
        "java.net.UnknownHostException: stock: Name or service not known",
        "java.net.UnknownHostException: stock",
        "java.net.UnknownHostException: Failed to resolve 'stock' [A(1)] after 2 queries",
        "socket.gaierror: [Errno -2] Name or service not known: 'stock'",
        "getaddrinfo ENOTFOUND stock",
        "getaddrinfo EAI_AGAIN stock",
        'could not translate host name "stock" to address: Name or service not known',
        "Could not resolve host: stock",
        "php_network_getaddresses: getaddrinfo for stock failed: Name or service not known",
        "dns error: failed to lookup address information: Name or service not known for stock",
        'nginx: [emerg] host not found in upstream "stock"',
        "No such host is known. (stock:80)",
        "Error -2 connecting to stock:6379. Name or service not known.",
        "DNS resolution failed for stock:50051: Domain name not found",
        "Unknown host stock",
    ],
)
def test_name_that_does_not_resolve_is_read_in_the_words_of_each_runtime(text: str) -> None:
    assert set(find_named_hosts(text)) == {"stock"}
