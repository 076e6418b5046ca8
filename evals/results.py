"""A results file: what was run, the summary, one score per case and repeat. Written whole, so never half."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opsleuth import __version__
from opsleuth.evals.score import Score
from opsleuth.evals.summary import summarise
from opsleuth.state.canonical import from_json
from opsleuth.state.errors import UsageError

Document = dict[str, Any]
Key = tuple[str, str, int]
"""What makes two scores the same case: set, case, repeat."""


def key_of(score: Score) -> Key:
    return score.set, score.case, score.repeat


def document(name: str, planner: str, scores: Sequence[Score]) -> Document:
    """The results document of these scores."""
    return {
        "set": name,
        "planner": planner,
        "version": __version__,
        "summary": summarise(scores),
        "scores": [score.to_json() for score in scores],
    }


def save(path: Path, results: Mapping[str, Any]) -> None:
    """Put the document in the file's place when it is whole."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")
    part.replace(path)


def load(path: Path) -> Document:
    """A results document. Raises UsageError for a file that is none."""
    try:
        found = from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(
            f"{path} is no results file ({error}): write one with opsleuth eval run SET -o FILE"
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("scores"), list):
        raise UsageError(f"{path} is no results file: write one with opsleuth eval run SET -o FILE")
    return found


def scores_in(results: Mapping[str, Any]) -> list[Score]:
    """The scores of a results document."""
    return [Score.of(stored) for stored in results["scores"]]
