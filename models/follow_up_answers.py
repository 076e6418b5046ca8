"""Questions on an ended run, answered without a model: from its evidence, and from the tools that its nouns point at."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from opsleuth.models.follow_up_intents import IntentAnswer, answer_intent, find_intent, list_intent_lookups
from opsleuth.models.planner import PlannerView
from opsleuth.models.question_topics import QuestionSubjects, find_question_subjects, match_stem
from opsleuth.state.calls import CallRequest
from opsleuth.state.conclusion import Cause, CauseChange, Claim, Conclusion
from opsleuth.state.decision import Decision
from opsleuth.state.fault_words import FAULT_WORDS
from opsleuth.state.follow_up import FollowUp
from opsleuth.state.results import Observation
from opsleuth.state.run_status import Verdict
from opsleuth.verification.fact_derivation import derive_facts
from opsleuth.verification.fact_wording import render_fact
from opsleuth.verification.facts import Fact
from opsleuth.verification.name_extraction import find_mentions

MOST_SHOWN = 4
"""Facts that an answer holds."""
_NEAR_BEST = 0.7
"""The share of the best fact's grade that another one needs to be shown."""
MOST_SERVICES = 2
MOST_CALLS = 8
_ASKED = ("service", "database", "level", "metric", "text", "contains", "about")
"""Arguments that say what a call asks about."""
_DERIVED = frozenset({"rank_suspects", "runbooks_find", "calculate"})
"""Tools that only combined what others measured: their facts repeat those."""
_SEARCHED = {"lines_matching": "log lines", "anomalies": "unusual series"}
"""What was searched, by the measure of the search."""
_NO_ANSWER = frozenset({"note", "suspect_score", "calls", "called_by", "passes_to"})
"""Measures that tell how things were weighed or who calls whom."""


def decide_follow_up(view: PlannerView, about: FollowUp) -> Decision:
    """The look-ups that the question's nouns point at and nobody has made; after those, the answer."""
    subjects = find_subjects(view, about)
    intent = find_intent(view.state.question)
    lookups = list_intent_lookups(intent, subjects, view, about) if intent else _list_lookups(subjects)
    calls = [call for call in _plan_calls(lookups, subjects, view) if _is_new(call, view)]
    if calls:
        return Decision(
            reason=f"The question is about {_join_names(subjects)}.", calls=tuple(calls[:MOST_CALLS])
        )
    return Decision(
        reason="What the sources hold about it is at hand.", conclusion=answer_follow_up(view, about)
    )


def find_subjects(view: PlannerView, about: FollowUp) -> QuestionSubjects:
    """What the question is about: services that the sources know, and whatever the evidence names."""
    question = view.state.question
    known = {fact.subject for fact in _list_facts(view) if fact.subject and " " not in fact.subject}
    seen = [question[a:b].casefold() for a, b in find_mentions(question, known)]
    by_spelling = {name.casefold(): name for name in sorted(known)}
    return find_question_subjects(
        question, (*about.services, *(by_spelling[name] for name in seen if name in by_spelling))
    )


def _plan_calls(
    lookups: Iterable[tuple[str, Mapping[str, Any]]], subjects: QuestionSubjects, view: PlannerView
) -> Iterator[CallRequest]:
    purpose = f"what the question is about: {_join_names(subjects)}"[:1000]
    for tool, arguments in lookups:
        if any(spec.name == tool for spec in view.tools):
            yield CallRequest(tool=tool, arguments=dict(arguments), purpose=purpose)


