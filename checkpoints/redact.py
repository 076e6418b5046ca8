"""The one funnel: whatever is stored or shown passes here, and no secret comes out.

A secret is known by value (whatever the process was told, in all its spellings) or by its look (`patterns`).
It is replaced by `[redacted:KIND#ab12]`; the tag is keyed per database, so that equal secrets can be compared
and none can be guessed. Redact first, then cut: half a secret has no pattern.
"""

import hashlib
import json
import math
import os
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from opsleuth.checkpoints import patterns
from opsleuth.checkpoints.forms import Form, forms, normal
from opsleuth.checkpoints.harmless import harmless_json
from opsleuth.checkpoints.patterns import Found

MARK = re.compile(r"\[redacted:[a-z-]+#[0-9a-f]{4}\]")
_BASE64 = frozenset(string.ascii_letters + string.digits + "+/_=-")
_WORD = re.compile(r"[A-Za-z0-9+/_=-]*+")
_SURROGATES = re.compile("[\ud800-\udfff]")

_REFERENCES = ({"env"}, {"file"}, {"command"}, {"keyring", "user"})
"""The keys of a reference to a secret: it names the place where one lies, and holds none."""

Finder = Callable[[str], Iterator[Found]]


class Redacted(NamedTuple):
    """The clean value, and how many secrets were taken out of it."""

    value: Any
    hits: int


