"""An approval binds what runs: a changed declaration, program, script or target asks again, in processes of their own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from branch_rig import Branching
from loop_rig import concludes

pytestmark = pytest.mark.timeout(180)

DONE = concludes("nothing more to do")
POLICY = """
[command.note]
argv = ["{folder}/{program}", "{folder}/{word}", "{{text}}"]
purpose = "Write a line."
parameters = {{ text = ".+" }}
target = "{target}"
environment = [{environment}]
"""
PROGRAM = '#!/bin/sh\necho "$2" >> "$1.log"\n'


class Declared(Branching):
    """A world with one declared command, which a scripted planner calls once."""

    def declare(
        self, program: str = "note.sh", word: str = "done", target: str = "notes", environment: str = '"PATH"'
    ) -> None:
        text = POLICY.format(
            folder=self.folder, program=program, word=word, target=target, environment=environment
        )
        (self.folder / "policy.toml").write_text(text)

    def install(self, name: str = "note.sh", text: str = PROGRAM) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture
def rig(tmp_path: Path) -> Declared:
    made = Declared(tmp_path, tmp_path / "store.db")
    made.install()
    made.declare()
    call = {"tool": "command_run_note", "arguments": {"text": "hello"}}
    made.world.write({"reason": "act", "calls": [call]}, DONE, DONE, DONE)
    return made


def other_program(rig: Declared) -> None:
    rig.install("other.sh")
    rig.declare(program="other.sh")


def linked_elsewhere(rig: Declared) -> None:
    rig.install("other.sh", PROGRAM + "true\n")
    (rig.folder / "note.sh").unlink()
    (rig.folder / "note.sh").symlink_to(rig.folder / "other.sh")


CHANGES: dict[str, Callable[[Declared], None]] = {
    "the bytes of the program": lambda rig: rig.install(text=PROGRAM + "echo evil >> /dev/null\n"),
    "the program": other_program,
    "the program behind a link": linked_elsewhere,
    "an argument of the declaration": lambda rig: rig.declare(word="other"),
    "the names of the environment": lambda rig: rig.declare(environment='"PATH", "HOME"'),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", sorted(CHANGES))
def test_what_was_approved_and_changed_since_is_asked_again(rig: Declared, what: str) -> None:
    asked = rig("start")
    assert asked["status"] == "waiting"
    names = {line.partition("|")[0].strip() for line in asked["panel"]}
    assert {"program", "program sha256", "folder", "environment"} <= names
    values = "".join("".join(line.partition("|")[2].strip() for line in asked["panel"]).split())
    for part in (f"{rig.folder}/note.sh", str(rig.folder), '["PATH"]'):
        assert part in values, part
    rig("answer")
    CHANGES[what](rig)
    again = rig("resume")
    assert again["status"] == "waiting", again
    assert [row[1] for row in again["approvals"]] == ["stale", "pending"]
    assert not list(rig.folder.glob("*.log"))
    assert again["content"] == asked["content"]
    assert again["digests"] != asked["digests"]
    rig("answer")
    assert rig("resume")["status"] == "completed"
    (written,) = rig.folder.glob("*.log")
    assert written.read_text() == "hello\n"


@pytest.mark.slow
def test_what_has_not_changed_is_not_asked_again(rig: Declared) -> None:
    rig("start")
    rig("answer")
    assert rig("resume")["status"] == "completed"
    assert (rig.folder / "done.log").read_text() == "hello\n"


@pytest.mark.slow
def test_the_content_is_equal_in_every_run_and_the_approval_is_not(rig: Declared) -> None:
    one, other = rig("start"), rig("start", "inv-20240501-next")
    assert one["content"] == other["content"]
    assert one["digests"] != other["digests"]


@pytest.mark.slow
def test_another_target_is_another_call(rig: Declared) -> None:
    rig("start")
    rig("answer")
    rig.declare(target="elsewhere")
    assert rig("resume")["code"] != 0
    assert not list(rig.folder.glob("*.log"))
