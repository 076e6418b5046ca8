"""Alerts as `run --alert` takes them: by URL from real servers and from rude ones, and in the forms of Prometheus."""

import io
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
import servers
from contract_server import Asked, Reply, contract_server
from nonempty import nonempty
from rude_server import RudeServer
from stored_runs import Program

from opsleuth.alerts.documents import alert_fields_from_document, group_alert_document
from opsleuth.console import alert_fetching
from opsleuth.console.alert_fetching import AlertFetchError
from opsleuth.console.alert_input import read_alert_document
from opsleuth.state.errors import ConfigError, OpsleuthError, UsageError
from opsleuth.state.run_status import ExitCode

NOW = datetime(2026, 3, 3, 14, 30, tzinfo=UTC)
ALERTS = """\
# TYPE ALERTS gauge
ALERTS{alertname="CartSlow",alertstate="firing",service="cart",severity="page"} 1 1772546400
ALERTS{alertname="CartSlow",alertstate="firing",service="cart",severity="page"} 1 1772546430
ALERTS{alertname="DiskFills",alertstate="pending",service="web"} 1 1772546430
# TYPE ALERTS_FOR_STATE gauge
ALERTS_FOR_STATE{alertname="CartSlow",service="cart",severity="page"} 1772546280 1772546430
# EOF
"""


def at(where: str, **sources: Mapping[str, Any]) -> Mapping[str, Any]:
    document = read_alert_document(where, lambda: sources, print)
    assert document is not None
    return document


def told(where: str) -> Mapping[str, Any]:
    return alert_fields_from_document(at(where), {}, NOW)


def test_a_real_alertmanager_is_asked(tmp_path: Path) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    times = {"startsAt": (now - timedelta(minutes=20)).isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat()}  # fmt: skip
    with servers.alertmanager(tmp_path) as url:
        with pytest.raises(click.BadParameter, match="no alert fires there"):
            at(f"{url}/api/v2/alerts")
        labels = ({"alertname": "CartSlow", "service": "cart"}, {"alertname": "DiskFull", "service": "disks"})
        servers.post(f"{url}/api/v2/alerts", [{"labels": one, **times} for one in labels])
        both = at(f"{url}/api/v2/alerts")
        [narrowed] = group_alert_document(at(f'{url}/api/v2/alerts?filter=service="disks"&filter=alertname="DiskFull"'), {}, now)  # fmt: skip
    assert {alert.service for incident in group_alert_document(both, {}, now) for alert in incident.alerts} == {"cart", "disks"}  # fmt: skip
    assert narrowed.services == {"disks"}
    assert narrowed.alerts[0].fired_at == now - timedelta(minutes=20)


def test_a_run_is_about_what_a_real_alertmanager_does_not_keep_quiet(tmp_path: Path) -> None:
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path)
    configure_log(tmp_path)
    now = datetime.now(UTC).replace(microsecond=0)
    times = {"startsAt": (now - timedelta(minutes=20)).isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat()}  # fmt: skip
    labels = (
        {"alertname": "DiskFull", "service": "disks", "severity": "critical"},
        {"alertname": "Watchdog", "severity": "critical"},
        {"alertname": "CartSlow", "service": "cart", "severity": "warning"},
    )
    matcher = {"name": "alertname", "value": "DiskFull", "isRegex": False, "isEqual": True}
    silence = {"matchers": [matcher], "createdBy": "me", "comment": "known", "startsAt": now.isoformat(), "endsAt": times["endsAt"]}  # fmt: skip
    with servers.alertmanager(tmp_path) as url:
        servers.post(f"{url}/api/v2/silences", silence)
        servers.post(f"{url}/api/v2/alerts", [{"labels": one, **times} for one in labels])
        servers.until(lambda: b'"suppressed"' in servers.fetch(f"{url}/api/v2/alerts"))
        ended = program("run", "--alert", f"{url}/api/v2/alerts", "--planner", "offline", "--json")
    assert ended.returncode in (ExitCode.OK, ExitCode.INCONCLUSIVE), ended.stderr
    report = json.loads(program("report", "-", "--format", "json").stdout)
    assert (report["alert"]["text"], report["alert"]["service"]) == ("CartSlow", "cart")
    assert "not looked into: DiskFull (silenced by" in ended.stderr


