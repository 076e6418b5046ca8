"""What a person at a terminal of 80x24 reads: the answer first and last, nothing cut that is to be done, and plain English."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pexpect
import pytest
from model_rig import answering
from stored_runs import HANG, Program

from opsleuth.console import terminal_text as texts
from opsleuth.models.server.rule_models import reply_as_investigator
from opsleuth.scenarios.orders_incident import write_case

pytestmark = pytest.mark.slow

START = datetime(2026, 5, 12, 9, tzinfo=UTC)
SAMPLES = 40
BROKEN_FROM = 26

REFUSED_WORDS = (
    "is no way to", "is taken or none", "is none of", "is gone on with", "the replay has left", "is no digest",
    "the world is read", "no source for traces", "neither blamed nor ruled out", "forth and back", "is no folder",
    "say this or the like", "says this or the like", "sources know no", "findings about it weigh", "Log head",
    "suspect_score",
)  # fmt: skip
"""Messages that once puzzled people."""
CODES = re.compile(
    r"\b[PHC]\d+\b|\bscore\b|(?<![\d.])0*[1-9]\d*\.\d{3,}(?![\d.])|(?<![\d.])0\.0*[1-9]\d{3,}(?![\d.])"
)
"""Ids of steps, hypotheses and claims, and figures with more digits than a person reads."""
NOT_PROSE = re.compile(r"\[[E\d ]+\]|`[^`]*`|\"[^\"]*\"")


def write_payments(folder: Path, rates: Callable[[int], float], message: str = "") -> Path:
    """A case of one service: a rate of errors every half minute, and its log."""
    folder.mkdir()
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["timestamp", "service", "metric", "value", "unit"])
    lines = []
    for number in range(SAMPLES):
        at = f"{START + timedelta(seconds=30 * number):%Y-%m-%dT%H:%M:%SZ}"
        writer.writerow([at, "payments", "error_rate", rates(number), "percent"])
        broken = message and number >= BROKEN_FROM
        text = message.format(number=number) if broken else f"charged order {number}"
        level = "error" if broken else "info"
        lines.append(json.dumps({"timestamp": at, "service": "payments", "level": level, "message": text}))
    end = START + timedelta(seconds=30 * SAMPLES)
    incident = {
        "id": "payments",
        "question": "Why do payments fail?",
        "alert": {"text": "more than 5 % of payments fail", "service": "payments", "metric": "error_rate", "fired_at": f"{end - timedelta(minutes=4):%Y-%m-%dT%H:%M:%SZ}"},
        "window": {"start": f"{START:%Y-%m-%dT%H:%M:%SZ}", "end": f"{end:%Y-%m-%dT%H:%M:%SZ}"},
    }  # fmt: skip
    (folder / "incident.json").write_text(json.dumps(incident))
    (folder / "metrics.csv").write_text(table.getvalue())
    (folder / "logs.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "topology.csv").write_text("caller,callee\nweb,payments\n")
    return folder


def fail_later(number: int) -> float:
    return 22.0 + number % 3 / 10 if number >= BROKEN_FROM else 0.2 + number % 3 / 10


def stay_calm(number: int) -> float:
    return 0.2 + number % 5 / 10


def write_own_case(folder: Path) -> tuple[str, ...]:
    message = "order {number}: PUT https://receipts.s3.eu-west-1.amazonaws.com/{number}: connection timed out"
    return "run", "--case", str(write_payments(folder, fail_later, message))


def write_healthy_case(folder: Path) -> tuple[str, ...]:
    return "run", "--case", str(write_payments(folder, stay_calm))


def write_unanswerable_case(folder: Path) -> tuple[str, ...]:
    return "run", "why is billing slow?", "--case", str(write_payments(folder, stay_calm))


SCREENS: Mapping[str, tuple[Callable[[Path], tuple[str, ...]], int]] = {
    "demo": (lambda _: ("demo",), 0),
    "quiet": (lambda _: ("demo", "-q"), 0),
    "own case": (write_own_case, 0),
    "healthy": (write_healthy_case, 0),
    "inconclusive": (write_unanswerable_case, 3),
    "partial": (lambda _: ("demo", "--max-turns", "2"), 6),
}


def watch_command(program: Program, *words: str, **variables: str) -> tuple[list[str], int]:
    """Every line that a terminal of 80x24 showed, without what was erased, and the exit code."""
    python, *arguments = program.command(*words)
    environment = program.environment(TERM="xterm", NO_COLOR="1", COLUMNS="80", **variables)
    child = pexpect.spawn(
        python, arguments, env=environment, dimensions=(24, 80), encoding="utf-8", timeout=HANG
    )
    child.expect(pexpect.EOF)
    child.close()
    text = str(child.before).replace("\r\n", "\n").rstrip("\n")
    return [line.rpartition("\r\x1b[K")[2] for line in text.split("\n")], int(child.exitstatus)


def find_report(lines: list[str]) -> list[str]:
    """The lines of the report: behind the line that says how the run ended."""
    ends = [i for i, line in enumerate(lines) if line.startswith("completed")]
    return lines[ends[-1] + 2 :] if ends else lines


def find_remedies(lines: list[str]) -> Iterator[str]:
    """What is to be done: of the headline and of NEXT, with the lines that belong to it."""
    kept = False
    for line in lines:
        if not line.startswith(" "):
            kept = line.startswith(("DO: ", "NEXT ", "DONE ", "DENIED "))
        if kept:
            yield line


def check_report(lines: list[str]) -> None:
    last = max(i for i, line in enumerate(lines) if line.startswith("DO: "))
    first = next(i for i, line in enumerate(lines) if line.startswith("DO: "))
    assert first <= 2, "the remedy stands below two lines of facts"
    subject = lines[0].partition(" · ")[0][:30]
    assert any(line.startswith(subject) for line in lines[-3:]), lines[-4:]
    assert len(lines) - last <= 3
    assert len(lines) <= 23, "the report and the prompt under it fit the screen"
    assert not [line for line in find_remedies(lines) if "…" in line or "..." in line]
    assert max(map(texts.measure_width, lines)) <= 80
    assert not CODES.findall(NOT_PROSE.sub("", " ".join(" ".join(lines).split())))
    check_words("\n".join(lines))


def check_words(text: str) -> None:
    flat = " ".join(text.split())
    assert not [words for words in REFUSED_WORDS if words in flat]


@pytest.mark.parametrize("name", SCREENS)
def test_the_answer_stands_first_and_last_and_in_plain_english(
    name: str, bare: Program, tmp_path: Path
) -> None:
    prepare, code = SCREENS[name]
    lines, ended = watch_command(bare, *prepare(tmp_path / "case"))
    assert ended == code, lines
    check_report(find_report(lines))


def test_with_a_model_too(bare: Program, tmp_path: Path) -> None:
    case = str(write_case(tmp_path / "incident"))
    with answering(reply_as_investigator) as server:
        model = {
            "OPSLEUTH_BASE_URL": server.base_url,
            "OPSLEUTH_MODEL": "scripted",
            "OPSLEUTH_MODEL_MODE": "tools",
            "OPSLEUTH_REVIEWER": "none",
        }
        lines, ended = watch_command(bare, "run", "--case", case, **model)
    assert ended == 0, lines
    assert "planner scripted" in " ".join(lines)
    check_report(find_report(lines))


def test_an_external_host_is_named_in_what_to_do(bare: Program, tmp_path: Path) -> None:
    lines, _ = watch_command(bare, *write_own_case(tmp_path / "case"))
    told = " ".join(find_remedies(find_report(lines)))
    assert "receipts.s3.eu-west-1.amazonaws.com" in told


def test_a_healthy_run_says_which_range_is_usual(bare: Program, tmp_path: Path) -> None:
    lines, _ = watch_command(bare, *write_healthy_case(tmp_path / "case"))
    action = " ".join(" ".join(find_remedies(find_report(lines))).split())
    assert "error_rate of payments kept between 0.2 and 0.6" in action


def test_what_can_be_typed_next_works(bare: Program, tmp_path: Path) -> None:
    """The command of a partial report can be copied as it stands."""
    lines, _ = watch_command(bare, *SCREENS["partial"][0](tmp_path))
    found = re.search(r"`opsleuth (resume \S+ --max-turns \d+)`", " ".join(" ".join(lines).split()))
    assert found is not None
    lines, ended = watch_command(bare, *found[1].split(), "-q")
    assert ended == 0, lines


def test_lists_fit_the_screen(bare: Program) -> None:
    watch_command(bare, "demo", "-q")
    for words in (("list",), ("approvals",), ("why",), ("evidence", "-"), ("show", "-"), ("log", "-"), ()):
        lines, _ = watch_command(bare, *words)
        assert max(map(texts.measure_width, lines)) <= 80, words
        check_words("\n".join(lines))


def test_the_stepper_says_how_to_get_help_and_cuts_nothing(bare: Program) -> None:
    watch_command(bare, "demo", "-q")
    python, *arguments = bare.command("step", "-")
    environment = bare.environment(TERM="xterm", NO_COLOR="1", PAGER="less", LESS="-X")
    child = pexpect.spawn(
        python, arguments, env=environment, dimensions=(24, 80), encoding="utf-8", timeout=HANG
    )
    child.expect_exact("? lists the commands; q leaves")
    child.expect_exact("step>")
    child.send("pp\r")
    child.expect_exact(":")  # the pager's prompt: space, /, arrows and q are its own keys
    child.send("q")
    child.expect_exact("step>")
    child.send("p question\r")
    child.expect_exact("find the cause")
    shown = str(child.before)
    child.expect_exact("step>")
    assert "…" not in shown + str(child.before)
    child.send("ev 1\r")
    child.expect_exact("evidence    E1")
    child.send("q")
    child.expect_exact("step>")
    child.send("exit\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
