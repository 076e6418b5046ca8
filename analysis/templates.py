"""Log templates: lines of the same statement brought to one text, in bounded memory.

Variable parts are masked by their form (times, ids, addresses, quoted text, numbers). What is left is sorted
into a tree of fixed depth, number of words, then first words, and merged there with the first template that
agrees in enough words; words that differ become `<*>` (the idea of He et al., "Drain: An Online Log Parsing
Approach with Fixed Depth Tree", ICWS 2017).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ANY = "<*>"
# Words after these say what was logged, not which statement logged it; the bound keeps long dumps cheap.
MAX_WORDS = 32
MAX_CHARACTERS = 600

_SOURCE_FILES = "py|java|kt|scala|go|js|ts|rb|php|cs|c|cc|cpp|rs|ex|swift"
# `some.pkg.Name#123` or `file.ext:123`: where in the code the line was written. Kept, for it names the statement.
_LOCATION = re.compile(
    rf"(?<!\S)(?:[\w.$\[\]/-]*[A-Za-z][\w$\]]*\#\d+|[\w./\\-]+\.(?:{_SOURCE_FILES}):\d+)(?=[\s\])>:,]|$)"
)
_MASKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("<str>", re.compile(r"\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`")),
    (
        "<time>",
        re.compile(
            r"\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"
            r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
        ),
    ),
    (  # mail, IPv4 with prefix length or port, IPv6
        "<addr>",
        re.compile(
            r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"
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
            r"|\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b"
            r"|\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}\b"
        ),
    ),
    ("<n>", re.compile(r"(?<![A-Za-z_])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?|\d+")),
)


def location(message: str) -> str | None:
    """Where in the code the line was written (`pkg.Name#12`, `app.py:7`), if the line itself says so."""
    found = _LOCATION.search(message[:MAX_CHARACTERS])
    return found.group() if found else None


def mask(message: str) -> str:
    """One line with its variable parts replaced by their form; a source location stays as it is."""
    text = message[:MAX_CHARACTERS]
    where = _LOCATION.search(text)
    if where is None:
        return _squeeze(_masked(text))
    return _squeeze(f"{_masked(text[: where.start()])}{where.group()}{_masked(text[where.end() :])}")


def _masked(text: str) -> str:
    for sign, pattern in _MASKS:
        text = pattern.sub(sign, text)
    return text


def _squeeze(text: str) -> str:
    return " ".join(text.split()[:MAX_WORDS])


@dataclass(slots=True)
class Template:
    """Words of one template (`<*>` where its lines differ) and how many lines fell into it."""

    words: list[str]
    count: int = 0

    def __str__(self) -> str:
        """The template as one line."""
        return " ".join(self.words)


@dataclass(slots=True)
class _Node:
    children: dict[str, "_Node"] = field(default_factory=dict)
    templates: list[Template] = field(default_factory=list)


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
    _roots: dict[int, _Node] = field(default_factory=dict)
    _rest: dict[int, Template] = field(default_factory=dict)
    _size: int = 0

    def add(self, line: str, count: int = 1) -> Template:
        """Sort a masked line in, `count` times, and return its template (a live object: it may widen)."""
        words = line.split()[:MAX_WORDS]
        leaf = self._leaf(words)
        template = self._nearest(leaf, words) or self._new(leaf, words)
        _widen(template, words)
        template.count += count
        return template

    def __len__(self) -> int:
        """How many templates there are, those that take the rest included."""
        return self._size + len(self._rest)

    def _leaf(self, words: list[str]) -> _Node:
        node = self._roots.setdefault(len(words), _Node())
        for word in words[: self.depth]:
            key = ANY if "<" in word else word
            if key not in node.children and len(node.children) >= self.max_children:
                key = ANY
            node = node.children.setdefault(key, _Node())
        return node

    def _nearest(self, leaf: _Node, words: list[str]) -> Template | None:
        best = max(leaf.templates, key=lambda template: _equal_words(template.words, words), default=None)
        if best is None or _equal_words(best.words, words) < self.agreement * len(words):
            return None
        return best

    def _new(self, leaf: _Node, words: list[str]) -> Template:
        if self._size >= self.max_templates:
            return self._rest.setdefault(len(words), Template([ANY] * len(words)))
        template = Template(list(words))
        leaf.templates.append(template)
        self._size += 1
        return template


def _equal_words(template: list[str], words: list[str]) -> int:
    return sum(a in (b, ANY) for a, b in zip(template, words, strict=True))


def _widen(template: Template, words: list[str]) -> None:
    template.words = [a if a == b else ANY for a, b in zip(template.words, words, strict=True)]


def mine(messages: Iterable[str]) -> Mapping[str, str]:
    """The template of every message. The order of the messages plays no part.

    Lines that name their place in the code are told apart by it alone; of the others the most frequent
    masked line comes first, equal ones in order of their text.
    """
    known: dict[str, str] = {}
    masked: dict[str, str] = {}
    for message in set(messages):
        where = location(message)
        if where is None:
            masked[message] = mask(message)
        else:
            known[message] = where
    tree = TemplateTree()
    ordered = sorted(Counter(masked.values()).items(), key=lambda pair: (-pair[1], pair[0]))
    found = {line: tree.add(line, count) for line, count in ordered}
    return known | {message: str(found[line]) for message, line in masked.items()}
