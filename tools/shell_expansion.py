"""What a shell would make of a text before it runs it, as far as that can be told from the text alone.

Variables that the text itself sets, `${IFS}`, defaults, `$'…'`, braces, line continuations and `$(echo …)` are put in.
What needs more than the text (another variable, a file, a pattern of names) cannot be read, and is said to be so.
"""

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

MOST_PASSES = 6
MOST_BRACES = 64
_CONTINUED = re.compile(r"\\\n")
_FIELD_SEPARATOR = re.compile(r"\$\{IFS[^}]*\}|\$IFS(?![A-Za-z0-9_])")
_POSITIONAL = re.compile(r"\$(?:[0-9@*]|\{[0-9@*]+\})")
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'")
_TRANSLATED = re.compile(r'\$"')
_ASSIGNED = re.compile(r"""(?:^|[\s;&|({"'])([A-Za-z_]\w*)\+?=("[^"]*"|'[^']*'|[^\s;&|()"']*)""")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?[-=+]([^{}]*))?\}|([A-Za-z_]\w*))")
_SUBSTITUTION = re.compile(r"\$\(\s*(?:echo|printf)\s+([^()`$\\%]*)\)|`\s*(?:echo|printf)\s+([^`$\\%]*)`")
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_LEFT = re.compile(r"\$[A-Za-z_{(\[]|`|\$'")
_SEQUENCE = re.compile(r"\{[^{}\s]+\.\.[^{}\s]+\}")
_GLOB = re.compile(r"(?<!\\)[*?\[]")
_PARTS = re.compile(r"\|\||&&|[;|&\n]")
_PRINTS = re.compile(r"(?:^|[\s\"']|(?<!\$)\()(?:echo|printf|true|:)\s", re.IGNORECASE)
"""A command that only prints its words, whatever they become."""
_NAMES_LATER = frozenset({"alias", "read", "mapfile", "readarray", "source", ".", "trap", "getopts"})
"""Commands after which the text alone does not say what a word means."""


class ExpandedText(NamedTuple):
    """The text after all expansions, and whether something in it is still open."""

    text: str
    is_open: bool


def expand_shell_text(text: str) -> ExpandedText:
    """The text with what can be put in; open where a shell would put in something that is unknown here."""
    values = {name: _join_unquoted(value) for name, value in _ASSIGNED.findall(text)}
    positional = bool(_POSITIONAL.search(text))  # empty as a rule, but a wrapper may give them
    for _ in range(MOST_PASSES):
        before, text = text, _expand_once(text, values)
        if text == before:
            break
        values |= {name: _join_unquoted(value) for name, value in _ASSIGNED.findall(text)}
    return ExpandedText(text, positional or any(map(_is_open, _PARTS.split(text))))


def _is_open(part: str) -> bool:
    """Whether a shell would put something into this command that is unknown here; what only prints it does no harm."""
    asked = _PRINTS.split(part, maxsplit=1)[0]
    return bool(_LEFT.search(asked) or _SEQUENCE.search(asked))


def has_open_command(words: list[str]) -> bool:
    """Whether the words of a command hide what it runs: its name is a pattern, or names change meaning."""
    return bool(words) and (
        words[0] in _NAMES_LATER or bool(_GLOB.search(words[0])) or words[:2] == ["printf", "-v"]
    )


def _expand_once(text: str, values: Mapping[str, str]) -> str:
    text = _CONTINUED.sub("", text)
    text = _FIELD_SEPARATOR.sub(" ", text)
    text = _POSITIONAL.sub("", text)
    text = _ANSI_C.sub(lambda found: shlex.quote(_decode_escapes(found[1])), text)
    text = _TRANSLATED.sub('"', text)
    text = _VARIABLE.sub(lambda found: _value_of(found, values), text)
    text = _SUBSTITUTION.sub(lambda found: _join_unquoted(found[1] or found[2] or ""), text)
    return _expand_braces(text)


def _value_of(found: re.Match[str], values: Mapping[str, str]) -> str:
    name, default = found[1] or found[3], found[2]
    if name in values:
        return values[name]
    return default if default is not None else found[0]


def _expand_braces(text: str) -> str:
    """Each word with braces as the words that they stand for."""
    for _ in range(MOST_BRACES):
        found = _BRACES.search(text)
        if found is None:
            return text
        start = max(text.rfind(c, 0, found.start()) for c in " \t\n;|&(") + 1
        ends = [at for c in " \t\n;|&)" if (at := text.find(c, found.end())) >= 0]
        end = min(ends, default=len(text))
        before, after = text[start : found.start()], text[found.end() : end]
        words = " ".join(f"{before}{part}{after}" for part in found[1].split(","))
        text = text[:start] + words + text[end:]
    return text


def _decode_escapes(text: str) -> str:
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return text


def _join_unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return value
