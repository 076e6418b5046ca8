"""Evidence that a hypothesis, a draft or a calculation rests on: it keeps its headline, and facts where there is room."""

import re
from collections.abc import Iterator, Sequence

from opsleuth.models.data_fence import fence_lines
from opsleuth.models.folded_calls import render_facts_of
from opsleuth.models.planner import Observation
from opsleuth.state.base import to_json
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.investigation import Investigation
from opsleuth.tools.truncation import cut_text
from opsleuth.verification.fact_derivation import derive_facts
from opsleuth.verification.fact_wording import format_fact_line

_COMPUTING = "calculate"
"""The tool whose arguments name the evidence that its result rests on."""
_EVIDENCE = re.compile(r"\bE[1-9]\d{0,6}\b")
_FACT = re.compile(r"\bE[1-9]\d{0,6}\.[1-9]\d{0,3}\b")
_WIDEST, _NARROWEST, _FACT_WIDTH, _NARROW_FACT = 240, 32, 150, 60
_MOST = 64
"""Lines; beyond this many, what was cited first is named by its id."""
_MOST_FACTS = 3


def list_cited_evidence(state: Investigation, observations: Sequence[Observation]) -> list[str]:
    """The ids, what matters most first: the draft's, those of hypotheses that live, of calculations, of refuted ones."""
    return list(dict.fromkeys(_cited_ids(state, observations)))


def render_cited_evidence(state: Investigation, folded: Sequence[Observation], room: int) -> str:
    """A line for each cited result that is folded, in about `room` bytes; empty where none is."""
    by_id = {o.evidence: o for o in folded if o.has_own_evidence}
    cited = [by_id[evidence] for evidence in list_cited_evidence(state, folded) if evidence in by_id]
    if not cited:
        return ""
    shown, rest = cited[:_MOST], cited[_MOST:]
    width = min(_WIDEST, max(room // len(shown) - 8, _NARROWEST))
    lines = [_shorten_line(f"{o.evidence} {o.tool}: {o.headline}", width) for o in shown]
    named = _list_named_facts(state, folded)
    own = [_render_named_facts(o, named.get(o.evidence, ()), _NARROW_FACT) for o in shown]
    left = room - sum(len(line.encode()) + 1 for line in (*lines, *(fact for facts in own for fact in facts)))
    entries = []
    for o, line, narrow in zip(shown, lines, own, strict=True):
        wide = _render_named_facts(o, named.get(o.evidence, ()), _FACT_WIDTH)
        wide += [fact for fact in render_facts_of(o, _MOST_FACTS, _FACT_WIDTH) if fact not in wide]
        more = sum(len(fact.encode()) + 1 for fact in wide) - sum(len(fact.encode()) + 1 for fact in narrow)
        fits = more <= left
        left -= more if fits else 0
        entries += [line, *(wide if fits else narrow)]
    if rest:
        entries.append("also cited: " + " ".join(o.evidence for o in rest))
    return f"Cited, no longer shown in full:\n{fence_lines(entries)}"


def _cited_ids(state: Investigation, observations: Sequence[Observation]) -> Iterator[str]:
    if state.draft is not None:
        for claim in state.draft.claims:
            yield from claim.evidence
            yield from (fact.partition(".")[0] for fact in claim.facts)
    if state.malformed_conclusion is not None:
        yield from _EVIDENCE.findall(to_canonical_json(state.malformed_conclusion))
    for h in state.hypotheses:
        if h.status != "refuted":
            yield from h.supporting
            yield from h.contradicting
    for o in observations:
        if o.tool == _COMPUTING:
            yield from _EVIDENCE.findall(to_canonical_json(o.arguments))
    for h in state.hypotheses:
        if h.status == "refuted":
            yield from h.contradicting


def _list_named_facts(state: Investigation, observations: Sequence[Observation]) -> dict[str, list[str]]:
    """The facts that a draft, a hypothesis or the planner's own reasons name, by their evidence."""
    texts = [to_canonical_json(to_json(state.draft))] if state.draft is not None else []
    if state.malformed_conclusion is not None:
        texts.append(to_canonical_json(state.malformed_conclusion))
    texts += [h.text for h in state.hypotheses]
    texts += [f"{o.purpose} {o.reason}" for o in observations]
    named: dict[str, list[str]] = {}
    for fact in dict.fromkeys(found for text in texts for found in _FACT.findall(text)):
        named.setdefault(fact.partition(".")[0], []).append(fact)
    return named


def _render_named_facts(o: Observation, named: Sequence[str], width: int) -> list[str]:
    """A line for each of the facts that are named by their ids; the id stands whole, whatever the width."""
    if not named:
        return []
    facts = derive_facts(o.evidence, o.tool, o.status, o.record, o.arguments)
    return [_shorten_line(format_fact_line(fact), width) for fact in facts if fact.id in named]


def _shorten_line(text: str, width: int) -> str:
    """The beginning of a line: a headline says first what matters."""
    return cut_text(text, width) if width >= 80 else text if len(text) <= width else text[: width - 1] + "…"
