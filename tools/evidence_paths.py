"""References into stored evidence: `E3:points[0].value`, `E3:points[*].value`, `E3:by_service["a.b"]`.

A reference is an evidence id and a path. A path has names, places in lists (`[0]`, `[-1]` from the end), quoted
names, and `[*]` for every item of a list. Nothing is evaluated.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opsleuth.state.calls import ResultStatus
from opsleuth.state.json_types import JSON
from opsleuth.state.nearest_name import suggest_names
from opsleuth.state.plurals import format_count
from opsleuth.tools.spec import EvidenceBody, InvalidArgumentsError

PathStep = str | int | None
"""A name, a place in a list, or None for every item."""

FORM = "a reference looks like E3:points[0].value or E3:points[*].value"
_REFERENCE = re.compile(r"(E[1-9]\d{0,6})(?::(.*))?", re.DOTALL)
_STEP = re.compile(
    r"""\.?(?P<name>[^\W\d][\w-]*)            # a plain name
      | \[(?P<place>-?\d{1,9})\]              # a place in a list
      | \[(?P<every>\*)\]                     # every item
      | \[(?P<quoted>"(?:[^"\\]|\\.)*")\]     # a name in quotes, as JSON writes it
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class EvidenceReference:
    """An evidence id and the way into its record."""

    evidence: str
    steps: tuple[PathStep, ...]

    def __str__(self) -> str:
        return f"{self.evidence}:{format_path(self.steps)}"

    @property
    def many(self) -> bool:
        return None in self.steps


def parse_reference(text: str) -> EvidenceReference:
    """Raises InvalidArgumentsError that shows the form."""
    found = _REFERENCE.fullmatch(text.strip())
    if found is None:
        raise InvalidArgumentsError(f"{text!r} is not a reference: {FORM}")
    return EvidenceReference(found[1], parse_path(found[2] or ""))


def parse_path(text: str) -> tuple[PathStep, ...]:
    """The steps of a path; the empty path is the whole record. Raises InvalidArgumentsError."""
    steps: list[PathStep] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (found["name"] and (text[at] == ".") != bool(steps)):
            raise InvalidArgumentsError(f"cannot read the path {text!r} from {text[at:]!r} on: {FORM}")
        steps.append(_step_from_match(found))
        at = found.end()
    return tuple(steps)


def _step_from_match(found: re.Match[str]) -> PathStep:
    if found["name"]:
        return found["name"]
    if found["quoted"]:
        return _unquote_name(found["quoted"])
    return None if found["every"] else int(found["place"])


def _unquote_name(text: str) -> str:
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        raise InvalidArgumentsError(f"{text} is not JSON") from None


def format_path(steps: tuple[PathStep, ...]) -> str:
    """The path in its one spelling, which `parse_path` reads back."""
    text = ""
    for step in steps:
        if step is None:
            text += "[*]"
        elif isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[^\W\d][\w-]*", step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step)}]"
    return text


def find_evidence(evidence: Callable[[str], EvidenceBody | None], name: str) -> EvidenceBody:
    """The stored body. Raises InvalidArgumentsError if this run has no such evidence."""
    body = evidence(name)
    if body is None:
        raise InvalidArgumentsError(f"this run has no evidence {name}: use an id from an observation")
    return body


def require_usable_evidence(body: EvidenceBody) -> EvidenceBody:
    """The body if one may calculate with it. Raises InvalidArgumentsError for errors and for what was not recorded."""
    if body.status.is_error or body.status is ResultStatus.NOT_RECORDED:
        raise InvalidArgumentsError(
            f"{body.id} holds no data ({body.status}): nothing can be calculated from it"
        )
    return body


def values_at(record: JSON, steps: tuple[PathStep, ...], where: str) -> list[Any]:
    """The values that the steps lead to: one, or one for each item where a step is None.

    `where` is how messages call the record. Raises InvalidArgumentsError that names the choices at the wrong step.
    """
    current = [record]
    for number, step in enumerate(steps):
        place = f"{where}:{format_path(steps[:number])}" if number else where
        current = [value for one in current for value in _take_step(one, step, place)]
    return current


def _take_step(value: JSON, step: PathStep, where: str) -> list[Any]:
    if isinstance(step, str):
        return [_take_field(value, step, where)]
    if not isinstance(value, list | tuple):
        raise InvalidArgumentsError(f"{where} is {_describe_json_kind(value)}, not a list")
    if step is None:
        return list(value)
    if not -len(value) <= step < len(value):
        raise InvalidArgumentsError(f"{where} has {format_count(len(value), 'item')}: there is no [{step}]")
    return [value[step]]


def _take_field(value: JSON, name: str, where: str) -> JSON:
    if not isinstance(value, Mapping):
        raise InvalidArgumentsError(f"{where} is {_describe_json_kind(value)}, it has no field {name!r}")
    if name not in value:
        raise InvalidArgumentsError(f"{where} has no field {name!r} ({suggest_names(name, map(str, value))})")
    return value[name]


def _describe_json_kind(value: JSON) -> str:
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else json.dumps(value, ensure_ascii=False)[:60]
