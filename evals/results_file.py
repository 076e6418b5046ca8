"""A results file: what was run, the summary, one score per case and repeat. Written whole, so never half."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from opsleuth import __version__
from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.evals.score import CaseScore
from opsleuth.evals.summary import summarize_scores
from opsleuth.models.prompt_files import load_prompt
from opsleuth.state.atomic_write import replace_file_atomically
from opsleuth.state.canonical_json import canonical_sha256, parse_json_text, to_canonical_json
from opsleuth.state.errors import UsageError

Document = dict[str, Any]
PROMPTS = ("planner", "json", "reviewer")
Key = tuple[str, str, int]
"""What makes two scores the same case: set, case, repeat."""

_SCORES = TypeAdapter(list[CaseScore])


def score_key(score: CaseScore) -> Key:
    return score.set, score.case, score.repeat


def describe_eval_setup(
    planner: str, model: Mapping[str, Any] | None = None, limits: Mapping[str, Any] | None = None
) -> Document:
    """Who decided, under which limits, by which version and prompts: scores of two such makers never mix.

    Of a model its name is told, and its settings as a digest: they say where its key lies.
    """
    return {
        "planner": planner,
        "model": model["model"] if model else None,
        "model_settings": canonical_sha256(dict(model))[:12] if model else None,
        "limits": parse_json_text(to_canonical_json(dict(limits or {}))),
        "version": __version__,
        "prompts": canonical_sha256([load_prompt(name).hash for name in PROMPTS])[:12],
    }


def explain_setup_difference(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What makes stored results those of another maker, in words; empty where nothing does."""
    for name, value in wanted.items():
        if name not in stored:
            return f"results that do not say their {name}"
        if stored[name] != value:
            return f"results of the {name} {stored[name]}, not {value}"
    return ""


def build_results_document(name: str, made: Mapping[str, Any], scores: Sequence[CaseScore]) -> Document:
    """The results document of these scores; `made` is what `made_by` tells."""
    return {
        "set": name,
        **made,
        "summary": summarize_scores(scores),
        "scores": [score.to_json() for score in scores],
    }


def save_results(path: Path, results: Mapping[str, Any]) -> None:
    """Put the document in the file's place when it is whole."""
    with replace_file_atomically(path) as place:
        place.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")


def load_results(path: Path) -> Document:
    """A results document. Raises UsageError for any other file."""
    try:
        found = parse_json_text(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(
            f"{path} is not a results file ({error}): write one with opsleuth eval run SET -o FILE"
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("scores"), list):
        raise UsageError(f"{path} is not a results file: write one with opsleuth eval run SET -o FILE")
    try:
        _SCORES.validate_python(found["scores"])
    except ValidationError as error:
        raise UsageError(
            f"{path} was changed, its scores cannot be read: {format_validation_errors(error)}"
        ) from None
    return found


def read_scores(results: Mapping[str, Any]) -> list[CaseScore]:
    """The scores of a results document."""
    return [CaseScore.of(stored) for stored in results["scores"]]
