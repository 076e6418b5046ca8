"""Error lines that no phrase explains: the end of the chain is to blame, however long it is and whatever it is called."""

import itertools
import random

import pytest

from opsleuth.analysis.error_lines import find_new_error_lines
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, LogLine, Recording, ServiceDependency, TimeRange

OWN = ("Failing on my own", "giving up on this order", "Unexpected error", "checksum mismatch in row 7")
PASSED = ("{callee} answered 500", "could not complete: bad answer of {callee}", "error from {callee}, stop")


def build_chain(seed: int) -> tuple[Recording, str]:
    """A chain of callers above one service that fails by itself, among bystanders that log as usual."""
    rng = random.Random(seed)
    names = rng.sample(["amber", "basalt", "cedar", "dune", "ember", "fjord"], rng.randint(2, 5))
    edges = [ServiceDependency(a, b) for a, b in itertools.pairwise(names)]
    lines = [LogLine(float(t), rng.choice(names), f"handled request {t}", "info") for t in range(0, 600, 5)]
    lines.append(LogLine(500.0, names[-1], rng.choice(OWN), rng.choice(("error", "ERROR", "FATAL"))))
    for place in range(len(names) - 1):
        text = rng.choice(PASSED).format(callee=names[place + 1])
        lines.append(LogLine(500.1 + len(names) - place, names[place], text, "error"))
    rng.shuffle(lines)
    alert = AlertFacts(f"{names[0]} answers 500", names[0], fired=600.0)
    return Recording(alert, TimeRange(0.0, 600.0), logs=lines, topology=edges), names[-1]


@pytest.mark.parametrize("seed", range(20))
def test_the_end_of_the_chain_is_blamed(seed: int) -> None:
    recording, root = build_chain(seed)
    ranking = rank_findings(recording, run_detectors(recording))
    assert (ranking.verdict, ranking.suspects[0].service) == ("cause_found", root)


def test_errors_that_were_always_there_are_no_news() -> None:
    lines = [LogLine(float(t), "web", "cache entry broken", "error") for t in range(0, 600, 60)]
    recording = Recording(AlertFacts("?", "web", onset=300.0), TimeRange(0.0, 600.0), logs=lines)
    assert find_new_error_lines(recording) == []


def test_a_line_of_information_is_no_error() -> None:
    lines = [LogLine(400.0, "web", "0 errors, nothing failed", "info")]
    recording = Recording(AlertFacts("?", "web", onset=300.0), TimeRange(0.0, 600.0), logs=lines)
    assert find_new_error_lines(recording) == []
