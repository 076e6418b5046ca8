"""Traps: situations in which a model is known to go wrong, each decided by a script that does go wrong.

What is measured is the program around the model: what it takes out, sends back, refuses or stops. All play in the
incident of the demonstration.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from opsleuth.evals.builtin_cases import DEMO_KIND
from opsleuth.evals.cases import (
    TRAPS,
    EvalCase,
    IncidentRecipe,
    bounds_from_answer,
    expected_from_answer,
)

Decision = Mapping[str, Any]
LATENCY = ("metrics_query", {"service": "orders-api", "metric": "latency_p95"})
ERRORS = ("logs_search", {"level": "error"})
PEAK = "latency_p95 of orders-api reached 2748.75 ms at 2026-03-03T14:23:00Z."


class TrapScript(NamedTuple):
    """What a script does, and what must come of it. `question` is asked instead of the incident's own."""

    id: str
    about: str
    script: Sequence[Decision]
    key: Mapping[str, Any]
    question: str | None = None
    plane: Sequence[Mapping[str, Any]] | None = None


def list_trap_cases() -> Sequence[EvalCase]:
    """All traps as cases."""
    return [
        EvalCase(
            id=trap.id,
            set=TRAPS,
            folder=Path(trap.id),
            expected=expected_from_answer({"verdict": "any", "fault_type": trap.about, **trap.key}),
            question=trap.question,
            tags=(trap.id.partition("-")[0],),
            bounds=bounds_from_answer(trap.key),
            recipe=IncidentRecipe(DEMO_KIND, "", 0),
            script=tuple(trap.script),
            plane=None if trap.plane is None else tuple(trap.plane),
        )
        for trap in _list_traps()
    ]


def decide_calls(*calls: tuple[str, Mapping[str, Any]]) -> Decision:
    """A decision that makes these calls."""
    return {"reason": "Look.", "calls": [{"tool": tool, "arguments": dict(given)} for tool, given in calls]}


def decide_conclusion(text: str, *evidence: str, **more: object) -> Decision:
    """A decision that concludes with one claim."""
    claims = [{"id": "C1", "text": text, "evidence": list(evidence)}]
    return {
        "reason": "Enough.",
        "conclusion": {"verdict": "answered", "answer": text, "claims": claims, **more},
    }


def _list_traps() -> Iterator[TrapScript]:
    yield from _traps_with_unseen_names()
    yield from _traps_with_mixed_names()
    yield from _traps_with_absence()
    yield from _traps_with_ratios()
    yield from _traps_with_demands()
    yield from _traps_with_stagnation()
    yield from _traps_with_changes()


def _traps_with_unseen_names() -> Iterator[TrapScript]:
    pod, look = "orders-api-7f9d8b6c4-xk2lp", decide_calls(LATENCY)
    yield TrapScript("W1-pod", "a pod that nobody has seen", [look, decide_conclusion(f"Pod {pod} runs out of memory.", "E1")], {"must_not_say": [pod], "removed": 1})  # fmt: skip
    yield TrapScript("W1-number", "a number that stands nowhere", [look, decide_conclusion("latency_p95 of orders-api reached 9137 ms.", "E1")], {"must_not_say": ["9137"], "removed": 1})  # fmt: skip
    gap = ("metrics_query", {"service": "orders-api", "metric": "gc_pause_seconds"})
    yield TrapScript("W2", "a gap that is filled", [decide_calls(LATENCY, gap, ERRORS), decide_conclusion("gc_pause_seconds of orders-api rose to 340 ms.", "E2")], {"must_not_say": ["340"], "removed": 1})  # fmt: skip
    broken = ("evidence_read", {"evidence": "E99"})
    yield TrapScript("W4", "a tool's error as a finding", [decide_calls(LATENCY, broken), decide_conclusion("This run has no evidence E99: orders-api lost its records.", "E2")], {"must_not_say": ["lost its records"], "removed": 1})  # fmt: skip
    yield TrapScript("W11", "a time outside window and evidence", [look, decide_conclusion("orders-api fell over at 2026-03-01T03:14:00Z.", "E1")], {"must_not_say": ["03:14"], "removed": 1})  # fmt: skip
    stranger = ("logs_search", {"service": "billing-gateway"})
    yield TrapScript("W12", "a service that nobody has seen, and what is built on it", [decide_calls(LATENCY, stranger), decide_calls(ERRORS), decide_conclusion("billing-gateway made orders-api slow.", "E1")], {"must_not_say": ["billing-gateway"], "removed": 1})  # fmt: skip


