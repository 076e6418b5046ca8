"""The offline investigator's conclusion: the ranking in sentences, each with the evidence it rests on."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from opsleuth.models.advice import WORDS, advice
from opsleuth.models.planner import PlannerView
from opsleuth.state.calls import Risk
from opsleuth.state.conclusion import Action, Cause, Claim, Conclusion, Recommendation, RuledOut
from opsleuth.state.outcome import Verdict
from opsleuth.state.results import Observation

MOST_CLAIMS = 4
"""Claims per cause: the best finding of each kind of signal, then the rest."""

MOST_SHOWN = 2
"""Pieces of evidence cited for a finding besides the ranking."""

_FACTS = {"changes_list": ("changes", "summary"), "database_statements": ("statements", "statement")}
"""Tools that list facts: where the rows are, and which figure of a finding names one."""

RECENT_MINUTES = 60
"""Changes that break something mostly do so within the hour, by their first traffic."""

Suspect = Mapping[str, Any]
Finding = Mapping[str, Any]


class _Case(NamedTuple):
    """One cause with its claims."""

    cause: Cause
    claims: tuple[Claim, ...]


def ranking_in(view: PlannerView) -> Observation | None:
    """The newest answer of `rank_suspects`, or None."""
    found = [o for o in view.observations if o.tool == "rank_suspects" and o.status in ("ok", "none_matched")]
    return found[-1] if found else None


def suspects_in(view: PlannerView) -> Sequence[Suspect]:
    """The ranked suspects, best first; empty without a ranking."""
    ranking = ranking_in(view)
    return ranking.record.get("suspects", ()) if ranking else ()


def evidence_of(tool: str, view: PlannerView) -> list[Observation]:
    """What a tool answered so far, errors left out."""
    return [o for o in view.observations if o.tool == tool and o.status == "ok"]


def draft(view: PlannerView) -> Conclusion:
    """What is to be said: causes, a calm picture, or that nothing can be told."""
    ranking = ranking_in(view)
    if ranking is None:
        return _inconclusive("No source held anything that could be weighed.", view)
    suspects = list(suspects_in(view))
    number = ranking.record["causes"]
    if ranking.record["verdict"] == "cause_found" and number:
        return _caused(suspects, number, ranking, view)
    if ranking.record["verdict"] == "healthy":
        return _calm(ranking, view)
    return _inconclusive("Nothing that was looked at points at a cause.", view)


def _caused(suspects: Sequence[Suspect], number: int, ranking: Observation, view: PlannerView) -> Conclusion:
    ids = count(1)
    chief = [s for i, s in enumerate(suspects[:number]) if not _suffers(s, suspects[:i], ranking)]
    cases = [_case(s, ranking, view, ids) for s in chief]
    blamed = {c.cause.service for c in cases}
    change = _trigger(suspects, blamed, ranking)
    triggered = _triggered(change, cases, ranking, view, ids) if change else ()
    told = {str(s["service"]) for s in suspects[:number]} | ({str(change["service"])} if change else set())
    rivals = [s for s in suspects[number:] if s["service"] not in told][:3]
    ruled_out = [_rival(s, suspects[0], ranking, ids) for s in rivals]
    names = " and ".join(f"{c.cause.service} ({WORDS[c.cause.kind]})" for c in cases)
    sentences = [f"{'Cause' if len(cases) == 1 else 'Causes'}: {names}.", _sentence(cases[0].claims[0].text)]
    sentences += [f"What changed: {_sentence(claim.text)}" for claim in triggered]
    if not ruled_out:
        sentences += _alone(suspects[:number], view)
    return Conclusion(
        verdict=Verdict.CAUSE_FOUND,
        answer=" ".join(sentences),
        causes=tuple(c.cause for c in cases),
        propagation=tuple((a, b) for a, b in ranking.record["propagation"]),
        ruled_out=tuple(ruling for ruling, _ in ruled_out),
        not_available=_not_available(view),
        recommendations=tuple(_advice(cases, change, triggered, view)),
        claims=(
            *(said := [claim for c in cases for claim in c.claims]),
            *(claim for claim in triggered if claim not in said),
            *(claim for _, claim in ruled_out),
        ),
    )


def _suffers(suspect: Suspect, stronger: Sequence[Suspect], ranking: Observation) -> bool:
    """Whether a stronger suspect of the same kind passes its fault on to this one: a slow statement and its caller."""
    pairs = {tuple(pair) for pair in ranking.record["propagation"]}
    return any(s["kind"] == suspect["kind"] and (s["service"], suspect["service"]) in pairs for s in stronger)


def release_at_fault(view: PlannerView) -> str | None:
    """The service whose release most likely set the incident off, or None."""
    ranking = ranking_in(view)
    if ranking is None or ranking.record["verdict"] != "cause_found" or not ranking.record["causes"]:
        return None
    suspects = suspects_in(view)
    blamed = {str(s["service"]) for s in suspects[: ranking.record["causes"]]}
    change = _trigger(suspects, blamed, ranking)
    return str(change["service"]) if change is not None and change["kind"] == "deploy" else None


def _trigger(suspects: Sequence[Suspect], blamed: set[str], ranking: Observation) -> Finding | None:
    """The change that most likely set it off: of a cause itself, or of who stands next to one on its way.

    What was changed hours ago set nothing off.
    """
    near = blamed.union(*(pair for pair in ranking.record["propagation"] if blamed & set(pair)))
    changes = [
        f
        for s in suspects
        for f in s["findings"]
        if f.get("detector") == "changes" and s["service"] in near
        if f["figures"].get("minutes_before_onset", 0) <= RECENT_MINUTES
    ]
    return max(changes, key=lambda f: (f["service"] in blamed, f["size"]), default=None)


def _triggered(
    change: Finding, cases: Sequence[_Case], ranking: Observation, view: PlannerView, ids: "count[int]"
) -> tuple[Claim, ...]:
    """The claim that tells of the change: one of the causes' own if it says so already."""
    if said := [claim for c in cases for claim in c.claims if claim.text == change["text"]]:
        return tuple(said[:1])
    listed = [o.evidence for o in evidence_of("changes_list", view)]
    evidence = tuple(dict.fromkeys((*listed[:1], ranking.evidence)))
    return (Claim(id=f"C{next(ids)}", text=str(change["text"])[:1000], evidence=evidence),)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _case(suspect: Suspect, ranking: Observation, view: PlannerView, ids: "count[int]") -> _Case:
    claims = tuple(
        Claim(id=f"C{next(ids)}", text=str(f["text"])[:1000], evidence=_shown_by(f, ranking, view))
        for f in suspect["findings"][:MOST_CLAIMS]
    )
    cause = Cause(
        service=suspect["service"],
        kind=suspect["kind"],
        metric=suspect.get("metric"),
        claims=tuple(claim.id for claim in claims),
    )
    return _Case(cause, claims)


