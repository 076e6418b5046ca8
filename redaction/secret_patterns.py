"""What finders of secrets share, and those for headers, URLs and private keys.

A finder looks for fixed letters first, which is fast, and matches an expression only where they stand. What was
taken for a secret is not looked at again, so that the time is linear in the text. Hexadecimal ids, hashes and
UUIDs have no mark and are left alone.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

compile_regex = cache(re.compile)
"""Compiles an expression when it is first needed: commands that only read the store need none."""

LOOKS_CHOSEN = r"(?=[^\s\"'`]{0,80}\d)(?=[^\s\"'`]{0,80}[A-Za-z])"
"""Before a value: it has letters and digits, as a chosen password does and a plain word or number does not."""


class FoundSecret(NamedTuple):
    """A secret at `text[start:end]`; `secret` is what it spells, if that is known to be something else."""

    start: int
    end: int
    kind: str
    secret: str = ""


# What appears in a secret's place without being one: a reference, a placeholder, a word for its state, a mark of ours.
_HARMLESS = (
    r"(?i:null|none|true|false|undefined|empty|nil|n/a|x{3,}|\*+|\.{3}|<[^<>]{0,100}>|yes|no|on|off|set|unset|missing|absent|present"
    r"|expired|invalid|incorrect|required|optional|enabled|disabled|ok|failed|failure|error|wrong|denied|rejected|accepted|changed|unchanged|rotated"
    r"|mismatch|prompt|unknown|[\[({*<]{0,3}(?:hidden|masked|redacted|filtered|removed|omitted|scrubbed|sanitized|sensitive(?: value)?)[\])}*>]{0,3})"
    r"|\$\{[^{}]{0,100}\}|\$[A-Z_][A-Z0-9_]*|\$\([A-Za-z_][A-Za-z0-9_]*\)|%[A-Z_]{1,60}%|\{\{[^{}]{0,100}(?:\}\})?|\{[A-Za-z_.]{1,60}\}"
    r"|\(known|!(?:vault|Ref|Sub|GetAtt|ImportValue|secret|env|reference)|(?:var|local|module|data|random_password|(?:aws|google|azurerm)_[a-z_]{1,60})\.[a-z_][\w.]{0,200}"
    r"|[\[{(]{1,8}|(?:\\{1,4}[nrt]){1,4}|[A-Za-z_][A-Za-z_.]{2,60}\(.{0,400}|(?:str|string|bytes|int|bool)[,;)]{0,3}"
    r"|\[redacted:[a-z-]+\#[0-9a-f]{4}\]"
)
_CLOSING = ")].,;"
_SHORTEST_WEAK = 8


def is_secret(value: str, *, weak: bool = False) -> bool:
    """Whether a value after a telling name is a secret, and no reference or placeholder."""
    if not value or (
        weak
        and (len(value) < _SHORTEST_WEAK or (value.startswith(("http://", "https://")) and "@" not in value))
    ):
        return False
    harmless = compile_regex(_HARMLESS)
    return harmless.fullmatch(value) is None and harmless.fullmatch(value.rstrip(_CLOSING)) is None


def lower_keeping_length(text: str) -> str:
    """The text in lower case, character for character: the one letter that becomes two is replaced before."""
    return text.replace("\u0130", "I").lower()


def find_literals(text: str, literals: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Where each of the literals occurs."""
    for literal in literals:
        at = text.find(literal)
        while at >= 0:
            yield at, literal
            at = text.find(literal, at + 1)


# --- headers

_SCHEMES = r"(?i:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)[ \t]{1,4}"
_PARAMETER = r"\w{1,40}=(?:\\*\"[^\"\r\n\\]{0,600}\\*\"|[^\s,\"]{1,600})"
_PARAMETERS = rf"{_PARAMETER}(?:,\s{{0,4}}{_PARAMETER}){{1,20}}+"
"""What schemes such as Digest and OAuth send: `username="a", response="b"`."""
_AUTHORIZATION = (
    r"\\*+[\"']?\s{0,8}[:=]\s{0,8}\\*+[\"']?"
    rf"(?:{_SCHEMES}|[A-Za-z][A-Za-z-]{{0,30}}[ \t]{{1,4}}(?=\S{{0,400}}\d)|(?=\S{{0,400}}\d))(?P<value>{_PARAMETERS}|[^\s\"'\\]++)"
)
_COOKIE = r"\\*+[\"']?\s{0,8}:\s{0,8}\\*+[\"']?(?P<value>[^\r\n\"\\]++)"
_SCHEME = r"\s{1,4}(?P<value>(?![a-z_]{1,40}=[^=])(?=\S{0,400}\d)[\w.~+/=%-]{8,}+)"
HEADER_MARKS = ("authorization", "cookie", "bearer", "basic")
_HEADERS = {"authorization": _AUTHORIZATION, "cookie": _COOKIE, "bearer": _SCHEME, "basic": _SCHEME}


