"""Wrong arguments in words: which argument, what was sent, what is accepted, the nearest valid name."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from opsleuth.tools.bounds import cut_text
from opsleuth.tools.nearest import suggestion
from opsleuth.tools.spec import ToolSpec

_MOST = 4


def explain(spec: ToolSpec, error: ValidationError) -> str:
    """What is wrong with a request for `spec`, the worst first, and a form that is accepted."""
    problems = error.errors(include_url=False)
    names = list(spec.arguments.model_fields)
    said = [_problem(problem, names) for problem in problems[:_MOST]]
    if len(problems) > _MOST:
        said.append(f"and {len(problems) - _MOST} more")
    return f"{spec.name}: {'; '.join(said)}. {accepted_form(spec)}".rstrip()


def accepted_form(spec: ToolSpec) -> str:
    if not spec.example:
        return ""
    return f"Accepted form, for example: {json.dumps(spec.example, ensure_ascii=False)}"


def _problem(problem: ErrorDetails, names: list[str]) -> str:
    where = ".".join(str(part) for part in problem["loc"]) or "the arguments"
    wording = _WORDINGS.get(problem["type"])
    if wording:
        return wording(where, problem, names)
    return f"{where}={_shown(problem['input'])}: {problem['msg']}"


def _extra(where: str, _: ErrorDetails, names: list[str]) -> str:
    return f"there is no argument {where!r} ({suggestion(where, names)})"


def _missing(where: str, _: ErrorDetails, __: list[str]) -> str:
    return f"the argument {where!r} is required"


def _literal(where: str, problem: ErrorDetails, _: list[str]) -> str:
    choices = re.findall(r"'([^']*)'", str(problem.get("ctx", {}).get("expected", "")))
    return f"{where}={_shown(problem['input'])} is none of its choices ({suggestion(str(problem['input']), choices)})"


def _typed(wanted: str) -> Callable[[str, ErrorDetails, list[str]], str]:
    def say(where: str, problem: ErrorDetails, _: list[str]) -> str:
        return f"{where}={_shown(problem['input'])} must be {wanted}"

    return say


def _custom(where: str, problem: ErrorDetails, _: list[str]) -> str:
    given = problem["input"]
    return problem["msg"] if isinstance(given, Mapping) else f"{where}={_shown(given)} {problem['msg']}"


_WORDINGS: dict[str, Callable[[str, ErrorDetails, list[str]], str]] = {
    "extra_forbidden": _extra,
    "missing": _missing,
    "literal_error": _literal,
    "int_type": _typed("an integer, not in quotes"),
    "int_from_float": _typed("an integer without fraction"),
    "float_type": _typed("a number, not in quotes"),
    "string_type": _typed("a text in quotes"),
    "bool_type": _typed("true or false, not in quotes"),
    "list_type": _typed("a list"),
    "tuple_type": _typed("a list"),
    "time": _custom,
    "zoneless": _custom,
    "order": _custom,
    "foreign": _custom,
}


def _shown(value: Any) -> str:  # noqa: ANN401 - what the planner sent
    return cut_text(json.dumps(value, ensure_ascii=False, default=repr), 80)
