"""Prometheus and Alertmanager of the lab: what is scraped each second, what fires, and whom it is told."""

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from opsleuth.scenarios.lab.database import find_program
from opsleuth.scenarios.lab.processes import LabProgram, make_readiness_check

SLOW_SECONDS = 0.1
FAILING_SHARE = 0.05
_SLOW = 'histogram_quantile(0.95, sum by (le) (rate(http_request_duration_seconds_bucket{service="orders-api",route="/orders"}[5s])))'
_FAILING = 'sum(rate(http_requests_total{service="orders-api",status=~"5.."}[5s])) / sum(rate(http_requests_total{service="orders-api"}[5s]))'
CONDITIONS = {"slow": f"{_SLOW} > {SLOW_SECONDS}", "failing": f"{_FAILING} > {FAILING_SHARE}"}
"""What must not be so; each query has an answer only while it is."""
_SLOW_TEXT = '95 % of the requests to orders-api took up to {{ $value | printf "%.2f" }} s, the limit is '
_SUMMARIES = {
    "slow": ("OrdersApiSlow", f"{_SLOW_TEXT}{SLOW_SECONDS} s"),
    "failing": ("OrdersApiFailing", "{{ $value | humanizePercentage }} of the requests to orders-api fail"),
}


def _build_alert_rules() -> dict[str, object]:
    rules = [
        {
            "alert": alert,
            "expr": CONDITIONS[name],
            "for": "2s",
            "labels": {"service": "orders-api", "severity": "critical"},
            "annotations": {"summary": summary},
        }
        for name, (alert, summary) in _SUMMARIES.items()
    ]
    return {"groups": [{"name": "orders-api", "interval": "1s", "rules": rules}]}


def prepare_prometheus(folder: Path, port: int, alertmanager: int, scraped: Mapping[str, int]) -> LabProgram:
    """`scraped` is service to port; each series carries the label `service`."""
    targets = [
        {"job_name": service, "static_configs": [{"targets": [f"127.0.0.1:{at}"], "labels": {"service": service}}]}
        for service, at in scraped.items()
    ]  # fmt: skip
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]},
        "scrape_configs": targets,
    }
    folder.mkdir()
    (folder / "prometheus.yml").write_text(json.dumps(config, indent=1))  # JSON is YAML
    (folder / "rules.yml").write_text(json.dumps(_build_alert_rules(), indent=1))
    argv = [
        find_program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    return LabProgram(
        name="prometheus",
        argv=argv,
        ready=make_readiness_check(f"http://127.0.0.1:{port}/-/ready"),
        port=port,
    )


def prepare_alertmanager(folder: Path, port: int, webhook: str) -> LabProgram:
    """Sends what fires, and that it is over, to `webhook`."""
    config = {
        "route": {"receiver": "keeper", "group_by": ["service"], "group_wait": "0s", "group_interval": "1s"},
        "receivers": [{"name": "keeper", "webhook_configs": [{"url": webhook, "send_resolved": True}]}],
    }
    folder.mkdir()
    (folder / "alertmanager.yml").write_text(json.dumps(config, indent=1))
    argv = [
        find_program("prometheus-alertmanager"),
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    return LabProgram(
        name="alertmanager",
        argv=argv,
        ready=make_readiness_check(f"http://127.0.0.1:{port}/-/ready"),
        port=port,
    )


def list_firing_conditions(port: int) -> list[str]:
    """Which of the conditions hold now, by Prometheus."""
    return [name for name, query in CONDITIONS.items() if _query_prometheus(port, query)["data"]["result"]]


def _query_prometheus(port: int, query: str) -> dict[str, dict[str, list[object]]]:
    url = f"http://127.0.0.1:{port}/api/v1/query?query={quote(query)}"
    with urlopen(url, timeout=5) as answer:
        document: dict[str, dict[str, list[object]]] = json.loads(answer.read())
    return document
