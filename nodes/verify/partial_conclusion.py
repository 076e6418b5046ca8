"""The conclusion of a run that was stopped before it drew one: what was found, ruled out, and not looked at."""

from collections.abc import Sequence

from opsleuth.models.planner import Observation
from opsleuth.state.conclusion import Cause, Claim, Conclusion, Recommendation, RuledOut
from opsleuth.state.investigation import Hypothesis, Investigation
from opsleuth.state.run_status import StopReason, Verdict
from opsleuth.verification.conclusion_checks import NOTHING_LEFT

NEXT = {
    StopReason.TURN_LIMIT: "Go on with more turns: `opsleuth resume RUN --max-turns N`",
    StopReason.TIME_LIMIT: "Go on with more time: `opsleuth resume RUN --max-time D`",
    StopReason.TOKEN_LIMIT: "Go on with more tokens: `opsleuth resume RUN --max-tokens N`",
    StopReason.COST_LIMIT: "Go on with a higher cost limit: `opsleuth resume RUN --max-cost USD`",
    StopReason.STAGNATION: "Tell the run where to look next, then go on: `opsleuth note RUN TEXT`, `opsleuth resume RUN`",
    StopReason.MODEL_UNAVAILABLE: "Fix the model's endpoint and go on: `opsleuth resume RUN`; without a model: `opsleuth resume RUN --planner offline`",
    StopReason.MODEL_REFUSED: "Fix what the message names and go on: `opsleuth resume RUN`; without a model: `opsleuth resume RUN --planner offline`",
    StopReason.MALFORMED_DECISIONS: "Go on without a model: `opsleuth resume RUN --planner offline`; with another one: add `--model NAME` instead",
    StopReason.CANCELED: "Go on at any time: `opsleuth resume RUN`",
}


def conclude_partially(state: Investigation, observed: Sequence[Observation]) -> Conclusion:
    """What can be said with what there is; `inconclusive`, because nobody concluded."""
    supported = [h for h in state.hypotheses if h.status == "supported"]
    claims = tuple(
        Claim(id=f"C{i}", text=h.text, evidence=h.supporting[:20]) for i, h in enumerate(supported, 1)
    )
    advice = NEXT.get(state.stop_reason) if state.stop_reason else None
    return Conclusion(
        verdict=Verdict.INCONCLUSIVE,
        answer=_summarize_hypotheses(state, supported),
        causes=tuple(
            _cause_from_hypothesis(h, claim) for h, claim in zip(supported, claims, strict=True) if h.service
        ),
        ruled_out=tuple(
            RuledOut(hypothesis=h.text, id=h.id) for h in state.hypotheses if h.status == "refuted"
        ),
        not_available=tuple(_not_available(observed)),
        recommendations=(Recommendation(text=advice),) if advice else (),
        claims=claims,
    )


def describe_early_stop(state: Investigation, observed: Sequence[Observation]) -> str:
    """Why the run stopped and how far it came: the program's own words, which no evidence needs to hold."""
    why = state.stop_detail or (state.stop_reason or "stopped")
    answered = sum(not o.status.is_error for o in observed)
    return f"Stopped before a conclusion: {why}. {answered} of {len(observed)} look-ups gave an answer."


def with_opening(found: str, state: Investigation, observed: Sequence[Observation]) -> str:
    """The answer of a stopped run: the opening, and what is left of the rest after the checks."""
    kept = "" if found == NOTHING_LEFT else found
    return f"{describe_early_stop(state, observed)} {kept}".strip()[:20_000]


def _summarize_hypotheses(state: Investigation, supported: Sequence[Hypothesis]) -> str:
    open_ones = [h.text for h in state.hypotheses if h.status == "open"]
    undone = [step.text for step in state.plan if step.status in ("pending", "active")]
    parts = []
    if supported:
        parts.append("Supported so far: " + "; ".join(h.text for h in supported) + ".")
    if open_ones:
        parts.append("Still open: " + "; ".join(open_ones) + ".")
    if undone:
        parts.append("Steps not yet taken: " + "; ".join(undone) + ".")
    return " ".join(parts)[:18_000]


def _cause_from_hypothesis(hypothesis: Hypothesis, claim: Claim) -> Cause:
    return Cause(service=hypothesis.service or "unknown", kind=hypothesis.kind or "other", claims=(claim.id,))


def _not_available(observed: Sequence[Observation]) -> list[str]:
    said = {
        f"{o.tool}: {o.headline}"[:1000]: None
        for o in observed
        if o.status.is_error or o.status == "not_recorded"
    }
    return list(said)[:40]
