"""An approval binds every file that a command carries out, and what it is told by variables, in processes of their own."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from branch_rig import Branching
from loop_rig import concludes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

POLICY = """
[command.heal]
argv = [{argv}]
purpose = "Heal."
parameters = {{ text = ".+" }}
target = "shop"
environment = ["PATH", "KUBECONFIG"]
"""
PYTHON = "import pathlib\npathlib.Path('done').write_text('good')\n"
SHELL = "#!/bin/sh\nprintf good > done\n"
CARRIED_OUT = {
    "a module": ('"python3", "-m", "heal", "{text}"', "heal.py", PYTHON),
    "a program behind env, by PATH": ('"env", "heal", "{text}"', "heal", SHELL),
    "a makefile of the folder": ('"make", "{text}"', "Makefile", "now:\n\tprintf good > done\n"),
}


def waiting(folder: Path, argv: str, name: str, text: str) -> Branching:
    """A run that waits for approval of this command, in the folder of which a file of this name lies."""
    rig = Branching(folder, folder / "store.db", variables={"PATH": f"{folder}:{os.environ['PATH']}"})
    (folder / "policy.toml").write_text(POLICY.format(argv=argv.replace("FOLDER", str(folder))))
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    call = {"tool": "command_run_heal", "arguments": {"text": "now"}}
    done = concludes("nothing more to do")
    rig.world.write({"reason": "act", "calls": [call]}, done, done, done)
    assert rig("start")["status"] == "waiting"
    rig("answer")
    return rig


@pytest.mark.parametrize("what", sorted(CARRIED_OUT))
def test_a_file_that_was_swapped_after_the_approval_is_asked_again(tmp_path: Path, what: str) -> None:
    argv, name, text = CARRIED_OUT[what]
    rig = waiting(tmp_path, argv, name, text)
    (tmp_path / name).write_text(text.replace("good", "evil"))
    again = rig("resume")
    assert [row[1] for row in again["approvals"]] == ["stale", "pending"]
    assert not (tmp_path / "done").exists()
    rig("answer")
    rig("resume")
    assert (tmp_path / "done").read_text() == "evil"


def test_a_variable_with_another_value_is_asked_again(tmp_path: Path) -> None:
    rig = waiting(tmp_path, '"env", "heal", "{text}"', "heal", SHELL)
    elsewhere = replace(rig, variables=rig.variables | {"KUBECONFIG": str(tmp_path / "other")})
    assert [row[1] for row in elsewhere("resume")["approvals"]] == ["stale", "pending"]
    assert not (tmp_path / "done").exists()


def test_another_server_behind_the_same_context_is_asked_again(tmp_path: Path) -> None:
    def write_config(server: str) -> None:
        (tmp_path / "config").write_text(
            f"current-context: shop\ncontexts: [{{name: shop, context: {{cluster: c, user: u}}}}]\n"
            f"clusters: [{{name: c, cluster: {{server: {server}}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
        )

    write_config("https://10.0.0.1")
    argv = '"kubectl", "--kubeconfig", "FOLDER/config", "rollout", "restart", "{text}"'
    rig = waiting(tmp_path, argv, "kubectl", SHELL)
    write_config("https://10.9.9.9")
    again = rig("resume")
    assert [row[1] for row in again["approvals"]] == ["stale", "pending"]
    assert "https://10.9.9.9" in "".join(again["panel"])
    assert not (tmp_path / "done").exists()


def test_nothing_changed_is_not_asked_again(tmp_path: Path) -> None:
    """A log that grows is data."""
    (tmp_path / "app.log").write_text("one\n")
    rig = waiting(tmp_path, '"env", "heal", "FOLDER/app.log", "{text}"', "heal", SHELL)
    (tmp_path / "app.log").write_text("one\ntwo\n")
    assert rig("resume")["status"] == "completed"
    assert (tmp_path / "done").read_text() == "good"