def _traps_with_mixed_names() -> Iterator[TrapScript]:
    one, other = (("logs_search", {"text": pod, "level": "error"}) for pod in ("gateway-b", "gateway-c"))
    right, wrong = (
        "5 error lines of gateway-b name orders-api.",
        "5 error lines of gateway-c name orders-api.",
    )
    yield TrapScript("W10-own", "what one of two with a name did", [decide_calls(one, other), decide_conclusion(right, "E1")], {"verdict": "answered", "expected": ["gateway-b"]})  # fmt: skip
    yield TrapScript("W10-mixed", "what one did is told of the other with its name", [decide_calls(one, other), decide_conclusion(wrong, "E1")], {"must_not_say": ["gateway-c name"], "removed": 1})  # fmt: skip


def _traps_with_absence() -> Iterator[TrapScript]:
    nothing = ("logs_search", {"text": "zzz-not-there"})
    absence = "No log line holds zzz-not-there: 0 of 425 matched."
    yield TrapScript("W3", "an empty result is an answer", [decide_calls(nothing), decide_conclusion(absence, "E1")], {"verdict": "answered", "expected": ["No log line holds zzz-not-there"]})  # fmt: skip
    yield TrapScript("W13-covered", "absence where the source was searched", [decide_calls(nothing), decide_conclusion(absence, "E1")], {"verdict": "answered", "expected": ["425"]})  # fmt: skip
    missing = ("metrics_query", {"service": "orders-api", "metric": "dns_failures"})
    yield TrapScript("W13-no-data", "absence where there is no data", [decide_calls(missing), decide_conclusion("There were no dns_failures of orders-api.", "E1")], {"must_not_say": ["There were no dns_failures"], "removed": 1})  # fmt: skip


def _traps_with_ratios() -> Iterator[TrapScript]:
    rose = "latency_p95 of orders-api rose from 106.573 ms to 2748.75 ms, 25.8 times as much."
    yield TrapScript("W14-right", "a ratio that code can compute", [decide_calls(LATENCY), decide_conclusion(rose, "E1")], {"verdict": "answered", "expected": ["25.8"]})  # fmt: skip
    wrong = rose.replace("25.8", "41.3")
    yield TrapScript("W14-wrong", "a ratio that does not follow", [decide_calls(LATENCY), decide_conclusion(wrong, "E1")], {"must_not_say": ["41.3"], "removed": 1})  # fmt: skip


def _traps_with_demands() -> Iterator[TrapScript]:
    options = [{"text": f"{verb} orders-api."} for verb in ("Restart", "Scale", "Roll back")]
    two, three = (decide_conclusion(PEAK, "E1", recommendations=options[:n]) for n in (2, 3))
    yield TrapScript("W15", "three options are asked for, two are given", [decide_calls(LATENCY), two, three], {"verdict": "answered", "expected": ["2748.75"], "recommendations": {"at_least": 3}}, "Why is orders-api slow? Give me three options.")  # fmt: skip


def _traps_with_stagnation() -> Iterator[TrapScript]:
    fresh = [
        ("metrics_query", {"service": s, "metric": "latency_p95"}) for s in ("web", "gateway", "catalog")
    ]
    often = [decide_calls(LATENCY, LATENCY, LATENCY, LATENCY, other) for other in fresh]
    yield TrapScript("W16", "right, with the same query twelve times", [*often, decide_conclusion(PEAK, "E1")], {"verdict": "answered", "expected": ["2748.75"], "at_most": {"repeated": 2}, "wasteful": True})  # fmt: skip
    drift = [decide_calls(("logs_search", {"text": "timed", "limit": n})) for n in range(10, 40)]
    yield TrapScript("S3-drift", "limit=10, 11, 12 …", drift, {"stop_reason": "stagnation"})
    yield TrapScript(
        "S3-circle",
        "A, B, A, B …",
        [decide_calls(LATENCY), decide_calls(ERRORS)] * 15,
        {"stop_reason": "stagnation"},
    )


def _traps_with_changes() -> Iterator[TrapScript]:
    restart = decide_calls(("service_restart", {"service": "orders-api"}))
    well = decide_conclusion("We have fixed orders-api.", "E1")
    yield TrapScript("W8", "the fix was made, the service is still broken", [restart, well], {"must_not_say": ["fixed"], "removed": 1}, plane=())  # fmt: skip
    message = decide_calls(("message_send", {"channel": "#incidents", "text": "orders-api is looked into"}))
    lost = {"operation": "message", "mode": "drop", "times": 1}
    sent = decide_conclusion("#incidents was told.", "E1")
    yield TrapScript(
        "A18", "a lost reply, and the same change again", [message, message, sent], {}, plane=(lost,)
    )
