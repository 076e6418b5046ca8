"""The rows of a case folder in the forms in which real backends store them."""

import csv
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from servers import journal_entry, need

_PRIORITY = {"ERROR": "3", "WARN": "4", "LOG": "6", "INFO": "6", "DEBUG": "7"}


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV or JSONL table."""
    with path.open(encoding="utf-8") as file:
        if path.suffix == ".csv":
            return list(csv.DictReader(file))
        return [json.loads(line) for line in file]


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def openmetrics(samples: Iterable[Mapping[str, Any]]) -> str:
    """Gauges with the label `service`, and what Prometheus needs to make blocks of them."""
    by_metric: dict[str, list[str]] = {}
    for row in sorted(samples, key=lambda r: (r["metric"], r["service"], r["timestamp"])):
        line = f'{row["metric"]}{{service="{row["service"]}"}} {row["value"]} {seconds(row["timestamp"]):.3f}'
        by_metric.setdefault(row["metric"], []).append(line)
    parts = [f"# TYPE {metric} gauge\n" + "\n".join(lines) for metric, lines in by_metric.items()]
    return "\n".join([*parts, "# EOF", ""])


def units(samples: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {row["metric"]: row["unit"] for row in samples}


def journal_export(lines: Iterable[Mapping[str, Any]]) -> str:
    """The lines as entries of containers in the journal, in order of time."""
    entries = []
    boot, machine = "0" * 31 + "1", "0" * 31 + "2"
    for number, row in enumerate(sorted(lines, key=lambda r: seconds(r["timestamp"])), 1):
        micro = round(seconds(row["timestamp"]) * 1e6)
        entries.append(
            journal_entry(
                (
                    (
                        "__CURSOR",
                        f"s={machine};i={number:x};b={boot};m={number:x};t={micro:x};x={number:x}",
                    ),
                    ("__REALTIME_TIMESTAMP", str(micro)),
                    ("__MONOTONIC_TIMESTAMP", str(number)),
                    ("_BOOT_ID", boot),
                    ("_MACHINE_ID", machine),
                    ("PRIORITY", _PRIORITY[row["level"]]),
                    ("CONTAINER_NAME", row["service"]),
                    ("CONTAINER_ID", row["pod"]),
                    ("MESSAGE", row["message"]),
                )
            )
        )
    return "".join(entries)


def bulk(lines: Iterable[Mapping[str, Any]], index: str = "logs-shop") -> str:
    """The lines as documents as shippers of logs write them, in the form of the _bulk API."""
    parts = []
    for row in lines:
        document = {
            "@timestamp": row["timestamp"],
            "message": row["message"],
            "log": {"level": row["level"]},
            "service": {"name": row["service"]},
            "kubernetes": {"pod": {"name": row["pod"]}},
        }
        parts += [json.dumps({"index": {"_index": index}}), json.dumps(document)]
    return "\n".join([*parts, ""])


HISTORY = (
    "SELECT captured_at, statement, calls, calls_per_sec, mean_ms, total_ms, waits, rows FROM statement_history "
    "WHERE captured_at BETWEEN %(start)s AND %(end)s ORDER BY captured_at, place"
)


def store_statements(dsn: str, statements: Iterable[Mapping[str, Any]]) -> None:
    """The snapshots in a table, as teams keep them that look at pg_stat_statements every quarter of an hour."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        connection.execute(
            "CREATE TABLE statement_history (place serial, captured_at timestamptz, statement text, calls float8,"
            " calls_per_sec float8, mean_ms float8, total_ms float8, waits jsonb, rows float8)"
        )
        for row in statements:
            connection.execute(
                "INSERT INTO statement_history (captured_at, statement, calls, calls_per_sec, mean_ms, total_ms, waits, rows)"
                " VALUES (%(captured_at)s, %(statement)s, %(calls)s, %(calls_per_sec)s, %(mean_ms)s, %(total_ms)s, %(waits)s, %(rows)s)",
                {**row, "waits": json.dumps(row["waits"])},
            )


def store_changes(folder: Path, changes: Iterable[Mapping[str, Any]]) -> Path:
    """A repository with one commit for each change, its service and kind in trailers, a deploy also tagged."""
    need("git")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments: str, **more: str) -> None:
        subprocess.run(
            ["git", "-C", str(folder), *arguments], check=True, capture_output=True, env=environment | more
        )

    def commit(message: str, author: str, at: str) -> None:
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
               for what, value in (("NAME", author), ("EMAIL", "x@example.com"), ("DATE", at))}  # fmt: skip
        git("add", ".")
        git("commit", "--quiet", "--no-gpg-sign", f"--message={message}", **who)

    in_order = sorted(changes, key=lambda r: seconds(r["timestamp"]))
    git("init", "--quiet", "--initial-branch=main")
    for row in in_order:
        _write_side(folder, row, " -")
    commit("Keep what is there", "somebody", "2020-01-01T00:00:00Z")
    for row in in_order:
        _write_side(folder, row, " +")
        version = f"\nVersion: {row['version']}" if "version" in row else ""
        message = f"{row['summary']}\n\nService: {row['service']}\nKind: {row['kind']}{version}\n"
        commit(message, row["author"], row["timestamp"])
        if "version" in row:
            git("tag", f"{row['service']}-v{row['version']}")
    return folder


def _write_side(folder: Path, row: Mapping[str, Any], marks: str) -> None:
    """Write one side of a change's diff, its lines that begin with one of `marks`, under the name that the diff gives."""
    diff = row.get("diff") or f"-\n+{row['summary']}"
    named = re.search(r"^\+\+\+ b/(\S+)", diff, re.MULTILINE)
    file = folder / (named[1] if named else f"{row['service']}.txt")
    file.parent.mkdir(parents=True, exist_ok=True)
    body = [line for line in diff.splitlines() if not line.startswith(("---", "+++", "@@"))]
    file.write_text("".join(f"{line[1:]}\n" for line in body if line[0] in marks))
