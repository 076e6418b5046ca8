"""The offline investigator's conclusion: the ranking in sentences, each with the evidence it rests on."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from opsleuth.analysis.memory_kills import MemoryKill, choose_memory_kill, read_memory_kill
from opsleuth.models.fault_advice import (
    FAULT_WORDS,
)
from opsleuth.models.key_facts import collect_key_facts, next_commands
from opsleuth.models.offline_recommendations import (
    CauseWithClaims,
    Change,
    recommend_for_causes,
    recommend_threshold_check,
)
from opsleuth.models.planner import PlannerView
from opsleuth.models.remedy_commands import (
    build_index_statement,
)
from opsleuth.models.view_observations import (
    Suspect,
    latest_ranking,
    observations_of_tool,
    ranked_suspects,
)
from opsleuth.state.conclusion import (
    Cause,
    CauseChange,
    CauseEntity,
    Claim,
    Conclusion,
    RuledOut,
)
from opsleuth.state.results import Observation
from opsleuth.state.run_status import Verdict

MOST_CLAIMS = 4
"""Claims per cause: the best finding of each kind of signal, then the rest."""

MOST_SUSPECTS = 3
"""Suspects that appear in an answer that names no cause."""

MOST_SHIFTED = 2
"""Other measures of the first cause that are said to have moved."""

MOST_SHOWN = 2
"""Pieces of evidence cited for a finding besides the ranking."""

_FACTS = {"changes_list": ("changes", "summary"), "database_statements": ("statements", "statement")}
"""Tools that list facts: where the rows are, and which figure of a finding names one."""

_LOOKED_AT = {
    "metrics": "metric series",
    "metrics_baseline": "metric series of the time before",
    "topology": "calls between services",
    "spans": "spans",
    "traces": "traces",
    "logs": "log lines",
    "statements": "database statements",
}
"""What the kinds of rows are called in a sentence."""

Finding = Mapping[str, Any]


def draft_conclusion(view: PlannerView) -> Conclusion:
    """What to say: causes, a calm picture, or that nothing can be told."""
    ranking = latest_ranking(view)
    if ranking is None:
        return _inconclusive_conclusion(_explain_missing_ranking(view), view)
    suspects = list(ranked_suspects(view))
    number = ranking.record["causes"]
    if ranking.record["verdict"] == "cause_found" and number:
        return _cause_conclusion(suspects, number, ranking, view)
    if ranking.record["verdict"] == "healthy":
        return _healthy_conclusion(ranking, view)
    return _inconclusive_conclusion("Nothing that was looked at points at a cause.", view, ranking)


def _explain_missing_ranking(view: PlannerView) -> str:
    """Why nothing was weighed: a source that did not answer may still hold something."""
    failed = {o.tool: o.status.value for o in view.observations if o.status.is_error}
    if not failed:
        return "No source held anything that could be weighed."
    told = ", ".join(f"{tool} ({status.replace('_', ' ')})" for tool, status in failed.items())
    return f"Not everything could be read, so nothing was weighed: {told}. What these would have shown is not known."


def _cause_conclusion(
    suspects: Sequence[Suspect], number: int, ranking: Observation, view: PlannerView
) -> Conclusion:
    ids = count(1)
    chief = [
        s for i, s in enumerate(suspects[:number]) if not _is_downstream_victim(s, suspects[:i], ranking)
    ]
    cases = [_build_cause(s, ranking, view, ids) for s in chief]
    change = _find_trigger(ranking)
    cases = _attach_change(cases, change)
    triggered = _trigger_claims(change, ranking, view, ids) if change else ()
    told = {str(s["service"]) for s in suspects[:number]} | ({str(change["service"])} if change else set())
    moved = [
        Claim(id=f"C{next(ids)}", text=str(f["text"])[:1000], evidence=(ranking.evidence,))
        for f in ranking.record.get("also_moved", ())[:MOST_SHIFTED]
    ]
    rivals = [s for s in suspects[number:] if s["service"] not in told][:3]
    ruled_out = [_rule_out_rival(s, suspects[0], ranking, ids) for s in rivals]
    ruled_out += [
        _rule_out_later(f, ranking, ids) for f in ranking.record.get("later", ()) if f["service"] not in told
    ]
    ruled_out += [_rule_out_earlier(f, ranking, ids) for f in ranking.record.get("earlier", ())]
    names = " and ".join(f"{c.cause.service} ({FAULT_WORDS[c.cause.kind]})" for c in cases)
    sentences = [
        f"{'Cause' if len(cases) == 1 else 'Causes'}: {names}.",
        _end_sentence(cases[0].claims[0].text),
    ]
    label = "What changed" if change and change["grade"] == "cause" else "What coincides"
    sentences += [f"{label}: {_end_sentence(claim.text)}" for claim in triggered]
    sentences += [f"Also: {_end_sentence(claim.text)}" for claim in moved]
    if change is None and ranking.record.get("changes_read"):
        sentences.append("No recorded change explains it.")
    if not ruled_out:
        sentences += _sole_candidate_note(suspects[:number], view)
    return Conclusion(
        verdict=Verdict.CAUSE_FOUND,
        answer=" ".join(sentences),
        causes=tuple(c.cause for c in cases),
        propagation=tuple((a, b) for a, b in ranking.record["propagation"]),
        ruled_out=tuple(ruling for ruling, _ in ruled_out),
        not_available=_not_available(view),
        recommendations=tuple(
            {one.text: one for one in recommend_for_causes(cases, change, triggered, view)}.values()
        ),
        claims=(
            *(said := [claim for c in cases for claim in c.claims]),
            *(claim for claim in (*triggered, *moved) if claim not in said),
            *(claim for _, claim in ruled_out),
        ),
    )


def _is_downstream_victim(suspect: Suspect, stronger: Sequence[Suspect], ranking: Observation) -> bool:
    """Whether a stronger suspect of the same kind passes its fault on to this one: a slow statement and its caller."""
    pairs = {tuple(pair) for pair in ranking.record["propagation"]}
    return any(s["kind"] == suspect["kind"] and (s["service"], suspect["service"]) in pairs for s in stronger)


def find_faulty_release(view: PlannerView) -> str | None:
    """The service whose release set the incident off, as its diff shows; None where that is not shown."""
    ranking = latest_ranking(view)
    if ranking is None or ranking.record["verdict"] != "cause_found" or not ranking.record["causes"]:
        return None
    change = _find_trigger(ranking)
    if change is None or change["grade"] != "cause" or change["kind"] != "deploy":
        return None
    return str(change["service"])


def _find_trigger(ranking: Observation) -> Change | None:
    """The change that set it off, or the only one that fits in place and time; of several that fit, none."""
    changes: Sequence[Change] = ranking.record.get("graded_changes", ())
    if not changes or (changes[0]["grade"] != "cause" and len(changes) > 1):
        return None
    return changes[0]


def _attach_change(cases: Sequence[CauseWithClaims], change: Change | None) -> list[CauseWithClaims]:
    """The causes, the change with the first of its service, failing that with the first of all."""
    if change is None:
        return list(cases)
    own = [i for i, case in enumerate(cases) if case.cause.service == change["service"]]
    known = {name: change[name] for name in CauseChange.model_fields if name in change}
    place = own[0] if own else 0
    return [
        case._replace(cause=case.cause.model_copy(update={"change": CauseChange.model_validate(known)}))
        if i == place
        else case
        for i, case in enumerate(cases)
    ]


def _trigger_claims(
    change: Change, ranking: Observation, view: PlannerView, ids: "count[int]"
) -> tuple[Claim, ...]:
    """The claim that says which change, when, by whom, where, and what makes it more than a coincidence."""
    listed = [o.evidence for o in observations_of_tool("changes_list", view)]
    evidence = tuple(dict.fromkeys((*listed[:1], ranking.evidence)))
    return (Claim(id=f"C{next(ids)}", text=_describe_change(change)[:1000], evidence=evidence),)


def _describe_change(change: Change) -> str:
    version = f" {change['version']}" if change.get("version") else ""
    who = f" by {change['author']}" if change.get("author") else ""
    named = "" if change["id"] == change.get("version") or " " in change["id"] else f", {change['id']}{who}"
    where = f", {change['place']}" if change.get("place") else ""
    reason = change["why"] if change["grade"] == "cause" else f"it coincides, {change['why']}"
    summary = str(change.get("summary", ""))[:300]
    return f"{change['kind']}{version} of {change['service']} ({change['at']}{named}{where}): {summary}; {reason}."


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _build_cause(
    suspect: Suspect, ranking: Observation, view: PlannerView, ids: "count[int]"
) -> CauseWithClaims:
    claims = tuple(
        Claim(
            id=f"C{next(ids)}", text=str(f["text"])[:1000], evidence=_evidence_for_finding(f, ranking, view)
        )
        for f in suspect["findings"][:MOST_CLAIMS]
    )
    cause = Cause(
        service=suspect["service"],
        kind=suspect["kind"],
        metric=suspect.get("metric"),
        entity=CauseEntity(**suspect["entity"]) if suspect.get("entity") else None,
        claims=tuple(claim.id for claim in claims),
    )
    return CauseWithClaims(
        cause,
        claims,
        str(suspect.get("show") or ""),
        str(suspect.get("undo") or ""),
        _name_container(suspect),
        any(f.get("detector") in {"silence", "unanswered"} for f in suspect["findings"]),
        _index_for_statement(suspect),
        _find_external_host(suspect),
        _find_memory_kill(suspect, view),
    )


def _index_for_statement(suspect: Suspect) -> str:
    """The statement that would make the slow look-up fast; empty for another fault or a statement of another form."""
    if suspect["kind"] != "slow_query":
        return ""
    read = (build_index_statement(str(f["figures"].get("statement") or "")) for f in suspect["findings"])
    return next(filter(None, read), "")


def _find_external_host(suspect: Suspect) -> str:
    """The host outside the system that the lines of the service name; empty where none does."""
    hosts = (str(f["figures"].get("host") or "") for f in suspect["findings"])
    return next(filter(None, hosts), "")


def _find_memory_kill(suspect: Suspect, view: PlannerView) -> MemoryKill | None:
    """What ran out of memory where the suspect was killed for lack of it: by its own findings, else by those of others."""
    if suspect["kind"] != "out_of_memory":
        return None
    others = [s for s in ranked_suspects(view) if s["kind"] == "out_of_memory" and s is not suspect]
    return choose_memory_kill(_read_memory_kills([suspect])) or choose_memory_kill(_read_memory_kills(others))


def _read_memory_kills(suspects: Sequence[Suspect]) -> Iterable[MemoryKill]:
    for finding in (f for s in suspects for f in s["findings"]):
        figures = finding.get("figures") or {}
        if scope := figures.get("memory_scope"):
            yield MemoryKill(str(scope), str(figures.get("process") or ""))
        elif kill := read_memory_kill(str(finding["text"])):
            yield kill


def _name_container(suspect: Suspect) -> str:
    """What the advice is about where it is not the service's own program: a container beside it."""
    first: Mapping[str, Any] = next(iter(suspect["findings"]), {})
    container = first.get("figures", {}).get("container")
    return f"container {container} of {suspect['service']}" if container else ""


