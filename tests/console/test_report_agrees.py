"""One report says one thing: evidence shows what its sentence states, one incident in the headline, one list of what is missing."""

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from nonempty import nonempty
from recorded_sets import recorded_set
from stored_runs import DOCUMENT

from opsleuth.cli import main
from opsleuth.console.report_chain import explain_document
from opsleuth.console.report_headline import compose_headline
from opsleuth.console.report_reasons import GROUNDS, explain_cause, list_missing_grounds
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.scenarios.generator import generate_incident

OFFLINE: Mapping[str, Any] = {**DOCUMENT, "planner": "offline"}
KINDS = ("errors", "exception", "latency", "cpu", "slow_query", "deploy", "config", "out_of_memory", "locks", "network_delay", "certificate", "connections")  # fmt: skip
DEV = (("nab", 3), ("rootcausebench", 3), ("spring-http", 1), ("opensre-rds", 2), ("code-change", 1))
NUMBER = re.compile(r"(?<![\w.:,/-])\d[\d,]*(?:\.\d+)?(?![\w:]|\.\d)")
TIMES = re.compile(r"\d{4}-\d\d-\d\dT\S+|\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?Z?")
SCALES = (1.0, 100.0, 1000.0, 1e6, 0.01, 0.001, 1e-6, 1 / 1024, 1 / 1024**2, 1 / 1024**3)


