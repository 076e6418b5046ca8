"""The words of failure are found in lines of any length, in time that grows with the line."""

import pytest
from growth import assert_grows_at_most

from opsleuth.analysis.failure_words import speaks_of_exception, speaks_of_failure, speaks_of_slowness


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("java.lang.NullPointerException: x", True),
        ("ValueError: bad literal", True),
        ("Traceback (most recent call last)", True),
        ("panic: runtime error", True),
        ("an error occurred", False),
        ("NoErrors found", False),
    ],
)
def test_an_exception_is_told_from_an_error(line: str, *, found: bool) -> None:
    assert speaks_of_exception(line) is found


NOUNS = ("error", "failure", "exception", "timeout")
FRAMES = ("INFO orders-api cache refreshed, {}", "{}", "sync done ({})", "nightly job: {}; next run 02:00")
DENIALS = (
    "0 {}s", "no {}s", "no new {}s", "without {}", "without any {}s", "{}s=0", "{}_total 0", "{}_count: 0", "{} rate 0.0%",
    "{}s: 0 in the last minute", "zero {}s", "retries=0 {}s=0 ok=12", '"{}": null', "{}=<nil>", "0 of them had {}s: 0",
)  # fmt: skip
REPORTS = (
    "3 {}s", "10 {}s", "{}s=3", "{}s: 05", "{} rate 0.5%", "{} after 0 ms", "{}: 0 bytes read", "0 {}s before, 2 failures now",
    "no retries left: {}", "{}=broken pipe", "{}: none of the hosts answered", "worker 0 failed with {}", "1.0 {}s",
)  # fmt: skip


@pytest.mark.parametrize("noun", NOUNS)
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("denial", DENIALS)
def test_a_count_of_zero_and_a_denial_speak_of_no_failure(noun: str, frame: str, denial: str) -> None:
    assert not speaks_of_failure(frame.format(denial.format(noun)))


@pytest.mark.parametrize("noun", NOUNS[:3])
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("report", REPORTS)
def test_a_count_and_a_report_speak_of_failure(noun: str, frame: str, report: str) -> None:
    assert speaks_of_failure(frame.format(report.format(noun)))


@pytest.mark.parametrize("text", ["12 passed, 0 failed", "failed: 0", "retries=0 failed=0", "did not fail", "never failed", "nothing failed"])  # fmt: skip
def test_a_denied_verb_of_failure_counts_only_at_the_level_of_failures(text: str) -> None:
    assert not speaks_of_failure(text, "info")
    assert speaks_of_failure(text, "error")


@pytest.mark.parametrize(
    "unit", ["x", "X1_", "a.", " ", "Ex", "error_", "no error ", "error{", "0 ", "errors=0 "]
)
def test_time_grows_with_the_line(unit: str) -> None:
    small, large = [unit * (length // len(unit)) for length in (20_000, 200_000)]
    assert_grows_at_most(30, lambda: judge_line(small), lambda: judge_line(large))


def judge_line(line: str) -> list[bool]:
    return [tells(line) for tells in (speaks_of_exception, speaks_of_failure, speaks_of_slowness)]
