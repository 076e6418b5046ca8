"""Servers that other people published, in one run: a filesystem, a repository and a database, each behind its gate."""

import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import servers
from acting import RUN, Acting, calls
from loop_rig import concludes

from opsleuth.configuration.mcp_settings import McpServerSettings
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.extra_tools import ExtraTools
from opsleuth.tools.mcp.server_tools import McpTools

NOTE = "orders-api was rolled back at 13:40"


def write_places(folder: Path, git: str) -> tuple[Path, Path, Path]:
    """A folder of notes, a repository with one commit, and a database with one order."""
    notes, repository, database = folder / "notes", folder / "repository", folder / "orders.db"
    notes.mkdir()
    repository.mkdir()
    (notes / "handover.md").write_text("the disk of orders-db fills up on Mondays")
    commit = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "deploy orders-api 2.14.0",
    ]
    for argv in (["init", "-q", "."], commit):
        subprocess.run([git, *argv], cwd=repository, check=True)
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, state TEXT)")
        connection.execute("INSERT INTO orders VALUES (7, 'stuck')")
    return notes, repository, database


def count_orders(database: Path, state: str) -> int:
    with sqlite3.connect(database) as connection:
        (found,) = connection.execute("SELECT count(*) FROM orders WHERE state = ?", (state,)).fetchone()
    return int(found)


def read_bodies(rig: Acting) -> list[Any]:
    """What the calls of the run gave back, as it is stored."""
    return [rig.store.evidence.record(RUN, row.id) for row in rig.store.evidence.list(RUN)]


@pytest.mark.slow
def test_three_published_servers_read_freely_and_write_only_after_a_person_agreed(tmp_path: Path) -> None:
    git, files, repositories, tables = servers.need(
        "git", "filesystem-mcp", "mcp-server-git", "database-mcp-sqlite"
    )
    notes, repository, database = write_places(tmp_path, git)
    rows: list[Mapping[str, Any]] = [
        {"name": "files", "command": [files, str(notes)], "tools": {"read_file": "read", "write_file": "high"}},
        {"name": "git", "command": [repositories, "--repository", str(repository)], "tools": {"git_log": "read"}},
        {"name": "sql", "command": [tables, "--dsn", str(database)], "tools": {"execute_sql": "read"}},
        {"name": "fix", "command": [tables, "--dsn", str(database), "--allow-write"], "tools": {"execute_sql": "high"}},
    ]  # fmt: skip
    settings = [McpServerSettings.model_validate(row) for row in rows]
    rig = Acting(tmp_path, "http://127.0.0.1:9")
    rig.parts = rig.replaced(added=lambda _, vault: ExtraTools(servers=McpTools(settings, vault)))
    reads = calls(
        ("mcp_files_read_file", {"path": str(notes / "handover.md")}),
        ("mcp_git_git_log", {"repo_path": str(repository), "max_count": 3}),
        ("mcp_sql_execute_sql", {"sql": "SELECT id, state FROM orders"}),
    )
    writes = calls(
        ("mcp_files_write_file", {"path": str(notes / "incident.md"), "content": NOTE}),
        ("mcp_fix_execute_sql", {"sql": "UPDATE orders SET state = 'sent' WHERE id = 7"}),
    )
    rig.start(reads, writes, concludes("nothing more to do"))
    shown = " ".join(map(str, read_bodies(rig)))
    assert "fills up on Mondays" in shown
    assert "deploy orders-api 2.14.0" in shown
    assert "stuck" in shown
    asked = rig.pending()
    assert {approval.document["tool"] for approval in asked} == {
        "mcp_files_write_file",
        "mcp_fix_execute_sql",
    }
    assert not (notes / "incident.md").exists()
    assert count_orders(database, "stuck") == 1
    rig.approve_all()
    assert rig.resume().exit_code is ExitCode.INCONCLUSIVE
    assert (notes / "incident.md").read_text() == NOTE
    assert count_orders(database, "sent") == 1
