"""Which alert a run is about, and which service: in payloads of Alertmanager v1 and v2, Grafana, and Prometheus' rules."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from opsleuth.alerts.documents import alert_fields_from_document, find_muted_alerts, group_alert_document
from opsleuth.alerts.labels import is_exporter, service_in, workloads_in
from opsleuth.alerts.subject import is_heartbeat, severity_rank
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest, first_state, open_sources
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
from opsleuth.tools.sources.case_source import CaseSource

NOW = datetime.fromisoformat("2026-03-03T14:30:00+00:00")
OLD, RECENT = "2026-01-11T03:00:00.000Z", "2026-03-03T14:12:00.000Z"
ACTIVE = {"state": "active", "silencedBy": [], "inhibitedBy": [], "mutedBy": []}
SCRAPED = {"endpoint": "http", "instance": "10.244.3.17:8080"}


def alert(name: str, starts: str = RECENT, **labels: str) -> dict[str, Any]:
    return {
        "labels": {"alertname": name, **labels},
        "annotations": {"summary": f"{name}!"},
        "startsAt": starts,
    }


def subject(
    *alerts: dict[str, Any], question: str = "", calls: dict[str, tuple[str, ...]] | None = None
) -> str:
    """The name of the alert that a run would be about."""
    told = alert_fields_from_document({"alerts": list(alerts)}, calls or {}, NOW, question)
    return str(told["labels"]["alertname"])


QUIET: dict[str, dict[str, Any]] = {
    "silenced": {"status": ACTIVE | {"state": "suppressed", "silencedBy": ["57aa"]}},
    "inhibited": {"status": ACTIVE | {"state": "suppressed", "inhibitedBy": ["a1b2"]}},
    "muted by a time interval": {"status": ACTIVE | {"mutedBy": ["weekends"]}},
    "resolved, as webhooks say it": {"status": "resolved", "endsAt": RECENT},
    "resolved, as its times say it": {"endsAt": "2026-03-03T13:00:00Z", "updatedAt": "2026-03-03T13:00:00Z"},
}


@pytest.mark.parametrize("how", QUIET.values(), ids=QUIET)
@pytest.mark.parametrize("starts", [OLD, RECENT])
def test_a_quiet_alert_is_never_the_subject_however_bad(how: dict[str, Any], starts: str) -> None:
    quiet = alert("QueueStuck", starts, service="mail", severity="critical") | how
    heard = alert("CartSlow", service="cart", severity="info") | {"status": ACTIVE}
    assert subject(quiet, heard) == subject(heard, quiet) == "CartSlow"


@pytest.mark.parametrize(
    "name", ["Watchdog", "InfoInhibitor", "DeadMansSwitch", "Dead Man's Snitch", "PrometheusAlertmanagerE2eDeadManSwitch"]
)  # fmt: skip
def test_an_alert_that_always_fires_is_never_the_subject(name: str) -> None:
    assert is_heartbeat(name)
    always = alert(name, OLD, severity="critical")
    assert subject(always, alert("CartSlow", severity="info")) == "CartSlow"
    with pytest.raises(UsageError, match="always fires"):
        alert_fields_from_document({"alerts": [always]}, {}, NOW)


@pytest.mark.parametrize("name", ["WatchdogTimeouts", "HeartbeatMissed", "NodeWatchdogReset"])
def test_an_alert_about_a_heartbeat_is_an_alert(name: str) -> None:
    assert not is_heartbeat(name)


def test_where_all_are_quiet_the_reason_is_named() -> None:
    silenced = alert("CartSlow") | QUIET["silenced"]
    assert [one.muted for one in find_muted_alerts({"alerts": [silenced]})] == ["silenced by 57aa"]
    with pytest.raises(UsageError, match=r"CartSlow is silenced by 57aa.*ask a question"):
        alert_fields_from_document({"alerts": [silenced]}, {}, NOW)
    assert group_alert_document({"alerts": [silenced]}, {}, NOW) == ()


def test_severity_decides_between_incidents_and_within_one() -> None:
    old, bad = (
        alert("DiskFills", OLD, service="disks", severity="warning"),
        alert("CartFails", service="cart", severity="page"),
    )
    assert subject(old, bad) == "CartFails"
    caused = alert("WebErrors", "2026-03-03T14:14:00Z", service="web", severity="critical")
    cause = alert("CartSlow", service="cart", severity="warning")
    assert subject(cause, caused, calls={"web": ("cart",)}) == "WebErrors"


def test_of_equally_bad_ones_a_stale_one_is_not_the_subject() -> None:
    stale = alert("CertExpires", OLD, service="edge", severity="critical")
    assert subject(stale, alert("CartFails", service="cart", severity="critical")) == "CartFails"


@pytest.mark.parametrize(
    "question",
    [
        "why is the disk of mail-db full?",
        "is QueueStuck real?",
        "Why is the queue stuck?",
        "What does the Mail DB do?",
    ],
)
def test_what_the_person_asks_about_goes_first(question: str) -> None:
    asked = alert("QueueStuck", OLD, service="mail-db", severity="info")
    assert (
        subject(alert("CartFails", service="cart", severity="page"), asked, question=question) == "QueueStuck"
    )
    assert (
        subject(alert("MailSlow", service="mail", severity="page"), asked, question=question) == "QueueStuck"
    )


def test_a_question_that_names_nothing_leaves_the_choice_to_severity() -> None:
    asked = alert("QueueStuck", service="mail-db", severity="info")
    for question in ("what is wrong?", "why are mails late?", "are all mail-dbs slow?"):
        assert (
            subject(alert("CartFails", service="cart", severity="page"), asked, question=question)
            == "CartFails"
        )


@pytest.mark.parametrize("severity", [None, 3, ["page"]])
def test_a_severity_that_is_no_word_is_none(severity: Any) -> None:
    told = alert_fields_from_document(
        {"alerts": [{"labels": {"alertname": "CartSlow", "severity": severity}}]}, {}, NOW
    )
    assert "severity" not in told


def test_severity_words() -> None:
    ranked = ["P1", "error", "warning", "low", "INFO"]
    assert sorted(ranked, key=severity_rank) == ranked
    assert severity_rank(None) == severity_rank("purple") == severity_rank("warning")


# --- forms ---------------------------------------------------------------------------------------------------


def test_alertmanager_v1_and_groups_of_v2() -> None:
    quiet = alert("QueueStuck", OLD, severity="critical") | QUIET["silenced"]
    heard = alert("CartSlow", service="cart") | {"status": ACTIVE, "receivers": ["d"]}
    first = alert_fields_from_document({"status": "success", "data": [quiet, heard]}, {}, NOW)
    groups = [{"labels": {}, "receiver": {"name": "d"}, "alerts": [quiet]}, {"labels": {}, "receiver": {"name": "d"}, "alerts": [heard]}]  # fmt: skip
    second = alert_fields_from_document({"alerts": groups}, {}, NOW)
    assert first == second
    assert first["service"] == "cart"


def rules(*alerts: dict[str, Any], **of_rule: Any) -> dict[str, Any]:
    rule = {
        "name": "CartSlow",
        "type": "alerting",
        "labels": {"severity": "page"},
        "alerts": list(alerts),
    } | of_rule
    recording = {"name": "cart:rate5m", "type": "recording"}
    return {"status": "success", "data": {"groups": [{"name": "shop", "rules": [recording, rule]}]}}


def test_rules_of_prometheus_and_grafana() -> None:
    document = rules(
        {"labels": {"service": "web"}, "state": "pending", "activeAt": RECENT},
        {
            "labels": {"service": "cart"},
            "state": "firing",
            "activeAt": RECENT,
            "annotations": {"summary": "p95"},
        },
    )
    told = alert_fields_from_document(document, {}, NOW)
    assert (told["text"], told["service"], told["severity"]) == ("CartSlow: p95", "cart", "page")
    grafana = rules(
        {"labels": {"service": "web"}, "state": "Normal"},
        {"labels": {"service": "cart"}, "state": "Alerting"},
    )
    assert alert_fields_from_document(grafana, {}, NOW)["service"] == "cart"


def test_a_rule_without_data_is_no_failure_of_the_service() -> None:
    lost = alert(
        "DatasourceNoData",
        severity="critical",
        service="cart",
        rulename="Cart p95",
        datasource_uid="x1",
        ref_id="A",
    )
    real = alert("MailSlow", "2026-03-03T14:20:00Z", service="mail", severity="warning")
    assert subject(lost, real) == "MailSlow"
    alone = alert_fields_from_document({"alerts": [lost]}, {}, NOW)
    assert (
        "rule Cart p95 got no data from its data source: this alone says nothing about the service"
        in alone["text"]
    )
    kept = alert("CartSlow", severity="critical") | {
        "annotations": {"summary": "x", "grafana_state_reason": "NoData"}
    }
    assert subject(kept, real) == "MailSlow"
    assert subject(alert("DatasourceError", severity="critical"), real) == "MailSlow"


@pytest.mark.parametrize("time", ["29/11/2026 14:00", "2026-03-03T14:12:00", "yesterday", "1e400"])
def test_a_time_that_cannot_be_read_is_named(time: str) -> None:
    told = alert_fields_from_document({"alerts": [alert("CartSlow", time)]}, {}, NOW)
    assert f"startsAt '{time}' cannot be read as a time with a zone" in told["text"]
    assert "fired_at" not in told


@pytest.mark.parametrize(
    "time",
    ["2026-03-03 14:12:00 +0000 UTC", "2026-03-03 15:12:00.123456789 +0100 CET", "Tue, 03 Mar 2026 14:12:00 GMT",
     "2026-03-03 14:12:00 UTC", "2026-03-03T14:12:00.123456789Z", 1772547120, 1772547120000],
)  # fmt: skip
def test_times_as_systems_write_them(time: Any) -> None:
    told = alert_fields_from_document({"alerts": [alert("CartSlow", time)]}, {}, NOW)
    assert datetime.fromisoformat(told["fired_at"]).replace(microsecond=0) == datetime.fromisoformat(RECENT)
    assert "cannot be read" not in told["text"]


def test_no_time_at_all_is_not_named_as_unreadable() -> None:
    assert (
        alert_fields_from_document({"alerts": [alert("CartSlow", "0001-01-01T00:00:00Z")]}, {}, NOW)["text"]
        == "CartSlow: CartSlow!"
    )


# --- services ------------------------------------------------------------------------------------------------

BEHIND_EXPORTERS = [
    ({"service": "kube-state-metrics", "pod": "till-api-5c7d9b8f6d-x2x9p", "namespace": "mall"}, "till-api"),
    ({"service": "prom-kube-state-metrics", "job": "kube-state-metrics", "container": "kube-state-metrics",
      "pod": "till-api-5c7d9b8f6d-x2x9p"}, "till-api"),
    ({"service": "kps-kube-state-metrics", "deployment": "till-api", "container": "kube-state-metrics"}, "till-api"),
    ({"service": "kube-state-metrics", "statefulset": "till-db"}, "till-db"),
    ({"service": "kube-state-metrics", "pod": "till-db-0"}, "till-db"),
    ({"service": "kube-state-metrics", "pod": "till-agent-7xk2p"}, "till-agent"),
    ({"service": "kube-state-metrics", "job_name": "till-report-28907520"}, "till-report"),
    ({"service": "kps-kubelet", "job": "kubelet", "pod": "till-api-5c7d9b8f6d-x2x9p", "container": "istio-proxy"}, "till-api"),
    ({"app": "kube-state-metrics", "exported_service": "till-api"}, "till-api"),
    ({"service": "kube-state-metrics", "pod": "kube-state-metrics-6c8d7f9b5-abcde", "exported_pod": "till-api-5c7d9b8f6d-x2x9p",
      "exported_container": "till-api"}, "till-api"),
    ({"service": "mysqld-exporter", "job": "mysqld-exporter", "app": "till-db"}, "till-db"),
    ({"service": "postgres_exporter:9187", "component": "till-db"}, "till-db"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "service"), BEHIND_EXPORTERS)
def test_the_workload_behind_an_exporter(labels: dict[str, str], service: str) -> None:
    assert service_in(SCRAPED | labels) == service
    told = alert_fields_from_document({"alerts": [alert("Restarting", **SCRAPED, **labels)]}, {}, NOW)
    assert told["service"] == service


@pytest.mark.parametrize(
    "name",
    ["exporter", "import-exporter-api", "exporters", "black-boxes", "kubelets", "invoice-exports", "alloys"],
)
def test_names_that_only_look_like_exporters(name: str) -> None:
    assert is_exporter(name) is (name == "import-exporter-api")


def test_a_service_beside_labels_of_its_pod_stays() -> None:
    labels = {"service": "orders", "pod": "orders-api-5c7d9b8f6d-x2x9p", "deployment": "orders-api"}
    assert service_in(labels) == "orders"
    assert service_in({"job": "blackbox", "service": "orders"}) == "orders"
    assert service_in({"job": "node", "instance": "10.0.0.1:9100"}) is None


def test_an_exporter_alone_stays_the_service() -> None:
    assert (
        service_in({"service": "node-exporter", "pod": "node-exporter-7xk2p", "instance": "10.0.0.1"})
        == "node-exporter"
    )
    assert list(workloads_in({"service": "node-exporter", "pod": "node-exporter-7xk2p"})) == []


def test_our_own_form_and_a_case_are_read_the_same_way(tmp_path: Path) -> None:
    given = {
        "text": "Restarting",
        "service": "kube-state-metrics",
        "labels": {"pod": "till-api-5c7d9b8f6d-x2x9p"},
    }
    chosen = RunSettings(sources={"m": {"kind": "prometheus", "url": "http://127.0.0.1:9"}})
    request = StartRequest(run="inv-1", alert=given, settings=chosen)
    state = first_state(request, open_sources(chosen), SystemClock())
    assert state.alert is not None
    assert state.alert.service == "till-api"
    window = {"start": "2026-03-03T14:00:00Z", "end": "2026-03-03T14:30:00Z"}
    (tmp_path / "incident.json").write_text(json.dumps({"id": "x", "alert": given, "window": window}))
    case = CaseSource.open(tmp_path)
    assert case.recording([]).alert.service == "till-api"
    assert case.services == {"till-api"}


def test_a_known_service_in_the_text_stands_before_an_exporter() -> None:
    chosen = RunSettings(sources={"d": {"kind": "declared", "calls": {"web": ["till-api", "node-exporter"]}}})
    for text, service in (("till-api restarts", "till-api"), ("a disk fills", "node-exporter")):
        request = StartRequest(run="inv-1", alert={"text": text, "service": "node-exporter"}, settings=chosen)
        state = first_state(request, open_sources(chosen), SystemClock())
        assert state.alert is not None
        assert (state.alert.service, state.unresolved) == (service, "")


@pytest.mark.parametrize(
    ("labels", "service"),
    [
        ({"service": "mysqld-exporter", "instance": "till-api:3306"}, "till-api"),
        ({"service": "blackbox-exporter", "instance": "https://till-api.shop.example/health"}, "till-api"),
        ({"service": "node-exporter", "instance": "10.0.0.1:9100"}, "node-exporter"),
    ],
)
def test_a_known_service_that_an_exporter_looks_at(labels: dict[str, str], service: str) -> None:
    chosen = RunSettings(sources={"d": {"kind": "declared", "calls": {"web": ["till-api", "node-exporter"]}}})
    request = StartRequest(run="inv-1", alert={"alerts": [alert("Down", **labels)]}, settings=chosen)
    state = first_state(request, open_sources(chosen), SystemClock())
    assert state.alert is not None
    assert state.alert.service == service
