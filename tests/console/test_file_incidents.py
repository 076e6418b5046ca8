"""Incidents that exist only as files: the documented commands find the cause, without any configuration."""

import json
import random
import re
import subprocess
from pathlib import Path

import file_incidents
import pytest
from file_incidents import INCIDENTS, FileIncident, write_incident
from stored_runs import REPOSITORY, Program

_ROW = re.compile(r"^\| .+ \| `opsleuth run (?P<path>\S+)` \| (?P<answer>.+?) \|$", re.MULTILINE)


def investigate(program: Program, folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        program.command("run", path),
        cwd=folder,
        env=program.environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def documented_answers() -> dict[str, str]:
    """What the documentation says that each command answers, by path."""
    text = (REPOSITORY / "docs" / "files.md").read_text("utf-8")
    return {row["path"]: row["answer"] for row in _ROW.finditer(text)}


def test_every_incident_is_documented() -> None:
    assert sorted(documented_answers()) == sorted(incident.path for incident in INCIDENTS)


@pytest.mark.slow
@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.path)
def test_the_documented_command_finds_the_cause(
    bare: Program, tmp_path: Path, incident: FileIncident
) -> None:
    write_incident(incident, tmp_path)
    done = investigate(bare, tmp_path, incident.path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert said.startswith(documented_answers()[incident.path])
    assert incident.words.lower() in said.lower()
    report = json.loads(bare("report", "-", "--json").stdout)
    assert report["causes"][0]["kind"] in incident.kinds


@pytest.mark.slow
def test_a_file_from_inside_the_outage_is_judged_by_absolute_figures(
    bare: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_incidents, "ONSET", 0)
    file_incidents.access_log(tmp_path, random.Random(3))
    done = investigate(bare, tmp_path, "access.log")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(
        r"\d+ of \d+ requests in access.log ended in a 5xx status", " ".join(done.stdout.split())
    )


@pytest.mark.slow
def test_calm_files_accuse_nobody(bare: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_incidents, "ONSET", file_incidents.END)
    for incident in INCIDENTS:
        if incident.path in ("access.log", "gc.log", "postgresql.log", "uploads.log", "cart.log"):
            incident.write(tmp_path, random.Random(5))
    done = investigate(bare, tmp_path, ".")
    report = json.loads(bare("report", "-", "--json").stdout)
    assert report["causes"] == [], done.stdout


@pytest.mark.slow
def test_an_inconclusive_report_shows_what_stands_out_and_three_commands(
    bare: Program, tmp_path: Path
) -> None:
    with (tmp_path / "scales.log").open("w") as file:
        for second in range(0, 2_400, 5):
            time = file_incidents.iso(second)
            file.write(f"{time} INFO parcel {second} weighed {second % 7} kg\n")
            if second % 340 == 5:
                file.write(f"{time} ERROR parcel {second} bounced off ramp {second % 3}\n")
    done = investigate(bare, tmp_path, "scales.log")
    assert done.returncode == 3, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert 'scales writes "ERROR parcel' in said
    assert "8 of 488 log lines report failure, the first at 13:30:05Z" in said
    report = json.loads(bare("report", "-", "--json").stdout)
    commands = [re.search(r"`opsleuth [^`]+`", r["text"]) for r in report["recommendations"]]
    assert len(commands) == 3
    assert all(commands)
