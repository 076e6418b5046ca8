"""`opsleuth case new` and `case check`, as a program over real folders."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_runs import Program


@pytest.fixture
def case(bare: Program, tmp_path: Path) -> Path:
    folder = tmp_path / "payments-fail"
    made = bare("case", "new", str(folder), "--service", "payments", "--question", "Why do payments fail?")
    assert made.returncode == 0, made.stderr
    assert [Path(line).name for line in made.stdout.splitlines()] == [
        "changes.jsonl",
        "incident.json",
        "logs.jsonl",
        "metrics.csv",
    ]
    assert f"opsleuth case check {folder}" in made.stderr
    return folder


@pytest.mark.slow
def test_a_new_case_is_fit_and_its_cause_is_found(bare: Program, case: Path) -> None:
    checked = bare("case", "check", str(case))
    assert (checked.returncode, checked.stderr) == (0, f"fit: opsleuth run --case {case}\n")
    assert checked.stdout.startswith("metrics.csv: 30 rows, ")
    done = bare("run", "--case", str(case))
    assert done.returncode == 0
    assert done.stdout.startswith("payments: a bad release")


def replace_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return spoil


def move_file(old: str, new: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / old).rename(folder / new)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (replace_text("metrics.csv", "timestamp,", "time,"), "metrics.csv has no column timestamp: it has "),
        (replace_text("metrics.csv", "timestamp,", "ts,"), "rename ts to timestamp"),
        (replace_text("metrics.csv", ",value,", ",valeu,"), "rename valeu to value"),
        (replace_text("logs.jsonl", '"message"', '"msg"'), "logs.jsonl has no column message"),
        (replace_text("logs.jsonl", '"message"', '"msg"'), "rename msg to message"),
        (replace_text("changes.jsonl", '"summary"', '"description"'), "rename description to summary"),
        (
            replace_text("incident.json", '"service": "payments"', '"service": "payment"'),
            "which no row names: did you mean payments?",
        ),
        (
            replace_text("incident.json", '"service": "payments"', '"service": "zzz"'),
            "which no row names: there are payments",
        ),
        (
            move_file("logs.jsonl", "log.jsonl"),
            "log.jsonl was ignored: no file of that name belongs to a case; did you mean logs.jsonl?",
        ),
        (replace_text("incident.json", '"window"', '"windw"'), "is not a case: incident.json: "),
    ],
)
def test_each_slip_is_named_with_its_remedy(
    bare: Program, case: Path, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(case)
    checked = bare("case", "check", str(case))
    assert checked.returncode == 8
    assert said in checked.stdout + checked.stderr


def test_rows_outside_the_window_are_said_with_both_stretches(bare: Program, case: Path) -> None:
    document = json.loads((case / "incident.json").read_text())
    document["window"] = {"start": "2020-01-01T00:00:00Z", "end": "2020-01-01T01:00:00Z"}
    (case / "incident.json").write_text(json.dumps(document))
    checked = json.loads(bare("case", "check", str(case), "--json").stdout)
    [problem] = [text for text in checked["problems"] if text.startswith("metrics cover")]
    assert "the window is 2020-01-01T00:00:00Z to 2020-01-01T01:00:00Z" in problem
    assert [table["rows"] for table in checked["tables"]] == [30, 30, 1]


def test_a_case_without_tables_and_a_folder_that_is_none_are_refused(
    bare: Program, case: Path, tmp_path: Path
) -> None:
    for name in ("metrics.csv", "logs.jsonl", "changes.jsonl"):
        (case / name).unlink()
    assert "problem: there is no table: add metrics.csv" in bare("case", "check", str(case)).stdout
    none = bare("case", "check", str(tmp_path / "none"))
    assert none.returncode == 8
    assert "there is no such folder" in none.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "is not empty: name a new folder"),
        (("--service", " "), "must not be empty"),
        (("--question", ""), "must not be empty"),
    ],
)
def test_a_new_case_never_overwrites_and_needs_its_words(
    bare: Program, case: Path, words: tuple[str, ...], said: str
) -> None:
    before = {path.name: path.read_bytes() for path in case.iterdir()}
    refused = bare("case", "new", str(case), *words)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert {path.name: path.read_bytes() for path in case.iterdir()} == before


def test_a_path_that_cannot_be_written_is_refused(bare: Program, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refused = bare("case", "new", str(tmp_path / "file" / "below"))
    assert refused.returncode == 2
    assert "cannot write" in refused.stderr
