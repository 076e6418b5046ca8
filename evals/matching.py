"""An answer and its fields held against what was expected: right or not, and apart from it how much of it was right."""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from opsleuth.evals.cases import Expected

TOLERANCE = 1e-3
"""Relative difference up to which two numbers are the same: what rounding to four digits leaves."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SPACES = re.compile(r"\s+")


class Match(NamedTuple):
    """`exact`: all that was expected is there. `partial`: the share of it that is, 0 to 1."""

    exact: bool
    partial: float


def match(expected: Expected, report: Mapping[str, Any]) -> Match | None:
    """How the answer and the fields of a report fit; None where the case expects nothing of them."""
    text, fields = str(report.get("answer") or ""), report.get("fields") or {}
    found = [holds(part, text) for part in expected.answer]
    found += [same(value, fields.get(name)) for name, value in expected.fields.items()]
    return Match(all(found), round(sum(found) / len(found), 4)) if found else None


def holds(part: str, text: str) -> bool:
    """Whether a text says this: a number anywhere in it in any spelling, else the words, whatever their case."""
    number = _number(part)
    if number is not None:
        return any(_close(number, float(found.replace(",", ""))) for found in _NUMBER.findall(text))
    plain = re.escape(_plain(part))
    edge = r"(?<![\w-])" if part[:1].isascii() and part[:1].isalnum() else ""
    end = r"(?![\w-])" if part[-1:].isascii() and part[-1:].isalnum() else ""
    return re.search(edge + plain + end, _plain(text)) is not None


def same(wanted: Any, given: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Whether a field's value is the expected one: numbers within rounding, times as instants, texts in any case."""
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and all(same(v, given.get(k)) for k, v in wanted.items())
    if isinstance(wanted, list):
        given = given if isinstance(given, list) else []
        return len(wanted) == len(given) and all(map(same, wanted, given))
    if isinstance(wanted, bool) or isinstance(given, bool) or wanted is None or given is None:
        return wanted is given
    numbers, moments = (_number(wanted), _number(given)), (_moment(wanted), _moment(given))
    if numbers[0] is not None and numbers[1] is not None:
        return _close(numbers[0], numbers[1])
    if moments[0] is not None and moments[1] is not None:
        return moments[0] == moments[1]
    return _plain(str(wanted)) == _plain(str(given))


def _close(wanted: float, given: float) -> bool:
    return math.isclose(wanted, given, rel_tol=TOLERANCE, abs_tol=1e-12)


def _number(value: Any) -> float | None:  # noqa: ANN401 - any JSON value
    if isinstance(value, int | float):
        return float(value)
    found = _NUMBER.fullmatch(str(value).strip())
    return float(found[0].replace(",", "")) if found else None


def _moment(value: Any) -> datetime | None:  # noqa: ANN401 - any JSON value
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()
