"""Names in a text: services, pods, objects, files, identifiers. Generic words are not names.

A word is a name by its shape (`payments-api-7f9dd8b6c4`, `order_items`, `/api/orders`, `PetStore`), because it
is known (`known`), because it appears in back quotes, or by its place (`the basket service`).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from opsleuth.verification.lexicon import (
    ADJECTIVES,
    COMPONENTS,
    COUNTED_THINGS,
    GENERIC,
    JOINTS,
    PARTNERS,
)
from opsleuth.verification.quantities import WORD_CHARS, WordToken, scan_tokens

_QUOTED = re.compile(r"`([^`\n]{1,300})`")
_ELLIPSIS = re.compile(r"\s*(?:…|\.{3})\s*")
_OWN_ID = re.compile(r"(?:[ACEHOQ]\d{1,7}|t\d+c\d+|inv-\d{8}-\w+|inv-\d{8}-\w+/t\d+c\d+)")
_GENERIC_SHAPE = re.compile(
    r"[pP]\d{2,3}|\d(?:xx|XX)|[A-Z]{2,}s|P[0-5]|[Hh][Tt][Tt][Pp]/?\d(?:\.\d)?|[0-9a-z]{1,2}|\d+(?:\.\d+)?[KMGT]?bps|HTTPS?-?[1-5]\d\d"
)
_SUFFIXES = ("-related", "-side", "-based", "-specific", "-level", "-induced", "-bound", "-pods", "-pod")
_KINDS_OF_THING = "service|pod|deployment|namespace|container|job|workload|component|app|application|database|queue|topic|table|cluster|host|node"
_PLACED = re.compile(
    rf"(?:(?<=[Tt]he )|(?<=\ba ))([A-Za-z][a-z]{{2,30}}) (?:{_KINDS_OF_THING})(?![{WORD_CHARS}-])"
)
_VERB_PHRASE = re.compile(
    r" (?:up|down|behind|until|while|there|on|for|longer|faster|the|an?|all|any|every|each|their|its|no|many|more|\d+)\b"
)
"""What follows a word such as `queue` or `host` where it is the verb of the plural before it."""
_CALLED = re.compile(rf"(?:{_KINDS_OF_THING})s? (?:named|called) [\"'“]?([A-Za-z][{WORD_CHARS}.-]{{1,60}})")


def extract_names(text: str, known: Iterable[str] = (), *, quoted_whole: bool = True) -> list[str]:
    """The names that `text` uses, in order, each once.

    `quoted_whole`: what appears in back quotes is one name, also with spaces inside (a statement); else several
    words in back quotes are read word by word (a command that somebody should type).
    """
    found: list[str] = []
    taken: list[tuple[int, int]] = []
    for match in _QUOTED.finditer(text):
        if quoted_whole or " " not in match[1]:
            found += [part for part in _ELLIPSIS.split(match[1]) if part.strip()]
            taken.append(match.span())
    for start, end in find_mentions(text, known):
        found.append(text[start:end])
        taken.append((start, end))
    covered = _covered_positions(taken)
    found += [
        name
        for word in scan_tokens(text)
        if isinstance(word, WordToken) and word.start not in covered
        for name in _names_in_word(word, text)
    ]
    found += [m[1] for m in _CALLED.finditer(text)]
    found += [
        m[1]
        for m in _PLACED.finditer(text)
        if m[1].lower() not in ADJECTIVES
        and not m[1].endswith(("able", "ible"))
        and not _is_counted_plural(m[1], text[m.end() :])
        and m.start(1) not in covered
    ]
    unique = {name.casefold(): name for name in reversed(found) if _is_specific_name(name)}
    return list(reversed(unique.values()))


def _is_counted_plural(word: str, after: str) -> bool:
    """Whether the word is an English plural, and the word after it its verb, or what it is counted in."""
    if word in COUNTED_THINGS:
        return True
    return word.endswith("s") and not word.endswith(("ss", "us", "is")) and bool(_VERB_PHRASE.match(after))


def _covered_positions(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {i for start, end in spans for i in range(start, end)}


def _is_specific_name(name: str) -> bool:
    return not (_OWN_ID.fullmatch(name) or name.casefold() in GENERIC)


def _names_in_word(word: WordToken, text: str) -> Iterator[str]:
    """The names in one word: itself, or its parts where a slash or a missing space joins words."""
    rooted = word.start > 0 and text[word.start - 1] in "/." and "/" in word.text
    if rooted:
        yield word.text
        return
    if "/" in word.text and word.text.count("/") == 1 and word.text.lower() not in GENERIC:
        parts: Sequence[str] = word.text.split("/")
    else:
        parts = re.split(r"(?<=[a-z0-9])\.(?=[A-Z][a-z])", word.text)
    yield from (part for part in parts if has_name_shape(part))


def has_name_shape(word: str) -> bool:
    """Whether the shape of `word` makes it the name of something, not a word of the language."""
    if _GENERIC_SHAPE.fullmatch(word) or word.casefold() in GENERIC or _OWN_ID.fullmatch(word):
        return False
    if not any(c.isalpha() for c in word):
        return bool(re.search(r"\d[.:]\d+[.:]\d", word))
    if any(c.isdigit() for c in word):
        return not re.fullmatch(r"[a-zA-Z]+-\d{1,2}|\d{1,3}-[a-z]+(?:-[a-z]+)*", word)
    if re.search(r"[_/:@~]|[A-Za-z]\.[A-Za-z]", word):
        return True
    if "-" in word or "+" in word:
        return _is_hyphenated_name(word.lower())
    return bool(re.search(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}", word))


def _is_hyphenated_name(word: str) -> bool:
    for suffix in _SUFFIXES:
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            return "-" in stem and _is_hyphenated_name(stem)
    parts = re.split(r"[-+]", word)
    if len(parts) > 2:
        return not JOINTS.intersection(parts) and parts[0] not in ("non", "pre", "post", "re")
    if parts[-1].endswith("ed") or parts[0] in ADJECTIVES:  # operator-declared, shared-db
        return False
    return bool(COMPONENTS.intersection(parts)) and not PARTNERS.intersection(parts)


def find_mentions(text: str, known: Iterable[str]) -> list[tuple[int, int]]:
    """Where `text` mentions one of the `known` names: longest first, no overlaps, in order of place."""
    spans: list[tuple[int, int]] = []
    lowered = _same_length_lower(text)
    free = bytearray(b"\x01" * len(text))
    for name in sorted({n for n in known if n.strip()}, key=lambda n: (-len(n), n)):
        for start in _find_occurrences(lowered, _same_length_lower(name)):
            end = start + len(name)
            if all(free[start:end]):
                spans.append((start, end))
                free[start:end] = bytes(end - start)
    return sorted(spans)


def _same_length_lower(text: str) -> str:
    return (
        "".join(low if len(low := c.lower()) == 1 else c for c in text)
        if not text.isascii()
        else text.lower()
    )


def _find_occurrences(text: str, name: str) -> Iterator[int]:
    """Where `name` appears in `text` with a border on both sides (both already in one case)."""
    start = text.find(name)
    while start >= 0:
        if _is_word_border(text, start, name[0], -1) and _is_word_border(
            text, start + len(name) - 1, name[-1], 1
        ):
            yield start
        start = text.find(name, start + 1)


_IN_WORD = re.compile(f"[{WORD_CHARS}]")


def _is_word_border(text: str, at: int, edge: str, step: int) -> bool:
    """Whether the word ends at `at`: no letter or digit follows it, nor an inner mark that a longer name goes on after."""
    i = at + step
    if not 0 <= i < len(text) or not _IN_WORD.match(edge):
        return True
    if _IN_WORD.match(text[i]):
        return False
    j = i + step
    joined = text[i] in "-./:@" and 0 <= j < len(text) and _IN_WORD.match(text[j])
    return not joined or (text[i] in ".:" and step == 1) or (text[i] == "/" and _joins_two_words(text, i))


def _joins_two_words(text: str, slash: int) -> bool:
    """Whether the slash joins two words (`cart/orders`, `default/orders`), not the parts of a path."""
    left, right = text[max(0, slash - 64) : slash], text[slash + 1 : slash + 65]
    return bool(re.search(rf"(?:^|[^{WORD_CHARS}./:-])[{WORD_CHARS}.-]+$", left)) and not re.match(
        rf"[{WORD_CHARS}.-]*/", right
    )


def name_occurs_in(name: str, texts: Collection[str]) -> bool:
    """Whether `name` appears in one of `texts` (each from `squeeze`) as a whole word or a whole part of a longer name."""
    wanted = re.sub(r"[ \t]+", " ", name).casefold()
    return any(_text_holds_name(text, wanted) for text in texts)


def _text_holds_name(text: str, wanted: str) -> bool:
    start = text.find(wanted)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(wanted) : start + len(wanted) + 1]
        if not (before.isalnum() and before.isascii() and wanted[0].isalnum()) and not (
            after.isalnum() and after.isascii() and wanted[-1].isalnum()
        ):
            return True
        start = text.find(wanted, start + 1)
    return False
