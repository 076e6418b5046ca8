"""A results file: what was run, the summary, one score per case and repeat. Written whole, so never half."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from opsleuth import __version__
from opsleuth.evals.score import Score
from opsleuth.evals.summary import summarise
from opsleuth.models.prompting import prompt
from opsleuth.state.canonical import canonical, digest, from_json
from opsleuth.state.configfile import problems
from opsleuth.state.errors import UsageError
from opsleuth.state.replacing import replacing

Document = dict[str, Any]
PROMPTS = ("planner", "json", "reviewer")
Key = tuple[str, str, int]
"""What makes two scores the same case: set, case, repeat."""

_SCORES = TypeAdapter(list[Score])


def key_of(score: Score) -> Key:
    return score.set, score.case, score.repeat


def made_by(
    planner: str, model: Mapping[str, Any] | None = None, limits: Mapping[str, Any] | None = None
) -> Document:
    """Who decided, under which limits, by which version and prompts: scores of two such makers never mix.

    Of a model its name is told, and its settings as a digest: they say where its key lies.
    """
    return {
        "planner": planner,
        "model": model["model"] if model else None,
        "model_settings": digest(dict(model))[:12] if model else None,
        "limits": from_json(canonical(dict(limits or {}))),
        "version": __version__,
        "prompts": digest([prompt(name).hash for name in PROMPTS])[:12],
    }


def difference(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What makes stored results those of another maker, in words; empty where nothing does."""
    for name, value in wanted.items():
        if name not in stored:
            return f"results that do not say their {name}"
        if stored[name] != value:
            return f"results of the {name} {stored[name]}, not {value}"
    return ""


def document(name: str, made: Mapping[str, Any], scores: Sequence[Score]) -> Document:
    """The results document of these scores; `made` is what `made_by` tells."""
    return {
        "set": name,
        **made,
        "summary": summarise(scores),
        "scores": [score.to_json() for score in scores],
    }


def save(path: Path, results: Mapping[str, Any]) -> None:
    """Put the document in the file's place when it is whole."""
    with replacing(path) as place:
        place.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")


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
    try:
        _SCORES.validate_python(found["scores"])
    except ValidationError as error:
        raise UsageError(f"{path} was changed, its scores cannot be read: {problems(error)}") from None
    return found


def scores_in(results: Mapping[str, Any]) -> list[Score]:
    """The scores of a results document."""
    return [Score.of(stored) for stored in results["scores"]]
