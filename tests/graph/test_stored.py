"""What is stored can be read back, grows no faster than it must, and is refused when another version wrote it."""

import sqlite3
from pathlib import Path

import ormsgpack
import pytest
from loop_rig import Loop, concludes, looks

from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.graph import build
from opsleuth.state.run_status import ExitCode

RUN = "inv-20240501-test"


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def raw(loop: Loop) -> sqlite3.Connection:
    return sqlite3.connect(str(loop.store.place))


def test_another_graph_revision_is_refused_and_nothing_changes(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.start(looks("a"), looks("b"), concludes("a was looked at.", "E1"), turns=1)
    with raw(loop) as db:
        before = db.execute("SELECT checkpoint_id FROM checkpoints ORDER BY 1").fetchall()
    monkeypatch.setattr(build, "EDGES", {**build.EDGES, "look": ("plan",)})
    with pytest.raises(UnreadableStoreError, match="graph revision"):
        loop.resume(turns=9)
    with raw(loop) as db:
        assert db.execute("SELECT checkpoint_id FROM checkpoints ORDER BY 1").fetchall() == before
    assert loop.world.lines("looked") == ["a"]


def test_a_state_that_no_longer_fits_is_refused(loop: Loop) -> None:
    loop.start(looks("a"), looks("b"), concludes("a was looked at.", "E1"), turns=1)
    with raw(loop) as db:
        row = db.execute(
            "SELECT checkpoint_id, checkpoint FROM checkpoints ORDER BY 1 DESC LIMIT 1"
        ).fetchone()
        checkpoint = ormsgpack.unpackb(row[1])
        checkpoint["channel_values"]["status"] = "dreaming"
        db.execute(
            "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?",
            (ormsgpack.packb(checkpoint), row[0]),
        )
    with pytest.raises(UnreadableStoreError, match="status"):
        loop.resume(turns=9)
    assert loop.store.runs.find(RUN).attempt == 1


@pytest.mark.slow
def test_two_hundred_steps_with_much_output_store_each_body_once(loop: Loop) -> None:
    script = [looks({"thing": f"t{n % 50}-{n}", "behave": "big"}) for n in range(66)]
    outcome = loop.start(*script, concludes("t0-0 was looked at.", "E1"), turns=80)
    assert outcome.exit_code is ExitCode.OK
    with raw(loop) as db:
        steps = db.execute("SELECT count(*) FROM checkpoints").fetchone()[0]
        bodies = db.execute("SELECT sum(length(data)) FROM bodies").fetchone()[0]
        checkpoints = db.execute("SELECT sum(length(checkpoint)) FROM checkpoints").fetchone()[0]
    assert steps > 200
    assert checkpoints < 66 * 50_000  # the state carries counters, not bodies
    assert bodies < 66 * 50_000


def test_the_channels_are_plain_values(loop: Loop) -> None:
    loop.start(looks("a"), concludes("a was looked at.", "E1"))
    with raw(loop) as db:
        blob = db.execute(
            "SELECT checkpoint FROM checkpoints ORDER BY checkpoint_id DESC LIMIT 1"
        ).fetchone()[0]
    values = ormsgpack.unpackb(blob)["channel_values"]
    assert values["status"] == "completed"
    assert values["draft"]["claims"][0]["evidence"] == ["E1"]
