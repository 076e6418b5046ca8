"""Secrets that are recognised by their look: token formats with a fixed mark, keys, passwords after a name.

Each expression is linear: it starts only where a run of its own characters starts, or its length is bounded.
Hexadecimal ids, hashes and UUIDs have no mark and are left alone.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Found(NamedTuple):
    """A secret at `text[start:end]`; `secret` is what it spells, if that is known to be something else."""

    start: int
    end: int
    kind: str
    secret: str = ""


_WORD = r"(?<![A-Za-z0-9])"

TOKENS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(_WORD + pattern))
    for kind, pattern in (
        ("jwt", r"eyJ[\w-]{8,600}+\.[\w-]{8,}+(?:\.[\w-]*+)*+"),
        ("github-token", r"(?:gh[oprsu]_|github_pat_)\w{20,}+"),
        ("gitlab-token", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[\w.-]{20,}+"),
        ("slack-token", r"(?:xox[a-z]|xapp)-[\w-]{10,}+"),
        ("aws-key", r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("google-key", r"AIza[\w-]{35,}+|ya29\.[\w-]{20,}+|GOCSPX-[\w-]{20,}+"),
        ("stripe-key", r"(?:[prs]k_(?:live|test)|whsec)_\w{16,}+"),
        (
            "model-key",
            r"sk-(?=[\w-]{0,200}[A-Z])(?=[\w-]{0,200}\d)[\w-]{20,}+|hf_[A-Za-z0-9]{30,}+|gsk_[A-Za-z0-9]{30,}+",
        ),
        (
            "registry-token",
            r"npm_[A-Za-z0-9]{36,}+|pypi-AgE[\w-]{50,}+|dckr_pat_[\w-]{20,}+|rubygems_[0-9a-f]{48}",
        ),
        ("mail-key", r"SG\.[\w-]{16,100}+\.[\w-]{16,}+|xkeysib-[0-9a-f]{64}[\w-]*+"),
        ("vault-token", r"hv[bsr]\.[\w-]{20,}+"),
        ("cloud-token", r"do[opr]_v1_[0-9a-f]{64}|dapi[0-9a-f]{32}(?!\w)|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
        ("monitoring-key", r"gl(?:sa|c)_[\w=+/]{30,}+|NRAK-[A-Z0-9]{27}|sntr[uy]s?_[\w=+/-]{40,}+"),
        ("chat-token", r"\d{8,10}:AA[\w-]{33}(?![\w-])"),
        ("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}+"),
    )
)
TOKEN_MARKS = re.compile(
    r"eyJ|gh[oprsu]_|github_pat_|gl[a-z]+[-_]|xox[a-z]-|xapp-|A[KS]IA|AIza|ya29|GOCSPX|k_(?:live|test)_|whsec_|sk-|hf_"
    r"|gsk_|npm_|pypi-|dckr_pat_|rubygems_|SG\.|xkeysib-|hv[bsr]\.|do[opr]_v1_|dapi|shp[a-z]{2}_|NRAK-|sntr|:AA|AGE-S"
)

# After one of these names everything is a secret; after one of the others only what is long enough for one.
_STRONG = r"pass(?:word|wd|phrase|wort)|pwd|secret|client[_-]?secret|account[_-]?key"
_WEAK = (
    r"token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key"
    r"|credentials?|auth|x-amz-signature|(?<=[?&])sig"
)
SHORTEST_WEAK = 8

# The quotes may be escaped once or more (JSON within JSON); a quote that is never closed runs to the line's end.
_VALUE = r"""
    "(?P<double>(?:[^"\\\r\n]|\\.)*+)"
  | '(?P<single>(?:[^'\\\r\n]|\\.)*+)'
  | (?P<quote>\\+["'])(?P<escaped>[^\r\n]*?)(?<!\\)(?P=quote)
  | \\*+["'](?P<open>[^\r\n]++)
  | (?P<bare>(?:[^\s"'&,;\\]|[,;](?!\w{1,40}=)|\\(?!["']))++)
"""
_ASSIGNMENT = re.compile(
    rf"(?i)(?:(?P<strong>{_STRONG})|(?<![a-z])(?P<weak>{_WEAK}))"
    rf"\\*+[\"'\])]?\s{{0,8}}(?P<sign>=>|:=|==?|:)\s{{0,8}}(?:{_VALUE})",
    re.VERBOSE,
)
_NAME = re.compile(rf"(?i)(?:(?P<strong>{_STRONG})|(?<![a-z])(?P<weak>{_WEAK}))\Z")
NAME_MARKS = re.compile(r"(?i)pass|pwd|secret|token|key|auth|credential|session|cookie|bearer|basic|sig")

_SCHEME = r"(?:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)[ \t]{1,4}"
_HEADER = re.compile(
    r"(?i)(?:proxy-)?authorization\\*+[\"']?\s{0,8}[:=]\s{0,8}\\*+[\"']?"
    rf"(?:{_SCHEME}|[a-z][a-z-]{{0,30}}[ \t]{{1,4}}(?=\S{{0,400}}\d)|(?=\S{{0,400}}\d))(?P<value>[^\s\"'\\]++)"
    r"|\b(?:set-)?cookie\\*+[\"']?\s{0,8}:\s{0,8}\\*+[\"']?(?P<cookie>[^\r\n\"\\]++)"
    r"|\b(?:bearer|basic)\s{1,4}(?P<scheme>(?=\S{0,400}\d)[\w.~+/=-]{16,}+)"
)
_URL = re.compile(r"://(?:\[redacted:[^\]\s]{1,40}\]|[^\s/:@\"'<>])*+:(?P<value>[^\s/\"'<>]{1,512})@")

# What stands where a secret would, and is none: a reference, a placeholder, a mark of ours.
_NO_SECRET = re.compile(
    r"(?i:null|none|true|false|undefined|empty|nil|x{3,}|\*+|\.{3}|<[^<>]*>)|\$\{[^{}]*\}|\$[A-Z_][A-Z0-9_]*|\{\{[^{}]*\}\}"
    r"|\[redacted:[a-z-]+\#[0-9a-f]{4}\]"
)
_TOKEN_LIKE = re.compile(r"\d|.{20}")


def is_secret(value: str, *, weak: bool = False) -> bool:
    """Whether a value after a telling name is a secret, and no reference or placeholder."""
    if not value or (weak and len(value) < SHORTEST_WEAK):
        return False
    return _NO_SECRET.fullmatch(value) is None


def named(key: str) -> str | None:
    """`strong` or `weak` if a field of this name holds secrets, else None."""
    match = _NAME.search(key)
    return match.lastgroup if match else None


def named_secrets(text: str) -> Iterator[Found]:
    """Values after `password=`, `"api_key":`, `Authorization:`, `Cookie:` and the like."""
    for match in _HEADER.finditer(text):
        kind = match.lastgroup or ""
        if is_secret(match[kind]):
            yield Found(*match.span(kind), "cookie" if kind == "cookie" else "authorization")
    for match in _ASSIGNMENT.finditer(text):
        group = next(g for g in ("double", "single", "escaped", "open", "bare") if match[g] is not None)
        if match["strong"] and match["strong"].lower() == "pwd" and match[group].startswith("/"):
            continue  # the shell's working directory
        weak = match["weak"] is not None
        if weak and group == "bare" and match["sign"] == ":" and not _TOKEN_LIKE.search(match[group]):
            continue  # prose: "unexpected token: identifier"
        if is_secret(match[group], weak=weak):
            yield Found(*match.span(group), "password" if match["strong"] else "token")


def url_passwords(text: str) -> Iterator[Found]:
    """The password of `scheme://user:password@host`."""
    for match in _URL.finditer(text):
        if is_secret(match["value"]):
            yield Found(*match.span("value"), "password")


def tokens(text: str) -> Iterator[Found]:
    """Tokens of known formats."""
    for kind, pattern in TOKENS:
        for match in pattern.finditer(text):
            yield Found(*match.span(), kind)


_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"(?:[A-Za-z0-9+/=:,\s\\-]|\\n)*+")
_LONGEST_KEY = 20_000


def private_keys(text: str) -> Iterator[Found]:
    """Private key blocks; one without its end line goes as far as it looks like a key."""
    ends = [match.end() for match in _KEY_END.finditer(text)]
    at = 0
    for match in _KEY_BEGIN.finditer(text):
        if match.start() < at:
            continue
        while ends and ends[0] <= match.end():
            ends.pop(0)
        if ends and ends[0] - match.end() <= _LONGEST_KEY:
            at = ends[0]
        else:
            body = _KEY_BODY.match(text, match.end())
            at = body.end() if body else match.end()
        yield Found(match.start(), at, "private-key")
