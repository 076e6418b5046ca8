"""What may be said: holds each sentence of a conclusion against the evidence that it cites.

Deterministic and pure. A problem says which value failed, against which evidence, and what would be accepted;
it goes back to the planner word by word.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from opsleuth.analysis.windows import INCIDENT
from opsleuth.state.calls import ResultStatus
from opsleuth.state.canonical import canonical
from opsleuth.state.clock import stamp
from opsleuth.state.conclusion import KINDS, Claim
from opsleuth.state.investigation import Window
from opsleuth.state.outcome import Verdict
from opsleuth.verification import assertions
from opsleuth.verification.binding import misplaced
from opsleuth.verification.derivation import ungrounded
from opsleuth.verification.figures import Facts, between, facts, record_text, squeeze
from opsleuth.verification.grounding import Ground, holds_moment
from opsleuth.verification.moments import Moment, within
from opsleuth.verification.names import names, occurs
from opsleuth.verification.quantities import When, Word, quantities, scan

Part = Literal[
    "claim", "cause", "answer", "field", "recommendation", "propagation", "ruled_out", "verdict", "rival", "demand"
]  # fmt: skip
_QUOTE = 12
DERIVED = "derived"
"""The signal of tools that only combine what others measured: no independent kind of evidence."""

_QUOTED = re.compile(r'"[^"]*"')
_CITED = re.compile(r"(?<![A-Za-z0-9_])E[1-9]\d{0,6}(?![A-Za-z0-9_])")


@dataclass(frozen=True)
class EvidenceView:
    """One piece of evidence as the checks see it.

    `signal` is its independent kind (`metrics`, `logs`, `traces`, …); `window` labels what it covers: `incident`,
    `baseline` or `before`. `asked` holds the call's arguments and target; `tests` the
    hypothesis it was called to test.
    """

    id: str
    tool: str
    signal: str
    status: ResultStatus
    record: Mapping[str, Any]
    window: str = INCIDENT
    asked: Mapping[str, Any] = field(default_factory=dict)
    tests: str | None = None

    @property
    def shows(self) -> bool:
        """Whether it shows something of the world: neither an error nor a gap in the recording."""
        return self.status in (ResultStatus.OK, ResultStatus.NONE_MATCHED)

    @cached_property
    def facts(self) -> Facts:
        return facts(self.record)

    @cached_property
    def text(self) -> str:
        return record_text(self.record)

    @cached_property
    def asked_text(self) -> str:
        return squeeze(canonical(dict(self.asked)))


@dataclass(frozen=True, slots=True)
class EffectView:
    """One effect of the ledger: `state` as stored there, `checked` whether its postcondition was seen to hold.

    None: nobody looked, or nobody could tell. `evidence` are its own result and the readings after it.
    """

    call_id: str
    tool: str
    target: str
    state: str
    checked: bool | None
    evidence: tuple[str, ...] = ()

    @property
    def service(self) -> str:
        """The last part of the target, which is how people call it."""
        return self.target.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a part of a conclusion does not hold.

    `ref` is the claim's id, the field's name, or an index from 0; `value` the failing words, where there are any.
    """

    part: Part
    ref: str
    text: str
    value: str = ""


@dataclass(frozen=True)
class Basis:
    """What a conclusion is held against.

    `given` is the question and the alert: the answer and advice may use its names. `vocabulary` are words with
    a name's shape that name nothing in the world (our tools).
    """

    evidence: Mapping[str, EvidenceView]
    window: Window
    known_names: Collection[str] = ()
    effects: Sequence[EffectView] = ()
    given: str = ""
    vocabulary: Collection[str] = ()

    @cached_property
    def given_text(self) -> str:
        return squeeze(self.given)

    @cached_property
    def own_words(self) -> frozenset[str]:
        return frozenset({*KINDS, *Verdict, *self.vocabulary})

    @cached_property
    def seen(self) -> tuple[EvidenceView, ...]:
        """The evidence that shows something of the world: neither errors nor gaps in the recording."""
        return tuple(view for view in self.evidence.values() if view.shows)


def check_claim(
    claim: Claim,
    evidence: Mapping[str, EvidenceView],
    window: Window,
    known_names: Collection[str] = (),
    effects: Sequence[EffectView] = (),
) -> tuple[Problem, ...]:
    """Why `claim` may not be said; empty if it may."""
    return claim_problems(claim, Basis(evidence, window, known_names, effects))


def claim_problems(claim: Claim, basis: Basis) -> tuple[Problem, ...]:
    """As `check_claim`, for many claims on one basis."""
    # What stands between quotation marks are the words of the evidence: `code E4001` there cites nothing.
    cited = dict.fromkeys([*claim.evidence, *_CITED.findall(_QUOTED.sub(" ", claim.text))])
    missing = [id_ for id_ in cited if id_ not in basis.evidence]
    if missing or not claim.evidence:
        return (_uncited(claim, missing, basis),)
    views = [basis.evidence[id_] for id_ in cited]
    if assertions.says_unavailable(claim.text):
        return tuple(_failed_names(claim.text, "claim", claim.id, views, basis, asked=True))
    problems = [_no_finding(claim, view) for view in views if not view.shows]
    if problems:
        return tuple(problems)
    absent = assertions.says_absent(claim.text)
    problems = text_problems(claim.text, "claim", claim.id, views, basis, asked=absent)
    problems += [] if problems else _misplaced(claim, views, basis)
    if absent and not problems and not _supports_absence(claim.text, views):
        problems = [_unsupported_absence(claim, views)]
    problems += recovery_problems(claim.text, "claim", claim.id, basis)
    return (*problems, *action_problems(claim.text, "claim", claim.id, views, basis))


