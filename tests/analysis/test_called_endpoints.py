"""The endpoint that did not answer is read from the lines of proxies, drivers and clients, with its port."""

from collections import Counter

import pytest
from platform_rows import lines, recording

from opsleuth.analysis.called_endpoints import find_called_endpoint, name_endpoints
from opsleuth.analysis.log_messages import find_fault_messages

FORMS = [
    ('connect() failed (111: Connection refused) while connecting to upstream, client: 203.0.113.7, server: shop, request: "GET / HTTP/1.1", upstream: "http://10.0.0.7:8080/api", host: "shop.example.com"', "10.0.0.7:8080"),
    ('connect() to unix:/run/php/php8.2-fpm.sock failed (2: No such file) while connecting to upstream, client: 203.0.113.7, upstream: "fastcgi://unix:/run/php/php8.2-fpm.sock:", host: "x"', "unix:/run/php/php8.2-fpm.sock"),
    ('connect() failed (111: Connection refused), upstream: "http://[fd00::7]:8080/x"', "[fd00::7]:8080"),
    ("(111)Connection refused: AH00957: http: attempt to connect to 10.0.0.9:9000 (app-pay) failed", "10.0.0.9:9000"),
    ("Server orders-back/app2 is DOWN, reason: Layer4 connection problem", "orders-back/app2"),
    ("backend orders-back has no server available!", "orders-back"),
    ('203.0.113.7:3322 [30/Nov/2026:10:31:00.1] public orders-back/<NOSRV> 0/-1/-1/-1/0 503 512 - - SC-- 12/12/3/1/0 0/0 "GET /a HTTP/1.1"', "orders-back"),
    ("failed to connect to smtp.mail.example:587: connection refused", "smtp.mail.example:587"),
    ("dial tcp 10.0.0.7:5432: connect: connection refused", "10.0.0.7:5432"),
    ("Error: connect ECONNREFUSED 10.0.0.7:5432", "10.0.0.7:5432"),
    ('connection to server at "db.internal" (10.0.0.7), port 5432 failed: Connection refused', "db.internal:5432"),
    ('could not connect to server: Connection refused. Is the server running on host "db.internal" (10.0.0.7) and accepting TCP/IP connections on port 5432?', "db.internal:5432"),
    ("HTTPConnectionPool(host='inventory', port=8080): Max retries exceeded: Connection refused", "inventory:8080"),
    ("Connection refused: db.internal/10.0.0.7:5432", "10.0.0.7:5432"),
    ("java.net.ConnectException: Connection refused (Connection refused) to redis:6379", "redis:6379"),
    ('I/O error on POST request for "http://inventory:8081/reserve": Connection refused', "inventory:8081"),
    ("AMQP connection failed at rabbit.internal:5672: [Errno 111] Connection refused", "rabbit.internal:5672"),
    ("Can't connect to MySQL server on 'db.internal:3306' (111)", "db.internal:3306"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "endpoint"), FORMS)
def test_a_line_names_its_endpoint(line: str, endpoint: str) -> None:
    assert find_called_endpoint(line) == endpoint


@pytest.mark.parametrize("line", ["at 10:20:03 connection refused", "client 10.0.0.1:51532 connection refused", "Foo.java:120 connection refused", "[ORDERS] [2026-11-30 10:20:03] refused"])  # fmt: skip
def test_a_time_a_client_or_a_place_in_the_code_is_no_endpoint(line: str) -> None:
    assert find_called_endpoint(line) == ""


@pytest.mark.parametrize(("line", "endpoint"), [form for form in FORMS if "unix:" not in form[1] and "<NOSRV>" not in form[0]])  # fmt: skip
def test_the_finding_holds_the_endpoint_that_refuses(line: str, endpoint: str) -> None:
    found = find_fault_messages(recording(logs=lines("front", [line] * 5)))
    own = [f for f in found if f.service == "front"]
    named = {f.figures.get("host") for f in own} | {f.service for f in found}
    assert named & {endpoint, endpoint.partition(":")[0]}


def test_several_endpoints_are_named_by_how_often_lines_name_them() -> None:
    assert name_endpoints(Counter({"a:1": 5, "b:2": 9, "c:3": 1})) == "b:2 and a:1"
    assert name_endpoints(Counter({f"h{n}:80": 1 for n in range(8)})) == ""
    assert name_endpoints(Counter()) == ""
