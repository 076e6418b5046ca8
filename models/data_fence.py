r"""Text from logs, tools and alerts on its way to a model: fenced, labelled as data, unable to leave its fence.

Inside a fence stands JSON (or single lines), in which every `<` is spelled `\u003c`: no text can close the fence
or open another one. Characters that hide or reorder text are spelled out too.
"""

from opsleuth.redaction.control_characters import escape_control_characters, harmless_json
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.json_types import JSON

OPEN, CLOSE = "<data>", "</data>"


def render_question(text: str, *, outside: bool) -> str:
    """The question: an operator's words, or an alert's, which are data."""
    if outside:
        return f"Question: what is behind this alert?\n{fence_lines([text])}"
    return f"Question of the operator: {escape_fence(text)}"


def fence_json(value: JSON) -> str:
    """A JSON value inside a fence."""
    return f"{OPEN}\n{escape_fence(to_canonical_json(harmless_json(value)))}\n{CLOSE}"


def fence_lines(lines: list[str]) -> str:
    """Single lines inside one fence."""
    return "\n".join([OPEN, *map(one_line, lines), CLOSE])


def one_line(text: str) -> str:
    """The text as one line that can neither close or open a fence nor hide or reorder what appears in it."""
    return escape_fence(" ".join(escape_control_characters(text).split()))


def escape_fence(text: str) -> str:
    """The text without a character that could open or close a fence."""
    return text.replace("<", "\\u003c")
