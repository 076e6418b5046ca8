"""Redaction of everything that is stored or shown, so that no secret leaves.

A secret is known by value (whatever the process was given, in all its spellings), by its look (`vendor_tokens`, `patterns`) or
by what stands before it (`named_values`, `command_options`, `manifests`). It is also looked for behind escapes (`text_views`) and
inside words of base64 and hexadecimal digits (`encoded_words`).
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

from opsleuth.redaction import (
    command_options,
    context_secrets,
    hashes_and_keys,
    manifests,
    named_values,
    positional_secrets,
    secret_patterns,
    vendor_tokens,
)
from opsleuth.redaction.control_characters import harmless_json
from opsleuth.redaction.encoded_words import read_encoded_words
from opsleuth.redaction.environment_secrets import environment_secrets
from opsleuth.redaction.secret_encodings import SecretEncoding, normalize_escapes, secret_encodings
from opsleuth.redaction.secret_patterns import FoundSecret
from opsleuth.redaction.text_views import views_of
from opsleuth.state.json_types import JSON

MARK = re.compile(r"\[redacted:[a-z-]+#[0-9a-f]{4}\]")
_BASE64 = frozenset(string.ascii_letters + string.digits + "+/_=-")
_WORD = re.compile(r"[A-Za-z0-9+/_=-]*+")
_SURROGATES = re.compile("[\ud800-\udfff]")

_REFERENCES = ({"env"}, {"file"}, {"command"}, {"keyring", "user"})
"""The keys of a reference to a secret: it names the place where one lies, and holds none."""

_PLACES = frozenset(("secretName", "secretRef", "secretKeyRef", "valueFrom", "defaultMode"))
"""Keys of Kubernetes that name a Secret, its mode or its key."""

_LARGE = 1_000_000
"""Characters of a text that is not copied at once."""

_DEPTH = 2
"""How often an encoded word may be encoded again."""

_LARGE_PART, _MOST_PARTS = 500, 16
"""Characters of a part of settings from which on its result is remembered, and how many are."""

_SHORT_TEXT, _MOST_SHORT_TEXTS = 60, 4_000
"""Characters of a text that is remembered as clean, names of fields above all, and how many are."""

_FIELDS_READ_TOGETHER = frozenset({"name", "key", "value", "kind"})
"""Fields of which one says what another one holds."""

Finder = Callable[[str], Iterator[FoundSecret]]


class RedactedValue(NamedTuple):
    """The clean value, and how many secrets were taken out of it."""

    value: Any
    hits: int


class Redactor:
    """Takes secrets out of text and JSON values. Time is linear in the input; idempotent."""

    def __init__(self, known: Iterable[str] | None = None, key: str = "") -> None:
        """Without `known`, the secrets of the process's environment are known: nobody declares all of them."""
        self._key = key or os.urandom(32).hex()
        self._parts: dict[str, RedactedValue] = {}
        self._clean_texts: set[str] = set()
        self._known: dict[SecretEncoding, str] = {}
        self._as_json: set[str] = set()
        for secret in environment_secrets(os.environ) if known is None else known:
            self.learn(secret)

    def bind(self, key: str) -> None:
        """Use the key of a database for the tags from now on."""
        self._key = key
        self._parts.clear()

    def learn(self, secret: str) -> None:
        """Take out this value too, in all its spellings. Values under 6 characters are ignored."""
        self._parts.clear()
        self._clean_texts.clear()
        found = secret_encodings(secret)
        self._known |= dict.fromkeys(found, secret)
        self._as_json |= {json.dumps(form.text, ensure_ascii=False)[1:-1] for form in found}

    def text(self, text: str) -> RedactedValue:
        """The text without secrets. Lone surrogates, which no database takes, become U+FFFD."""
        if text in self._clean_texts:
            return RedactedValue(text, 0)
        clean = self._redact_text(text)
        if not clean.hits and len(text) <= _SHORT_TEXT and clean.value == text:
            self._remember_clean(text)
        return clean

    def _remember_clean(self, text: str) -> None:
        """Settings and states repeat the same short texts by the hundred: each of them is looked through once."""
        if len(self._clean_texts) >= _MOST_SHORT_TEXTS:
            self._clean_texts.clear()
        self._clean_texts.add(text)

    def _redact_text(self, text: str) -> RedactedValue:
        text = _replace_lone_surrogates(text)
        count = 0
        for found in self._finders(text):
            spans = _join_overlapping(found(text))
            count += len(spans)
            text = self.replace(text, spans)
        hidden = _join_overlapping(self._behind_escapes(text))
        text = self.replace(text, hidden)
        encoded = _join_overlapping(self._encoded_in(text))
        return RedactedValue(self.replace(text, encoded), count + len(hidden) + len(encoded))

    def __call__(self, value: JSON) -> RedactedValue:
        """A JSON value without secrets, keys included. NaN and infinities become null, tuples lists."""
        if isinstance(value, str):
            return self.text(value)
        if self._is_clean(value):
            return RedactedValue(value, 0)
        walk = _RedactionPass(self)
        return RedactedValue(walk.value(value), walk.count)

    def settings(self, value: JSON) -> RedactedValue:
        """The same for what an operator configured: references to secrets stay, because a resumed run needs them.

        Large parts are the same for every run of a service: the results are remembered.
        """
        if not isinstance(value, Mapping) or _FIELDS_READ_TOGETHER.intersection(value):
            walk = _RedactionPass(self, references=True)
            return RedactedValue(walk.value(value), walk.count)
        clean: dict[str, Any] = {}
        count = 0
        for key, item in value.items():
            part, hits = self._redact_part(str(key), item)
            clean |= part
            count += hits
        return RedactedValue(clean, count)

    def _redact_part(self, key: str, item: JSON) -> RedactedValue:
        """One field of settings, as a separate mapping."""
        text = json.dumps([key, item], default=repr) if isinstance(item, Mapping | list | tuple) else ""
        if len(text) < _LARGE_PART:
            walk = _RedactionPass(self, references=True)
            return RedactedValue(walk.value({key: item}), walk.count)
        part = self._parts.pop(text, None)
        if part is None:
            walk = _RedactionPass(self, references=True)
            part = RedactedValue(walk.value({key: item}), walk.count)
            if len(self._parts) >= _MOST_PARTS:
                del self._parts[next(iter(self._parts))]
        self._parts[text] = part  # the last one used comes last: parts of one run alone are dropped first
        return part

    def for_display(self, value: JSON) -> JSON:
        """A JSON value without secrets, whose strings cannot act on a screen."""
        return harmless_json(self(value).value)

    def mark(self, secret: str, kind: str) -> str:
        """What replaces a secret."""
        tag = hashlib.blake2b(secret.encode(), key=self._key.encode()[:64], digest_size=2).hexdigest()
        return f"[redacted:{kind}#{tag}]"

    def _finders(self, text: str) -> Iterator[Finder]:
        """The finders that may find something in this text: a fast look for their fixed letters comes first."""
        if "PRIVATE KEY" in text:
            yield secret_patterns.private_keys
        if self._known:
            yield self._known_in
        if "://" in text and "@" in text:
            yield secret_patterns.url_passwords
        if context_secrets.may_hold_context_secrets(text):
            yield context_secrets.find_context_secrets
        low = secret_patterns.lower_keeping_length(text)
        if any(map(low.__contains__, secret_patterns.HEADER_MARKS)):
            yield secret_patterns.find_header_secrets
        if "secret" in low and "data" in low:
            yield manifests.find_manifest_secrets
        yield from self._command_finders(text)
        if any(map(low.__contains__, named_values.NAME_MARKS)):
            yield named_values.find_named_values
            yield named_values.find_directives
        if vendor_tokens.may_hold_tokens(text):
            yield vendor_tokens.find_aws_secrets
            yield vendor_tokens.find_tokens
        if positional_secrets.may_hold_positional_secrets(text):
            yield positional_secrets.find_positional_secrets

    def _command_finders(self, text: str) -> Iterator[Finder]:
        if command_options.may_hold_options(text):
            yield command_options.find_command_secrets
        if command_options.may_pipe_passwords(text):
            yield command_options.find_lines_with_passwords
        if hashes_and_keys.may_hold_hashes_or_keys(text):
            yield hashes_and_keys.find_hashes_and_keys

    def find(self, text: str, depth: int = 0) -> Iterator[FoundSecret]:
        """All secrets of a text as it stands, and of what is encoded in it."""
        for found in self._finders(text):
            yield from found(text)
        if depth < _DEPTH:
            yield from self._encoded_in(text, depth + 1)

    def _behind_escapes(self, text: str) -> Iterator[FoundSecret]:
        """Secrets that only a reader sees: percent or HTML escapes, names broken by invisible characters."""
        for at, part in _parts_of(text):
            for view in views_of(part):
                for found in self.find(view.text):
                    start, end = view.locate(found.start, found.end)
                    secret = found.secret or view.text[found.start : found.end]
                    yield FoundSecret(at + start, at + end, found.kind, secret)

    def _encoded_in(self, text: str, depth: int = 0) -> Iterator[FoundSecret]:
        """Words of base64 or hexadecimal digits that spell a secret, as a whole."""
        for word in read_encoded_words(text):
            if not word.decoded:
                yield FoundSecret(word.start, word.end, "private-key")
            elif next(self.find(word.decoded, depth), None):
                yield FoundSecret(word.start, word.end, "encoded")

    def _is_clean(self, value: JSON) -> bool:
        """Whether the whole value, written as one text, holds no mark of any secret: then it stays as it is."""
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except ValueError:
            return False
        if len(text) > _LARGE:
            return False
        escaped = normalize_escapes(text)
        if _replace_lone_surrogates(text) is not text or any(form in escaped for form in self._as_json):
            return False
        views = (text, *(view.text for view in views_of(text)))
        if any(finder != self._known_in for view in views for finder in self._finders(view)):
            return False
        lines = text.replace("\\\\n", "\n").replace("\\n", "\n").replace('"', "\n")
        return not command_options.may_pipe_passwords(lines) and next(self._encoded_in(lines), None) is None

    def _known_in(self, text: str) -> Iterator[FoundSecret]:
        escaped = normalize_escapes(text)
        for form, secret in self._known.items():
            find = _words_with if form.encoded else _find_occurrences
            for start, end in find(escaped, form.text):
                yield FoundSecret(start, end, "secret", secret)

    def replace(self, text: str, spans: list[FoundSecret]) -> str:
        """The text with a mark in the place of each span; they come in order and do not overlap."""
        parts, at = [], 0
        for start, end, kind, secret in spans:
            parts += [text[at:start], self.mark(secret or text[start:end], kind)]
            at = end
        return "".join([*parts, text[at:]])


