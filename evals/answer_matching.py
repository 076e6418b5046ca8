"""An answer and its fields compared with what was expected: right or not, and how much of it was right."""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from opsleuth.evals.cases import ExpectedReport
from opsleuth.state.json_types import JSON

TOLERANCE = 1e-3
"""Relative difference up to which two numbers are the same: what rounding to four digits leaves."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SPACES = re.compile(r"\s+")


class AnswerMatch(NamedTuple):
    """`exact`: all that was expected is there. `partial`: the share of it that is, 0 to 1."""

    exact: bool
    partial: float


def match_report(expected: ExpectedReport, report: Mapping[str, Any]) -> AnswerMatch | None:
    """How the answer and the fields of a report fit; None where the case expects nothing of them."""
    text, fields = str(report.get("answer") or ""), report.get("fields") or {}
    found = [text_contains(part, text) for part in expected.answer]
    found += [values_match(value, fields.get(name)) for name, value in expected.fields.items()]
    return AnswerMatch(all(found), round(sum(found) / len(found), 4)) if found else None


def text_contains(part: str, text: str) -> bool:
    """Whether a text says this: a number anywhere in it in any spelling, else the words, whatever their case."""
    number = _parse_number(part)
    if number is not None:
        return any(_numbers_match(number, float(found.replace(",", ""))) for found in _NUMBER.findall(text))
    plain = re.escape(_normalize_text(part))
    edge = r"(?<![\w-])" if part[:1].isascii() and part[:1].isalnum() else ""
    end = r"(?![\w-])" if part[-1:].isascii() and part[-1:].isalnum() else ""
    return re.search(edge + plain + end, _normalize_text(text)) is not None


def values_match(wanted: JSON, given: JSON) -> bool:
    """Whether a field's value is the expected one: numbers within rounding, times as instants, texts in any case."""
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and all(values_match(v, given.get(k)) for k, v in wanted.items())
    if isinstance(wanted, list):
        given = given if isinstance(given, list) else []
        return len(wanted) == len(given) and all(map(values_match, wanted, given))
    if isinstance(wanted, bool) or isinstance(given, bool) or wanted is None or given is None:
        return wanted is given
    numbers, moments = (
        (_parse_number(wanted), _parse_number(given)),
        (_parse_zoned_time(wanted), _parse_zoned_time(given)),
    )
    if numbers[0] is not None and numbers[1] is not None:
        return _numbers_match(numbers[0], numbers[1])
    if moments[0] is not None and moments[1] is not None:
        return moments[0] == moments[1]
    return _normalize_text(str(wanted)) == _normalize_text(str(given))


def _numbers_match(wanted: float, given: float) -> bool:
    return math.isclose(wanted, given, rel_tol=TOLERANCE, abs_tol=1e-12)


def _parse_number(value: JSON) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    found = _NUMBER.fullmatch(str(value).strip())
    return float(found[0].replace(",", "")) if found else None


def _parse_zoned_time(value: JSON) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _normalize_text(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()
