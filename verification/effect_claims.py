"""Whether a sentence says that a change worked: read from its check alone, whatever verb the sentence uses."""

import re
from collections.abc import Iterator

from opsleuth.verification.conclusion_basis import ConclusionBasis, ConclusionProblem, EffectView, Part
from opsleuth.verification.name_extraction import name_occurs_in
from opsleuth.verification.record_facts import normalize_for_matching

_DONE = re.compile(
    r"\b(?:success\w*|succeed\w*|completed?|done|worked|works|took effect|in effect|erfolgreich|erledigt|gelungen|abgeschlossen)\b"
    r"|\b(?:was|were|is|are|has been|have been|got|been|wurde|wurden) (?:\w+ly |now )?\w{2,}(?:ed|en|t)\b"
    r"|\b(?:we|i|opsleuth|this run) (?:\w+ly )?\w{2,}ed\b"
    r"|成功|完成|生效|已(?:经)?[\u4e00-\u9fff]{1,4}",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:not|never|no|nor|cannot|fail\w*|unsuccessful\w*|unknown|unclear|unchecked|still|despite|although|but|attempt\w*|tried|"
    r"asked|requested|recommend\w*|should|could|would|must|may|might|if|nicht|kein\w*|fehlgeschlagen|unklar|ohne)\b|n't\b"
    r"|未|没|失败|不|无法|是否|建议|应",
    re.IGNORECASE,
)
_CHECK_FAILED = re.compile(
    r"\bcheck\w*(?: \w+){0,3} (?:failed|fails|did not|does not|not)\b|CHECK FAILED|(?:检查|校验)[^。]{0,6}(?:失败|未通过)|Prüfung\w*(?: \w+){0,3} (?:fehl|nicht)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[;；。]|, (?:but|and|while)\b|\b(?:but|whereas)\b|但")
_STEM = 4
"""Letters that a word shares with a part of a tool's name to be of it: `flushed`, `cache_flush`."""


def find_success_problems(
    text: str, part: Part, ref: str, basis: ConclusionBasis
) -> Iterator[ConclusionProblem]:
    """The clauses that say of an effect without a passed check that it was done, worked or succeeded."""
    unproven = [effect for effect in _last_effects(basis) if effect.checked is not True]
    for clause in _CLAUSE.split(text) if unproven and not _CHECK_FAILED.search(text) else ():
        said = _DONE.search(clause)
        if said is None or _OPEN.search(clause):
            continue
        meant = next((e for e in unproven if _is_about_effect(clause, e)), None)
        if meant is not None:
            seen = "failed" if meant.checked is False else "was not seen to pass"
            where = ref if part == "claim" else f"{part} {ref}".strip()
            reason = (
                f'{where} says "{said[0]}" of {meant.tool} on {meant.target}, but its check {seen}: '
                "say what the check saw, whatever the call itself answered"
            )
            yield ConclusionProblem(part, ref, reason, clause.strip().rstrip("."))
            return


def _last_effects(basis: ConclusionBasis) -> list[EffectView]:
    """The last effect on each target that began at all."""
    return list({e.target: e for e in basis.effects if e.state not in ("failed_clean", "absent")}.values())


def _is_about_effect(clause: str, effect: EffectView) -> bool:
    folded = normalize_for_matching(clause)
    parts = [p for p in re.split(r"[/:.\s]+", effect.target) if len(p) >= 2]
    if effect.service and name_occurs_in(effect.service, [folded]):
        return True
    if any(name_occurs_in(p, [folded]) for p in parts if len(p) > _STEM):
        return True
    stems = {word[:_STEM] for word in re.findall(r"[a-z]+", effect.tool.casefold()) if len(word) >= _STEM}
    return any(word[:_STEM] in stems for word in re.findall(r"[a-z]+", folded) if len(word) >= _STEM)
