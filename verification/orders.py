"""Text of a source that gives orders to whoever reads it, or claims that something was approved.

Such text changes nothing: it is data, and an approval is a row that a person wrote. That it was there is worth
knowing: either somebody tries to steer the investigation, or a system writes odd messages.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

MARKS = (
    "ignore", "disregard", "forget", "override", "bypass", "approved", "authori", "approval", "system prompt", "you are now",
    "tool_call", "function_call", "im_start", "[inst]", '"tool"', "restart", "reboot", "roll back", "rollback", "delete",
    "shut down",
)  # fmt: skip
"""One of these stands in every order that is known, so that other text costs a look and no more."""

_REGEX = r"""(?x)
  \b(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){0,3}
      (?:instructions?|rules?|prompts?|guidelines|polic(?:y|ies)|approvals?)\b
| \b(?:approved|authori[sz]ed)\s+by\s+(?:\w+\s+){0,2}(?:admin|administrator|operator|root|management|on-?call)\b
| \b(?:no\s+(?:further\s+)?approval\s+(?:is\s+)?(?:needed|required)|without\s+(?:asking|approval)\b)
| \bapproval\s+(?:is\s+|was\s+|has\s+been\s+)?(?:granted|given|not\s+(?:needed|required))\b
| \byou\s+are\s+now\s+(?:an?|the|in)\b | \bsystem\s+prompt\b
| </?(?:tool|function)_calls?> | <\|im_start\|> | \[inst\] | "(?:tool|function)_calls?"\s*:
| "tool"\s*:\s*"\w{1,80}"\s*,\s*"(?:arguments|args|parameters|input)"\s*:
| \b(?:assistant|ai\ agent|agent|opsleuth)\s*[:,]\s*(?:please\s+|now\s+|you\s+must\s+)?
      (?:restart|reboot|roll\ ?back|delete|scale|run|execute|stop|kill|shut\ down)\b
| \b(?:restart|reboot|roll\ back|rollback|delete|shut\ down)\s+(?:the\s+)?[\w./-]{1,80}\s+
      (?:now|immediately|at\ once|right\ away)\b
"""
BEFORE, LONGEST = 40, 160
"""Characters that are quoted: before the order, and in all."""

_order = cache(re.compile)


def order_in(record: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """The first order in the texts of a record, quoted with what stands around it on its line; None without one."""
    return next(filter(None, map(_found, _texts(record))), None)


def orders(records: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, str]]:
    """The ids of those records that hold an order, each with its quotation."""
    for name, record in records:
        if quoted := order_in(record):
            yield name, quoted


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _found(text: str) -> str | None:
    low = text.lower()
    if not any(mark in low for mark in MARKS) or (match := _order(_REGEX).search(low)) is None:
        return None
    if len(low) != len(text):  # a letter that becomes two moves what stands after it
        text = low
    start = max(text.rfind("\n", 0, match.start()) + 1, match.start() - BEFORE)
    end = text.find("\n", match.end())
    return text[start : min(end if end >= 0 else len(text), start + LONGEST)].strip()
