"""`approve` and `deny` name the call that they answer by its digest; the earlier name of the option still works."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_rig import World, concludes, looks
from seat_rig import RUN
from seats import away, told

from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import ExitCode


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A run that waits for a person's answer to one change."""
    world = World(tmp_path)
    world.write(looks("gateway", tool="restart"), concludes("gateway is restarted", "E1"))
    assert away(world).returncode == ExitCode.WAITING
    return world


@pytest.fixture
def store(world: World) -> Iterator[Store]:
    with Store.open(world.folder / "store.db", SystemClock(), Redactor()) as opened:
        yield opened


@pytest.mark.slow
def test_an_approval_needs_the_digest(world: World, store: Store) -> None:
    done = told(world, "approve", RUN, "A1")
    assert done.returncode == ExitCode.USAGE
    assert "Missing option '--digest'" in done.stderr
    assert store.approvals.get(RUN, "A1").status == "pending"


@pytest.mark.parametrize("option", ["--digest", "--hash"])
def test_a_digest_approves_under_both_names_of_its_option(world: World, store: Store, option: str) -> None:
    digest = store.approvals.get(RUN, "A1").digest
    wrong = told(world, "approve", RUN, "A1", option, "0" * 16)
    assert wrong.returncode == ExitCode.USAGE
    assert store.approvals.get(RUN, "A1").status == "pending"
    done = told(world, "approve", RUN, "A1", option, digest[:16], "--no-resume")
    assert done.returncode == ExitCode.OK, done.stderr
    assert store.approvals.get(RUN, "A1").status == "approved"


def test_the_help_names_the_digest_alone(world: World) -> None:
    text = told(world, "approve", "--help").stdout
    assert "--digest" in text
    assert "--hash" not in text


def test_a_denial_with_another_digest_is_refused(world: World, store: Store) -> None:
    digest = store.approvals.get(RUN, "A1").digest
    wrong = told(world, "deny", RUN, "A1", "--digest", "0" * 16, "--reason", "not now")
    assert wrong.returncode == ExitCode.USAGE
    assert store.approvals.get(RUN, "A1").status == "pending"
    told(world, "deny", RUN, "A1", "--digest", digest[:16], "--reason", "not now")
    assert store.approvals.get(RUN, "A1").status == "denied"


def test_screens_and_events_call_it_digest(world: World, store: Store) -> None:
    asked = store.approvals.get(RUN, "A1")
    shown = told(world, "approvals", RUN).stdout
    assert f"approve {RUN} A1 --digest {asked.digest[:16]}" in shown
    assert "hash" not in shown
    told(world, "deny", RUN, "A1", "--reason", "not now")
    events = json.loads(told(world, "log", RUN, "--type", "approval.", "--json").stdout)["events"]
    assert [(e["data"]["digest"], e["data"]["hash"]) for e in events if "digest" in e["data"]] == [
        (asked.digest, asked.digest)
    ] * 2
