"""What a report says besides the conclusion: what happened when, and what the users had of it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.models.planner import Observation
from opsleuth.nodes.verify.report_impact import summarize_impact
from opsleuth.nodes.verify.report_timeline import build_timeline
from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Cause, Conclusion
from opsleuth.state.investigation import Alert, Investigation, Window
from opsleuth.state.run_status import Verdict

WEB_SLOW = "web took 2 s a request, usually 0.1 s, over 90 requests; 100 % of all that begins anywhere."
DB_SLOW = "db took 1 s a request, usually 0.1 s, over 90 requests; 0 % of all that begins anywhere."


def state(verdict: Verdict, *causes: str, alerting: str = "web") -> Investigation:
    return Investigation(
        question="why?",
        alert=Alert(text="web is slow", service=alerting),
        window=Window(start=datetime(2024, 5, 1, 14, tzinfo=UTC), end=datetime(2024, 5, 1, 15, tzinfo=UTC)),
        draft=Conclusion(
            verdict=verdict,
            answer="so",
            causes=tuple(Cause(service=name, kind="locks", claims=()) for name in causes),
        ),
    )


def seen(number: int, **record: Any) -> Observation:
    return Observation(
        number=number,
        call_id=f"inv/t1c{number}",
        turn=1,
        tool="any",
        arguments={},
        purpose="",
        status=ResultStatus.OK,
        evidence=f"E{number}",
        headline="",
        record=record,
    )


def at(minute: int) -> str:
    return f"2024-05-01T14:{minute:02}:00Z"


def began(service: str, minute: int, **more: Any) -> dict[str, Any]:
    return {"service": service, "kind": "locks", "onset": at(minute), "direction": "cause", **more}


def changed(service: str, minute: int, kind: str = "deploy") -> dict[str, Any]:
    return {"service": service, "kind": kind, "time": at(minute)}


def told(*arguments: Any) -> list[tuple[str, str]]:
    return [(row["time"][14:16], row["text"]) for row in build_timeline(*arguments)]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"signal": "metrics", "metric": "wait"}, "db: wait leaves its usual range"),
        ({"signal": "logs"}, "db: first log line of lock contention"),
        ({"signal": "events"}, "db: lock contention begins"),
    ],
)
def test_what_began_is_said_in_the_words_of_its_signal(more: dict[str, Any], text: str) -> None:
    assert told(state(Verdict.CAUSE_FOUND, "db"), [seen(1, findings=[began("db", 5, **more)])]) == [
        ("05", text)
    ]


def test_what_two_detectors_saw_begin_began_once() -> None:
    findings = [began("db", 7), began("db", 5), began("web", 1)]
    assert told(state(Verdict.CAUSE_FOUND, "db"), [seen(1, findings=findings)]) == [
        ("05", "db: lock contention begins")
    ]


def test_what_was_seen_to_begin_twice_cites_the_first_sight() -> None:
    found = build_timeline(
        state(Verdict.CAUSE_FOUND, "db"), [seen(n, findings=[began("db", 5)]) for n in (1, 2)]
    )
    assert [row["evidence"] for row in found] == ["E1"]


def test_two_changes_are_two_and_one_that_was_read_twice_is_one() -> None:
    rows = [changed("db", 3, "config"), changed("db", 4, "config"), changed("cart", 4)]
    found = told(state(Verdict.CAUSE_FOUND, "db"), [seen(1, changes=rows), seen(2, changes=rows)])
    assert found == [("03", "config of db"), ("04", "config of db")]


def test_where_no_cause_is_known_every_change_is_told() -> None:
    assert told(state(Verdict.INCONCLUSIVE), [seen(1, changes=[changed("cart", 4)])]) == [
        ("04", "deploy of cart")
    ]


@pytest.mark.parametrize(("alerting", "text", "evidence"), [("web", WEB_SLOW, "E2"), ("cart", DB_SLOW, "E1")])
def test_the_impact_is_that_of_the_alerting_service_failing_that_of_the_one_hurt_most(
    alerting: str, text: str, evidence: str
) -> None:
    harms = [
        seen(1, findings=[{"detector": "harm.waiting", "service": "db", "text": DB_SLOW}]),
        seen(2, findings=[{"detector": "harm.waiting", "service": "web", "text": WEB_SLOW}]),
        seen(3, findings=[{"detector": "harm.waiting", "service": "web", "text": WEB_SLOW}]),
    ]
    found = summarize_impact(state(Verdict.INCONCLUSIVE, alerting=alerting), harms)
    assert found == {
        "text": text.partition(";")[0],
        "service": alerting if text == WEB_SLOW else "db",
        "evidence": [evidence],
        "since": None,
        "figures": [],
    }
    assert summarize_impact(state(Verdict.INCONCLUSIVE), [seen(1, findings=[began("web", 5)])]) is None


def test_the_impact_tells_since_when_and_from_what_to_what() -> None:
    waiting = {"usual": 0.1, "incident": 2.0, "unit": "s"}
    failing = {"usual": 0.001, "incident": 0.07, "unit": "share"}
    rows = [
        {"detector": "harm.waiting", "service": "web", "metric": "latency_p50", "text": WEB_SLOW, "onset": "2024-05-01T10:05:00Z", "figures": waiting},
        {"detector": "harm.failures", "service": "web", "text": "web fails", "onset": "2024-05-01T10:04:00Z", "figures": failing},
    ]  # fmt: skip
    found = summarize_impact(state(Verdict.CAUSE_FOUND, alerting="web"), [seen(1, findings=rows)])
    assert found is not None
    assert found["since"] == "2024-05-01T10:04:00Z"
    measures = [(row["measure"], row["usual"], round(row["now"], 6), row["unit"]) for row in found["figures"]]
    assert measures == [("latency_p50", 0.1, 2.0, "s"), ("failed requests", 0.1, 7.0, "%")]


ASKED = [
    {"service": "web", "respect": "failures", "measure": "failed requests", "usual": 0.2, "now": 12, "unit": "%", "onset": at(4), "text": "12 % of requests to web failed, usually 0.2 %"},
    {"service": "web", "respect": "waiting", "measure": "p95_ms", "usual": 0.18, "now": 2.3, "unit": "s", "onset": at(5), "text": "p95_ms of web was 2.3 s, usually 0.18 s"},
]  # fmt: skip
DB_HARM = {"detector": "harm.waiting", "service": "db", "text": DB_SLOW, "onset": at(3), "figures": {"usual": 0.1, "incident": 1.0, "unit": "s"}}  # fmt: skip


def test_the_impact_first_tells_of_the_service_that_was_asked_about() -> None:
    found = summarize_impact(
        state(Verdict.CAUSE_FOUND, "db"), [seen(1, impact=ASKED), seen(2, findings=[DB_HARM])]
    )
    assert found is not None
    assert found["text"] == f"{ASKED[0]['text']}; {ASKED[1]['text']}"
    assert (found["service"], found["since"], found["evidence"]) == ("web", at(4), ["E1"])
    assert [row["measure"] for row in found["figures"]] == ["failed requests", "p95_ms"]


@pytest.mark.parametrize(("rows", "missing"), [(ASKED[:1], "latency"), (ASKED[1:], "failing requests")])
def test_what_is_not_measured_of_the_asked_service_is_said(rows: list[dict[str, Any]], missing: str) -> None:
    found = summarize_impact(state(Verdict.CAUSE_FOUND, "db"), [seen(1, impact=rows)])
    assert found is not None
    assert found["text"] == f"{rows[0]['text']}; {missing} not measured"


def test_the_measure_that_alarmed_leads_the_figures() -> None:
    before = state(Verdict.CAUSE_FOUND, "db")
    alarmed = before.model_copy(update={"alert": Alert(text="slow", service="web", metric="p95_ms")})
    found = summarize_impact(alarmed, [seen(1, impact=ASKED)])
    assert found is not None
    assert found["figures"][0]["measure"] == "p95_ms"


def test_harm_elsewhere_stands_behind_what_the_asked_service_shows() -> None:
    calm = [{**row, "onset": None} for row in ASKED]
    elsewhere = DB_SLOW.partition(";")[0]
    for asked, text in ((calm, f"{ASKED[0]['text']}; {ASKED[1]['text']}; {elsewhere}"), ([], f"web: not measured; {elsewhere}")):  # fmt: skip
        found = summarize_impact(
            state(Verdict.CAUSE_FOUND, "db"), [seen(1, impact=asked), seen(2, findings=[DB_HARM])]
        )
        assert found is not None
        assert found["text"] == text
        assert [row["service"] for row in found["figures"]] == ["db"]


def test_lines_of_requests_tell_the_share_that_metrics_do_not() -> None:
    text = "342 of 799 requests of web ended in a 5xx status (43 %; 502: 342) from 10:20Z to 10:59Z, before 0 of 1601: all of them GET /a"
    figures = {"failed": 342, "requests": 799, "baseline": 0, "baseline_requests": 1601}
    row = {"detector": "log_statuses", "service": "web", "text": text, "onset": at(4), "figures": figures}
    found = summarize_impact(
        state(Verdict.CAUSE_FOUND, "web"), [seen(1, suspects=[{"service": "web", "findings": [row]}])]
    )
    assert found is not None
    assert (
        found["text"] == "342 of 799 requests of web failed (43 %), before 0 of 1,601; latency not measured"
    )
    assert found["figures"][0]["usual"] == 0