def _list_lookups(subjects: QuestionSubjects) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Tools and arguments for the subjects: each service, then each topic, then each word."""
    services = subjects.services[:MOST_SERVICES]
    for service in services:
        yield "metrics_anomalies", {"service": service}
        yield "logs_search", {"service": service, "level": "error"}
    for topic in subjects.topics:
        if topic.tool:
            yield topic.tool, {}
    for word in subjects.words:
        yield "logs_search", {"text": word}
        yield "events_list", {"about": word}
    if not services:
        yield "metrics_anomalies", {}
    if not subjects.names:
        yield "changes_list", {}


def _is_new(call: CallRequest, view: PlannerView) -> bool:
    """Whether neither the run nor this question has asked this."""
    key = _question_key(call.tool, call.arguments)
    return all(_question_key(o.tool, o.arguments) != key for o in view.observations)


def _question_key(tool: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    return (tool, *(f"{name}={arguments[name]}" for name in _ASKED if arguments.get(name)))


def answer_follow_up(view: PlannerView, about: FollowUp) -> Conclusion:
    """What the run blames, and a line for each fact about the subjects; the claims appear in the order of these lines."""
    subjects = find_subjects(view, about)
    if intent := find_intent(view.state.question):
        return _answer_with_measures(answer_intent(intent, subjects, view, about), view)
    found = choose_facts(_list_facts(view), subjects)
    empty = _find_empty_searches(view, subjects)[: MOST_SHOWN - len(found)]
    numbers = count(1)
    claims = [
        *(Claim(id=f"C{next(numbers)}", facts=(fact.id,), evidence=(fact.evidence,)) for fact in found),
        *(
            Claim(id=f"C{next(numbers)}", facts=(fact.id,), evidence=(fact.evidence,), op="absent")
            for fact in empty
        ),
    ]
    answered = bool(claims)
    claims += _claim_blame(about, view, next(numbers))
    lines = [
        _open_answer(subjects, about, view, shown=bool(found)),
        *map(_end_line, map(render_fact, found)),
        *map(_describe_empty_search, empty),
    ]
    if not answered:
        lines.append(f"The sources hold nothing about {_join_names(subjects)}.")
    return Conclusion(
        verdict=Verdict.ANSWERED if answered else Verdict.INCONCLUSIVE,
        answer="\n".join(lines)[:20_000],
        not_available=tuple(view.not_available)[:40],
        claims=tuple(claims),
    )


def _answer_with_measures(found: IntentAnswer, view: PlannerView) -> Conclusion:
    """The first sentence, then each line with a claim of its own."""
    claims = tuple(
        Claim(id=f"C{number}", text=text[:1000], evidence=(evidence,))
        for number, (text, evidence) in enumerate(found.lines, 1)
    )
    return Conclusion(
        verdict=Verdict.INCONCLUSIVE if found.missing else Verdict.ANSWERED,
        answer="\n".join((found.first, *(text for text, _ in found.lines)))[:20_000],
        not_available=tuple(view.not_available)[:40],
        claims=claims,
    )


def _end_line(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _open_answer(subjects: QuestionSubjects, about: FollowUp, view: PlannerView, *, shown: bool) -> str:
    """The first sentence: whether the run blames what the question is about, and what it blames.

    Neither yes nor no is said of what nothing was read about, nor of a change that only fits in place and time.
    """
    causes = " and ".join(_name_cause(cause) for cause in about.causes[:2])
    blames = f"the run blames {causes}" if causes else "the run found no cause"
    if not subjects.asks_for_blame:
        return f"{blames[0].upper()}{blames[1:]}."
    if any(is_blamed(cause, subjects) for cause in about.causes):
        return f"Yes: {blames}."
    if coinciding := _find_coinciding_change(subjects, about):
        return f"Not shown: the {coinciding.kind} of {coinciding.service} at {coinciding.at} fits in place and time only; {blames}."
    if missing := _find_unread_tool(subjects, view):
        return f"Not known, as nothing was read by {missing}; {blames}."
    if causes and shown:
        return f"Not as far as the sources show: {blames}."
    if causes:
        return f"Nothing points to {_join_names(subjects)}: {blames}."
    return f"{blames[0].upper()}{blames[1:]}."


def _find_coinciding_change(subjects: QuestionSubjects, about: FollowUp) -> CauseChange | None:
    """The change that the question may mean and that the run shows as a coincidence."""
    of_changes = any(topic.tool == "changes_list" for topic in subjects.topics)
    changes = [cause.change for cause in about.causes if cause.change and cause.change.grade != "cause"]
    meant = [c for c in changes if not subjects.services or c.service in subjects.services]
    return meant[0] if of_changes and meant else None


def _find_unread_tool(subjects: QuestionSubjects, view: PlannerView) -> str:
    """The tool that shows the topic of the question and never gave an answer; empty where one did."""
    tools = [topic.tool for topic in subjects.topics if topic.tool]
    answered = {o.tool for o in view.observations if o.status in ("ok", "none_matched")}
    return tools[0] if tools and not answered.intersection(tools) else ""


def is_blamed(cause: Cause, subjects: QuestionSubjects) -> bool:
    """Whether the cause is what the question is about: its service, its kind, or the change that set it off."""
    kinds = {kind for topic in subjects.topics for kind in topic.kinds}
    if subjects.services and cause.service not in subjects.services:
        return bool(
            (change := _set_off(cause))
            and change.service in subjects.services
            and (not kinds or "deploy" in kinds)
        )
    if kinds:
        return cause.kind in kinds or bool(_set_off(cause) and "deploy" in kinds)
    words = [match_stem(word) for word in subjects.words]
    named = re.split(r"[^a-z0-9]+", f"{cause.service} {cause.metric or ''}".casefold())
    return bool(subjects.services) or any(part.startswith(word) for word in words for part in named)


def _set_off(cause: Cause) -> CauseChange | None:
    """The change that set the cause off; None where one only coincides."""
    return cause.change if cause.change and cause.change.grade == "cause" else None


def _claim_blame(about: FollowUp, view: PlannerView, number: int) -> list[Claim]:
    """What the run itself rests its first cause on, so that the answer's first sentence has its evidence."""
    shown = [o.evidence for o in view.observations if o.evidence in about.evidence]
    facts = [fact for fact in _list_facts(view, derived=True) if fact.evidence in shown and about.causes]
    own = [
        fact for fact in facts if fact.subject == about.causes[0].service and fact.measure not in _NO_ANSWER
    ]
    return [Claim(id=f"C{number}", facts=(own[0].id,), evidence=about.evidence)] if own else []


