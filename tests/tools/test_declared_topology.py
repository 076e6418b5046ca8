"""Declared tools: what they take, what a reading one answers, and how a mistake in a declaration is told."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from stored_runs import Program
from tool_rig import Rig, context

from opsleuth.state.calls import CallGate, CallRequest, ResultStatus, Risk
from opsleuth.state.errors import ConfigError
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.declared.load_declarations import build_declared_tools
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import CallResult, InvalidArgumentsError, ToolSpec

PARAMETERS = {
    "unit": "worker-[0-9]{1,3}",
    "lines": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50, "description": "lines, 1 to 500"},
    "level": {"choices": ["info", "error"]},
    "dry": {"type": "boolean", "default": True},
}  # fmt: skip
GOOD = {"unit": "worker-7", "level": "error"}


def reading(code: str, **fields: Any) -> ToolSpec:
    argv = [sys.executable, "-c", code, "{unit}", "{lines}", "{level}", "{dry}"]
    row = {"argv": argv, "purpose": "Look.", "risk": "read", "parameters": PARAMETERS} | fields
    (tool,) = build_declared_tools({"command": {"look": row}})
    return tool


def asked(tool: ToolSpec, arguments: Mapping[str, Any] = GOOD) -> CallResult:
    rig = Rig(tool)
    request = CallRequest(tool=tool.name, arguments=dict(arguments))
    call = rig.toolbox.check(request).call(request, call_id="inv-1/t1c1", number=1)
    return asyncio.run(rig.executor.run(call, context()))


def test_a_reading_command_runs_without_a_person_and_its_json_is_a_record() -> None:
    tool = reading("import json, sys; print(json.dumps(sys.argv[1:]))", output="json")
    checked = Toolbox([tool], RunSources(), read_only=True).check(
        CallRequest(tool=tool.name, arguments=dict(GOOD))
    )
    assert (checked.spec.risk, checked.ruling.gate) == (Risk.READ, CallGate.FREE)
    assert asked(tool).record["output"] == ["worker-7", "50", "error", "true"]


@pytest.mark.parametrize(
    ("code", "status"), [(0, "ok"), (1, "none_matched"), (2, "unavailable"), (77, "unavailable")]
)
def test_what_a_reading_command_found_is_in_its_exit_code(code: int, status: str) -> None:
    tool = reading(f"import sys; print('says'); sys.exit({code})", none=[1])
    assert asked(tool).status == status


@pytest.mark.parametrize("text", ['{"broken', '{"a": NaN}', "plain"])
def test_output_that_is_no_json_stays_text(text: str) -> None:
    tool = reading(f"print({text!r})", output="json")
    assert asked(tool).record["output"] == text + "\n"


def test_a_long_output_keeps_its_head_and_tail_and_the_size_is_said() -> None:
    tool = reading("print('first' + 'x' * 9_000_000 + 'last')", output_bytes=2_000)
    record = asked(tool).record
    assert record["bytes"] == 9_000_010
    assert record["output"].startswith("first")
    assert record["output"].endswith("last\n")
    assert len(record["output"]) < 2_100


def test_a_command_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    left = tmp_path / "left"
    code = f"import os, time; os.fork() or (time.sleep(60), open({str(left)!r}, 'w')); time.sleep(60)"
    result = asked(reading(code, seconds=0.5))
    assert result.status is ResultStatus.UNAVAILABLE
    assert "limit of 0.5 s" in result.headline
    assert not left.exists()


@pytest.mark.parametrize(
    ("argument", "value"),
    [("unit", "worker-1; reboot"), ("unit", "-n"), ("lines", 0), ("lines", "5"), ("lines", 2.5), ("level", "all"), ("dry", "yes"), ("more", 1)],
)  # fmt: skip
def test_nothing_outside_the_schema_is_taken(argument: str, value: object) -> None:
    toolbox = Toolbox([reading("")], RunSources())
    with pytest.raises(InvalidArgumentsError, match=argument):
        toolbox.check(CallRequest(tool="command_run_look", arguments=GOOD | {argument: value}))


@given(st.text(max_size=40))
@example("a b; c")
def test_a_text_reaches_the_program_whole_or_not_at_all(text: str) -> None:
    row = {"argv": ["true", "a{free}b"], "purpose": "p", "parameters": {"free": ".*"}}
    (tool,) = build_declared_tools({"command": {"c": row}})
    try:
        checked = Toolbox([tool], RunSources()).check(CallRequest(tool=tool.name, arguments={"free": text}))
    except (InvalidArgumentsError, ValueError):
        return
    assert checked.canonical == {"free": text}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parameters": {"unit": {}}}, "pattern"),
        ({"parameters": {"unit": {"type": "integer"}}}, "minimum and maximum"),
        ({"parameters": {"unit": "("}}, "not a regular expression"),
        ({"parameters": {"unit": {"pattern": "a+", "default": "b"}}}, "pattern"),
        ({"parameters": {"Unit-": "a"}}, "parameters"),
        ({"risk": "none"}, "risk"),
        ({"risk": "read", "check": ["true"]}, "only reads"),
        ({"seconds": 0}, "seconds"),
        ({"output_bytes": 10**9}, "output_bytes"),
        ({"argv": "true; false"}, "argv"),
        ({"shell": True}, "unknown shell"),
    ],
)
def test_a_mistake_in_a_declaration_stops_the_start(change: dict[str, Any], said: str) -> None:
    row = {"argv": ["true"], "purpose": "p"} | change
    with pytest.raises(ConfigError, match=said):
        build_declared_tools({"command": {"c": row}})


def test_two_declarations_may_not_make_one_tool() -> None:
    row = {"argv": ["true"], "purpose": "p"}
    with pytest.raises(ConfigError, match="command_run_a_b"):
        build_declared_tools({"command": {"a-b": row, "a_b": row}})


def test_a_declared_tool_is_listed_tried_and_explained(tmp_path: Path) -> None:
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path)
    rules = tmp_path / "policy.toml"
    rules.write_text(
        '[command.depth]\nargv = ["echo", "{queue}"]\npurpose = "p"\nrisk = "read"\n'
        'parameters.queue = { choices = ["orders"] }\n'
        '[command.purge]\nargv = ["false"]\npurpose = "p"\n'
    )
    listed = json.loads(program("tools", "--policy", str(rules), "--json").stdout)["tools"]
    assert {"command_run_depth": "read", "command_run_purge": "high"}.items() <= {
        t["name"]: t["risk"] for t in listed
    }.items()
    tried = program(
        "tools", "test", "command_run_depth", "--args", '{"queue": "orders"}', "--policy", str(rules)
    )
    assert (tried.returncode, "exit code 0, orders" in tried.stdout) == (ExitCode.OK, True)
    refused = program("tools", "test", "command_run_purge", "--policy", str(rules))
    assert refused.returncode == ExitCode.USAGE
    explained = program("policy", "explain", "command_run_purge", "--policy", str(rules))
    assert "a person confirms this exact call" in explained.stdout
    checked = program("policy", "check", str(rules))
    assert "command_run_depth, command_run_purge" in checked.stdout
