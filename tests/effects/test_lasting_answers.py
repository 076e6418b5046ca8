"""Answers last: a denial is not asked again, a lost effect is, a refusal is not tried again, a replay does nothing."""

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from acting import MESSAGE, ROLLBACK, Acting, applied, calls, serving
from acting import RUN as ACTING_RUN
from branch_rig import RUN, Branching
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from loop_rig import concludes, looks
from nonempty import nonempty
from stored_runs import Program

from opsleuth.redaction.redactor import Redactor
from opsleuth.state.run_status import ExitCode, Status
from opsleuth.tools.tape import Tape

DONE = concludes("nothing more to do")


@pytest.fixture
def rig(tmp_path: Path) -> Branching:
    return Branching(tmp_path, tmp_path / "store.db")


@pytest.mark.slow
def test_a_denied_call_stays_denied_in_its_run_and_in_its_branches(rig: Branching) -> None:
    wanted = looks("cache", tool="restart")
    rig.world.write(wanted, wanted, wanted, DONE, DONE, DONE)
    assert rig("start")["status"] == "waiting"
    rig("deny")
    done = rig("resume")
    assert (done["status"], done["code"]) == ("completed", ExitCode.DENIED)
    assert [row[:2] for row in done["approvals"]] == [["A1", "denied"]]
    rig("fork", RUN, "inv-branch", "c0")
    branch = rig("resume", "inv-branch")
    assert (branch["status"], branch["code"], branch["approvals"]) == ("completed", ExitCode.DENIED, [])
    assert rig.world.lines("done") == []


@pytest.mark.slow
def test_an_approval_that_was_given_and_then_denied_makes_no_change(rig: Branching) -> None:
    wanted = looks("cache", tool="restart")
    rig.world.write(wanted, wanted, wanted, DONE, DONE, DONE)
    rig("start")
    rig("answer")
    rig("deny")
    done = rig("resume")
    assert (done["status"], done["code"]) == ("completed", ExitCode.DENIED)
    assert [row[:2] for row in done["approvals"]] == [["A1", "denied"]]
    assert rig.world.lines("done") == []


@pytest.mark.slow
def test_an_approval_that_was_used_and_led_to_no_effect_is_asked_anew(rig: Branching) -> None:
    rig.world.write(looks("cache", tool="restart"), DONE, DONE, DONE)
    rig("start")
    rig("answer")
    with sqlite3.connect(rig.folder / "store.db") as connection:
        connection.execute("UPDATE approvals SET status = 'used'")
    again = rig("resume")
    assert (again["status"], again["pending"]) == ("waiting", ["A2"])
    rig("answer")
    assert rig("resume")["status"] == "completed"
    assert rig.world.lines("done") == ["cache"]


def strip_stored_questions(path: Path, *names: str) -> int:
    """Take fields out of the calls that a stored run waits with, as a version that did not know them stored it."""
    serde = JsonPlusSerializer(allowed_msgpack_modules=[("langgraph.types", "Interrupt")])
    changed = 0
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT rowid, type, value FROM writes WHERE channel = '__interrupt__'"
        ).fetchall()
        for row, form, value in rows:
            interrupts = serde.loads_typed((form, value))
            for call in (call for interrupt in interrupts for call in interrupt.value["calls"]):
                changed += sum(call.pop(name, None) is not None for name in names)
            packed = serde.dumps_typed(interrupts)
            connection.execute("UPDATE writes SET type = ?, value = ? WHERE rowid = ?", (*packed, row))
    return changed


@pytest.mark.slow
def test_a_question_of_an_older_version_can_still_be_answered(rig: Branching) -> None:
    rig.world.write(looks("cache", tool="restart"), DONE, DONE, DONE)
    rig("start")
    assert strip_stored_questions(rig.folder / "store.db", "reason", "gate_reason") == 2
    rig("answer")
    with sqlite3.connect(rig.folder / "store.db") as connection:  # what an approval binds has grown since
        connection.execute("UPDATE approvals SET digest = substr(digest, 2) || '0'")
    again = rig("resume")
    assert (again["status"], again["pending"]) == ("waiting", ["A2"])
    rig("answer")
    assert rig("resume")["status"] == "completed"
    assert rig.world.lines("done") == ["cache"]


class Refusing(BaseHTTPRequestHandler):
    """Answers with the status that the path names, and counts."""

    asked: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        self.asked[self.path] += 1
        self.send_response(int(self.path.rpartition("/")[2]))
        self.end_headers()

    def log_message(self, *_: object) -> None:  # the parent's prints
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(("status", "tries"), [(400, 1), (409, 1), (422, 1), (503, 3)])
def test_a_declared_look_that_is_refused_is_not_tried_again(
    rig: Branching, refusing: str, status: int, tries: int
) -> None:
    (rig.folder / "policy.toml").write_text(
        f'[http.look]\nurl = "{refusing}/{{status}}"\npurpose = "Look."\nrisk = "read"\n'
        'parameters.status = "[0-9]{3}"\n'
    )
    call = {"tool": "http_call_look", "arguments": {"status": str(status)}}
    rig.world.write({"reason": "look", "calls": [call]}, DONE)
    Refusing.asked.clear()
    rig("start")
    assert Refusing.asked[f"/{status}"] == tries


@pytest.mark.slow
def test_a_replay_writes_no_effect_as_done_and_says_what_it_is(tmp_path: Path) -> None:
    script = (calls(("service_rollback", ROLLBACK)), calls(("message_send", MESSAGE)), DONE, DONE, DONE)
    tape = tmp_path / "tape.jsonl"
    with serving(tmp_path / "plane.jsonl") as plane:
        url = f"http://127.0.0.1:{plane.server_port}"
        for name in ("recorded", "replayed"):
            (tmp_path / name).mkdir()
            acting = Acting(tmp_path / name, url)
            playing = Tape.playing(tape) if name == "replayed" else Tape.recording(tape, Redactor())
            acting.parts = acting.replaced(tape=playing)
            outcome = acting.start(*script)
            while outcome.status is Status.WAITING:
                acting.approve_all()
                outcome = acting.resume()
            assert len(applied(plane)) == 2
            statuses = {row.status for row in acting.store.effects.list(ACTING_RUN)}
            assert outcome.report is not None
            if name == "recorded":
                assert statuses == {"done"}
                assert "replay" not in outcome.report["answer"]
                continue
            assert statuses == {"failed_clean"}
            assert outcome.report["replay"] is True
            assert "replay of a recording" in outcome.report["answer"]
            assert all(row["replayed"] for row in nonempty(outcome.report["effects"]))
            assert any(event.get("data", {}).get("replay") for event in acting.events)
            for command in (("list",), ("show", ACTING_RUN)):
                seen = Program(tmp_path / name / "store.db", tmp_path)(*command)
                assert "replay" in seen.stdout, command
                assert json.loads(Program(tmp_path / name / "store.db", tmp_path)(*command, "--json").stdout)
        for verb in ("list", "show"):
            plain = Program(tmp_path / "recorded" / "store.db", tmp_path)(
                *((verb,) if verb == "list" else (verb, ACTING_RUN))
            )
            assert "replay" not in plain.stdout
