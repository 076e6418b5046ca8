"""Which paths failing requests are of and which upstream should have answered, whoever wrote the lines."""

from collections import Counter
from typing import Any

import pytest

from opsleuth.analysis.log_levels import find_log_levels
from opsleuth.analysis.records import AlertFacts, LogLine, Recording, TimeRange
from opsleuth.analysis.request_fields import (
    describe_counts,
    find_request_path,
    find_upstream,
    is_access_log,
    name_requests,
)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"request": "POST /api/charge?id=7 HTTP/1.1"}, "POST /api/charge"),
        ({"request": "GET /orders/8131/items/4 HTTP/2.0"}, "GET /orders/<n>/items/<n>"),
        ({"request": "GET https://shop.example/v2/basket HTTP/1.1"}, "GET /v2/basket"),
        ({"method": "PUT", "path": "/users/7f3ad4d1-9d0c-4b8f-8a55-6c1a9b3f2e10"}, "PUT /users/<id>"),
        ({"request_method": "GET", "request_uri": "/search?q=tea#top"}, "GET /search"),
        ({"http.method": "GET", "url": "http://cart:8080/basket"}, "GET /basket"),
        ({"uri": "/only/path"}, "/only/path"),
        ({"request": "\\x16\\x03\\x01"}, ""),
        ({"request": "-"}, ""),
        ({}, ""),
    ],
)
def test_paths_of_requests(fields: dict[str, Any], path: str) -> None:
    assert find_request_path(LogLine(0.0, "web", "", extra=fields)) == path


@pytest.mark.parametrize(
    ("fields", "upstream"),
    [
        ({"upstream_addr": "10.0.0.7:8080"}, "10.0.0.7:8080"),
        ({"upstream_addr": "10.0.0.7:8080, 10.0.0.8:8080"}, "10.0.0.8:8080"),
        ({"backend": "api", "server": "<NOSRV>"}, "api"),
        ({"upstream": "-"}, ""),
        ({}, ""),
    ],
)
def test_upstreams_of_requests(fields: dict[str, Any], upstream: str) -> None:
    assert find_upstream(LogLine(0.0, "web", "", extra=fields)) == upstream


@pytest.mark.parametrize(
    ("name", "is_file"),
    [("access", True), ("ssl_access", True), ("shop-access", True), ("access_log", True), ("localhost_access_log", True),
     ("accessories", False), ("cart", False), ("access-control", False)],
)  # fmt: skip
def test_a_file_of_requests_is_no_service(name: str, is_file: bool) -> None:
    assert is_access_log(name) is is_file
    assert name_requests(name) == (f"requests in {name}.log" if is_file else f"requests of {name}")


def test_counts_in_words() -> None:
    assert describe_counts(Counter(), 0) == ""
    assert describe_counts(Counter({"a": 3}), 3) == "all of them a"
    assert describe_counts(Counter({"a": 3}), 4) == "a (3)"
    assert (
        describe_counts(Counter({"a": 3, "b": 3, "c": 2, "d": 1, "e": 1}), 10)
        == "a (3), b (3), c (2) and 2 more"
    )


def failing_lines(service: str, upstream: str | None) -> list[LogLine]:
    """A request each second, of which those to one path fail in the second half."""
    lines = []
    for second in range(600):
        path = ("/charge", "/basket", f"/orders/{second}")[second % 3]
        status = "502" if path == "/charge" and second >= 300 else "200"
        fields = {"request": f"POST {path} HTTP/1.1", "status": status} | ({"upstream_addr": upstream} if upstream else {})  # fmt: skip
        lines.append(LogLine(float(second), service, f"POST {path} {status}", extra=fields))
    return lines


@pytest.mark.parametrize(
    ("service", "words"), [("access", "requests in access.log"), ("web", "requests of web")]
)
def test_the_finding_names_paths_and_upstream(service: str, words: str) -> None:
    alert = AlertFacts(text="", onset=300.0)
    recording = Recording(alert, TimeRange(0.0, 600.0), logs=failing_lines(service, "10.0.0.7:8080"))
    [finding] = find_log_levels(recording)
    assert f"100 of 300 {words} ended in a 5xx status" in finding.text
    assert finding.text.endswith(": all of them POST /charge; upstream 10.0.0.7:8080.")


def test_the_upstream_may_stand_in_the_errors_of_the_server() -> None:
    error = '[error] 31#31: *9 connect() failed (111: Connection refused) while connecting to upstream, request: "POST /charge HTTP/1.1", upstream: "http://10.0.0.9:8080/charge"'
    errors = [LogLine(301.0 + n, "error", error, "error") for n in range(100)]
    recording = Recording(
        AlertFacts(text="", onset=300.0),
        TimeRange(0.0, 600.0),
        logs=[*failing_lines("access", None), *errors],
    )
    [finding] = [one for one in find_log_levels(recording) if one.detector == "log_statuses"]
    assert finding.text.endswith("all of them POST /charge; upstream 10.0.0.9:8080.")


@pytest.mark.parametrize("name", ["upstream", "upstream_addr", "upstream_host", "backend", "proxy_host"])
@pytest.mark.parametrize("form", ['{}="{}"', "{}={}", '{}="10.0.0.9:80, {}"'])
def test_an_upstream_that_stands_in_the_line_is_read(name: str, form: str) -> None:
    line = f'192.0.2.1 - - "GET /a HTTP/1.1" 502 157 rt=0.001 {form.format(name, "10.0.3.12:8080")} x=1'
    assert find_upstream(LogLine(0.0, "access", line)) == "10.0.3.12:8080"
    assert find_upstream(LogLine(0.0, "access", f'"GET /a HTTP/1.1" 200 {name}="-"')) == ""


@pytest.mark.parametrize("early", [0, 20, 36, 300])
@pytest.mark.parametrize("gap", [3, 10])
def test_failures_before_the_stated_time_are_part_of_the_onset(early: int, gap: int) -> None:
    start = 36_000.0
    begin = start - early
    lines = []
    for n in range(600):
        time = start - 1_200 + n * gap
        status = 502 if time >= begin and n % 2 else 200
        line = f'192.0.2.1 - - "GET /a HTTP/1.1" {status} 157 upstream="10.0.3.{11 + n % 2}:8080"'
        lines.append(LogLine(time, "access", line, extra={"status": status}))
    window = TimeRange(start, start + 3_600)
    recording = Recording(AlertFacts("502 errors", None, stated=start), window, logs=lines)
    found = next(one for one in find_log_levels(recording) if one.detector == "log_statuses")
    assert found.onset is not None
    assert begin <= found.onset <= begin + 2 * gap
    assert "upstream 10.0.3.12:8080" in found.text