def _shown_by(finding: Mapping[str, Any], ranking: Observation, view: PlannerView) -> tuple[str, ...]:
    """The evidence in which this finding stands: the source's own tool first, then the ranking."""
    text = finding["text"]
    own = [
        o.evidence
        for o in view.observations
        if o.tool != ranking.tool
        and not o.status.is_error
        and (any(f.get("text") == text for f in _findings(o)) or _holds(o, finding))
    ]
    return tuple(dict.fromkeys((*own[:MOST_SHOWN], ranking.evidence)))


def _holds(observation: Observation, finding: Finding) -> bool:
    """Whether the change or the statement that the finding tells of stands in what its own source answered."""
    rows, figure = _FACTS.get(observation.tool, ("", ""))
    told = finding["figures"].get(figure)
    return bool(told) and any(
        told in (row.get("summary"), row.get("statement")) for row in observation.record.get(rows, ())
    )


def _findings(observation: Observation) -> Iterable[Mapping[str, Any]]:
    found = observation.record.get("findings", ())
    return [f for f in found if isinstance(f, Mapping)]


def _alone(causes: Sequence[Suspect], view: PlannerView) -> list[str]:
    """What there is to say where nothing was ruled out; nothing where a hypothesis on another service was refuted."""
    thought_of = view.state.hypotheses
    if {h.service for h in thought_of} - {str(suspect["service"]) for suspect in causes}:
        return []
    sole = len(causes) == 1 and len(thought_of) <= 1
    return ["It was the only candidate." if sole else "There were no other candidates."]


