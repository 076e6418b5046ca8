"""Declared commands: no shell, no option, no variable that was not allowed; foreign tools are high without a word."""

import sys
from pathlib import Path

import pytest
from acting import RUN, Acting, calls
from loop_rig import concludes

from opsleuth.configuration.config_file import read_config_file
from opsleuth.state.calls import CallGate, CallRequest, Risk
from opsleuth.state.errors import ConfigError
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.declared.commands import DeclaredCommand, build_command_tool
from opsleuth.tools.declared.load_declarations import build_declared_tools
from opsleuth.tools.policy_file import collect_declared_tables, read_policy_layer
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import InvalidArgumentsError

DONE = concludes("nothing more to do")
WRITE = "import os, sys; open(sys.argv[1], 'a').write(sys.argv[2] + os.environ.get('SECRET', '-') + chr(10))"


def writer(path: Path, **fields: object) -> DeclaredCommand:
    argv = [sys.executable, "-c", WRITE, str(path), "{text}"]
    values = {"argv": argv, "parameters": {"text": ".+"}, "target": "file"} | fields
    return DeclaredCommand(name="write-line", purpose="Write a line.", **values)


def acting(tmp_path: Path, command: DeclaredCommand) -> Acting:
    return Acting(tmp_path, "http://127.0.0.1:9", more=[build_command_tool(command)])


def test_a_value_is_one_argument_whatever_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    out = tmp_path / "out"
    rig = acting(tmp_path, writer(out))
    text = "$(reboot); `id` && rm -rf / | sh 'x"
    rig.start(calls(("command_run_write_line", {"text": text})), DONE)
    rig.approve_all()
    rig.resume()
    assert out.read_text() == f"{text}-\n"


@pytest.mark.parametrize("text", ["-rf", "--force", "a\0b", ""])
def test_an_option_is_refused(tmp_path: Path, text: str) -> None:
    toolbox = Toolbox([build_command_tool(writer(tmp_path / "out"))], RunSources())
    with pytest.raises(InvalidArgumentsError):
        toolbox.check(CallRequest(tool="command_run_write_line", arguments={"text": text}))


def test_a_foreign_tool_is_high_without_a_policy(tmp_path: Path) -> None:
    toolbox = Toolbox([build_command_tool(writer(tmp_path / "out"))], RunSources())
    checked = toolbox.check(CallRequest(tool="command_run_write_line", arguments={"text": "x"}))
    assert checked.spec.risk is Risk.HIGH
    assert checked.ruling.gate is CallGate.ASK


def test_without_a_probe_a_person_is_asked_and_nothing_is_tried_again(tmp_path: Path) -> None:
    """The command writes its line and dies before it answers."""
    out = tmp_path / "out"
    dies = [sys.executable, "-c", WRITE + "; os._exit(9)", str(out), "{text}"]
    rig = acting(tmp_path, writer(out, argv=dies))
    rig.start(calls(("command_run_write_line", {"text": "x"})), DONE)
    rig.approve_all()
    assert rig.resume().exit_code is ExitCode.EFFECT_UNKNOWN
    (asked,) = rig.pending()
    assert asked.about == "effect"
    assert rig.store.effects.list(RUN)[0].tries == 1
    rig.resolve(asked, happened=True)
    rig.resume()
    assert out.read_text() == "x-\n"


def test_its_own_check_decides(tmp_path: Path) -> None:
    out = tmp_path / "out"
    check = [sys.executable, "-c", "import sys; sys.exit('x' not in open(sys.argv[1]).read())", str(out)]
    rig = acting(tmp_path, writer(out, check=check))
    rig.start(calls(("command_run_write_line", {"text": "x"})), DONE)
    rig.approve_all()
    outcome = rig.resume()
    assert outcome.report is not None
    assert outcome.report["effects"][0]["verified"] is True


def test_a_declaration_with_an_unknown_hole_is_refused() -> None:
    with pytest.raises(ValueError, match="no parameter unit"):
        DeclaredCommand(name="c", purpose="p", argv=["systemctl", "restart", "{unit}"])
    with pytest.raises(ValueError, match="program itself"):
        DeclaredCommand(name="c", purpose="p", argv=["{what}"], parameters={"what": ".*"})


def test_a_declaration_in_the_operators_file_becomes_a_tool(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        '[command.restart-worker]\nargv = ["true", "{unit}"]\npurpose = "p"\nparameters = { unit = "w[0-9]" }\n'
    )
    (tool,) = build_declared_tools(collect_declared_tables([read_config_file("operator", path)]))
    assert (tool.name, tool.risk) == ("command_run_restart_worker", Risk.HIGH)
    assert build_declared_tools(collect_declared_tables([read_config_file("project", path)])) == []
    with pytest.raises(ConfigError, match="may not declare"):
        read_policy_layer(read_config_file("project", path))
    with pytest.raises(ConfigError, match="unknown shell"):
        build_declared_tools({"command": {"c": {"argv": ["true"], "purpose": "p", "shell": True}}})