class _RedactionPass:
    """One pass through a JSON value that holds, or may hold, secrets."""

    def __init__(self, redactor: Redactor, *, references: bool = False) -> None:
        self._redactor, self._references, self.count = redactor, references, 0
        self._key = secret_patterns.KeyLines()

    def value(self, value: JSON) -> JSON:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, list | tuple):
            return self._list(value)
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def _text(self, text: str) -> str:
        """A string without secrets; one that continues with a private key that began in a string before loses that too."""
        body = self._key.find_rest(text)
        if body:
            text = self._redactor.replace(_replace_lone_surrogates(text), body)
        clean = self._redactor.text(text)
        self.count += clean.hits + len(body)
        return str(clean.value)

    def _list(self, values: list[Any] | tuple[Any, ...]) -> list[Any]:
        """The items; in an argument list what follows `--password` is a secret, and the options of its program count."""
        texts = [item if isinstance(item, str) else "" for item in values]
        if not command_options.is_argument_list(texts):
            return [self.value(item) for item in values]
        texts = list(map(_replace_lone_surrogates, texts))
        spans: dict[int, list[FoundSecret]] = {}
        for number in command_options.find_secret_arguments(texts):
            spans[number] = [FoundSecret(0, len(texts[number]), "password")]
        whole = _join_overlapping(self._redactor.find(" ".join(texts)))
        for number, span in command_options.split_spans(texts, whole):
            spans.setdefault(number, []).append(span)
        self.count += len(spans)
        return [
            self.value(
                self._redactor.replace(texts[number], _join_overlapping(spans[number]))
                if number in spans
                else item
            )
            for number, item in enumerate(values)
        ]

    def _mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        name = value.get("name", value.get("key"))
        pair = named_values.strength_of(name) if isinstance(name, str) and "value" in value else None
        manifest = value.get("kind") == "Secret"
        clean: dict[str, Any] = {}
        for key, item in value.items():
            strength = (
                "strong" if manifest and key in ("data", "stringData") else named_values.strength_of(str(key))
            )
            named = "" if manifest else str(key)
            strength = strength or context_secrets.strength_in_mapping(value, key)
            if key == "value" and pair:
                strength, named = pair, str(name)
            spot = self._text(str(key))
            while spot in clean:
                spot += "~"
            clean[spot] = self._below(item, strength, named) if strength else self.value(item)
        return clean

    def _below(self, value: JSON, strength: str, name: str = "") -> JSON:
        """Under a telling name every leaf is a secret."""
        if isinstance(value, Mapping):
            if self._is_reference(value):
                return {key: self.value(item) for key, item in value.items()}
            return {self.value(str(key)): self._below(item, strength, name) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._below(item, strength, name) for item in value]
        if named_values.is_object_count(value, name):
            return self.value(value)
        if value is None or isinstance(value, bool) or (strength != "strong" and not isinstance(value, str)):
            return self.value(value)
        text = _replace_lone_surrogates(str(value))
        if not named_values.is_named_secret(text, strength, name):
            return self.value(value)
        self.count += 1
        return self._redactor.mark(text, "password" if strength == "strong" else "token")

    def _is_reference(self, value: Mapping[Any, Any]) -> bool:
        """Whether a field names the place of a secret: in settings, or as Kubernetes does."""
        return (self._references and set(value) in _REFERENCES) or bool(_PLACES & set(value))


def _parts_of(text: str) -> Iterator[tuple[int, str]]:
    """A large text in parts that end with a line where they can: a view of it takes many times its memory."""
    at = 0
    while len(text) - at > _LARGE:
        line = text.rfind("\n", at, at + _LARGE) + 1
        end = line if line > at else at + _LARGE
        yield at, text[at:end]
        at = end
    yield at, text[at:] if at else text


def _replace_lone_surrogates(text: str) -> str:
    """The text itself, unless it holds lone surrogates."""
    return text if text.isascii() or not _SURROGATES.search(text) else _SURROGATES.sub("\ufffd", text)


def _join_overlapping(found: Iterable[FoundSecret]) -> list[FoundSecret]:
    """Spans in order, those that overlap joined into one."""
    joined: list[FoundSecret] = []
    for item in sorted(found, key=lambda f: (f.start, -f.end)):
        if joined and item.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, item.end))
        else:
            joined.append(item)
    return joined


def _find_occurrences(text: str, part: str) -> Iterator[tuple[int, int]]:
    """Where `part` appears in the text; occurrences that overlap are one span."""
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