def _rival(rival: Suspect, first: Suspect, ranking: Observation, ids: "count[int]") -> tuple[RuledOut, Claim]:
    by = rival.get("explained_by")
    text = (
        f"{rival['service']} is explained by {by}."
        if by
        else f"What was found about {rival['service']} weighs {rival['score']:.2f}, about {first['service']} {first['score']:.2f}."
    )
    claim = Claim(id=f"C{next(ids)}", text=text, evidence=(ranking.evidence,))
    ruling = RuledOut(hypothesis=f"{rival['service']}: {WORDS[rival['kind']]}", claims=(claim.id,))
    return ruling, claim


def _advice(
    cases: Sequence[_Case], change: Finding | None, triggered: Sequence[Claim], view: PlannerView
) -> Iterable[Recommendation]:
    """First undo what set it off, then what else helps with each kind of cause; each sentence once."""
    if change is not None and not evidence_of("service_rollback", view):
        yield _undo(change, triggered, view)
    said = (
        set(advice("deploy", cases[0].cause.service)[:1]) if evidence_of("service_rollback", view) else set()
    )
    for case in cases[:2]:
        for text in advice(case.cause.kind, case.cause.service):
            if text not in said and not (change is not None and text.startswith("Undo the ")):
                said.add(text)
                yield Recommendation(text=text, claims=case.cause.claims[:1])


def _undo(change: Finding, triggered: Sequence[Claim], view: PlannerView) -> Recommendation:
    service = str(change["service"])
    release = change["kind"] == "deploy"
    text = (
        f"Roll {service} back to the release before."
        if release
        else f"Undo the {change['kind']} change of {service}."
    )
    offered = release and any(spec.name == "service_rollback" for spec in view.tools)
    action = Action(tool="service_rollback", arguments={"service": service}) if offered else None
    return Recommendation(text=text, action=action, risk=Risk.HIGH, claims=tuple(c.id for c in triggered))


def _calm(ranking: Observation, view: PlannerView) -> Conclusion:
    """Nothing is wrong now: what was looked at and found as usual."""
    notes = [note for note in ranking.record["notes"] if not note.startswith("Not available")][:MOST_CLAIMS]
    claims = tuple(
        Claim(id=f"C{i}", text=n[:1000], evidence=(ranking.evidence,)) for i, n in enumerate(notes, 1)
    )
    looked = ", ".join(f"{n} {what}" for what, n in ranking.record["looked_at"].items())
    return Conclusion(
        verdict=Verdict.HEALTHY,
        answer=f"Nothing is wrong in the window, as far as the sources tell. Looked at: {looked}.",
        not_available=_not_available(view),
        recommendations=(
            Recommendation(text="Check the alert's threshold against the usual range of its metric."),
        ),
        claims=claims,
    )


def _inconclusive(why: str, view: PlannerView) -> Conclusion:
    missing = _not_available(view)
    tail = " What was not available is listed." if missing else ""
    return Conclusion(
        verdict=Verdict.INCONCLUSIVE,
        answer=why + tail,
        not_available=missing,
        recommendations=(
            Recommendation(
                text="Add the sources that were not available, or widen the window, and ask again."
            ),
        ),
    )


def _not_available(view: PlannerView) -> tuple[str, ...]:
    return tuple(view.not_available)[:40]
