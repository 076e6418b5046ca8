"""What a conclusion is checked against: the evidence, the effects and the names of a run, and what a failed check says."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from opsleuth.analysis.time_windows import INCIDENT
from opsleuth.state.calls import ResultStatus
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.conclusion import KINDS
from opsleuth.state.investigation import Window
from opsleuth.state.run_status import Verdict
from opsleuth.verification.fact_derivation import derive_facts
from opsleuth.verification.facts import Fact
from opsleuth.verification.record_facts import (
    RecordFacts,
    index_record,
    normalize_for_matching,
    record_text,
)

Part = Literal[
    "claim", "cause", "answer", "field", "recommendation", "propagation", "ruled_out", "verdict", "rival", "demand"
]  # fmt: skip
DERIVED = "derived"
"""The signal of tools that only combine what others measured: no independent kind of evidence."""


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
    def facts(self) -> RecordFacts:
        return index_record(self.record)

    @cached_property
    def typed_facts(self) -> tuple[Fact, ...]:
        return derive_facts(self.id, self.tool, self.status, self.record, self.asked)

    @cached_property
    def fact_words(self) -> str:
        """Subjects and measures as the lines of facts call them."""
        return normalize_for_matching("\n".join(f"{f.subject} {f.measure}" for f in self.typed_facts))

    @cached_property
    def text(self) -> str:
        return record_text(self.record)

    @cached_property
    def asked_text(self) -> str:
        return normalize_for_matching(to_canonical_json(dict(self.asked)))


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
class ConclusionProblem:
    """Why a part of a conclusion does not hold.

    `ref` is the claim's id, the field's name, or an index from 0; `value` the failing words, where there are any;
    `about` tells the problems that binding to facts may solve.
    """

    part: Part
    ref: str
    text: str
    value: str = ""
    about: Literal["", "number", "absence"] = ""


@dataclass(frozen=True)
class ConclusionBasis:
    """What a conclusion is checked against.

    `given` is the question and the alert: the answer and advice may use its names. `vocabulary` are words with
    a name's shape that name nothing in the world (our tools). `language` is the one in which code renders facts.
    `asks_for_cause` is false for a question on a run that has ended: its ranking was dealt with there.
    """

    evidence: Mapping[str, EvidenceView]
    window: Window
    known_names: Collection[str] = ()
    effects: Sequence[EffectView] = ()
    given: str = ""
    vocabulary: Collection[str] = ()
    language: str = "en"
    asks_for_cause: bool = True

    @cached_property
    def facts_by_evidence(self) -> Mapping[str, Sequence[Fact]]:
        return {id_: view.typed_facts for id_, view in self.evidence.items()}

    @cached_property
    def _facts(self) -> Mapping[str, Fact]:
        return {fact.id: fact for facts in self.facts_by_evidence.values() for fact in facts}

    def find_fact(self, id_: str) -> Fact | None:
        """The fact of this id, or None."""
        return self._facts.get(id_)

    @cached_property
    def given_text(self) -> str:
        return normalize_for_matching(self.given)

    @cached_property
    def own_words(self) -> frozenset[str]:
        return frozenset({*KINDS, *Verdict, *self.vocabulary})

    @cached_property
    def seen(self) -> tuple[EvidenceView, ...]:
        """The evidence that shows something of the world: neither errors nor gaps in the recording."""
        return tuple(view for view in self.evidence.values() if view.shows)