@pytest.mark.parametrize("query", ["ALERTS", "ALERTS_FOR_STATE", "ALERTS[5m]"])
def test_a_real_prometheus_is_asked(tmp_path: Path, query: str) -> None:
    with servers.prometheus(tmp_path, ALERTS) as url:
        alert = told(f"{url}/api/v1/query?query={query}&time=1772546430")
        with pytest.raises(click.BadParameter, match="no alert fires there"):
            at(f"{url}/api/v1/alerts")
        with pytest.raises(click.BadParameter, match="no alert fires there"):
            at(f"{url}/api/v1/query?query=ALERTS&time=17")
    assert (alert["text"], alert["service"], alert["severity"]) == ("CartSlow", "cart", "page")
    began = {"ALERTS": "14:00:30", "ALERTS_FOR_STATE": "13:58:00", "ALERTS[5m]": "14:00:00"}[query]
    assert alert.get("fired_at", alert.get("onset")) == f"2026-03-03T{began}+00:00"
    assert alert["labels"] == {"alertname": "CartSlow", "service": "cart"}


def test_a_query_of_anything_else_is_no_alert() -> None:
    document = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"__name__": "up"}, "value": [1, "1"]}]}}  # fmt: skip
    assert alert_fields_from_document(document, {}, NOW) == document


@pytest.mark.parametrize("form", ["file", "stdin"])
def test_an_answer_of_prometheus_by_file_and_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    series = [
        {"metric": {"__name__": "ALERTS", "alertname": name, "alertstate": "firing", "service": service}, "value": [1772546400, "1"]}
        for name, service in (("CartSlow", "cart"), ("WebErrors", "web"), ("MailStuck", "mail"))
    ]  # fmt: skip
    text = json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}})
    (tmp_path / "alert.json").write_text(text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    document = at("-" if form == "stdin" else str(tmp_path / "alert.json"))
    found = group_alert_document(document, {"web": ("cart",)}, NOW)
    assert sorted(sorted(incident.services) for incident in found) == [["cart", "web"], ["mail"]]


@pytest.mark.parametrize("text", ["[FIRING:1] CartSlow (cart page)", "cart is slow", "7", '"cart is slow"'])
def test_what_people_write_is_the_alert_s_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "alert").write_text(text)
    assert at(str(tmp_path / "alert")) == {"text": text}


@pytest.mark.parametrize(
    ("where", "error", "words"),
    [
        ("ftp://h/alerts", click.BadParameter, "cannot read an alert from ftp://: use http:// or https://"),
        ("file:///etc/passwd", click.BadParameter, "cannot read an alert from file://"),
        ("http:///alerts", UsageError, "not the address of an alert server"),
        ("http://h:99999/alerts", UsageError, "not the address of an alert server"),
        ("http://a b/alerts", UsageError, "not the address of an alert server"),
        ("https://me:geheim@h/alerts", UsageError, "a password has no place in an address"),
        ("no/such/file", click.BadParameter, "No such file"),
        ("a\0b", click.BadParameter, "cannot be read"),
    ],
)
def test_what_is_no_way_to_an_alert(where: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        at(where)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("manner", "code", "words"),
    [
        ("denied", ExitCode.CONFIG, "configure a source at this host with its credentials"),
        ("forbidden", ExitCode.CONFIG, "no access to this tenant"),
        ("broken", ExitCode.UNREACHABLE, "answered 503"),
        ("reset", ExitCode.UNREACHABLE, "broke off"),
        ("html", ExitCode.UNREACHABLE, "holds no alerts .*Sign in.*: give the address of JSON"),
        ("moved", ExitCode.UNREACHABLE, "leads elsewhere"),
        ("missing", ExitCode.UNREACHABLE, "answered 404"),
        ("huge", ExitCode.UNREACHABLE, "larger than 5,000,000 bytes"),
        ("hang", ExitCode.UNREACHABLE, "gave no complete answer within 0.2 s"),
    ],
)
def test_servers_that_tell_nothing(
    rude: RudeServer, monkeypatch: pytest.MonkeyPatch, manner: str, code: ExitCode, words: str
) -> None:
    if manner == "hang":
        monkeypatch.setattr(alert_fetching, "DEADLINE", 0.2)
    with pytest.raises(OpsleuthError, match=words) as caught:
        at(f"{rude.url}/{manner}/alerts?token=geheim-4711")
    assert caught.value.exit_code == code
    assert "geheim" not in str(caught.value)