def _uncited(claim: Claim, missing: Sequence[str], basis: Basis) -> Problem:
    choices = _listed(list(basis.evidence)) or "none yet"
    if missing:
        text = f"{claim.id} cites {_listed(missing)}, which does not exist: evidence of this run is {choices}"
    else:
        text = f"{claim.id} cites no evidence: name the ids it rests on (this run has {choices}) or drop it"
    return Problem("claim", claim.id, text, _listed(missing))


def _no_finding(claim: Claim, view: EvidenceView) -> Problem:
    what = "an error of the tool" if view.status.is_error else "a gap in the recording"
    text = (
        f"{claim.id} cites {view.id} ({view.tool}: {view.status}), {what}: it supports only "
        f'"not available", nothing about the incident; cite a result, or say what was not available'
    )
    return Problem("claim", claim.id, text, view.id)


def text_problems(
    text: str, part: Part, ref: str, views: Sequence[EvidenceView], basis: Basis, *, asked: bool = False
) -> list[Problem]:
    """The numbers, times and names of `text` that `views` do not hold; `asked` lets names come from the calls."""
    tokens = scan(text)
    moments = [token.moment for token in tokens if isinstance(token, When)]
    numbers = quantities(text, words=part == "claim")
    used = names(text, basis.known_names, quoted_whole=part == "claim")
    start, end = basis.window.start.timestamp(), basis.window.end.timestamp()
    ground = Ground(
        facts=[view.facts for view in views],
        start=start,
        end=end,
        names=frozenset(n.casefold() for n in used),
        words=frozenset(t.text.lower() for t in tokens if isinstance(t, Word)),
        stated=numbers,
        moments=moments,
    )
    problems = [_bad_moment(m, part, ref, text, views, basis) for m in moments]
    problems += [_bad_number(q.text, part, ref, views) for q in ungrounded(ground)]
    problems += [_misread(words, part, ref) for words in assertions.contradictions(text)]
    return [p for p in problems if p] + _failed_names(text, part, ref, views, basis, asked=asked, used=used)


def _bad_number(value: str, part: Part, ref: str, views: Sequence[EvidenceView]) -> Problem:
    text = (
        f'{_where(part, ref)}: number "{value}" is not in {_cited(views)}, nor recomputable from it: use a figure '
        "as it stands there (rounded), cite the evidence that holds it, or compute it with calculate and cite that"
    )
    return Problem(part, ref, text, value)


def _misplaced(claim: Claim, views: Sequence[EvidenceView], basis: Basis) -> list[Problem]:
    span = basis.window.start.timestamp(), basis.window.end.timestamp()
    return [
        Problem(
            "claim",
            claim.id,
            f'{claim.id}: number "{wrong.number.text}" is not one of {_listed(wrong.names)}: {_cited(views)} hold it for '
            "something else; name that, or cite the evidence that holds the number for what is named",
            wrong.number.text,
        )
        for wrong in misplaced(claim.text, views, basis.known_names, span)
    ]


def _misread(words: str, part: Part, ref: str) -> Problem:
    text = f'{_where(part, ref)}: "{words}" contradicts itself: say the direction that its two figures have'
    return Problem(part, ref, text, words)


def _bad_moment(
    moment: Moment, part: Part, ref: str, text: str, views: Sequence[EvidenceView], basis: Basis
) -> Problem | None:
    start, end = basis.window.start.timestamp(), basis.window.end.timestamp()
    if within(moment, start, end):
        return None
    ground = [view for view in views if holds_moment(moment, Ground([view.facts], start, end))]
    if any(view.window != INCIDENT or _quoted(moment.text, text, view) for view in ground):
        return None
    if ground and assertions.says_earlier(text):
        return None
    bounds = f"{stamp(basis.window.start)} to {stamp(basis.window.end)}"
    if ground:
        reason = (
            f"lies outside the window ({bounds}) and {_cited(ground)} is not labelled baseline or before: "
            'say in the sentence that it lies outside ("before the window")'
        )
    else:
        reason = f"lies neither in the window ({bounds}) nor in {_cited(views)}: use a time that stands there"
    return Problem(part, ref, f'{_where(part, ref)}: time "{moment.text}" {reason}', moment.text)


def _quoted(value: str, text: str, view: EvidenceView) -> bool:
    """Whether the value stands in words taken over from the evidence: it says so of itself, as a quotation."""
    before, _, after = text.partition(value)
    quotes = (before[-_QUOTE:] + value, value + after[:_QUOTE])
    return any(len(q) >= len(value) + _QUOTE and squeeze(q) in view.text for q in quotes)


