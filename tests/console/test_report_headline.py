"""The answer stands first and last, fits a screen of 80x24, and nothing that is to be done is cut."""

import io
from collections.abc import Mapping
from typing import Any

import pytest
from stored_runs import DOCUMENT

from opsleuth.console import terminal_text as texts
from opsleuth.console.report_headline import compose_headline, describe_unmeasured
from opsleuth.console.report_text import SHORT, format_report_lines
from opsleuth.console.screen import Screen
from opsleuth.console.significant_digits import shorten_figures
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.conclusion import KINDS
from opsleuth.state.fault_words import FAULT_WORDS

LONG = "checkout-orchestration-service-production-eu-central"
CHANGE = {"id": "2.14.0", "kind": "deploy", "service": "orders-api", "at": "2026-03-03T13:58:20Z", "grade": "cause", "author": "r.tanaka", "place": None, "why": "the change alters a statement on customer_email"}  # fmt: skip
OFFLINE: Mapping[str, Any] = {
    **DOCUMENT,
    "planner": "offline",
    "answer": "Cause: orders-db (a slow database statement).",
    "causes": [{"service": "orders-db", "kind": "slow_query", "confidence": "likely", "claims": ["C1", "C2"], "change": CHANGE, "shown": ["order", "path", "mechanism"]}],
    "propagation": [["orders-db", "orders-api"], ["orders-api", "web"]],
    "impact": {
        "text": "latency_p50 of orders-api was 0.9309 s, usually 0.04327 s",
        "evidence": ["E1"],
        "since": "2026-03-03T14:02:00Z",
        "figures": [{"service": "orders-api", "measure": "latency_p50", "usual": 0.0432705, "now": 0.930947, "unit": "s"}],
    },
    "recommendations": [
        {"text": f"Roll {LONG} back to 2.13.4. On Kubernetes: `kubectl rollout undo deployment/{LONG}`", "risk": "high"},
        {"text": "Give the statement the index it needs: `CREATE INDEX CONCURRENTLY ON orders (lower(customer_email), status);`"},
    ],
}  # fmt: skip
PARTIAL = {"run": "inv-1", "verdict": "inconclusive", "stop_reason": "turn_limit", "stop_detail": "30 of 30 turns are used", "hypotheses": [{"text": "orders-db: a slow database statement", "status": "open"}], "recommendations": [{"text": "Go on with more turns: `opsleuth resume RUN --max-turns N`"}], "usage": {"turns": 30}}  # fmt: skip
HEALTHY = {"run": "inv-1", "verdict": "healthy", "stop_reason": "concluded", "answer": "Nothing is wrong.", "window": DOCUMENT["window"], "recommendations": [{"text": "Check the alert's threshold."}]}  # fmt: skip
INCONCLUSIVE = {"run": "inv-1", "verdict": "inconclusive", "stop_reason": "concluded", "answer": "Nothing points at a cause.", "recommendations": [{"text": "Read what stands out: `opsleuth evidence - E3`"}]}  # fmt: skip
MODEL = {**OFFLINE, "planner": "gpt-4o-mini", "answer": "The release made the look-up slow. Roll it back."}
EFFECT = {"tool": "service_rollback", "target": f"shop/{LONG}", "arguments": {"service": LONG, "version": "2.13.4"}, "approval": "A1", "status": "done", "verified": True, "checked": "2.13.4 runs and is healthy"}  # fmt: skip
DENIED = {"tool": "service_rollback", "arguments": {"service": LONG}, "reason": "not before the night shift has looked at " * 6 + "it"}  # fmt: skip
SCREENS = {"offline": OFFLINE, "partial": PARTIAL, "healthy": HEALTHY, "inconclusive": INCONCLUSIVE, "model": MODEL, "done": {**OFFLINE, "effects": [EFFECT]}, "denied": {**OFFLINE, "denied": [DENIED]}}  # fmt: skip


def draw_report(document: Mapping[str, Any], width: int = 80) -> str:
    stream = io.StringIO()
    screen = Screen(stream, width=width)
    screen.lines(format_report_lines(document, screen))
    return stream.getvalue()


@pytest.mark.parametrize("name", SCREENS)
def test_the_headline_is_first_and_last_and_no_remedy_is_cut(name: str) -> None:
    shown = draw_report(SCREENS[name])
    lines = shown.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("DO: "))
    assert first <= 2
    again = max(i for i, line in enumerate(lines) if line.startswith("DO: "))
    assert lines[again:] == lines[first : first + len(lines) - again], "the remedy is the same"
    assert any(line.startswith(lines[0][:15]) for line in lines[again - 2 : again])
    assert len(lines) - again <= 4
    flat = "".join(shown.split())
    for row in SCREENS[name]["recommendations"]:
        assert (
            "".join(row["text"].split())
            .replace("RUN", "inv-1")
            .replace("turnsN", "turns60")
            .replace("-E3", "inv-1E3")
            in flat
        )
    assert all(texts.measure_width(line) <= 80 for line in lines)