def _evidence_for_finding(
    finding: Mapping[str, Any], ranking: Observation, view: PlannerView
) -> tuple[str, ...]:
    """The evidence in which this finding stands: the source's own tool first, then the ranking."""
    text = finding["text"]
    own = [
        o.evidence
        for o in view.observations
        if o.tool != ranking.tool
        and not o.status.is_error
        and (any(f.get("text") == text for f in _findings_in_record(o)) or _lists_finding(o, finding))
    ]
    return tuple(dict.fromkeys((*own[:MOST_SHOWN], ranking.evidence)))


def _lists_finding(observation: Observation, finding: Finding) -> bool:
    """Whether the change or the statement that the finding reports appears in what its own source answered."""
    rows, figure = _FACTS.get(observation.tool, ("", ""))
    told = finding["figures"].get(figure)
    return bool(told) and any(
        told in (row.get("summary"), row.get("statement")) for row in observation.record.get(rows, ())
    )


def _findings_in_record(observation: Observation) -> Iterable[Mapping[str, Any]]:
    found = observation.record.get("findings", ())
    return [f for f in found if isinstance(f, Mapping)]


def _sole_candidate_note(causes: Sequence[Suspect], view: PlannerView) -> list[str]:
    """What there is to say where nothing was ruled out; nothing where a hypothesis on another service was refuted."""
    thought_of = view.state.hypotheses
    if {h.service for h in thought_of} - {str(suspect["service"]) for suspect in causes}:
        return []
    sole = len(causes) == 1 and len(thought_of) <= 1
    return ["It was the only candidate." if sole else "There were no other candidates."]


