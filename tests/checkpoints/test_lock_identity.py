"""One process per run by the identity of the database's file, whatever it is called: with processes of their own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opsleuth.checkpoints.errors import NotWritableError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock

RUN = "inv-20240501-lock"
HOLD = """
import sys
from pathlib import Path
from opsleuth.checkpoints.errors import RunBusyError
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
with Store.open(Path(sys.argv[1]), SystemClock(), Redactor()) as store:
    try:
        with store.lock(sys.argv[2]):
            print("held", flush=True)
            sys.stdin.read()
    except RunBusyError as busy:
        print("busy", busy.pid, flush=True)
"""


@contextmanager
def holder(path: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path, RUN],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().split()[0]


def linked_file(database: Path) -> str:
    link = database.parent.parent / "elsewhere.db"
    link.symlink_to(database)
    return str(link)


def linked_folder(database: Path) -> str:
    link = database.parent.parent / "linked"
    link.symlink_to(database.parent, target_is_directory=True)
    return str(link / database.name)


def removed_locks(database: Path) -> str:
    shutil.rmtree(database.with_name(f"{database.name}.locks"))
    return str(database)


def bind_mount(database: Path) -> str:
    mounted = database.parent.parent / "mounted"
    mounted.mkdir()
    done = subprocess.run(
        ["mount", "--bind", str(database.parent), str(mounted)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("this machine lets nobody mount a folder at a second place")
    return str(mounted / database.name)


WAYS: dict[str, Callable[[Path], str]] = {
    "the same path": str,
    "a link to the file": linked_file,
    "a link to the folder": linked_folder,
    "another spelling": lambda database: f"{database.parent}/../{database.parent.name}/./{database.name}",
    "a relative path": lambda database: os.path.relpath(database, database.parent.parent),
    "the folder of locks removed": removed_locks,
    "a bind mount": bind_mount,
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_held_run_is_busy_under_every_name_of_its_database(tmp_path: Path, way: str) -> None:
    database = tmp_path / "data" / "store.db"
    with Store.open(database, SystemClock(), Redactor()) as store:
        store.runs.create(RunRow(id=RUN, question="q"))
    with holder(str(database), tmp_path) as first:
        assert said(first) == "held"
        other = WAYS[way](database)
        try:
            with holder(other, tmp_path) as second:
                assert said(second) == "busy"
            first.kill()
            first.wait()
            with holder(other, tmp_path) as third:
                assert said(third) == "held"
        finally:
            if way == "a bind mount":
                subprocess.run(["umount", str(Path(other).parent)], check=False)


def test_two_databases_do_not_keep_each_other_out(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with Store.open(tmp_path / name / "store.db", SystemClock(), Redactor()) as store:
            store.runs.create(RunRow(id=RUN, question="q"))
    with holder("a/store.db", tmp_path) as first, holder("b/store.db", tmp_path) as second:
        assert (said(first), said(second)) == ("held", "held")


def test_a_database_with_a_second_name_is_written_under_neither(tmp_path: Path) -> None:
    database, other = tmp_path / "store.db", tmp_path / "other.db"
    with Store.open(database, SystemClock(), Redactor()) as store:
        store.runs.create(RunRow(id=RUN, question="q"))
        other.hardlink_to(database)
        with pytest.raises(NotWritableError, match="has 2 names") as refused:
            Store.open(other, SystemClock(), Redactor())
        assert ".backup" in str(refused.value)
    with pytest.raises(NotWritableError, match="hard links"):
        Store.open(database, SystemClock(), Redactor())
    with Store.open(database, SystemClock(), Redactor(), read_only=True) as store:
        assert store.runs.find(RUN).question == "q"
    other.unlink()
    Store.open(database, SystemClock(), Redactor()).close()
