"""The conclusion of a run that was stopped before it drew one: what was found, ruled out, and not looked at."""

from collections.abc import Sequence

from opsleuth.models.planner import Observation
from opsleuth.state.conclusion import Cause, Claim, Conclusion, Recommendation, RuledOut
from opsleuth.state.investigation import Hypothesis, Investigation
from opsleuth.state.outcome import StopReason, Verdict
from opsleuth.verification.conclusions import NOTHING_LEFT

NEXT = {
    StopReason.TURN_LIMIT: "go on with more turns: opsleuth resume RUN --max-turns N (a new total)",
    StopReason.TIME_LIMIT: "go on with more time: opsleuth resume RUN --max-time D (a new total)",
    StopReason.TOKEN_LIMIT: "go on with more tokens: opsleuth resume RUN --max-tokens N (a new total)",
    StopReason.COST_LIMIT: "go on with more money: opsleuth resume RUN --max-cost USD (a new total)",
    StopReason.STAGNATION: "add a note with a new direction (opsleuth note RUN TEXT), then opsleuth resume RUN",
    StopReason.MODEL_UNAVAILABLE: "mend the endpoint and go on (opsleuth resume RUN), or go on without it (--planner offline)",
    StopReason.MODEL_REFUSED: "mend what the message names and go on (opsleuth resume RUN), or go on without a model (--planner offline)",
    StopReason.MALFORMED_DECISIONS: "go on with another model (opsleuth resume RUN --model M) or without one (--planner offline)",
    StopReason.SOURCE_UNAVAILABLE: "bring the source back, then opsleuth resume RUN",
    StopReason.CANCELED: "go on at any time: opsleuth resume RUN",
}


def partial(state: Investigation, observed: Sequence[Observation]) -> Conclusion:
    """What can be said with what there is; `inconclusive`, because nobody concluded."""
    supported = [h for h in state.hypotheses if h.status == "supported"]
    claims = tuple(
        Claim(id=f"C{i}", text=h.text, evidence=h.supporting[:20]) for i, h in enumerate(supported, 1)
    )
    advice = NEXT.get(state.stop_reason) if state.stop_reason else None
    return Conclusion(
        verdict=Verdict.INCONCLUSIVE,
        answer=_found(state, supported),
        causes=tuple(_cause(h, claim) for h, claim in zip(supported, claims, strict=True) if h.service),
        ruled_out=tuple(
            RuledOut(hypothesis=h.text, id=h.id) for h in state.hypotheses if h.status == "refuted"
        ),
        not_available=tuple(_not_available(observed)),
        recommendations=(Recommendation(text=advice),) if advice else (),
        claims=claims,
    )


def opening(state: Investigation, observed: Sequence[Observation]) -> str:
    """Why the run stopped and how far it came: the program's own words, which no evidence needs to hold."""
    why = state.stop_detail or (state.stop_reason or "stopped")
    answered = sum(not o.status.is_error for o in observed)
    return f"Stopped before a conclusion: {why}. {answered} of {len(observed)} calls gave an answer."


def with_opening(found: str, state: Investigation, observed: Sequence[Observation]) -> str:
    """The answer of a stopped run: the opening, and what is left of the rest after the checks."""
    kept = "" if found == NOTHING_LEFT else found
    return f"{opening(state, observed)} {kept}".strip()[:20_000]


def _found(state: Investigation, supported: Sequence[Hypothesis]) -> str:
    open_ones = [h.text for h in state.hypotheses if h.status == "open"]
    undone = [step.text for step in state.plan if step.status in ("pending", "active")]
    parts = []
    if supported:
        parts.append("Supported so far: " + "; ".join(h.text for h in supported) + ".")
    if open_ones:
        parts.append("Still open: " + "; ".join(open_ones) + ".")
    if undone:
        parts.append("Not yet looked at: " + "; ".join(undone) + ".")
    return " ".join(parts)[:18_000]


def _cause(hypothesis: Hypothesis, claim: Claim) -> Cause:
    return Cause(service=hypothesis.service or "unknown", kind=hypothesis.kind or "other", claims=(claim.id,))


def _not_available(observed: Sequence[Observation]) -> list[str]:
    said = {
        f"{o.tool}: {o.headline}"[:1000]: None
        for o in observed
        if o.status.is_error or o.status == "not_recorded"
    }
    return list(said)[:40]
