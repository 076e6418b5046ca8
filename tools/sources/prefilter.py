"""What a store or a program can look for in raw lines, so that few of them have to be fetched and read.

A pattern is in every line that a search wants, and may be in others: what is found is held against the search again,
so results are those of looking at every line. Where no such pattern can be given there is none.
"""

import re

# Beyond ASCII, what holds an ASCII letter once case is folded (`str.casefold`): a ligature, a long s.
FOLDED = "ßİŉſǰẖẗẘẙẚẞ\u212aﬀﬁﬂﬃﬄﬅﬆ"
# Values of these fields of a JSON line are read in a form of our own where they are no text.
_REWRITTEN = r'"(?:message|msg|log|text|event|pod|pod_name|kubernetes\.pod_name|container_id)"\s*:\s*[^"\s]'
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_PLAIN = re.compile(r"[\x20-\x7e]+")


def can_look_for(text: str) -> bool:
    """Whether the text is of printable ASCII: the case of others is not the same everywhere."""
    return _PLAIN.fullmatch(text) is not None


def quoted(text: str) -> str:
    """The text as a regular expression of Go and Rust, which refuse escapes that are not needed."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)


def folded(text: str) -> str:
    """A pattern of every string that holds the text in any case, as `str.casefold` compares."""
    return f"(?i:{quoted(text)})|[{FOLDED}]"


def of_raw_lines(text: str) -> str:
    """The same for raw lines out of which `logformat` reads a message: an escape in one may stand for anything."""
    return rf"{folded(text)}|\\|{_REWRITTEN}"
