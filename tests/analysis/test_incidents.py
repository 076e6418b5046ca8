"""Recorded incidents, where they are at hand: how often the right service and kind come first."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from nonempty import nonempty
from recorded_sets import recorded_set

from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import Finding, Ranking
from opsleuth.tools.sources.case_source import CaseSource

pytestmark = pytest.mark.slow

NUMBER = re.compile(r"(?<![\w.,-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?![\w-])")


def cases(name: str) -> Iterator[tuple[dict[str, Any], list[Finding], Ranking]]:
    """Key, findings and ranking of every case of one set; skips the test where the set is not there."""
    folder = recorded_set(name)
    for case, key in sorted(json.loads((folder / "answers.json").read_text(encoding="utf-8")).items()):
        recording = CaseSource.open(folder / case).recording()
        findings = run_detectors(recording)
        yield key, findings, rank_findings(recording, findings)


def right(key: dict[str, Any], ranking: Ranking) -> tuple[bool, bool]:
    """Whether the first suspect is the right service, and whether it has the right kind as well."""
    if ranking.verdict != "cause_found":
        return False, False
    first = ranking.suspects[0]
    service = first.service in {key["root_cause_service"], *key.get("acceptable_services", ())}
    return service, service and first.kind in key.get("acceptable_kinds", [key["kind"]])


@pytest.mark.parametrize(
    ("name", "services", "kinds"),
    [
        ("petshop", 0.95, 0.95),
        ("nezha", 0.85, 0.75),
        ("opensre-rds", 0.75, 0.75),
        ("opensre-eks", 0.75, 0.75),
        ("holmes", 0.75, 0.75),
    ],
)
def test_the_right_service_and_kind_come_first(name: str, services: float, kinds: float) -> None:
    found = [right(key, ranking) for key, _, ranking in cases(name) if key["verdict"] == "cause_found"]
    assert sum(service for service, _ in found) >= services * len(found)
    assert sum(kind for _, kind in found) >= kinds * len(found)


@pytest.mark.parametrize(
    ("name", "share"), [("petshop-quiet", 0.05), ("opensre-rds", 0.0), ("opensre-eks", 0.0)]
)
def test_the_healthy_are_not_blamed(name: str, share: float) -> None:
    blamed = [
        ranking.verdict == "cause_found" for key, _, ranking in cases(name) if key["verdict"] == "healthy"
    ]
    assert sum(blamed) <= share * len(blamed)


@pytest.mark.parametrize("name", ["petshop", "nezha", "opensre-rds", "opensre-eks", "holmes"])
def test_every_number_that_a_finding_states_is_among_its_figures(name: str) -> None:
    for finding in nonempty(finding for _, findings, _ in cases(name) for finding in findings):
        known = _numbers(list(finding.figures.values()))
        stated = (
            re.sub(r'"[^"]*"', "", finding.text)
            .replace(finding.service, "")
            .replace(finding.metric or "\0", "")
        )
        strange = [word for word in NUMBER.findall(stated) if not any(_rounds_to(k, word) for k in known)]
        assert strange == [], f"{finding.detector}: {finding.text} {finding.figures}"


def _numbers(values: list[Any]) -> list[float]:
    return [float(v) for v in values if isinstance(v, int | float)] + [
        float(word.replace(",", ""))
        for v in values
        if not isinstance(v, int | float)
        for word in NUMBER.findall(str(v))
    ]


def _rounds_to(figure: float, word: str) -> bool:
    """Whether a figure, rounded as the word is, gives the word (half a unit of its last digit, or 1 in 1000)."""
    decimals = len(word.partition(".")[2].partition("e")[0])
    return abs(figure - float(word.replace(",", ""))) <= max(0.5 * 10.0**-decimals * 1.01, 1e-3 * abs(figure))