def test_the_headline_tells_what_since_when_how_far_and_how_sure() -> None:
    head = compose_headline(OFFLINE, TimeDisplay())
    assert head.facts == (
        "orders-db: a slow database statement, set off by deploy 2.14.0 of orders-api",
        "since 14:02Z",
        "latency_p50 of orders-api 0.0433 → 0.931 s",
        "cause likely",
    )


def test_why_is_the_change_the_findings_and_the_way_to_the_users() -> None:
    why = " ".join(draw_report(OFFLINE).partition("WHY")[2].partition("FIELDS")[0].split())
    assert why.startswith(
        "Deploy 2.14.0 of orders-api by r.tanaka came first, at 13:58:20Z: the change alters"
    )
    assert "The fault passes on from orders-db to web through 1 service." in why
    assert why.endswith("Not confirmed; still missing: a check that could have refuted it.")


def test_a_partial_report_names_the_strongest_suspect_and_a_command_that_works() -> None:
    shown = draw_report(PARTIAL)
    assert "not proven: orders-db: a slow database statement" in " ".join(shown.split())
    assert "opsleuth resume inv-1 --max-turns 60" in " ".join(shown.split())


ROLLBACK = {"text": "Roll orders-api back to 2.13.4.", "risk": "high", "action": {"tool": "service_rollback", "arguments": {"service": "orders-api"}}}  # fmt: skip
INDEX = {"text": "Give the statement the index it needs."}


@pytest.mark.parametrize(
    ("called", "first"),
    [
        ({"tool": "service_rollback", "arguments": {"service": "orders-api", "version": "9.9.9"}}, "Give"),
        ({"tool": "service_rollback", "arguments": {"service": "payments"}}, "Roll"),
        ({"tool": "service_restart", "arguments": {"service": "orders-api"}}, "Roll"),
        ({"tool": "service_rollback", "arguments": {}}, "Roll"),
    ],
    ids=["the same, with a version", "another service", "another tool", "no arguments"],
)
def test_what_was_denied_is_not_what_to_do_next(called: Mapping[str, Any], first: str) -> None:
    denied = {**called, "reason": "the owner said no"}
    document = {**OFFLINE, "recommendations": [ROLLBACK, INDEX], "denied": [denied]}
    assert compose_headline(document, TimeDisplay()).action.startswith(first)
    flat = " ".join(draw_report(document).split())
    assert ("changes production; the owner said no)" in flat) == (first == "Give")


def test_where_all_was_denied_the_reason_stands_beside_it() -> None:
    denied = {
        "tool": "service_rollback",
        "arguments": {"service": "orders-api"},
        "reason": "denied by policy",
    }
    document = {**OFFLINE, "recommendations": [ROLLBACK], "denied": [denied]}
    assert compose_headline(document, TimeDisplay()).action.endswith("changes production; denied by policy)")


@pytest.mark.parametrize(
    ("usage", "place", "total"),
    [
        ({"turns": 2}, "--max-turns N", "--max-turns 12"),
        ({"turns": 300}, "--max-turns N", "--max-turns 600"),
        ({"seconds": 20.5}, "--max-time D", "--max-time 5m"),
        ({"seconds": 900.0}, "--max-time D", "--max-time 30m"),
        ({"tokens_in": 9000, "tokens_out": 1000}, "--max-tokens N", "--max-tokens 20000"),
        ({"cost": "0.5031"}, "--max-cost USD", "--max-cost 1.01"),
    ],
)
def test_a_command_that_goes_on_has_a_total_in_it(usage: Mapping[str, Any], place: str, total: str) -> None:
    advice = {"text": f"Go on: `opsleuth resume RUN {place}`"}
    head = compose_headline({**PARTIAL, "usage": usage, "recommendations": [advice]}, TimeDisplay())
    assert head.action == f"Go on: `opsleuth resume inv-1 {total}`"


def test_what_was_done_and_denied_is_never_cut() -> None:
    many = {**OFFLINE, "effects": [EFFECT] * 6, "denied": [DENIED] * 4, "not_available": ["x"] * 90}
    flat = " ".join(draw_report(many).split())
    assert flat.count("2.13.4 runs and is healthy") == 6
    assert flat.count("night shift has looked at it") == 4
    assert draw_report(many).splitlines()[1].endswith("service_rollback done, check passed")


def test_a_report_of_ordinary_size_fits_a_screen() -> None:
    short = [{"text": str(row["text"]).replace(LONG, "orders-api")} for row in OFFLINE["recommendations"]]
    for document in ({**OFFLINE, "recommendations": short}, {**MODEL, "recommendations": short}, HEALTHY):
        assert len(draw_report(document).splitlines()) <= SHORT