def run_command(*arguments: str) -> str:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        main(list(arguments))
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def list_numbers(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from list_numbers(part)
    elif isinstance(value, list):
        for part in value:
            yield from list_numbers(part)
    elif isinstance(value, str):
        yield from (float(found.replace(",", "")) for found in NUMBER.findall(TIMES.sub(" ", value)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def is_shown(sentence: str, record: Mapping[str, Any]) -> bool:
    """Whether a quoted line of the sentence stands in the record, else each figure of its first part, else its names."""
    stored = " ".join(json.dumps(record, ensure_ascii=False).replace('\\"', '"').split())
    quoted = [
        part for found in re.findall(r'"(.+)"', sentence) for part in found.split("…") if len(part) >= 12
    ]
    if any(" ".join(part.split())[:40] in stored for part in quoted):
        return True
    plain = TIMES.sub(" ", re.sub(r'".*"', " ", sentence))
    figures = [float(found.replace(",", "")) for found in NUMBER.findall(plain.partition(";")[0])]
    held = list(list_numbers(record))
    if figures:
        return all(
            any(abs(h * s - f) <= 0.006 * abs(f) + 1e-9 for h in held for s in SCALES) for f in figures
        )
    return any(word in stored for word in re.findall(r"[\w-]{5,}", plain))


def find_unshown_citations(folder: Path, database: Path) -> list[str]:
    """The citations of WHY and IMPACT that show nothing of their sentence when they are opened."""
    run_command("--db", str(database), "run", "--case", str(folder), "--planner", "offline", "-q")
    document = json.loads(run_command("--db", str(database), "report", "-", "--format", "json"))
    sentences = explain_cause(document, TimeDisplay())
    if impact := document.get("impact"):
        sentences.append(f"{impact['text']} [{' '.join(impact['evidence'])}]")
    assert any("[E" in sentence for sentence in sentences)
    missing = []
    for sentence in sentences:
        cited = re.match(r"(.*) \[((?:E\d+ ?)+)\]", sentence, re.DOTALL)
        for name in cited[2].split() if cited else ():
            piece = json.loads(run_command("--db", str(database), "evidence", "-", name, "--json"))
            parts = cited[1].split("; ") if cited else []  # each piece of evidence shows one of them
            if not piece["tool"].startswith("changes") and not any(
                is_shown(p, piece["record"]) for p in parts
            ):
                missing.append(f"{name} ({piece['tool']}): {parts}")
    return missing


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_cited_piece_of_evidence_shows_what_its_sentence_states(kind: str, tmp_path: Path) -> None:
    generate_incident(kind, "high", 7, tmp_path / "case")
    assert find_unshown_citations(tmp_path / "case", tmp_path / "runs.db") == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), DEV)
def test_recorded_incidents_cite_what_they_state(name: str, most: int, tmp_path: Path) -> None:
    folder = recorded_set(name)
    keys = json.loads((folder / "answers.json").read_text())
    broken = sorted(case for case, key in keys.items() if key["verdict"] == "cause_found")[:most]
    for case in nonempty(broken):
        assert find_unshown_citations(folder / case, tmp_path / f"{case}.db") == []


def change_impact(service: str, since: str, cause: str, propagation: list[list[str]]) -> dict[str, Any]:
    figures = [{"service": service, "measure": "failed requests", "usual": 0.1, "now": 44.0, "unit": "%"}]
    claims = [{"id": "C1", "text": f"{cause} writes 'x' 40 times (since 2026-03-03T14:20:00Z)", "basis": "measured", "status": "holds", "evidence": ["E2"]}]  # fmt: skip
    return {
        **OFFLINE,
        "causes": [{"service": cause, "kind": "errors", "confidence": "likely", "claims": ["C1"]}],
        "claims": claims,
        "impact": {"text": f"44 % of the requests to {service} failed", "evidence": ["E1"], "since": since, "figures": figures},
        "propagation": propagation,
    }  # fmt: skip


@pytest.mark.parametrize("cause", ["billing", "cart", "mailer"])
def test_the_harm_of_a_service_apart_from_the_cause_says_its_own_time(cause: str) -> None:
    apart = change_impact("uploads", "2026-03-03T13:40:00Z", cause, [])
    facts = compose_headline(apart, TimeDisplay()).facts
    assert facts[1:3] == ("since 14:20Z", "failed requests of uploads 0.1 → 44 % since 13:40Z")
    own = change_impact(cause, "2026-03-03T14:19:00Z", cause, [])
    assert compose_headline(own, TimeDisplay()).facts[1:3] == (
        "since 14:19Z",
        f"failed requests of {cause} 0.1 → 44 %",
    )
    joined = change_impact("uploads", "2026-03-03T14:19:00Z", cause, [[cause, "uploads"]])
    assert compose_headline(joined, TimeDisplay()).facts[1:3] == (
        "since 14:19Z",
        "failed requests of uploads 0.1 → 44 %",
    )


def list_ground_sets() -> list[tuple[str, ...]]:
    return [chosen for size in range(5) for chosen in combinations(GROUNDS, size)]


@pytest.mark.parametrize("shown", list_ground_sets(), ids="+".join)
@pytest.mark.parametrize(
    "tools", [("logs_search",), ("logs_search", "logs_patterns"), ("logs_search", "metrics_anomalies")]
)
def test_report_and_why_name_the_same_things_that_are_missing(
    shown: tuple[str, ...], tools: tuple[str, ...]
) -> None:
    evidence = [{"id": f"E{n}", "tool": tool} for n, tool in enumerate((*tools, "rank_suspects"), 1)]
    claims = [
        {
            "id": "C1",
            "text": "it fails",
            "status": "holds",
            "basis": "measured",
            "evidence": [row["id"] for row in evidence],
        }
    ]
    cause = {
        "service": "cart",
        "kind": "errors",
        "confidence": "likely",
        "claims": ["C1"],
        "shown": list(shown),
    }
    document = {**OFFLINE, "causes": [cause], "claims": claims, "evidence": evidence, "propagation": []}
    missing = list_missing_grounds(document, cause)
    assert missing
    sentence = ", ".join(missing)
    assert explain_cause(document, TimeDisplay())[-1] == f"Not confirmed; still missing: {sentence}."
    sure = next(s for s in explain_document(document, 0, TimeDisplay()) if s.title == "SURE")
    assert sure.items[0].endswith(f"still missing: {sentence}")
    kinds = {tool.partition("_")[0] for tool in tools}
    assert ("a second kind of data that agrees" in missing) == (len(kinds) < 2)


def test_what_is_confirmed_lacks_nothing() -> None:
    cause = {
        "service": "cart",
        "kind": "errors",
        "confidence": "confirmed",
        "claims": [],
        "shown": list(GROUNDS),
    }
    assert list_missing_grounds({"causes": [cause]}, cause) == []
