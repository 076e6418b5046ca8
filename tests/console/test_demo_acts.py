"""The demo that acts, at a real terminal of 80x24: yes, no, and an edit, which is always asked again."""

import json
import time
from pathlib import Path
from typing import Any

import pexpect
import pytest
from stored_runs import HANG, Program

pytestmark = pytest.mark.slow

CAUSE = "orders-db: a slow database statement, set off by deploy 2.14.0 of orders-api"
DEAF = 0.7


def seat_demo(program: Program) -> Any:
    python, *arguments = program.command("demo", "--act")
    child = pexpect.spawn(
        python,
        arguments,
        env=program.environment(TERM="xterm", NO_COLOR="1", COLUMNS="80"),
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=HANG,
    )
    child.expect("APPROVAL A1")
    wait_for_keys(child)
    return child


def wait_for_keys(child: Any) -> None:
    while child.expect(["press space", "run once"]) == 0:
        child.send(" ")
    time.sleep(DEAF)


def read_report(child: Any) -> list[str]:
    child.expect(pexpect.EOF)
    child.close()
    lines = str(child.before).replace("\r\n", "\n").rstrip("\n").split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(CAUSE))
    return lines[start:]


def list_approvals(program: Program) -> list[dict[str, Any]]:
    return list(json.loads(program("approvals", "--json").stdout)["approvals"])


def test_yes_makes_the_change_and_the_report_says_so_first_and_last(bare: Program, tmp_path: Path) -> None:
    child = seat_demo(bare)
    child.send("y")
    lines = read_report(child)
    assert child.exitstatus == 0
    assert "service_rollback done, check passed" in " ".join(lines[:3])
    assert "service_rollback done, check passed" in " ".join(lines[-4:])
    assert any(line.startswith("DONE ") for line in lines)


def test_no_is_told_with_its_reason_and_the_change_is_no_longer_what_to_do(bare: Program) -> None:
    child = seat_demo(bare)
    child.send("n")
    child.expect("Reason")
    child.send("wait for the owner of orders-api\r")
    lines = read_report(child)
    assert child.exitstatus == 5
    assert "wait for the owner of orders-api" in " ".join(" ".join(lines).split())
    assert sum(line.startswith("DO: Give the statement the index it needs") for line in lines) == 2
    assert any(line.startswith("NEXT        1 Roll orders-api back to 2.13.4") for line in lines)


def test_an_edit_that_the_platform_refuses_is_asked_again_and_nothing_stays_pending(bare: Program) -> None:
    child = seat_demo(bare)
    child.send("e")
    child.expect("NAME=VALUE")
    child.send("version=9.9.9\r")
    child.expect("APPROVAL A2")
    child.expect("REFUSED: ")
    child.expect(r"\[e\] edit again")
    time.sleep(DEAF)
    child.send("y")
    child.expect("A2 is refused and cannot be run")
    time.sleep(DEAF)
    child.send("n")
    child.expect("Reason")
    child.send("no such version\r")
    read_report(child)
    assert [row["status"] for row in list_approvals(bare)].count("pending") == 0
    run = json.loads(bare("list", "--json").stdout)["runs"][0]["id"]
    late = bare("approve", run, "A1", "--digest", "0" * 16)
    assert late.returncode != 0
    assert "approved" not in late.stderr.partition(":")[0]
    assert f"{run} has ended" in late.stderr
