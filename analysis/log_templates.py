"""Log templates: lines of the same statement reduced to one text, in bounded memory.

Variable parts are masked by their form (times, ids, addresses, quoted text, numbers). What is left is sorted
into a tree of fixed depth, number of words, then first words, and merged there with the first template that
agrees in enough words; words that differ become `<*>` (the idea of He et al., "Drain: An Online Log Parsing
Approach with Fixed Depth Tree", ICWS 2017).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import eq
from typing import NamedTuple, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
ANY = "<*>"
# Words after these say what was logged, not which statement logged it; the bound keeps long dumps cheap.
MAX_WORDS = 32
MAX_CHARACTERS = 600

_SOURCE_FILES = "py|java|kt|scala|go|js|ts|rb|php|cs|c|cc|cpp|rs|ex|swift"
# `some.pkg.Name#123` or `file.ext:123`: where in the code the line was written. Kept, for it names the statement.
_LOCATION = re.compile(
    rf"(?<!\S)(?:[\w.$\[\]/-]{{0,200}}[A-Za-z][\w$\]]{{0,200}}\#\d+|[\w./\\-]{{1,400}}\.(?:{_SOURCE_FILES}):\d+)(?=[\s\])>:,]|$)"
)
_SOURCE = re.compile(rf"\.(?:{_SOURCE_FILES}):\d")
_STRING = re.compile(r"\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`")
_TIME = re.compile(
    r"\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
)
_MOST_WORDS_REMEMBERED = 20_000
_MASKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (  # mail, IPv4 with prefix length or port, IPv6
        "<addr>",
        re.compile(
            r"\b[\w.+-]{1,100}@[\w-]{1,100}(?:\.[\w-]{1,100}){1,20}\b"
            r"|\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d+)?(?::\d+)?\b"
            r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}(?![\w:])"
            r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}(?![\w:])"
        ),
    ),
    (  # UUID, hexadecimal, and long words that mix letters and digits
        "<id>",
        re.compile(
            r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
            r"|\b0[xX][0-9a-fA-F]+\b"
            r"|\b(?=[a-fA-F]{0,400}\d)(?=\d{0,400}[a-fA-F])[0-9a-fA-F]{8,}+\b"
            r"|\b(?=[\w-]{0,400}?\d)(?=[\w-]{0,400}?[A-Za-z])[\w-]{20,}\b"
        ),
    ),
    ("<n>", re.compile(r"(?<![A-Za-z_])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?|\d+")),
)


def find_code_location(message: str) -> str | None:
    """Where in the code the line was written (`pkg.Name#12`, `app.py:7`), if the line itself says so."""
    found = _LOCATION.search(message[:MAX_CHARACTERS])
    return found.group() if found else None


def mask_log_line(message: str) -> str:
    """One line with its variable parts replaced by their form; a source location stays as it is."""
    text = message[:MAX_CHARACTERS]
    where = _find_location(text)
    return _truncate_words(_mask_around(text, where)) if where else _mask_words(text)


def _find_location(text: str) -> tuple[int, int] | None:
    found = _LOCATION.search(text) if "#" in text or _SOURCE.search(text) else None
    return found.span() if found else None


def _mask_around(text: str, where: tuple[int, int]) -> str:
    return f"{_mask_variable_parts(text[: where[0]])}{text[where[0] : where[1]]}{_mask_variable_parts(text[where[1] :])}"


def _mask_variable_parts(text: str) -> str:
    return _mask_within_words(_mask_across_words(text))


def _mask_words(text: str) -> str:
    """As masking all of the text and cutting it to its first words; equal words of many lines are masked once."""
    return " ".join(map(_mask_word, _mask_across_words(text).split()[:MAX_WORDS]))


def _mask_across_words(text: str) -> str:
    """The text without quotations and times, which alone may hold spaces."""
    if '"' in text or "'" in text or "`" in text:
        text = _STRING.sub("<str>", text)
    return _TIME.sub("<time>", text)


def _mask_within_words(text: str) -> str:
    for sign, pattern in _MASKS:
        text = pattern.sub(sign, text)
    return text


@lru_cache(maxsize=_MOST_WORDS_REMEMBERED)
def _mask_word(word: str) -> str:
    return word if word.isalpha() else _mask_within_words(word)


def _truncate_words(text: str) -> str:
    return " ".join(text.split()[:MAX_WORDS])


# No mask depends on which digit stands where, on which letters a long hexadecimal word has, or on how many digits a number
# that stands alone has: lines that differ in nothing else have one form, of which the mask is found once. Words that are
# not replaced keep their length, for a mask may depend on it.
_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_HEXADECIMAL = re.compile(
    r"[0a-fA-F]{8}(?<!\w.{8})(?<!0[-/].{8})(?:-(?:[0a-fA-F]{4}-){3}[0a-fA-F]{12}\b|[0a-fA-F]*\b)"
)
_UUID = "0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a"
UNITS = "ns|us|µs|ms|msecs?|millis|milliseconds?|secs?|seconds?|s|min|minutes|bytes?|[kKMG]i?B|B|%"
"""Units that may stand behind a number."""
LONE_NUMBER = re.compile(
    rf"\d(?<![\w.:,#/\-].)\d{{0,14}}(?:\.\d{{1,15}})?(?=\s?(?:{UNITS})(?![\w:/\-])|(?![\w:/\-]|\.\w))"
)
"""A number that is not part of a word, a time, an address or a path."""
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_MOST_REMEMBERED = 30_000


class Masker:
    """Masks lines as `mask` does, each form of line once: what was found is remembered, in bounded memory."""

    def __init__(self) -> None:
        self._forms: dict[bytes, str] = {}
        self._forms_of_plain: dict[str, str] = {}
        self._masked: dict[str, _Masked] = {}

    def form(self, message: str) -> str:
        """What is left of a line once its digits and hexadecimal words are masked alike; its lone numbers keep their order."""
        key = message[:MAX_CHARACTERS].encode("utf-8", "surrogatepass").translate(_ONE_DIGIT)
        return self._forms.get(key) or self._make_form(key)

    def mask(self, message: str) -> str:
        return self.mask_form(self.form(message), message)

    def mask_form(self, form: str, message: str) -> str:
        """The mask of a line whose form is known."""
        masked = self._masked.get(form)
        if masked is None:
            masked = self._remember(form)
        return masked if isinstance(masked, str) else masked.around(message[:MAX_CHARACTERS])

    def names_place(self, form: str) -> bool:
        """Whether lines of the form, of which one was masked, name their place in the code: digits count there."""
        return not isinstance(self._masked.get(form), str)

    def location(self, message: str) -> str | None:
        """As the function of this name, remembered with the mask."""
        form = self.form(message)
        masked = self._masked.get(form)
        if masked is None:
            masked = self._remember(form)
        return None if isinstance(masked, str) else message[masked.start : masked.end]

    def _make_form(self, key: bytes) -> str:
        """The form of a line whose key was not met before; lines with an id of their own never come again with it."""
        text = key.decode("utf-8", "surrogatepass")
        plain = _HEXADECIMAL.sub(_plain_hexadecimal, text)
        if plain != text:
            return self._forms_of_plain.get(plain) or self._form_of_plain(text, plain)
        form = _limit_remembered(self._forms)[key] = (
            text if _needs_digits(text) else LONE_NUMBER.sub("0", text)
        )
        return form

    def _form_of_plain(self, text: str, plain: str) -> str:
        if _needs_digits(text):
            return text
        form = _limit_remembered(self._forms_of_plain)[plain] = LONE_NUMBER.sub("0", plain)
        return form

    def _remember(self, form: str) -> "_Masked":
        where = _find_location(form)
        masked: _Masked
        if where is None:
            masked = _mask_words(form)
        else:
            masked = _MaskedAround(
                _mask_variable_parts(form[: where[0]]), *where, _mask_variable_parts(form[where[1] :])
            )
        _limit_remembered(self._masked)[form] = masked
        return masked


class _MaskedAround(NamedTuple):
    """The mask of a line that names its place in the code, in which digits count."""

    before: str
    start: int
    end: int
    after: str

    def around(self, text: str) -> str:
        return _truncate_words(f"{self.before}{text[self.start : self.end]}{self.after}")


_Masked = str | _MaskedAround


def _needs_digits(text: str) -> bool:
    """Whether the digits of a line are read from the line itself: it names its place in the code, or has other digits."""
    return _find_location(text) is not None or (not text.isascii() and _OTHER_DIGIT.search(text) is not None)


def _plain_hexadecimal(found: re.Match[str]) -> str:
    word = found.group()
    if "-" in word:
        return _UUID
    return f"0a{'0' * (len(word) - 2)}" if "0" in word and word.strip("0") else word


def _limit_remembered(remembered: dict[Key, Value]) -> dict[Key, Value]:
    if len(remembered) >= _MOST_REMEMBERED:
        remembered.clear()
    return remembered


@dataclass(slots=True)
class LogTemplate:
    """Words of one template (`<*>` where its lines differ) and how many lines fell into it."""

    words: list[str]
    count: int = 0

    def __str__(self) -> str:
        """The template as one line."""
        return " ".join(self.words)


@dataclass(slots=True)
class _TemplateNode:
    children: dict[str, "_TemplateNode"] = field(default_factory=dict)
    templates: list[LogTemplate] = field(default_factory=list)


@dataclass(slots=True)
class TemplateTree:
    """Templates of masked lines.

    `depth` first words lead to a leaf, `agreement` is the share of equal words from which a line belongs to
    a template. `max_children` a node and `max_templates` a tree bound the memory: what comes later goes to
    the node, or to the template of its length, that takes everything.
    """

    depth: int = 2
    agreement: float = 0.6
    max_children: int = 100
    max_templates: int = 5000
    _roots: dict[int, _TemplateNode] = field(default_factory=dict)
    _rest: dict[int, LogTemplate] = field(default_factory=dict)
    _size: int = 0

    def add(self, line: str, count: int = 1) -> LogTemplate:
        """Sort a masked line in, `count` times, and return its template (a live object: it may widen)."""
        words = line.split()[:MAX_WORDS]
        leaf = self._find_leaf(words)
        template = self._find_nearest_template(leaf, words) or self._add_template(leaf, words)
        _widen_template(template, words)
        template.count += count
        return template

    def __len__(self) -> int:
        """How many templates there are, those that take the rest included."""
        return self._size + len(self._rest)

    def _find_leaf(self, words: list[str]) -> _TemplateNode:
        node = self._roots.setdefault(len(words), _TemplateNode())
        for word in words[: self.depth]:
            key = ANY if "<" in word else word
            if key not in node.children and len(node.children) >= self.max_children:
                key = ANY
            node = node.children.setdefault(key, _TemplateNode())
        return node

    def _find_nearest_template(self, leaf: _TemplateNode, words: list[str]) -> LogTemplate | None:
        best, most = None, -1
        for template in leaf.templates:
            if (equal := _count_equal_words(template.words, words)) > most:
                best, most = template, equal
        return best if most >= self.agreement * len(words) else None

    def _add_template(self, leaf: _TemplateNode, words: list[str]) -> LogTemplate:
        if self._size >= self.max_templates:
            return self._rest.setdefault(len(words), LogTemplate([ANY] * len(words)))
        template = LogTemplate(list(words))
        leaf.templates.append(template)
        self._size += 1
        return template


def _count_equal_words(template: list[str], words: list[str]) -> int:
    if ANY in words:
        return sum(a in (b, ANY) for a, b in zip(template, words, strict=True))
    equal: int = sum(map(eq, template, words))
    return equal + template.count(ANY)


def _widen_template(template: LogTemplate, words: list[str]) -> None:
    if template.words == words:
        return
    template.words = [a if a == b else ANY for a, b in zip(template.words, words, strict=True)]


def mine_log_templates(messages: Iterable[str]) -> Mapping[str, str]:
    """The template of every message. The order of the messages plays no part.

    Lines that name their place in the code are distinguished by it alone; of the others the most frequent
    masked line comes first, equal ones in order of their text.
    """
    known: dict[str, str] = {}
    masked: dict[str, str] = {}
    masker = Masker()
    for message in set(messages):
        where = masker.location(message)
        if where is None:
            masked[message] = masker.mask(message)
        else:
            known[message] = where
    tree = TemplateTree()
    ordered = sorted(Counter(masked.values()).items(), key=lambda pair: (-pair[1], pair[0]))
    found = {line: tree.add(line, count) for line, count in ordered}
    return known | {message: str(found[line]) for message, line in masked.items()}