def _failed_names(
    text: str,
    part: Part,
    ref: str,
    views: Sequence[EvidenceView],
    basis: Basis,
    *,
    asked: bool,
    used: Sequence[str] | None = None,
) -> list[Problem]:
    used = names(text, basis.known_names) if used is None else used
    used = [name for name in used if name not in basis.own_words]
    texts = [view.text for view in views] + [view.asked_text for view in views if asked]
    texts += [] if part in ("claim", "cause") else [basis.given_text]
    return [_bad_name(name, part, ref, views, basis) for name in used if not occurs(name, texts)]


def _bad_name(name: str, part: Part, ref: str, views: Sequence[EvidenceView], basis: Basis) -> Problem:
    elsewhere = [view.id for view in basis.seen if occurs(name, [view.text])]
    if elsewhere:
        advice = f"it stands in {_listed(elsewhere)}: cite that"
    else:
        advice = "no evidence of this run holds it: use a name as it stands there"
    return Problem(part, ref, f'{_where(part, ref)}: name "{name}" is not in {_cited(views)}; {advice}', name)


def _supports_absence(text: str, views: Sequence[EvidenceView]) -> bool:
    """`none_matched`, a search that scanned rows and matched none, a figure of zero or in the sentence, or its own words."""
    if any(view.status is ResultStatus.NONE_MATCHED or _searched(view.record) for view in views):
        return True
    if any(between(view.facts.raws, 0.0, 0.0) is not None for view in views):
        return True
    if any(assertions.quotes_absence(text, view.text) for view in views):
        return True
    if assertions.says_level(text) and any(view.facts.raws for view in views):
        return True
    return bool(quantities(text))


def _searched(record: Mapping[str, Any]) -> bool:
    scanned, matched = record.get("scanned"), record.get("matched")
    return isinstance(scanned, int) and scanned > 0 and matched == 0


def _unsupported_absence(claim: Claim, views: Sequence[EvidenceView]) -> Problem:
    text = (
        f"{claim.id} claims an absence, but {_cited(views)} shows none: cite a search that scanned rows and "
        "matched 0 (none_matched), give the figure that shows it, or say what was not available"
    )
    return Problem("claim", claim.id, text)


def action_problems(
    text: str, part: Part, ref: str, views: Sequence[EvidenceView], basis: Basis
) -> list[Problem]:
    """An action may be claimed only where the ledger has it as done and its postcondition was seen to hold."""
    reported = "\n".join(view.text for view in views if not _is_effect(view, basis))
    done = [e for e in basis.effects if e.state in ("done", "resolved") and e.checked]
    wanted = assertions.acts(text, reported)
    if not wanted or any(_about(effect, text, views) for effect in done):
        return []
    ledger = ", ".join(
        f"{e.tool} on {e.target}: {e.state}, check {'passed' if e.checked else 'not passed'}"
        for e in basis.effects
    )
    reason = (
        f'{_where(part, ref)} claims an action ("{wanted[0]}"), but no effect that is done with a passed check '
        f"backs it (effects so far: {ledger or 'none'}): recommend it, or say what was seen"
    )
    return [Problem(part, ref, reason, wanted[0])]


def _is_effect(view: EvidenceView, basis: Basis) -> bool:
    return any(view.id in effect.evidence for effect in basis.effects)


def _about(effect: EffectView, text: str, views: Sequence[EvidenceView]) -> bool:
    return any(view.id in effect.evidence for view in views) or _named(effect, text)


def _named(effect: EffectView, text: str) -> bool:
    return occurs(effect.service, [squeeze(text)])


def recovery_problems(text: str, part: Part, ref: str, basis: Basis) -> list[Problem]:
    """Nothing is said to be well (again) that an effect of this run, or of one that it was forked from, left as the last look at it showed: not well."""
    said = assertions.says_well(text)
    failed = [e for e in _last_looks(basis.effects) if e.checked is False]
    others = [name for name in basis.known_names if occurs(name, [squeeze(text)])]
    meant = [e for e in failed if _named(e, text) or not others]
    if said is None or not meant:
        return []
    reason = (
        f'{_where(part, ref)} says "{said}", but after {meant[0].tool} the check of {meant[0].target} failed: '
        "say what was seen there, or act on it and look again"
    )
    return [Problem(part, ref, reason, said)]


def _last_looks(effects: Sequence[EffectView]) -> Sequence[EffectView]:
    """For each target the last effect after which somebody looked."""
    return list({e.target: e for e in effects if e.checked is not None}.values())


def _where(part: Part, ref: str) -> str:
    if part == "claim":
        return ref
    return part if part == "answer" else f"{part} {ref}"


def _cited(views: Sequence[EvidenceView]) -> str:
    return _listed([view.id for view in views]) or "the cited evidence (none)"


def _listed(items: Sequence[str]) -> str:
    shown = ", ".join(items[:12])
    return f"{shown} and {len(items) - 12} more" if len(items) > 12 else shown