def _rule_out_rival(
    rival: Suspect, first: Suspect, ranking: Observation, ids: "count[int]"
) -> tuple[RuledOut, Claim]:
    by = rival.get("explained_by")
    text = (
        f"{rival['service']} is explained by {by}."
        if by
        else f"What was found about {rival['service']} weighs {rival['score']:.2f}, about {first['service']} {first['score']:.2f}."
    )
    claim = Claim(id=f"C{next(ids)}", text=text, evidence=(ranking.evidence,))
    ruling = RuledOut(hypothesis=f"{rival['service']}: {FAULT_WORDS[rival['kind']]}", claims=(claim.id,))
    return ruling, claim


def _rule_out_later(finding: Finding, ranking: Observation, ids: "count[int]") -> tuple[RuledOut, Claim]:
    """What began only after the trouble that was asked about is not a cause of it."""
    claim = Claim(id=f"C{next(ids)}", text=str(finding["text"])[:1000], evidence=(ranking.evidence,))
    return RuledOut(hypothesis=str(finding["service"]), claims=(claim.id,)), claim


def _rule_out_earlier(finding: Finding, ranking: Observation, ids: "count[int]") -> tuple[RuledOut, Claim]:
    """What had healed before the trouble that runs began."""
    claim = Claim(id=f"C{next(ids)}", text=str(finding["text"])[:1000], evidence=(ranking.evidence,))
    return RuledOut(hypothesis=str(finding["service"]), claims=(claim.id,)), claim


