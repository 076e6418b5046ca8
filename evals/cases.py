"""A set of cases: a folder of case folders and its key, which lies outside every one of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsleuth.state.errors import UsageError

KEY = "answers.json"


@dataclass(frozen=True, slots=True)
class Expected:
    """What the key says of one case. `services` and `kinds` hold every accepted answer."""

    verdict: str
    services: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    causes: tuple[tuple[str, str], ...] = ()
    must_not_blame: frozenset[str] = frozenset()
    fault_type: str = ""
    lookup: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a set."""

    id: str
    folder: Path
    expected: Expected


def load_set(folder: Path, key: Path | None = None) -> Sequence[Case]:
    """The cases of the set in `folder`, by id. Raises UsageError for a set or key that is not usable."""
    path = key or folder / KEY
    try:
        answers = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): give the key with --key FILE") from None
    except ValueError as error:
        raise UsageError(f"{path} is no JSON ({error}): the key maps case ids to answers") from None
    missing = [case for case in answers if not (folder / case).is_dir()]
    if missing or not answers:
        raise UsageError(
            f"{folder} has no folder for {', '.join(missing[:3]) or 'any case'}: is it the set of this key?"
        )
    return [Case(case, folder / case, expected(answer)) for case, answer in sorted(answers.items())]


def expected(answer: Mapping[str, Any]) -> Expected:
    """One answer of a key. A key without accepted lists accepts exactly what it names."""
    service, kind = answer.get("root_cause_service"), answer.get("kind")
    causes = answer.get("causes") or ()
    return Expected(
        verdict=answer.get("verdict") or ("cause_found" if service else "answered"),
        services=frozenset(answer.get("acceptable_services") or ()) | ({service} if service else set()),
        kinds=frozenset(answer.get("acceptable_kinds") or ()) | ({kind} if kind else set()),
        causes=tuple((c["service"], c["kind"]) for c in causes),
        must_not_blame=frozenset(answer.get("must_not_blame") or ()),
        fault_type=answer.get("fault_type") or answer.get("verdict") or "",
        lookup=answer.get("kind_of_question") == "lookup",
    )
