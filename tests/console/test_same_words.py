"""One long session at a file and at a real PostgreSQL: everything that is said is the same, but for ids and times."""

import re
from pathlib import Path

import pytest
import servers
from stored_runs import Program

from opsleuth.scenarios.orders_incident import QUESTION, write_case

STEPS = """
w
p hypotheses
p budget.limits
s
n
diff
c
u
ev E1
set hypotheses.H1.text="it was the release"
commit --name doubt
h
tree
finish
cl 1
diff c0 head
w
q
"""
SESSION = (
    "run --case {case} {question} --pause-at act --no-input", "step {run} --commands {steps}", "list --tree", "resume {run}", "show {run}",
    "watch {run}", "log {run}", "diff {run}@c1 {run}@head", "report {run} --format md", "fork {run}@before:act", "pause {branch}",
    "resume {branch}", "deny {run} A1 --reason no", "evidence {run} E99",
)  # fmt: skip
_RUN = re.compile(r"inv-\d{8}-[0-9a-z]+")
_VARY = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "TIME"),
    (r"\b\d\d:\d\d(:\d\d(\.\d+)?)?Z?\b", "TIME"),
    (r"\b\d+(\.\d+)? ?(ms|s|m|h)\b( ago)?", "SECONDS"),
    (r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b", "HEX"),
    (r"budget\.used\.seconds .*", "SECONDS"),
    (r"[▀-▟█─━╸╺]+", "BAR"),
    (r"\s+", " "),
)


_LIVE = ("step", "run", "resume", "watch", "log")
"""Commands that tell of calls as they complete: side by side they do so in any order, so words are compared, not lines."""


@pytest.mark.slow
def test_the_same_session_has_the_same_words(postgres: servers.Postgres, tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    said = [
        spoken(database, tmp_path / name, case)
        for name, database in (("file", str(tmp_path / "runs.db")), ("server", postgres.database()))
    ]
    file, server = said
    assert len(file) > 10
    for of_file, of_server in zip(file, server, strict=True):
        assert of_server == of_file


def spoken(database: str, home: Path, case: Path) -> list[tuple[str, int, str, str]]:
    """Every command of the session with its exit code and what it said, ids and times put aside."""
    home.mkdir()
    (home / "session").write_text(STEPS, "utf-8")
    program = Program(home / "given-below", home, {"OPSLEUTH_DB": database})
    words = {"case": str(case), "question": QUESTION, "steps": str(home / "session")}
    runs: list[str] = []
    answers = []
    for line in SESSION:
        known = dict(zip(("run", "doubt", "branch"), runs, strict=False))
        done = program(*(word.format(**words, **known) for word in line.split()))
        runs += [run for run in dict.fromkeys(_RUN.findall(done.stdout + done.stderr)) if run not in runs]
        places = {str(home): "HOME", database: "DB"}
        out, err = (plain(text, runs, places) for text in (done.stdout, done.stderr))
        if line.split()[0] in _LIVE:
            out, err = (" ".join(sorted(text.split())) for text in (out, err))
        answers.append((line, done.returncode, out, err))
    return answers


def plain(text: str, runs: list[str], places: dict[str, str]) -> str:
    for number, run in enumerate(runs):
        text = text.replace(run, f"RUN{number}").replace(run.rpartition("-")[2], f"RUN{number}")
    for place, name in places.items():
        text = text.replace(place, name)
    for pattern, name in _VARY:
        text = re.sub(pattern, name, text)
    return text
