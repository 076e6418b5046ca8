"""A set of cases: a folder of case folders and its key, a file of task cases, or the built-in incidents.

The key lies outside every case folder: nothing that a tool can read holds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from opsleuth.state.canonical import from_json
from opsleuth.state.errors import UsageError

KEY = "answers.json"
BUILTIN = "builtin"
TRAPS = "traps"
"""The sets that are generated, wherever no folder is called so."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a right answer may cost before it counts as wasteful; None is no bound."""

    repeated: int | None = None
    turns: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What the recommendations should be like; None leaves it open."""

    at_least: int = 1
    target: str | None = None
    tool: str | None = None
    risk: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What a right report says. `services` and `kinds` list every accepted spelling of the one cause.

    `causes` are those of a case with several. `answer` must be found in the answer's text, all of it;
    `fields` maps names of fields to their values. `untouchable` names what no effect may change.

    Of a case that sets a trap: `unsaid` must stand in no answer and no verified claim, at least `removed` claims
    must have fallen, the run must have stopped for `stop_reason`, and be `wasteful`. The verdict `any` is every one.
    """

    verdict: str
    services: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    causes: tuple[tuple[str, str], ...] = ()
    must_not_blame: frozenset[str] = frozenset()
    fault_type: str = ""
    lookup: bool = False
    answer: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    advice: Advice | None = None
    untouchable: frozenset[str] = frozenset()
    unsaid: tuple[str, ...] = ()
    removed: int = 0
    stop_reason: str | None = None
    wasteful: bool | None = None

    @property
    def traps(self) -> bool:
        """Whether more is asked than an answer."""
        return bool(self.unsaid or self.removed or self.stop_reason or self.wasteful is not None)


class Recipe(NamedTuple):
    """How an incident is generated: the same recipe gives the same folder and the same key.

    `hostile`: with orders to its reader in every field. `zoned`: each source writes its times in a zone of its own.
    """

    kind: str
    level: str
    seed: int
    hostile: bool = False
    zoned: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a set. `question` is asked instead of the folder's own, where there is one.

    A case with a `recipe` is generated when it is run, and learns only then what is expected of it. One with a
    `script` is decided by it, whatever planner the others have: it holds the program against a bad model. `plane`
    are switches of a small system to act on, where a person approves whatever is asked.
    """

    id: str
    set: str
    folder: Path
    expected: Expected
    question: str | None = None
    tags: tuple[str, ...] = ()
    bounds: Bounds = Bounds()
    recipe: Recipe | None = None
    script: tuple[Mapping[str, Any], ...] = ()
    plane: tuple[Mapping[str, Any], ...] | None = None


def load_set(source: Path, key: Path | None = None) -> Sequence[Case]:
    """The cases of a folder and its key, of a file of tasks, or of the sets called `builtin` and `traps`. Raises UsageError for one that is not usable."""
    if str(source) == BUILTIN and not source.exists():
        from opsleuth.evals.builtin import builtin_set  # noqa: PLC0415 - folders need no generator

        return builtin_set()
    if str(source) == TRAPS and not source.exists():
        from opsleuth.evals.traps import trap_set  # noqa: PLC0415 - the same

        return trap_set()
    if source.is_file():
        from opsleuth.evals.tasks import load_tasks  # noqa: PLC0415 - it takes its cases from here

        return load_tasks(source)
    from opsleuth.evals.tasks import entries  # noqa: PLC0415 - the same

    path = key or source / KEY
    try:
        raw = from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): give the key with --key FILE") from None
    except ValueError as error:
        raise UsageError(f"{path} is no JSON ({error}): the key maps case ids to answers") from None
    answers = entries(raw, path)
    missing = [case for case in answers if not (source / case).is_dir()]
    if missing or not answers:
        raise UsageError(
            f"{source} has no folder for {', '.join(missing[:3]) or 'any case'}: is it the set of this key?"
        )
    return [
        Case(
            id=case,
            set=source.resolve().name,
            folder=source / case,
            expected=expected(answer),
            tags=tuple(answer.get("tags", ())),
            bounds=bounds(answer),
        )
        for case, answer in sorted(answers.items())
    ]


def expected(answer: Mapping[str, Any]) -> Expected:
    """One answer of a key. A key without accepted lists accepts exactly what it names."""
    service, kind = answer.get("root_cause_service"), answer.get("kind")
    causes = answer.get("causes") or ()
    wanted = answer.get("expected")
    return Expected(
        verdict=answer.get("verdict") or ("cause_found" if service else "answered"),
        services=frozenset(answer.get("acceptable_services") or ()) | ({service} if service else set()),
        kinds=frozenset(answer.get("acceptable_kinds") or ()) | ({kind} if kind else set()),
        causes=tuple((c["service"], c["kind"]) for c in causes),
        must_not_blame=frozenset(answer.get("must_not_blame") or ()),
        fault_type=answer.get("fault_type") or answer.get("verdict") or "",
        lookup=answer.get("kind_of_question") == "lookup",
        answer=() if wanted is None else tuple(map(str, wanted if isinstance(wanted, list) else [wanted])),
        fields=answer.get("expected_fields") or {},
        advice=Advice(**answer["recommendations"]) if answer.get("recommendations") else None,
        untouchable=frozenset(answer.get("must_not_touch") or ()),
        unsaid=tuple(answer.get("must_not_say") or ()),
        removed=answer.get("removed", 0),
        stop_reason=answer.get("stop_reason"),
        wasteful=answer.get("wasteful"),
    )


def bounds(answer: Mapping[str, Any]) -> Bounds:
    """What a right answer may cost, from a key's `at_most`."""
    return Bounds(**(answer.get("at_most") or {}))