class Redactor:
    """Takes secrets out of text and JSON values. Time is linear in the input; idempotent."""

    def __init__(self, known: Iterable[str] = (), key: str = "") -> None:
        self._key = key or os.urandom(32).hex()
        self._known: dict[Form, str] = {}
        self._as_json: set[str] = set()
        for secret in known:
            self.learn(secret)

    def bind(self, key: str) -> None:
        """Use the key of a database for the tags from now on."""
        self._key = key

    def learn(self, secret: str) -> None:
        """Take out this value too, in all its spellings. Values under 6 characters are ignored."""
        found = forms(secret)
        self._known |= dict.fromkeys(found, secret)
        self._as_json |= {json.dumps(form.text, ensure_ascii=False)[1:-1] for form in found}

    def text(self, text: str) -> Redacted:
        """The text without secrets. Lone surrogates, which no database takes, become U+FFFD."""
        text = _storable(text)
        count = 0
        for found in self._finders(text):
            spans = _apart(found(text))
            count += len(spans)
            text = self._replace(text, spans)
        return Redacted(text, count)

    def __call__(self, value: Any) -> Redacted:  # noqa: ANN401 - any JSON value
        """A JSON value without secrets, keys included. NaN and infinities become null, tuples lists."""
        if isinstance(value, str):
            return self.text(value)
        if self._is_clean(value):
            return Redacted(value, 0)
        walk = _Walk(self)
        return Redacted(walk.value(value), walk.count)

    def settings(self, value: Any) -> Redacted:  # noqa: ANN401 - any JSON value
        """The same for what an operator configured: references to secrets stay, as whoever goes on needs them."""
        walk = _Walk(self, references=True)
        return Redacted(walk.value(value), walk.count)

    def for_display(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """A JSON value without secrets, whose strings cannot act on a screen."""
        return harmless_json(self(value).value)

    def mark(self, secret: str, kind: str) -> str:
        """What stands in the place of a secret."""
        tag = hashlib.blake2b(secret.encode(), key=self._key.encode()[:64], digest_size=2).hexdigest()
        return f"[redacted:{kind}#{tag}]"

    def _finders(self, text: str) -> Iterator[Finder]:
        """The finders that may find something in this text: a fast look for their fixed letters comes first."""
        if "PRIVATE KEY" in text:
            yield patterns.private_keys
        if self._known:
            yield self._known_in
        if "://" in text and "@" in text:
            yield patterns.url_passwords
        low = patterns.lowered(text)
        if any(mark in low for mark in patterns.NAME_MARKS):
            yield patterns.headers
            yield patterns.named_secrets
        if any(mark in text for mark in patterns.TOKEN_MARKS):
            yield patterns.tokens

    def _is_clean(self, value: Any) -> bool:  # noqa: ANN401 - any JSON value
        """Whether the whole value, written as one text, holds no mark of any secret: then it stays as it is."""
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except ValueError:
            return False
        escaped = normal(text)
        if _storable(text) is not text or any(form in escaped for form in self._as_json):
            return False
        return all(finder == self._known_in for finder in self._finders(text))

    def _known_in(self, text: str) -> Iterator[Found]:
        escaped = normal(text)
        for form, secret in self._known.items():
            find = _words_with if form.encoded else _occurrences
            for start, end in find(escaped, form.text):
                yield Found(start, end, "secret", secret)

    def _replace(self, text: str, spans: list[Found]) -> str:
        parts, at = [], 0
        for start, end, kind, secret in spans:
            parts += [text[at:start], self.mark(secret or text[start:end], kind)]
            at = end
        return "".join([*parts, text[at:]])


class _Walk:
    """One pass through a JSON value that holds, or may hold, secrets."""

    def __init__(self, redactor: Redactor, *, references: bool = False) -> None:
        self._redactor, self._references, self.count = redactor, references, 0

    def value(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            clean, count = self._redactor.text(value)
            self.count += count
            return clean
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def _mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        name = value.get("name", value.get("key"))
        pair = patterns.named(name) if isinstance(name, str) and "value" in value else None
        manifest = value.get("kind") == "Secret"
        clean: dict[str, Any] = {}
        for key, item in value.items():
            strength = "strong" if manifest and key in ("data", "stringData") else patterns.named(str(key))
            if key == "value" and pair:
                strength = pair
            spot = self.value(str(key))
            while spot in clean:
                spot += "~"
            clean[spot] = self._below(item, strength) if strength else self.value(item)
        return clean

    def _below(self, value: Any, strength: str) -> Any:  # noqa: ANN401 - any JSON value
        """Under a telling name every leaf is a secret."""
        if isinstance(value, Mapping):
            if self._references and set(value) in _REFERENCES:
                return {key: self.value(item) for key, item in value.items()}
            return {self.value(str(key)): self._below(item, strength) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._below(item, strength) for item in value]
        if value is None or isinstance(value, bool) or (strength == "weak" and not isinstance(value, str)):
            return self.value(value)
        text = _storable(str(value))
        if not patterns.is_secret(text, weak=strength == "weak"):
            return self.value(value)
        self.count += 1
        return self._redactor.mark(text, "password" if strength == "strong" else "token")


def _storable(text: str) -> str:
    """The text itself, unless it holds lone surrogates."""
    return text if text.isascii() or not _SURROGATES.search(text) else _SURROGATES.sub("\ufffd", text)


def _apart(found: Iterable[Found]) -> list[Found]:
    """Spans in order, those that overlap joined into one."""
    joined: list[Found] = []
    for item in sorted(found, key=lambda f: (f.start, -f.end)):
        if joined and item.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, item.end))
        else:
            joined.append(item)
    return joined


def _occurrences(text: str, part: str) -> Iterator[tuple[int, int]]:
    """Where `part` stands in the text; occurrences that overlap are one span."""
    at = text.find(part)
    while at >= 0:
        end = at + len(part)
        after = text.find(part, at + 1)
        while 0 <= after < end:
            end = after + len(part)
            after = text.find(part, after + 1)
        yield at, end
        at = after


def _words_with(text: str, part: str) -> Iterator[tuple[int, int]]:
    """The whole runs of base64 characters that `part` stands in."""
    end = 0
    while (at := text.find(part, end)) >= 0:
        start = at
        while start > end and text[start - 1] in _BASE64:
            start -= 1
        after = _WORD.match(text, at + len(part))
        end = after.end() if after else at + len(part)
        yield start, end
