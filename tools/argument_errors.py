"""Wrong arguments in words: which argument, what was sent, what is accepted, the nearest valid name."""

import json
import re
from collections.abc import Callable, Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from opsleuth.state.json_types import JSON
from opsleuth.state.nearest_name import suggest_names
from opsleuth.tools.spec import ToolSpec
from opsleuth.tools.truncation import cut_text

_MOST = 4


def explain_invalid_arguments(spec: ToolSpec, error: ValidationError) -> str:
    """What is wrong with a request for `spec`, the worst first, and a form that is accepted."""
    problems = error.errors(include_url=False)
    names = list(spec.arguments.model_fields)
    said = [_describe_problem(problem, names) for problem in problems[:_MOST]]
    if len(problems) > _MOST:
        said.append(f"and {len(problems) - _MOST} more")
    return f"{spec.name}: {'; '.join(said)}. {accepted_form(spec)}".rstrip()


def accepted_form(spec: ToolSpec) -> str:
    if not spec.example:
        return ""
    return f"Accepted form, for example: {json.dumps(spec.example, ensure_ascii=False)}"


def _describe_problem(problem: ErrorDetails, names: list[str]) -> str:
    where = ".".join(str(part) for part in problem["loc"]) or "the arguments"
    wording = _WORDINGS.get(problem["type"])
    if wording:
        return wording(where, problem, names)
    return f"{where}={_shorten_input(problem['input'])}: {problem['msg']}"


def _describe_extra_argument(where: str, _: ErrorDetails, names: list[str]) -> str:
    return f"there is no argument {where!r} ({suggest_names(where, names)})"


def _describe_missing_argument(where: str, _: ErrorDetails, __: list[str]) -> str:
    return f"the argument {where!r} is required"


def _describe_bad_choice(where: str, problem: ErrorDetails, _: list[str]) -> str:
    choices = re.findall(r"'([^']*)'", str(problem.get("ctx", {}).get("expected", "")))
    return f"{where}={_shorten_input(problem['input'])} is not one of its choices ({suggest_names(str(problem['input']), choices)})"


def _wrong_type_describer(wanted: str) -> Callable[[str, ErrorDetails, list[str]], str]:
    def say(where: str, problem: ErrorDetails, _: list[str]) -> str:
        return f"{where}={_shorten_input(problem['input'])} must be {wanted}"

    return say


def _describe_custom_error(where: str, problem: ErrorDetails, _: list[str]) -> str:
    given = problem["input"]
    return (
        problem["msg"] if isinstance(given, Mapping) else f"{where}={_shorten_input(given)} {problem['msg']}"
    )


_WORDINGS: dict[str, Callable[[str, ErrorDetails, list[str]], str]] = {
    "extra_forbidden": _describe_extra_argument,
    "missing": _describe_missing_argument,
    "literal_error": _describe_bad_choice,
    "int_type": _wrong_type_describer("an integer, not in quotes"),
    "int_from_float": _wrong_type_describer("a whole number"),
    "float_type": _wrong_type_describer("a number, not in quotes"),
    "string_type": _wrong_type_describer("a text in quotes"),
    "bool_type": _wrong_type_describer("true or false, not in quotes"),
    "list_type": _wrong_type_describer("a list"),
    "tuple_type": _wrong_type_describer("a list"),
    "time": _describe_custom_error,
    "zoneless": _describe_custom_error,
    "order": _describe_custom_error,
    "foreign": _describe_custom_error,
}


def _shorten_input(value: JSON) -> str:
    return cut_text(json.dumps(value, ensure_ascii=False, default=repr), 80)
