"""`opsleuth run PATH…`: what counts as a path, what is said of the files, and that such a run can be resumed."""

import json
import shutil
import subprocess
import tarfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stored_runs import Program

from opsleuth.console.input_arguments import looks_like_path
from opsleuth.scenarios.orders_incident import write_case
from opsleuth.state.run_status import ExitCode

START = datetime(2026, 11, 29, 13, 30, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Half an hour of calm, then ten minutes in which file descriptors run out."""
    path = tmp_path / "app" / "tills.log"
    path.parent.mkdir()
    with path.open("w") as file:
        for second in range(0, 2_400, 5):
            time = f"{START + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}.{second % 1000:03d}Z"
            file.write(f"{time} INFO basket {second} settled in {40 + second % 30} ms\n")
            if second >= 1_800:
                file.write(f"{time} ERROR basket {second} failed: accept4: too many open files\n")
    return path


def test_a_file_is_recognized_and_its_cause_is_found(bare: Program, log: Path) -> None:
    done = bare("run", str(log), "--planner", "offline")
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stderr.splitlines()
    assert first.startswith("tills.log: text with times, 600 lines, 2026-11-29 13:30–14:09")
    assert second.endswith("What went wrong with tills?")
    assert "too many open files" in done.stdout
    report = json.loads(bare("report", "-", "--json").stdout)
    assert report["causes"][0]["service"] == "tills"


def test_a_folder_takes_a_question_and_names_what_it_skips(bare: Program, log: Path) -> None:
    (log.parent / "core.1").write_bytes(b"\x7fELF\0\0\0\0")
    (log.parent / ".env").write_text("TOKEN=abc\n")
    done = bare("run", "why does tills fail?", str(log.parent), "--planner", "offline")
    assert done.returncode == 0, done.stderr
    assert "skipped: " in done.stderr
    assert "core.1 (binary)" in done.stderr
    assert ".env (not opened" in done.stderr
    assert "QUESTION    why does tills fail?" in bare("report", "--full").stdout


@pytest.mark.slow
def test_an_archive_is_unpacked_for_the_run_and_pruned_with_it(
    bare: Program, log: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.tgz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(log, "pods/tills.log")
    stopped = bare("run", str(bundle), "--planner", "offline", "--pause-at", "verify")
    assert stopped.returncode == ExitCode.WAITING, stopped.stderr
    shutil.move(bundle, tmp_path / "elsewhere")
    done = bare("resume", "-", "--planner", "offline")
    assert done.returncode == 0, done.stderr
    assert "too many open files" in done.stdout
    assert list(bare.database.parent.rglob("tills.log"))
    time.sleep(1.1)
    assert bare("prune", "--older-than", "1s").returncode == 0
    assert not list(bare.database.parent.rglob("tills.log"))


@pytest.mark.slow
def test_standard_input_is_read_where_a_dash_says_so(bare: Program, log: Path) -> None:
    command = bare.command("run", "-", "--planner", "offline")
    done = subprocess.run(
        command, input=log.read_text(), env=bare.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "too many open files" in done.stdout


def test_a_folder_with_an_incident_is_a_case(bare: Program, tmp_path: Path) -> None:
    done = bare("run", str(write_case(tmp_path / "incident")), "--planner", "offline")
    assert done.returncode == 0, done.stderr
    assert "orders" in done.stdout


@pytest.mark.parametrize("word", ["missing.log", "logs/missing", "*.nothing", "./x", "old.tar.gz"])
def test_a_path_that_does_not_exist_is_never_a_question(bare: Program, word: str) -> None:
    done = bare("run", word)
    assert done.returncode == ExitCode.USAGE
    assert f"no file or folder {word}" in done.stderr


def test_two_dashes_end_the_paths(bare: Program, log: Path) -> None:
    done = bare("run", str(log), "--planner", "offline", "--", "what happened to /checkout/pay.log")
    assert done.returncode == 0, done.stderr
    assert "QUESTION    what happened to /checkout/pay.log" in bare("report", "--full").stdout
    assert bare("run", str(log), "one", "two").returncode == ExitCode.USAGE


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("why is checkout slow?", False),
        ("5xx/min of checkout rose", False),
        ("结账变慢了", False),
        ("slow", False),
        ("app.log.2.gz", True),
        ("/var/log/nothing here", True),
        ("a*b", True),
    ],
)
def test_words_that_look_like_paths(word: str, path: bool) -> None:
    assert looks_like_path(word) is path


def test_files_that_hold_nothing_to_look_at_are_refused(bare: Program, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\0\1\2" * 100)
    done = bare("run", str(tmp_path / "x.bin"))
    assert done.returncode == ExitCode.CONFIG
    assert "binary" in done.stderr
    assert json.loads(bare("list", "--json").stdout)["runs"] == []


@pytest.mark.slow
def test_a_remote_model_is_named_before_anything_else(bare: Program, log: Path) -> None:
    remote = {"OPSLEUTH_BASE_URL": "https://models.invalid/v1", "OPSLEUTH_MODEL": "m"}
    done = bare("run", str(log), "--max-turns", "1", OPSLEUTH_FALLBACK="offline", **remote)
    assert done.stderr.startswith("text of these files goes to models.invalid (model m)")
    assert not bare("run", str(log), "--planner", "offline", **remote).stderr.startswith("text of these")


def test_explain_shows_how_ten_lines_are_read(bare: Program, log: Path) -> None:
    done = bare("sources", "explain", str(log))
    assert done.returncode == 0, done.stderr
    head, services, _, *lines = done.stdout.splitlines()
    assert head.startswith("tills.log: text with times")
    assert services == "services: tills"
    assert len(lines) == 10
    assert lines[0].split()[:3] == ["2026-11-29T13:30:00.000Z", "INFO", "tills"]
    told = json.loads(bare("sources", "explain", str(log), "--json").stdout)
    assert (told["records"], told["without_time"], len(told["lines"])) == (600, 0, 10)


def test_a_dump_of_a_cluster_is_read_as_objects(bare: Program, tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "ledger-7c9f7d5b8-x2k4p", "namespace": "shop", "labels": {"app": "ledger"}},
        "spec": {"containers": [{"name": "ledger", "image": "ledger:9"}]},
        "status": {
            "phase": "Pending",
            "containerStatuses": [
                {
                    "name": "ledger",
                    "ready": False,
                    "restartCount": 0,
                    "image": "ledger:9",
                    "state": {
                        "waiting": {
                            "reason": "ImagePullBackOff",
                            "message": "Back-off pulling image ledger:9",
                        }
                    },
                }
            ],
        },
    }
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "pods.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod]})
    )
    done = bare("run", str(tmp_path / "dump"), "--planner", "offline")
    assert "pods.json: Kubernetes objects" in done.stderr
    report = json.loads(bare("report", "-", "--json").stdout)
    assert [(c["service"], c["kind"]) for c in report["causes"]] == [("ledger", "image_pull")], done.stdout


def test_init_says_where_it_looked_and_gives_a_command(bare: Program, log: Path) -> None:
    command = [*bare.command("init")]
    done = subprocess.run(
        command, cwd=log.parent, env=bare.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"tried {log.parent}: 1 file to look at" in done.stdout
    assert "  tills.log: text with times, 600 lines" in done.stdout
    assert f"tried {log.parent / 'logs'}: no logs, metrics or traces (no such folder)" in done.stdout
    assert f"ready to run: opsleuth run {log}" in done.stdout
    written = (log.parent / ".opsleuth" / "config.toml").read_text()
    assert f'"{log.parent}/*.log*"' in written