def _find_empty_searches(view: PlannerView, subjects: QuestionSubjects) -> list[Fact]:
    """Searches for the subjects that went through everything and found nothing."""
    wanted = {*subjects.services, *subjects.words}
    return [
        fact
        for fact in _list_facts(view)
        if (scope := fact.searched)
        and scope.matched == 0
        and scope.complete
        and wanted.intersection(value for _, value in scope.criteria)
    ]


def _describe_empty_search(fact: Fact) -> str:
    scope = fact.searched
    if scope is None:
        return ""
    criteria = ", ".join(
        f'"{value}"' if name in ("text", "about") else value
        for name, value in scope.criteria
        if name != "level"
    )
    what = (
        "lines of failure"
        if ("level", "error") in scope.criteria
        else _SEARCHED.get(fact.measure, fact.measure)
    )
    return f"No {what} for {criteria}: {scope.rows:,} searched."


def choose_facts(facts: Iterable[Fact], subjects: QuestionSubjects) -> list[Fact]:
    """The facts that tell most about the subjects, in the order of the evidence."""
    graded = [(grade, fact) for fact in facts if (grade := grade_fact(fact, subjects))]
    graded.sort(key=lambda pair: -pair[0])
    least = graded[0][0] * _NEAR_BEST if graded else 0.0
    said: dict[str, Fact] = {}
    for grade, fact in graded:
        if grade >= least:
            said.setdefault(render_fact(fact), fact)
    return list(said.values())[:MOST_SHOWN]


def grade_fact(fact: Fact, subjects: QuestionSubjects) -> float:
    """How much a fact tells about the subjects; 0 for one that tells nothing."""
    if fact.measure in _NO_ANSWER or fact.searched or fact.path.count("/") == 1:
        return 0.0
    tokens = re.split(r"[^a-z0-9]+", fact.label.casefold())
    stems = {match_stem(word) for topic in subjects.topics for word in topic.words}
    of_service = any(
        fact.subject == name or name.casefold() in fact.label.casefold() for name in subjects.services
    )
    of_change = fact.measure == "change" and any(topic.tool == "changes_list" for topic in subjects.topics)
    of_topic = of_change or any(token.startswith(stem) for stem in stems for token in tokens if len(stem) > 1)
    of_word = any(_holds_words(tokens, word) for word in subjects.words)
    if (subjects.services and not of_service) or not (of_service or of_topic or of_word):
        return 0.0
    of_itself = fact.subject in subjects.services
    return (
        1.0 * of_service
        + 1.0 * of_itself
        + 2.0 * of_change
        + 1.5 * of_topic
        + 2.0 * of_word
        + 1.0 * bool(fact.text)
        + 0.5 * bool(fact.change)
    )


def _holds_words(tokens: Sequence[str], phrase: str) -> bool:
    """Whether each word of the phrase begins a token."""
    stems = [match_stem(word) for word in re.split(r"[^a-z0-9]+", phrase.casefold()) if word]
    return bool(stems) and all(any(token.startswith(stem) for token in tokens) for stem in stems)


def _list_facts(view: PlannerView, *, derived: bool = False) -> list[Fact]:
    """All facts of the evidence, strongest first within each piece; with `derived` those of the ranking too."""
    return [
        fact
        for o in _own_evidence(view.observations)
        if derived or o.tool not in _DERIVED
        for fact in derive_facts(o.evidence, o.tool, o.status, o.record, o.arguments)
    ]


def _own_evidence(observations: Sequence[Observation]) -> Iterator[Observation]:
    return (o for o in observations if o.has_own_evidence)


def _name_cause(cause: Cause) -> str:
    change = cause.change
    set_off = (
        f", set off by the {change.kind} of {change.service}" if change and change.grade == "cause" else ""
    )
    return f"{cause.service} ({FAULT_WORDS[cause.kind]}{set_off})"


def _join_names(subjects: QuestionSubjects) -> str:
    return " and ".join(subjects.names) or "the incident as a whole"