def _healthy_conclusion(ranking: Observation, view: PlannerView) -> Conclusion:
    """What was measured is as usual: over which window, what was checked, and what was not there to check."""
    notes = [note for note in ranking.record["notes"] if not note.startswith("Not available")][:MOST_CLAIMS]
    claims = tuple(
        Claim(id=f"C{i}", text=n[:1000], evidence=(ranking.evidence,)) for i, n in enumerate(notes, 1)
    )
    looked = ", ".join(f"{n} {_LOOKED_AT.get(what, what)}" for what, n in ranking.record["looked_at"].items())
    window = ranking.record.get("window") or {}
    span = f", from {window['start']} to {window['end']}" if window.get("start") and window.get("end") else ""
    absent = [_LOOKED_AT.get(name, name) for name in ranking.record.get("not_available", ())]
    missing = f" Not there to check: {', '.join(absent)}." if absent else ""
    return Conclusion(
        verdict=Verdict.HEALTHY,
        answer=f"What was measured is as usual{span}. Checked: {looked}.{missing}",
        not_available=_not_available(view),
        recommendations=(recommend_threshold_check(claims),),
        claims=claims,
    )


def _inconclusive_conclusion(why: str, view: PlannerView, ranking: Observation | None = None) -> Conclusion:
    """What is open, and the strongest suspects with what speaks for and against each."""
    missing = _not_available(view)
    facts = collect_key_facts(view)
    ids = count(len(facts) + 1)
    sides = [
        Claim(id=f"C{next(ids)}", text=text[:1000], evidence=(ranking.evidence,))
        for ranking in ((ranking,) if ranking else ())
        for text in _list_open_points(ranking)
    ]
    sentences = [why]
    if facts:
        sentences.append(f"Most telling: {' '.join(_end_sentence(claim.text) for claim in facts)}")
    sentences += [_end_sentence(claim.text) for claim in sides]
    if missing:
        sentences.append("What was not available is listed.")
    return Conclusion(
        verdict=Verdict.INCONCLUSIVE,
        answer=" ".join(sentences),
        not_available=missing,
        recommendations=tuple(next_commands(view, facts)),
        claims=(*facts, *sides),
    )


def _list_open_points(ranking: Observation) -> list[str]:
    """The three best suspects, for and against; where there is none, what was noticed about the alert itself."""
    suspects = ranking.record.get("suspects", ())[:MOST_SUSPECTS]
    if suspects:
        return [
            f"{s['service']} ({FAULT_WORDS[s['kind']]}): for it, {s['findings'][0]['text']}" for s in suspects
        ]
    return [note for note in ranking.record["notes"] if not note.startswith("Not available")][:MOST_SUSPECTS]


def _not_available(view: PlannerView) -> tuple[str, ...]:
    return tuple(view.not_available)[:40]
