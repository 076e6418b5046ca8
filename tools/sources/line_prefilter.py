"""What a store or a program can look for in raw lines, so that few of them have to be fetched and read.

A pattern is in every line that a search wants, and may be in others: what is found is checked against the search again,
so results are those of looking at every line. Where no such pattern can be given there is none.
"""

import re

# Beyond ASCII, what holds an ASCII letter once case is folded (`str.casefold`): a ligature, a long s.
FOLDED = "ßİŉſǰẖẗẘẙẚẞ\u212aﬀﬁﬂﬃﬄﬅﬆ"
# In a JSON line, what is read in a form of our own: values of a message that are not text, and numbers that are written
# otherwise than we write them; and the places in a message template, which its values are put into.
_NAMES = (
    "message|msg|log|text|event|MESSAGE|Message|body|textPayload|jsonPayload|protoPayload|short_message|record|pod|pod_name"
    "|kubernetes\\.pod_name|container_id"
)
_REWRITTEN = rf'"(?:{_NAMES})"\s*:\s*[^"\s]|:\s*-?(?:\d+\.\d*0[,}}\s\]]|\d+(?:\.\d+)?[eE]|0[,}}\s\]]|[\d.]{{16}})|"@mt"\s*:'
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_PLAIN = re.compile(r"[\x20-\x7e]+")


def can_prefilter(text: str) -> bool:
    """Whether the text is of printable ASCII: the case of others is not the same everywhere."""
    return _PLAIN.fullmatch(text) is not None


def escape_regex(text: str) -> str:
    """The text as a regular expression of Go and Rust, which refuse escapes that are not needed."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)


def caseless_pattern(text: str) -> str:
    """A pattern of every string that holds the text in any case, as `str.casefold` compares."""
    return f"(?i:{escape_regex(text)})|[{FOLDED}]"


def raw_line_pattern(text: str) -> str:
    """The same for raw lines out of which `logformat` reads a message: an escape in one may stand for anything.

    Colours of a terminal are taken out of a line.
    """
    return rf"{caseless_pattern(text)}|\\|\x1b|{_REWRITTEN}"


def of_file_lines(text: str) -> str:
    """The same for lines of files, where a sharp s may be one byte: a regular expression of Rust alone."""
    return rf"{raw_line_pattern(text)}|(?-u:\xdf)"
