"""Secrets that are recognised by their look: token formats with a fixed mark, private keys, and what follows a name.

A finder looks for fixed letters first, which is fast, and matches an expression only where they stand. What was
taken for a secret is not looked at again, so that the time is linear in the text. Hexadecimal ids, hashes and
UUIDs have no mark and are left alone.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

_regex = cache(re.compile)
"""Compiles an expression when it is first needed: commands that only read the store need none."""


class Found(NamedTuple):
    """A secret at `text[start:end]`; `secret` is what it spells, if that is known to be something else."""

    start: int
    end: int
    kind: str
    secret: str = ""


def lowered(text: str) -> str:
    """The text in lower case, character for character: the one letter that becomes two is replaced before."""
    return text.replace("\u0130", "I").lower()


def _hits(text: str, literals: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Where each of the literals stands."""
    for literal in literals:
        at = text.find(literal)
        while at >= 0:
            yield at, literal
            at = text.find(literal, at + 1)


# --- tokens of known formats: kind, the letters they begin with, and what they are from there on

_TOKENS: tuple[tuple[str, tuple[str, ...], str], ...] = tuple(
    (kind, tuple(marks.split()), pattern)
    for kind, marks, pattern in (
        ("jwt", "eyJ", r"[\w-]{11,600}+\.[\w-]{8,}+(?:\.[\w-]*+)*+"),
        ("github-token", "ghp_ gho_ ghr_ ghs_ ghu_ github_pat_", r"\w{24,}+"),
        (
            "gitlab-token",
            "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat-",
            r"[\w.-]{25,}+",
        ),
        ("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"[\w-]{15,}+"),
        ("aws-key", "AKIA ASIA", r"[A-Z0-9]{20}(?![A-Za-z0-9])"),
        ("google-key", "AIza GOCSPX-", r"[\w-]{28,}+"),
        ("google-key", "ya29.", r"ya29\.[\w-]{20,}+"),
        ("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"\w{22,}+"),
        ("model-key", "sk-", r"(?=[\w-]{0,200}[A-Z])(?=[\w-]{0,200}\d)[\w-]{23,}+"),
        ("model-key", "hf_ gsk_", r"\w{33,}+"),
        ("registry-token", "npm_ rubygems_", r"\w{40,}+"),
        ("registry-token", "pypi-AgE dckr_pat_", r"[\w-]{29,}+"),
        ("mail-key", "SG.", r"SG\.[\w-]{16,100}+\.[\w-]{16,}+"),
        ("mail-key", "xkeysib-", r"xkeysib-[0-9a-f]{64}[\w-]*+"),
        ("vault-token", "hvs. hvb. hvr.", r"hv[bsr]\.[\w-]{20,}+"),
        ("cloud-token", "doo_v1_ dop_v1_ dor_v1_", r"\w{71,}+"),
        ("cloud-token", "dapi", r"dapi[0-9a-f]{32}(?!\w)"),
        ("cloud-token", "shpat_ shpca_ shppa_ shpss_", r"\w{38,}+"),
        ("monitoring-key", "glsa_ glc_ sntrys_ sntryu_", r"[\w=+/-]{34,}+"),
        ("monitoring-key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
        ("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9-]{56,}+"),
    )
)
TOKEN_MARKS = tuple(mark for _, marks, _ in _TOKENS for mark in marks)


def tokens(text: str) -> Iterator[Found]:
    """Tokens of known formats that do not stand in the middle of a word."""
    for kind, marks, pattern in _TOKENS:
        done = 0
        for at, _ in sorted(_hits(text, marks)):
            if at < done or text[at - 1 : at].isalnum():
                continue
            if match := _regex(pattern).match(text, at):
                done = match.end()
                yield Found(at, done, kind)


# --- values after a name. After a strong one everything is a secret, after a weak one what is long enough

_STRONG = ("password", "passwd", "passphrase", "passwort", "pwd", "secret")
_KEYS = tuple(
    f"{word}{joint}key"
    for word in ("api", "access", "secret", "private", "signing", "encryption", "account")
    for joint in ("", "_", "-")
)
_WEAK = ("token", *_KEYS, "credential", "credentials", "auth", "x-amz-signature", "&sig", "?sig")
_NAMES = (*_STRONG, *_WEAK)
_SHORTEST_WEAK = 8
NAME_MARKS = (*(n for n in _NAMES if n != "credentials"), "cookie", "bearer", "basic", "authorization")

# The quotes may be escaped, once or more (JSON within JSON); a quote that is never closed runs to the line's end.
_VALUE = r"""(?x)
    \\*+["'\])]?\s{0,8}(?P<sign>=>|:=|==?|:)\s{0,8}
    (?: "(?P<double>(?:[^"\\\r\n]|\\.)*+)"
      | '(?P<single>(?:[^'\\\r\n]|\\.)*+)'
      | (?P<quote>\\+["'])(?P<escaped>[^\r\n]*?)(?<!\\)(?P=quote)
      | \\*+["'](?P<open>[^\r\n]++)
      | (?P<bare>(?:[^\s"'&,;\\]|[,;](?!\w{1,40}=)|\\(?!["']))++)
    )"""
_VALUES = ("double", "single", "escaped", "open", "bare")
_LONG_OR_NUMBERED = r"\d|.{20}"

# What stands where a secret would, and is none: a reference, a placeholder, a mark of ours.
_HARMLESS = (
    r"(?i:null|none|true|false|undefined|empty|nil|x{3,}|\*+|\.{3}|<[^<>]{0,100}>)|\$\{[^{}]{0,100}\}"
    r"|\$[A-Z_][A-Z0-9_]*|\{\{[^{}]{0,100}\}\}|\[redacted:[a-z-]+\#[0-9a-f]{4}\]"
)


def is_secret(value: str, *, weak: bool = False) -> bool:
    """Whether a value after a telling name is a secret, and no reference or placeholder."""
    if not value or (weak and len(value) < _SHORTEST_WEAK):
        return False
    return _regex(_HARMLESS).fullmatch(value) is None


def named(key: str) -> str | None:
    """`strong` or `weak` if a field of this name holds secrets, else None."""
    low = lowered(key)
    for name in _NAMES:
        if low.endswith(name) and _is_whole(key, len(key) - len(name), name):
            return "strong" if name in _STRONG else "weak"
    return None


def named_secrets(text: str) -> Iterator[Found]:
    """Values after `password=`, `"api_key":` and the like."""
    done = 0
    for at, name in sorted(_hits(lowered(text), _NAMES)):
        if at < done or not _is_whole(text, at, name):
            continue
        match = _regex(_VALUE).match(text, at + len(name))
        if match is None:
            continue
        group = next(g for g in _VALUES if match[g] is not None)
        if name == "pwd" and match[group].startswith("/"):  # the shell's working directory
            done = match.end()
        elif _is_value(match, group, weak=name not in _STRONG):
            done = match.end()
            yield Found(*match.span(group), "password" if name in _STRONG else "token")


def _is_value(match: re.Match[str], group: str, *, weak: bool) -> bool:
    """A short bare word after a weak name and a colon is prose: `unexpected token: identifier`."""
    value = match[group]
    prose = weak and group == "bare" and match["sign"] == ":" and not _regex(_LONG_OR_NUMBERED).search(value)
    return not prose and is_secret(value, weak=weak)


def _is_whole(text: str, at: int, name: str) -> bool:
    """`auth` counts as a word of its own (not in `oauth`), the other names also at the end of a longer one."""
    before = text[at - 1 : at] if at else ""
    return name != "auth" or not before.isalpha() or (before.islower() and text[at].isupper())


# --- headers

_SCHEMES = r"(?i:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)[ \t]{1,4}"
_AUTHORIZATION = (
    r"\\*+[\"']?\s{0,8}[:=]\s{0,8}\\*+[\"']?"
    rf"(?:{_SCHEMES}|[A-Za-z][A-Za-z-]{{0,30}}[ \t]{{1,4}}(?=\S{{0,400}}\d)|(?=\S{{0,400}}\d))(?P<value>[^\s\"'\\]++)"
)
_COOKIE = r"\\*+[\"']?\s{0,8}:\s{0,8}\\*+[\"']?(?P<value>[^\r\n\"\\]++)"
_SCHEME = r"\s{1,4}(?P<value>(?=\S{0,400}\d)[\w.~+/=%-]{8,}+)"
_HEADERS = {"authorization": _AUTHORIZATION, "cookie": _COOKIE, "bearer": _SCHEME, "basic": _SCHEME}


def headers(text: str) -> Iterator[Found]:
    """What follows `Authorization:`, `Cookie:`, `Bearer`."""
    done = 0
    for at, name in sorted(_hits(lowered(text), _HEADERS)):
        if at < done or text[at - 1 : at].isalnum():
            continue
        match = _regex(_HEADERS[name]).match(text, at + len(name))
        if match and is_secret(match["value"]):
            done = match.end()
            yield Found(*match.span("value"), "cookie" if name == "cookie" else "authorization")


# --- the password of scheme://user:password@host

_URL = r"://(?:\[redacted:[^\]\s]{1,40}\]|[^\s/:@\"'<>])*+:(?P<value>[^\s/\"'<>]{1,512})@"


def url_passwords(text: str) -> Iterator[Found]:
    """The password of `scheme://user:password@host`."""
    for match in _regex(_URL).finditer(text):
        if is_secret(match["value"]):
            yield Found(*match.span("value"), "password")


# --- private keys

_KEY_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY = r"[A-Za-z0-9+/=:,\s\\-]*+"
_LONGEST_KEY = 20_000


def private_keys(text: str) -> Iterator[Found]:
    """Private key blocks; one without its end line goes as far as it looks like a key."""
    ends = iter([match.end() for match in _regex(_KEY_END).finditer(text)])
    end, done = next(ends, None), 0
    for match in _regex(_KEY_BEGIN).finditer(text):
        if match.start() < done:
            continue
        while end is not None and end <= match.end():
            end = next(ends, None)
        if end is not None and end - match.end() <= _LONGEST_KEY:
            done = end
        else:
            body = _regex(_KEY_BODY).match(text, match.end())
            done = body.end() if body else match.end()
        yield Found(match.start(), done, "private-key")
