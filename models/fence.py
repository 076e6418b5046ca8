r"""Text from logs, tools and alerts on its way to a model: fenced, labelled as data, unable to leave its fence.

Inside a fence stands JSON (or single lines), in which every `<` is spelled `\u003c`: no text can close the fence
or open another one. Characters that hide or reorder text are spelled out too.
"""

from typing import Any

from opsleuth.checkpoints.harmless import harmless, harmless_json
from opsleuth.state.canonical import canonical

OPEN, CLOSE = "<data>", "</data>"


def question(text: str, *, outside: bool) -> str:
    """What is asked: an operator's word, or that of an alert, which is data."""
    if outside:
        return f"Question: what is behind this alert?\n{fenced_lines([text])}"
    return f"Question of the operator: {inert(text)}"


def fenced(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A JSON value inside a fence."""
    return f"{OPEN}\n{inert(canonical(harmless_json(value)))}\n{CLOSE}"


def fenced_lines(lines: list[str]) -> str:
    """Single lines inside one fence."""
    return "\n".join([OPEN, *map(one_line, lines), CLOSE])


def one_line(text: str) -> str:
    """The text as one line that can neither close or open a fence nor hide or reorder what stands in it."""
    return inert(" ".join(harmless(text).split()))


def inert(text: str) -> str:
    """The text without a character that could open or close a fence."""
    return text.replace("<", "\\u003c")
