r"""Text from logs, tools and alerts on its way to a model: fenced, labelled as data, unable to leave its fence.

Inside a fence stands JSON (or single lines), in which every `<` is spelled `\u003c`: no text can close the fence
or open another one. Characters that hide or reorder text are spelled out too.
"""

from typing import Any

from opsleuth.checkpoints.harmless import harmless, harmless_json
from opsleuth.state.canonical import canonical

OPEN, CLOSE = "<data>", "</data>"


def fenced(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A JSON value inside a fence."""
    return f"{OPEN}\n{inert(canonical(harmless_json(value)))}\n{CLOSE}"


def fenced_lines(lines: list[str]) -> str:
    """Single lines inside one fence."""
    return "\n".join([OPEN, *(inert(" ".join(harmless(line).split())) for line in lines), CLOSE])


def inert(text: str) -> str:
    """The text without a character that could open or close a fence."""
    return text.replace("<", "\\u003c")
