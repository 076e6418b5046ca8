"""What a question reports decides: its service, its symptom and its time weigh more than a later rise elsewhere."""

import random

import pytest

from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, LogLine, Ranking, Recording, TimeRange
from opsleuth.analysis.reported_trouble import find_reported_trouble

MINUTE = 60.0
START, END = 60 * MINUTE, 120 * MINUTE
FAILURES = (
    "put object: connection reset by storage.example.net",
    "request rejected: 403 AccessDenied",
    "could not render page: template missing",
    "token check failed: issuer answered 500",
    "write timed out after 3000 ms",
)
WORK = ("request done", "stored object in 20 ms", "page rendered", "token checked")


def write_lines(rng: random.Random, service: str, begin: float, since: float, share: float) -> list[LogLine]:
    """Lines of one service from `begin` on: failing ones from `since` on, `share` of them, beside its ordinary work."""
    failure, work = rng.choice(FAILURES), rng.choice(WORK)
    lines = []
    time = begin + rng.uniform(0, 20)
    while time < END:
        if time >= since and rng.random() < share:
            lines.append(LogLine(time, service, failure, rng.choice(("error", "ERROR"))))
        else:
            lines.append(LogLine(time, service, work, "info"))
        time += rng.uniform(8, 25)
    return lines


def rank_question(
    rng: random.Random,
    *,
    begin: float,
    since: float,
    named: bool,
    stated: bool,
    share: float = 0.6,
    later: float = 25 * MINUTE,
) -> tuple[Ranking, Recording]:
    """A service that fails since `since`, and a louder one that begins `later`, as the question reports them."""
    asked, other, calm = rng.sample(["amber", "basalt", "cedar", "dune", "ember"], 3)
    logs = [
        *write_lines(rng, asked, begin, since, share),
        *write_lines(rng, other, begin, since + later, 0.95),
        *write_lines(rng, calm, begin, END, 0.0),
    ]
    alert = AlertFacts(
        f"{asked} fails" if named else "nobody can log in",
        asked if named else None,
        stated=since if stated else None,
    )
    recording = Recording(alert, TimeRange(START, END), logs=sorted(logs, key=lambda line: line.time or 0.0))
    return rank_findings(recording, run_detectors(recording)), recording


def asked_service(recording: Recording) -> str:
    return min((line.time or 0.0, line.service) for line in recording.logs or () if (line.level or "").lower() == "error")[1]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("named", "stated"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize(
    "begin", [0.0, START], ids=["with a quiet hour before", "failing from the first line"]
)
def test_the_reported_service_is_blamed_and_never_the_one_that_began_later(
    seed: int, begin: float, *, named: bool, stated: bool
) -> None:
    rng = random.Random(seed)
    ranking, recording = rank_question(rng, begin=begin, since=START, named=named, stated=stated)
    asked = asked_service(recording)
    assert [s.service for s in ranking.suspects[: max(1, ranking.causes)]] == [asked]
    assert {f.service for f in ranking.later} == {line.service for line in recording.logs or () if (line.level or "").lower() == "error"} - {asked}  # fmt: skip
    onset = min(s.onset for s in ranking.suspects if s.onset is not None)
    assert START <= onset <= START + 3 * MINUTE


@pytest.mark.parametrize("seed", range(6))
def test_a_service_that_failed_from_the_first_line_says_so_and_nothing_of_it_is_called_usual(
    seed: int,
) -> None:
    ranking, _ = rank_question(random.Random(seed), begin=START, since=START, named=True, stated=True)
    texts = [f.text for f in ranking.suspects[0].findings]
    assert any("failed from the first line that was read" in text for text in texts)
    assert not any("usually" in text or "new error line" in text for text in texts)


@pytest.mark.parametrize("seed", range(6))
def test_a_cause_that_began_before_or_with_the_symptom_stays_one(seed: int) -> None:
    rng = random.Random(seed)
    _, recording = rank_question(rng, begin=0.0, since=START, named=True, stated=True, later=-2 * MINUTE)
    ranking = rank_findings(recording, run_detectors(recording))
    assert ranking.later == []


@pytest.mark.parametrize("seed", range(6))
def test_an_asked_service_that_shows_nothing_is_not_explained_by_what_began_later(seed: int) -> None:
    rng = random.Random(seed)
    logs = [
        *write_lines(rng, "amber", 0.0, END, 0.0),
        *write_lines(rng, "basalt", 0.0, START + 20 * MINUTE, 0.9),
    ]
    recording = Recording(AlertFacts("amber fails", "amber", stated=START), TimeRange(START, END), logs=logs)
    ranking = rank_findings(recording, run_detectors(recording))
    assert (ranking.verdict, ranking.causes) == ("inconclusive", 0)
    assert [f.service for f in ranking.later] == ["basalt"]
    assert "question states" in ranking.later[0].text


def test_a_few_failures_of_every_day_are_no_reported_trouble() -> None:
    lines = [LogLine(START + 20.0 * n, "amber", "could not parse header: error" if n % 30 == 0 else "done", "info") for n in range(180)]  # fmt: skip
    recording = Recording(AlertFacts("amber is slow", "amber"), TimeRange(START, END), logs=lines)
    assert find_reported_trouble(recording) is None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mention", ["cache refreshed, 0 errors", "failed: 0", "error rate 0.0%", "sync done without errors"])  # fmt: skip
def test_a_stated_time_makes_no_trouble_of_a_healthy_log(seed: int, mention: str) -> None:
    rng = random.Random(seed)
    lines = [
        LogLine(START + 3.0 * n, "amber", mention if rng.random() < 0.3 else "order placed", rng.choice(("info", None)))
        for n in range(900)
    ]  # fmt: skip
    alert = AlertFacts("why does amber fail?", "amber", stated=START + 20 * MINUTE)
    recording = Recording(alert, TimeRange(START, END), logs=lines)
    assert find_reported_trouble(recording) is None
    assert rank_findings(recording, run_detectors(recording)).causes == 0


@pytest.mark.parametrize("seed", range(4))
def test_mentions_at_the_level_of_ordinary_work_weigh_nothing_beside_failing_lines(seed: int) -> None:
    rng = random.Random(seed)
    failing = write_lines(rng, "amber", START, START + 20 * MINUTE, 0.6)
    mentions = [LogLine(START + 7.0 * n, "amber", "error budget recalculated", "debug") for n in range(500)]
    recording = Recording(
        AlertFacts("amber fails", "amber"),
        TimeRange(START, END),
        logs=sorted([*failing, *mentions], key=lambda line: line.time or 0.0),
    )
    trouble = find_reported_trouble(recording)
    assert trouble is not None
    assert not trouble.throughout
    assert trouble.message in FAILURES
    assert START + 20 * MINUTE <= trouble.onset <= START + 23 * MINUTE


@pytest.mark.parametrize("quiet", [60, 120])
def test_lines_that_begin_to_fail_late_do_not_fail_from_the_first_line(quiet: int) -> None:
    lines = [
        LogLine(START + 5.0 * n, "amber", "write failed" if n > quiet and n % 3 == 0 else "done", "error" if n > quiet and n % 3 == 0 else "info")
        for n in range(700)
    ]  # fmt: skip
    recording = Recording(AlertFacts("amber fails", "amber"), TimeRange(START, END), logs=lines)
    trouble = find_reported_trouble(recording)
    assert trouble is None or not trouble.throughout
