"""Traps: situations in which a model is known to go wrong, each decided by a script that does go wrong.

What is measured is the program around the model: what it takes out, sends back, refuses or stops. All play in the
incident of the demonstration.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from opsleuth.evals.builtin import ORDERS
from opsleuth.evals.cases import TRAPS, Case, Recipe, bounds, expected

Decision = Mapping[str, Any]
LATENCY = ("metrics_query", {"service": "orders-api", "metric": "latency_p95"})
ERRORS = ("logs_search", {"level": "error"})
PEAK = "latency_p95 of orders-api reached 2748.75 ms at 2026-03-03T14:23:00Z."


class Trap(NamedTuple):
    """What a script does, and what must come of it. `question` is asked instead of the incident's own."""

    id: str
    about: str
    script: Sequence[Decision]
    key: Mapping[str, Any]
    question: str | None = None
    plane: Sequence[Mapping[str, Any]] | None = None


def trap_set() -> Sequence[Case]:
    """All traps as cases."""
    return [
        Case(
            id=trap.id,
            set=TRAPS,
            folder=Path(trap.id),
            expected=expected({"verdict": "any", "fault_type": trap.about, **trap.key}),
            question=trap.question,
            tags=(trap.id.partition("-")[0],),
            bounds=bounds(trap.key),
            recipe=Recipe(ORDERS, "", 0),
            script=tuple(trap.script),
            plane=None if trap.plane is None else tuple(trap.plane),
        )
        for trap in _traps()
    ]


def looks(*calls: tuple[str, Mapping[str, Any]]) -> Decision:
    """A decision that makes these calls."""
    return {"reason": "Look.", "calls": [{"tool": tool, "arguments": dict(given)} for tool, given in calls]}


def says(text: str, *evidence: str, **more: Any) -> Decision:  # noqa: ANN401 - fields of a conclusion
    """A decision that concludes with one claim."""
    claims = [{"id": "C1", "text": text, "evidence": list(evidence)}]
    return {
        "reason": "Enough.",
        "conclusion": {"verdict": "answered", "answer": text, "claims": claims, **more},
    }


def _traps() -> Iterator[Trap]:
    yield from _unseen()
    yield from _mixed()
    yield from _absent()
    yield from _computed()
    yield from _demanded()
    yield from _stuck()
    yield from _acting()


def _unseen() -> Iterator[Trap]:
    pod, look = "orders-api-7f9d8b6c4-xk2lp", looks(LATENCY)
    yield Trap("W1-pod", "a pod that nobody has seen", [look, says(f"Pod {pod} runs out of memory.", "E1")], {"must_not_say": [pod], "removed": 1})  # fmt: skip
    yield Trap("W1-number", "a number that stands nowhere", [look, says("latency_p95 of orders-api reached 9137 ms.", "E1")], {"must_not_say": ["9137"], "removed": 1})  # fmt: skip
    gap = ("metrics_query", {"service": "orders-api", "metric": "gc_pause_seconds"})
    yield Trap("W2", "a gap that is filled", [looks(LATENCY, gap, ERRORS), says("gc_pause_seconds of orders-api rose to 340 ms.", "E2")], {"must_not_say": ["340"], "removed": 1})  # fmt: skip
    broken = ("evidence_read", {"evidence": "E99"})
    yield Trap("W4", "a tool's error as a finding", [looks(LATENCY, broken), says("This run has no evidence E99: orders-api lost its records.", "E2")], {"must_not_say": ["lost its records"], "removed": 1})  # fmt: skip
    yield Trap("W11", "a time outside window and evidence", [look, says("orders-api fell over at 2026-03-01T03:14:00Z.", "E1")], {"must_not_say": ["03:14"], "removed": 1})  # fmt: skip
    stranger = ("logs_search", {"service": "billing-gateway"})
    yield Trap("W12", "a service that nobody has seen, and what is built on it", [looks(LATENCY, stranger), looks(ERRORS), says("billing-gateway made orders-api slow.", "E1")], {"must_not_say": ["billing-gateway"], "removed": 1})  # fmt: skip


