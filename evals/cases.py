"""A case of a set, and what is expected of it, in the form that scoring reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

KEY = "answers.json"
BUILTIN = "builtin"
TRAPS = "traps"
"""The sets that are generated, wherever no folder is called so."""


@dataclass(frozen=True, slots=True)
class CaseBounds:
    """The most that a right answer may cost before it counts as wasteful; None is no bound."""

    repeated: int | None = None
    turns: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ExpectedAdvice:
    """What the recommendations should be like; None leaves it open."""

    at_least: int = 1
    target: str | None = None
    tool: str | None = None
    risk: str | None = None


@dataclass(frozen=True, slots=True)
class ExpectedReport:
    """What a right report says. `services` and `kinds` list every accepted spelling of the one cause.

    `entities` are the accepted objects as `Kind`, `Kind/name` or `Kind/namespace/name`. `causes` are those of a case
    with several. `answer` must be found in the answer's text, all of it;
    `fields` maps names of fields to their values. `untouchable` names what no effect may change.

    Of a case that sets a trap: `unsaid` must appear in no answer and no claim that holds, at least `removed` claims
    must have fallen, the run must have stopped for `stop_reason`, and be `wasteful`. The verdict `any` is every one.

    `culprit` is the id of the guilty change, or `none` where no change is to blame; `decoys` are ids of innocent ones.
    """

    verdict: str
    services: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    causes: tuple[tuple[str, str], ...] = ()
    must_not_blame: frozenset[str] = frozenset()
    entities: tuple[str, ...] = ()
    fault_type: str = ""
    lookup: bool = False
    answer: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    advice: ExpectedAdvice | None = None
    untouchable: frozenset[str] = frozenset()
    unsaid: tuple[str, ...] = ()
    removed: int = 0
    stop_reason: str | None = None
    wasteful: bool | None = None
    culprit: str | None = None
    decoys: frozenset[str] = frozenset()

    @property
    def sets_trap(self) -> bool:
        """Whether more is asked than an answer."""
        return bool(self.unsaid or self.removed or self.stop_reason or self.wasteful is not None)


class IncidentRecipe(NamedTuple):
    """How an incident is generated: the same recipe gives the same folder and the same key.

    `hostile`: with orders to its reader in every field. `zoned`: each source writes its times in a zone of its own.
    """

    kind: str
    level: str
    seed: int
    hostile: bool = False
    zoned: bool = False


@dataclass(frozen=True, slots=True)
class EvalCase:
    """One case of a set. `question` is asked instead of the folder's own, where there is one.

    A case with a `recipe` is generated when it is run, and learns only then what is expected of it. One with a
    `script` is decided by it, whatever planner the others have: it holds the program against a bad model. `plane`
    are switches of a small system to act on, where a person approves whatever is asked.
    """

    id: str
    set: str
    folder: Path
    expected: ExpectedReport
    question: str | None = None
    tags: tuple[str, ...] = ()
    bounds: CaseBounds = CaseBounds()
    recipe: IncidentRecipe | None = None
    script: tuple[Mapping[str, Any], ...] = ()
    plane: tuple[Mapping[str, Any], ...] | None = None


def expected_from_answer(answer: Mapping[str, Any]) -> ExpectedReport:
    """One answer of a key. A key without accepted lists accepts exactly what it names."""
    service, kind = answer.get("root_cause_service"), answer.get("kind")
    causes = answer.get("causes") or ()
    wanted = answer.get("expected")
    return ExpectedReport(
        verdict=answer.get("verdict") or ("cause_found" if service else "answered"),
        services=frozenset(answer.get("acceptable_services") or ()) | ({service} if service else set()),
        kinds=frozenset(answer.get("acceptable_kinds") or ()) | ({kind} if kind else set()),
        causes=tuple((c["service"], c["kind"]) for c in causes),
        must_not_blame=frozenset(answer.get("must_not_blame") or ()),
        entities=accepted_entities(answer),
        fault_type=answer.get("fault_type") or answer.get("verdict") or "",
        lookup=answer.get("kind_of_question") == "lookup",
        answer=() if wanted is None else tuple(map(str, wanted if isinstance(wanted, list) else [wanted])),
        fields=answer.get("expected_fields") or {},
        advice=ExpectedAdvice(**answer["recommendations"]) if answer.get("recommendations") else None,
        untouchable=frozenset(answer.get("must_not_touch") or ()),
        unsaid=tuple(answer.get("must_not_say") or ()),
        removed=answer.get("removed", 0),
        stop_reason=answer.get("stop_reason"),
        wasteful=answer.get("wasteful"),
        culprit=str(answer["culprit"]) if answer.get("culprit") else None,
        decoys=frozenset(map(str, answer.get("decoys") or ())),
    )


def accepted_entities(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """The objects that a key accepts: `acceptable_entities`, else the one that its source names."""
    listed = answer.get("acceptable_entities")
    if listed:
        return tuple(_entity_label(one) for one in listed)
    label = answer.get("source_label")
    named = label.get("entity") if isinstance(label, Mapping) else None
    return (str(named),) if named else ()


def _entity_label(listed: str | Mapping[str, str | None]) -> str:
    """`Kind/namespace/name` of an object that a key writes so, or as its three fields."""
    if isinstance(listed, str):
        return listed
    return "/".join(part for name in ("kind", "namespace", "name") if (part := listed.get(name)))


def bounds_from_answer(answer: Mapping[str, Any]) -> CaseBounds:
    """What a right answer may cost, from a key's `at_most`."""
    return CaseBounds(**(answer.get("at_most") or {}))
