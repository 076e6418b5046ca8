"""The kind of a message comes from the whole line: generated variants of lines that one word would misread."""

import random
from collections.abc import Iterator

import pytest
from nonempty import nonempty

from opsleuth.analysis.log_messages import find_fault_messages
from opsleuth.analysis.message_meaning import read_message_meaning
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, LogLine, Recording, TimeRange

HOSTS = ("stock", "ledger-api", "quote", "user-profile")
CLIENTS = (
    'org.springframework.web.client.ResourceAccessException: I/O error on {verb} request for "http://{host}:8080/v1/x": {why}',
    'I/O error on {verb} request for "http://{host}/echo": {why} ({why}); nested exception is java.net.SocketException: {why}',
    "feign.RetryableException: {why} executing {verb} http://{host}/v1/x",
    "requests.exceptions.ConnectionError: HTTPConnectionPool(host='{host}', port=8080): Max retries exceeded (Caused by {why})",
    '{verb} "http://{host}.shop.svc.cluster.local:8080/v1/x": dial tcp 10.3.4.5:8080: connect: {why}',
    "proxy error: {why} while calling http://{host}/v1/x",
)
REASONS = ("Connection refused", "connection refused (os error 111)", "No route to host")
DEVICES = (
    "blk_update_request: I/O error, dev {dev}, sector {n}",
    "Buffer I/O error on dev {dev}, logical block {n}, async page read",
    'XFS ({dev}): metadata I/O error in "xfs_trans_read_buf_map" at daddr {n}',
    "EXT4-fs error (device {dev}): ext4_find_entry: reading directory lblock {n}: I/O error",
)


def draw_call_failures(seed: int, count: int) -> Iterator[tuple[str, str]]:
    rng = random.Random(seed)
    for _ in range(count):
        host, verb = rng.choice(HOSTS), rng.choice(("GET", "POST", "PUT", "DELETE"))
        yield host, rng.choice(CLIENTS).format(host=host, verb=verb, why=rng.choice(REASONS))


@pytest.mark.parametrize("seed", range(6))
def test_a_call_that_found_nobody_blames_who_was_called_and_no_disk(seed: int) -> None:
    for host, text in nonempty(draw_call_failures(seed, 12)):
        lines = [LogLine(60.0 * i, "orders", "order accepted", "info") for i in range(30)]
        lines += [LogLine(1800.0 + 10.0 * i, "orders", text, "error") for i in range(20)]
        recording = Recording(
            AlertFacts("orders fail", "orders", onset=1800.0), TimeRange(0.0, 2400.0), logs=lines
        )
        first = rank_findings(recording, run_detectors(recording)).suspects[0]
        assert (first.service, first.kind != "disk") == (host, True), text


@pytest.mark.parametrize("every", [10.0, 30.0, 60.0])
def test_calls_that_fail_from_the_onset_on_count_however_few_they_are(every: float) -> None:
    [(host, text)] = draw_call_failures(3, 1)
    lines = [LogLine(60.0 * i, "orders", "order accepted", "info") for i in range(40)]
    lines += [LogLine(1800.0 + every * i, "orders", text, "error") for i in range(10)]
    alert = AlertFacts("orders fail", "orders", onset=1800.0)
    recording = Recording(alert, TimeRange(0.0, 2400.0), logs=lines)
    first = rank_findings(recording, run_detectors(recording)).suspects[0]
    assert (first.service, first.kind) == (host, "errors"), text


@pytest.mark.parametrize("text", DEVICES)
def test_a_device_that_fails_is_a_disk(text: str) -> None:
    rng = random.Random(text)
    for dev in ("sda", "nvme0n1", "dm-3"):
        meaning = read_message_meaning(text.format(dev=dev, n=rng.randrange(10**6)))
        assert meaning is not None
        assert meaning.kind == "disk"


@pytest.mark.parametrize(
    ("milliseconds", "slow"),
    [("0.009", False), ("8.3", False), ("99.999", False), ("102.5", True), ("48211", True)],
)
@pytest.mark.parametrize(
    "what", ["statement: SELECT 1", "execute <unnamed>: UPDATE t SET a = $1", "bind S_1: SELECT 2"]
)
def test_a_logged_duration_is_slow_by_its_figure(milliseconds: str, slow: bool, what: str) -> None:
    meaning = read_message_meaning(f"LOG:  duration: {milliseconds} ms  {what}")
    assert (meaning is not None and meaning.kind == "slow_query") == slow


@pytest.mark.parametrize(
    "text",
    [
        "slow query log enabled",
        "slow query threshold set to 200 ms",
        "Slow query logging is on",
        "max_connections = 100",
        "setting max_connections: 400",
        "parameter max_connections changed to 250",
    ],
)
def test_a_setting_is_no_fault(text: str) -> None:
    assert read_message_meaning(text) is None


@pytest.mark.parametrize("user", ["admin", "oracle", "root", "test"])
@pytest.mark.parametrize(
    "text",
    [
        "Failed password for invalid user {user} from 80.94.92.17 port 40112 ssh2",
        "pam_unix(sshd:auth): authentication failure; logname= uid=0 rhost=45.148.10.9 user={user}",
        "Access denied for user '{user}'@'185.220.101.4' (using password: YES)",
        'FATAL:  password authentication failed for user "{user}" connection from 45.148.10.9',
    ],
)
def test_a_stranger_at_the_door_needs_no_permission(user: str, text: str) -> None:
    assert read_message_meaning(text.format(user=user)) is None


def test_a_service_that_may_not_log_in_does() -> None:
    for text in (
        "Access denied for user 'billing'@'10.2.3.4' (using password: YES)",
        'FATAL:  password authentication failed for user "billing"',
    ):
        meaning = read_message_meaning(text)
        assert meaning is not None
        assert meaning.kind == "permission"


@pytest.mark.parametrize("slow", [3, 30, 300])
def test_a_deadlock_stands_above_the_statements_that_it_held_up(slow: int) -> None:
    lines = [
        LogLine(1000.0 + i, "db", "duration: 9120.5 ms  statement: UPDATE a", "log") for i in range(slow)
    ]
    lines += [LogLine(1000.5 + i, "db", "ERROR:  deadlock detected", "error") for i in range(0, slow, 20)]
    recording = Recording(AlertFacts("db is slow", "db"), TimeRange(0.0, 1001.0 + slow), logs=lines)
    blamed = {f.kind for f in find_fault_messages(recording) if f.direction == "cause"}
    assert blamed == {"locks"}
