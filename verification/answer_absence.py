"""Absence in free text: "there were no errors in ledger-db" appears in an answer only where a search shows it."""

import re
from collections.abc import Iterator

from opsleuth.state.calls import ResultStatus
from opsleuth.verification import sentence_assertions
from opsleuth.verification.conclusion_basis import ConclusionBasis, ConclusionProblem, EvidenceView, Part
from opsleuth.verification.name_extraction import extract_names, name_occurs_in

_THINGS = (
    r"errors?|failures?|exceptions?|warnings?|restarts?|crash(?:es)?|deploy(?:s|ments?)?|changes?|events?|anomal(?:y|ies)|alerts?|"
    r"log (?:lines?|entries)|traces?|timeouts?|time-outs?|retries|spikes?|increases?|rollouts?|commits?|kills?|OOMs?"
)
_ABSENT = re.compile(
    rf"\b(?:no|zero|without(?: any)?|not (?:any|a single|one)|neither|keine?r?|ohne) (?:[\w-]+ ){{0,3}}?(?:{_THINGS}|Fehler\w*|Ausfälle|Änderungen|Neustarts)\b"
    r"|没有(?:任何|发现)?[\u4e00-\u9fff]{0,4}?(?:错误|异常|变更|重启|告警|事件|失败|超时|日志)|(?:未|无)(?:发现|出现|见)?(?:任何)?(?:错误|异常|变更|重启|告警|事件|失败|超时)",
    re.IGNORECASE,
)

_UNEXPLAINED = re.compile(
    r"^\W*no (?:recorded |known |listed )?changes? explains? (?:it|this|the incident)\W*$", re.IGNORECASE
)


def find_absence_problems(
    text: str, part: Part, ref: str, basis: ConclusionBasis
) -> Iterator[ConclusionProblem]:
    """The absence that a sentence claims and that no complete search, figure of zero or words of the evidence show."""
    found = _ABSENT.search(text)
    if found is None or sentence_assertions.claims_unavailable(text) or _is_shown_by_ranking(text, basis):
        return
    names = extract_names(text, {*basis.known_names, *_collect_subjects(basis)})
    about = [
        v for v in basis.seen if not names or any(name_occurs_in(n, [v.text, v.asked_text]) for n in names)
    ]
    if any(_shows_absence(view, text, names) for view in about):
        return
    where = f"{part} {ref}".strip()
    reason = (
        f'{where} says "{found[0]}", but no search of this run shows it'
        f"{' for ' + ', '.join(names[:3]) if names else ''}: cite one that went through everything and matched 0, or leave it out"
    )
    yield ConclusionProblem(part, ref, reason, text.strip().rstrip("."))


def _is_shown_by_ranking(text: str, basis: ConclusionBasis) -> bool:
    """Whether the sentence says that no change explains it, and changes were weighed of which none may have set it off."""
    if not _UNEXPLAINED.search(text):
        return False
    rankings = [view.record for view in basis.seen if view.tool == "rank_suspects"]
    return any(record.get("changes_read") and not record.get("graded_changes") for record in rankings)


def _collect_subjects(basis: ConclusionBasis) -> set[str]:
    return {f.subject for facts in basis.facts_by_evidence.values() for f in facts if len(f.subject) > 1}


def _shows_absence(view: EvidenceView, text: str, names: list[str]) -> bool:
    searches = [fact.searched for fact in view.typed_facts if fact.searched]
    if any(scope.matched == 0 and scope.complete for scope in searches):
        return True
    if view.status is ResultStatus.NONE_MATCHED and not searches:
        return True
    if sentence_assertions.quotes_absence(text, view.text):
        return True
    return any(
        any(detail.value == 0 for detail in fact.figures)
        for fact in view.typed_facts
        if fact.searched is None and (not names or any(name_occurs_in(n, [fact.label]) for n in names))
    )