def find_header_secrets(text: str) -> Iterator[FoundSecret]:
    """What follows `Authorization:`, `Cookie:`, `Bearer`."""
    done = 0
    for at, name in sorted(find_literals(lower_keeping_length(text), _HEADERS)):
        if at < done or text[at - 1 : at].isalnum():
            continue
        match = compile_regex(_HEADERS[name]).match(text, at + len(name))
        if match and is_secret(match["value"]):
            done = match.end()
            yield FoundSecret(*match.span("value"), "cookie" if name == "cookie" else "authorization")


# --- the password of scheme://user:password@host

_URL = r"://(?:\[redacted:[^\]\s]{1,40}\]|[^\s/:@\"'<>])*+:(?P<value>[^\s/\"'<>]{1,512})@"


_STORE_URL = (
    r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|clickhouse|cockroachdb|kafka|nats|ldaps?|smtps?)(?:\+\w{1,20})?"
    r"://[^\s/:@\"'<>]{0,100}+:(?P<value>[^\s\"'<>]{1,200})@(?=[\w.\[-]{1,253}[:/,?\s]|[\w.\[-]{1,253}\Z)"
)
"""Of a data store: here the password may hold a slash, as no path comes before the host."""


def url_passwords(text: str) -> Iterator[FoundSecret]:
    """The password of `scheme://user:password@host`."""
    for pattern in (_URL, _STORE_URL):
        for match in compile_regex(pattern).finditer(text):
            if is_secret(match["value"]):
                yield FoundSecret(*match.span("value"), "password")


# --- private keys

_KEY_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY = r"[A-Za-z0-9+/=:,\s\\-]*+"
_LONGEST_KEY = 20_000


def private_keys(text: str) -> Iterator[FoundSecret]:
    """Private key blocks; one without its end line goes as far as it looks like a key."""
    ends = iter([match.end() for match in compile_regex(_KEY_END).finditer(text)])
    end, done = next(ends, None), 0
    for match in compile_regex(_KEY_BEGIN).finditer(text):
        if match.start() < done:
            continue
        while end is not None and end <= match.end():
            end = next(ends, None)
        if end is not None and end - match.end() <= _LONGEST_KEY:
            done = end
        else:
            body = compile_regex(_KEY_BODY).match(text, match.end())
            done = body.end() if body else match.end()
        yield FoundSecret(match.start(), done, "private-key")


class KeyLines:
    """Follows a private key through the strings of a document: a log stores each line of a key on its own."""

    def __init__(self) -> None:
        self._open = 0

    def find_rest(self, text: str) -> list[FoundSecret]:
        """What belongs to a key that began in a string before; remembers a key that begins here and does not end."""
        if not self._open and "PRIVATE KEY" not in text:
            return []
        ends = compile_regex(_KEY_END).search(text)
        begins = (
            [match.end() for match in compile_regex(_KEY_BEGIN).finditer(text)]
            if "PRIVATE KEY" in text
            else []
        )
        rest = list(_find_key_words(text)) if self._open and not begins else []
        self._open = max(0, self._open - 1)
        if ends:
            self._open = 0
        if begins and not compile_regex(_KEY_END).search(text, begins[-1]):
            self._open = _MOST_STRINGS
        return rest


_MOST_STRINGS = 400
"""Strings of a document that are looked at after the start of a key."""
_KEY_WORD = r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{16,}={0,2}(?=[\s\"'\\]|\Z)"


def _find_key_words(text: str) -> Iterator[FoundSecret]:
    for match in compile_regex(_KEY_WORD).finditer(text):
        if any(map(str.isupper, match[0])) and any(map(str.islower, match[0])):
            yield FoundSecret(*match.span(), "private-key")