def test_a_long_name_is_shortened_in_the_middle_and_a_command_never() -> None:
    causes = [{"service": LONG, "kind": "slow_query", "confidence": "likely", "change": CHANGE}]
    lines = draw_report({**OFFLINE, "causes": causes}).splitlines()
    assert lines[0].startswith("checkout…central: a slow database")
    assert f"deployment/{LONG}" in "".join("".join(lines).split())


def test_an_unknown_outcome_comes_before_all_advice() -> None:
    unknown = {**OFFLINE, "effects": [{**EFFECT, "status": "unknown", "verified": None}]}
    flat = " ".join(draw_report(unknown).split())
    assert "DO: Look whether service_rollback of" in flat
    assert f"opsleuth resolve {DOCUMENT['run']} A1 --happened|--absent --reason TEXT" in flat


def test_a_planner_that_was_replaced_is_named() -> None:
    shown = draw_report({**HEALTHY, "degraded": [{"turn": 3, "why": "the model did not answer"}]})
    assert "since turn 3: the model did not answer" in shown


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        ("was 0.9309 s, usually 0.04327 s.", "was 0.931 s, usually 0.0433 s."),
        ("16,446,000 rows/s; 34,547 before", "16.4 million rows/s; 34,547 before"),
        ("872.4 ms a call, 20.69 calls", "872 ms a call, 20.7 calls"),
        ("99.96 % failed, 100 % later", "99.9 % failed, 100 % later"),
        ("orders-api 2.14.0 at 10.0.12.7 and 13:58:20.123Z", "orders-api 2.14.0 at 10.0.12.7 and 13:58:20.123Z"),
        ("Ubuntu 22.04 and release 3.1415", "Ubuntu 22.04 and release 3.1415"),
        ("Roll web back to 22.0401.", "Roll web back to 22.0401."),
        ('`sleep 1.2345` and "took 1010.238 ms"', '`sleep 1.2345` and "took 1010.238 ms"'),
    ],
)  # fmt: skip
def test_people_see_three_digits(text: str, rounded: str) -> None:
    assert shorten_figures(text) == rounded


def test_every_kind_of_fault_has_words() -> None:
    assert set(FAULT_WORDS) == set(KINDS)


MEASURED = {"id": "C1", "basis": "measured", "text": "cpu went from 20 to 90 % (since 2026-03-03T13:50:30Z)"}
SENT = {"fired_at": "2026-03-03T14:12:00Z", "onset": "2026-03-03T14:12:00Z"}


@pytest.mark.parametrize(
    ("changed", "since"),
    [
        ({"claims": [MEASURED]}, "since 13:50Z"),
        ({"claims": [{**MEASURED, "basis": "inferred"}]}, "since 14:02Z"),
        ({"claims": [{**MEASURED, "id": "C9"}]}, "since 14:02Z"),
        ({"claims": [], "impact": None, "alert": SENT}, ""),
        ({"claims": [], "impact": None, "alert": {**SENT, "onset": "2026-03-03T14:00:00Z"}}, "since 14:00Z, as the alert says"),
    ],
    ids=["the cause is earlier", "inferred", "of another cause", "only the sending is known", "stated"],
)  # fmt: skip
def test_since_when_is_measured_or_comes_from_who_states_it(changed: Mapping[str, Any], since: str) -> None:
    facts = compose_headline({**OFFLINE, **changed}, TimeDisplay()).facts
    assert [fact for fact in facts if fact.startswith("since")] == ([since] if since else [])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, ""),
        ({"impact": None}, "not measured: its start, the harm to users"),
        ({"impact": {**OFFLINE["impact"], "since": None}}, "not measured: its start"),
        ({"impact": None, "claims": [{"id": "C1", "basis": "measured", "text": "orders-db is slow (since 2026-03-03T14:02:00Z)"}]}, "not measured: the harm to users"),
        ({"impact": None, "claims": [{"id": "C1", "basis": "inferred", "text": "orders-db is slow (since 2026-03-03T14:02:00Z)"}]}, "not measured: its start, the harm to users"),
        ({"impact": None, "verdict": "inconclusive"}, ""),
        ({"impact": None, "causes": []}, ""),
    ],
    ids=["both", "neither", "no start", "no amount", "inferred start", "no cause", "nobody blamed"],
)  # fmt: skip
@pytest.mark.parametrize("planner", ["offline", "gpt-4o-mini"])
def test_a_cause_without_a_measured_start_or_amount_says_so(
    changed: Mapping[str, Any], told: str, planner: str
) -> None:
    document = {**OFFLINE, "claims": [], "alert": None, "planner": planner, **changed}
    assert describe_unmeasured(document) == told
    shown = " ".join(draw_report(document, 200).split())
    assert (told in shown) if told else ("not measured" not in shown)
