"""The built-in incident is the same every time and holds the story that it tells."""

import csv
import json
from pathlib import Path

from opsleuth.scenarios import orders_incident


def _files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_same_bytes_every_time(tmp_path: Path) -> None:
    first, second = orders_incident.write_case(tmp_path / "a"), orders_incident.write_case(tmp_path / "b")
    assert _files(first) == _files(second)


def test_the_story_is_in_the_files(tmp_path: Path) -> None:
    folder = orders_incident.write_case(tmp_path)
    incident = json.loads((folder / "incident.json").read_text())
    assert incident["signals"] == ["changes", "logs", "metrics", "statements", "topology"]
    statements = [json.loads(line) for line in (folder / "statements.jsonl").read_text().splitlines()]
    mean = {row["statement"]: row["mean_ms"] for row in statements}
    assert mean[orders_incident.OLD_STATEMENT] < 5
    assert mean[orders_incident.NEW_STATEMENT] > 800
    changes = [json.loads(line) for line in (folder / "changes.jsonl").read_text().splitlines()]
    assert [c["service"] for c in changes] == ["payments", "web", "orders-api"]
    assert "lower(customer_email)" in changes[-1]["diff"]


def test_only_the_orders_path_gets_slower(tmp_path: Path) -> None:
    with (orders_incident.write_case(tmp_path) / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "latency_p50"]
    first, last = rows[0]["timestamp"], rows[-1]["timestamp"]
    value = {(row["service"], row["timestamp"]): float(row["value"]) for row in rows}
    slower = {s for s, t in value if t == first and value[s, last] > 2 * value[s, first]}
    assert slower == {"web", "gateway", "orders-api"}