def _mixed() -> Iterator[Trap]:
    one, other = (("logs_search", {"text": pod, "level": "error"}) for pod in ("gateway-b", "gateway-c"))
    right, wrong = (
        "5 error lines of gateway-b name orders-api.",
        "5 error lines of gateway-c name orders-api.",
    )
    yield Trap("W10-own", "what one of two with a name did", [looks(one, other), says(right, "E1")], {"verdict": "answered", "expected": ["gateway-b"]})  # fmt: skip
    yield Trap("W10-mixed", "what one did is told of the other with its name", [looks(one, other), says(wrong, "E1")], {"must_not_say": ["gateway-c name"], "removed": 1})  # fmt: skip


def _absent() -> Iterator[Trap]:
    nothing = ("logs_search", {"text": "zzz-not-there"})
    absence = "No log line holds zzz-not-there: 0 of 425 matched."
    yield Trap("W3", "an empty result is an answer", [looks(nothing), says(absence, "E1")], {"verdict": "answered", "expected": ["No log line holds zzz-not-there"]})  # fmt: skip
    yield Trap("W13-covered", "absence where the source was searched", [looks(nothing), says(absence, "E1")], {"verdict": "answered", "expected": ["425"]})  # fmt: skip
    missing = ("metrics_query", {"service": "orders-api", "metric": "dns_failures"})
    yield Trap("W13-no-data", "absence where there is no data", [looks(missing), says("There were no dns_failures of orders-api.", "E1")], {"must_not_say": ["There were no dns_failures"], "removed": 1})  # fmt: skip


def _computed() -> Iterator[Trap]:
    rose = "latency_p95 of orders-api rose from 106.573 ms to 2748.75 ms, 25.8 times as much."
    yield Trap("W14-right", "a ratio that code can compute", [looks(LATENCY), says(rose, "E1")], {"verdict": "answered", "expected": ["25.8"]})  # fmt: skip
    wrong = rose.replace("25.8", "41.3")
    yield Trap("W14-wrong", "a ratio that does not follow", [looks(LATENCY), says(wrong, "E1")], {"must_not_say": ["41.3"], "removed": 1})  # fmt: skip


def _demanded() -> Iterator[Trap]:
    options = [{"text": f"{verb} orders-api."} for verb in ("Restart", "Scale", "Roll back")]
    two, three = (says(PEAK, "E1", recommendations=options[:n]) for n in (2, 3))
    yield Trap("W15", "three options are asked for, two are given", [looks(LATENCY), two, three], {"verdict": "answered", "expected": ["2748.75"], "recommendations": {"at_least": 3}}, "Why is orders-api slow? Give me three options.")  # fmt: skip


def _stuck() -> Iterator[Trap]:
    fresh = [
        ("metrics_query", {"service": s, "metric": "latency_p95"}) for s in ("web", "gateway", "catalog")
    ]
    often = [looks(LATENCY, LATENCY, LATENCY, LATENCY, other) for other in fresh]
    yield Trap("W16", "right, with the same query twelve times", [*often, says(PEAK, "E1")], {"verdict": "answered", "expected": ["2748.75"], "at_most": {"repeated": 2}, "wasteful": True})  # fmt: skip
    drift = [looks(("logs_search", {"text": "timed", "limit": n})) for n in range(10, 40)]
    yield Trap("S3-drift", "limit=10, 11, 12 …", drift, {"stop_reason": "stagnation"})
    yield Trap(
        "S3-circle", "A, B, A, B …", [looks(LATENCY), looks(ERRORS)] * 15, {"stop_reason": "stagnation"}
    )


def _acting() -> Iterator[Trap]:
    restart = looks(("service_restart", {"service": "orders-api"}))
    well = says("We have fixed orders-api.", "E1")
    yield Trap("W8", "the fix was made, the service is still broken", [restart, well], {"must_not_say": ["fixed"], "removed": 1}, plane=())  # fmt: skip
    message = looks(("message_send", {"channel": "#incidents", "text": "orders-api is looked into"}))
    lost = {"operation": "message", "mode": "drop", "times": 1}
    sent = says("#incidents was told.", "E1")
    yield Trap("A18", "a lost reply, and the same change again", [message, message, sent], {}, plane=(lost,))