def test_nobody_there() -> None:
    with pytest.raises(AlertFetchError, match="nothing answers"):
        at(f"http://127.0.0.1:{servers.free_port()}/alerts")


def guarded(asked: Asked) -> Reply:
    """Alerts for those who know the word."""
    if asked.headers.get("authorization") != "Bearer geheim-4711":
        return Reply("Unauthorized", 401)
    return Reply(
        [{"labels": {"alertname": "CartSlow", "service": "cart"}, "startsAt": "2026-03-03T14:00:00Z"}]
    )


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Mapping[str, Any]]:
    """A source at an address, with its credentials."""
    monkeypatch.setenv("AM_TOKEN", "geheim-4711")
    return lambda url: {"kind": "alertmanager", "url": f"{url}/prefix", "token": {"env": "AM_TOKEN"}}


def test_the_source_at_the_same_place_lends_its_credentials(
    token: Callable[[str], Mapping[str, Any]],
) -> None:
    with contract_server(guarded) as server, contract_server(guarded) as other:
        found = at(f"{server.url}/api/v2/alerts", alerts=token(server.url))
        assert alert_fields_from_document(found, {}, NOW)["service"] == "cart"
        for elsewhere in (token(other.url), token(server.url.replace("http:", "https:"))):
            with pytest.raises(ConfigError, match="configure a source at this host"):
                at(f"{server.url}/api/v2/alerts", alerts=elsewhere)
    assert all("authorization" not in asked.headers for asked in nonempty(server.asked[1:]))


def test_a_run_begins_with_what_a_server_tells(tmp_path: Path) -> None:
    """From the address to the report: question, service and window are the alert's; what is secret in it is not stored."""
    alert = {"labels": {"alertname": "CartSlow", "service": "cart", "note": "password=geheim-4711"},
             "annotations": {"summary": "p95 above 1 s"}, "startsAt": "2026-03-03T14:00:00Z"}  # fmt: skip
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path)
    configure_log(tmp_path)
    with contract_server(lambda _: Reply([alert])) as server:
        ended = program("run", "--alert", f"{server.url}/api/v2/alerts", "--planner", "offline", "--json")
    assert ended.returncode == ExitCode.INCONCLUSIVE, ended.stderr
    report = json.loads(program("report", "-", "--format", "json").stdout)
    assert report["alert"]["text"] == "CartSlow: p95 above 1 s"
    assert report["alert"]["service"] == "cart"
    assert report["window"]["start"].startswith("2026-03-03T13:30:00")
    assert "geheim" not in ended.stdout + json.dumps(report)


def configure_log(home: Path) -> None:
    """A configuration with one log of the service cart."""
    (home / ".config" / "opsleuth").mkdir(parents=True)
    (home / "log").write_text("2026-03-03T14:00:00Z ERROR cache is full\n")
    file = home / ".config" / "opsleuth" / "config.toml"
    file.write_text(f'[environments.shop.sources.logs]\nkind = "logfiles"\nservice = "cart"\nfiles = ["{home}/log"]\n')  # fmt: skip
