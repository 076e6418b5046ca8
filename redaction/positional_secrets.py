"""Secrets that only their place gives away: an argument of a call that logs in, a column of a table, a segment of a URL.

Here no name stands directly before the secret, so it also has to look chosen: letters and digits.
"""

import re
from collections.abc import Iterator

from opsleuth.redaction.named_values import strength_of
from opsleuth.redaction.secret_patterns import (
    LOOKS_CHOSEN,
    FoundSecret,
    compile_regex,
    is_secret,
    lower_keeping_length,
)

_RANDOM = r"(?=[A-Za-z_-]{0,60}\d)(?=[\d_-]{0,60}[A-Za-z])"
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-"
_LINK = r"(?:reset|reset[_-]password|password[_-]reset|set[_-]password|confirm|confirmation|verify|activate|activation|magic|magic[_-]link|invite|invitations?|unlock)"

_SHAPES: tuple[tuple[str, str], ...] = (
    ("@", r"(?<![\w:/])[\w.-]{1,60}:(?P<value>(?![a-z-]{1,20}#[0-9a-f]{4}\])[^\s@:\"'/]{1,200})@(?:tcp|udp|unix)\("),
    ("://", rf"://(?P<value>{_RANDOM}(?!{_UUID})\w[\w-]{{15,200}})@"),
    ("value", r"\\*[\"']?value\\*[\"']?:[ \t]{0,4}(?:\\*[\"'](?P<value>[^\"'\\\r\n]{1,1000}+)\\*[\"']|(?P<plain>[^\s\"',{}\[\]]{1,1000}+)),?(?:\s|\\n){0,40}\\*[\"']?(?:name|key)\\*[\"']?:[ \t]{0,4}\\*[\"']?(?P<name>[\w.-]{1,100})"),
    ("/", rf"(?i)/{_LINK}/(?P<value>{_RANDOM}(?!{_UUID})[\w-]{{20,200}})(?![\w.-])"),
    ("pass ", r"(?m)^(?:\S{1,40}[ \t]{1,4}){0,2}?(?:[<>-]{1,5}|C:)[ \t]{1,4}PASS[ \t]{1,4}:?(?P<value>(?=\S{0,80}\d)(?=\S{0,80}[A-Za-z])\S{6,200})[ \t]*$"),
    ("auth plain", r"AUTH PLAIN[ \t]{1,4}(?P<value>[A-Za-z0-9+/]{12,}={0,2})"),
    ("saml", r"SAML(?:Response|Request|art)=(?P<value>[A-Za-z0-9+/%=]{40,})"),
    ("securestring", r"(?i)ConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?\\*[\"'](?P<value>[^\"'\\\r\n]{1,400})"),
    ("otp", r"(?i)(?<![a-z])otp(?:\s{1,4}(?:is|code))?\s{0,4}[=:]?\s{0,4}(?P<value>\d{4,8})(?!\w)"),
    ("code", r"(?i)(?:verification|one-time|login|2fa|mfa)\s{1,4}(?:pass)?code(?:\s{1,4}is)?\s{0,4}[:=]?\s{0,4}(?P<value>\d{4,8})(?!\w)"),
)  # fmt: skip
"""Letters without which the shape cannot appear in a text (in lower case), and the shape."""

_CALL = r"(?:connect|pconnect|real_connect|__construct|getConnection|bind|ldap_bind|simple_bind|ssh2_auth_password|ftp_login|imap_open|login|authenticate|log_in|signin|sign_in)"
_CALLS = rf"(?<![\w]){_CALL}\(|(?<=_){_CALL}\("
_CALL_MARKS = (
    "connect(",
    "__construct(",
    "getconnection(",
    "bind(",
    "auth_password(",
    "login(",
    "imap_open(",
    "authenticate(",
    "log_in(",
    "signin(",
    "sign_in(",
)
_ARGUMENTS = r"\s{0,4}(?:\\*\"(?P<double>[^\"\\\r\n]{0,400})\\*\"|\\*'(?P<single>[^'\\\r\n]{0,400})\\*'|(?P<other>[^,()\"'\r\n]{1,100}))\s{0,4}(?P<end>[,)])?"
_PUBLIC_ARGUMENT = r"(?i:[\w.-]{1,60}=\S|(?:[\w+.-]{1,20}:)?//|jdbc:|/|:memory:)|\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\Z|[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,6}\.[a-z]{2,12}(?::\d{2,5})?\Z|[A-Za-z]+\d{0,2}\Z"

_COLUMNS = frozenset(("password", "passwd", "passphrase", "passwort", "passcode", "authpassword", "secretkey", "secretaccesskey", "clientsecret", "apikey", "apitoken", "accesstoken", "refreshtoken", "privatekey", "bearertoken"))  # fmt: skip
_SPLITS = ("|", "\t", ",", ";")
_LONGEST_HEADING = 1_000


def find_positional_secrets(text: str) -> Iterator[FoundSecret]:
    """Secrets in shapes of text that have no name before the value."""
    low = lower_keeping_length(text)
    for mark, pattern in _SHAPES:
        if mark in low:
            yield from _find_shape(text, pattern)
    if any(map(low.__contains__, _CALL_MARKS)):
        yield from _find_call_arguments(text)
    if any(name in low for name in ("pass", "secret", "key", "token")):
        yield from _find_cells(text)


def may_hold_positional_secrets(text: str) -> bool:
    """Whether `find_positional_secrets` finds something."""
    return next(find_positional_secrets(text), None) is not None


def _find_shape(text: str, pattern: str) -> Iterator[FoundSecret]:
    for match in compile_regex(pattern).finditer(text):
        named = match.groupdict().get("name")
        group = "plain" if match.groupdict().get("plain") is not None else "value"
        if (named is None or strength_of(named)) and is_secret(match[group]):
            yield FoundSecret(*match.span(group), "password")


def _find_call_arguments(text: str) -> Iterator[FoundSecret]:
    """The password among the quoted arguments of a call that logs in: it follows the quoted user."""
    for call in compile_regex(_CALLS).finditer(text):
        quoted, at, number = 0, call.end(), 0
        while number < 6 and (item := compile_regex(_ARGUMENTS).match(text, at)):
            group = "double" if item["double"] is not None else "single"
            value = item[group]
            needed = 1 if "log" in call[0].lower() or "auth" in call[0].lower() else 2
            if value is not None and quoted and number >= needed and _is_chosen(value):
                yield FoundSecret(*item.span(group), "password")
                break
            quoted += value is not None
            number, at = number + 1, item.end()
            if item["end"] != ",":
                break


def _is_chosen(value: str) -> bool:
    return (
        len(value) >= 6
        and compile_regex(LOOKS_CHOSEN).match(value) is not None
        and compile_regex(_PUBLIC_ARGUMENT).match(value) is None
        and is_secret(value)
    )


def _find_cells(text: str) -> Iterator[FoundSecret]:
    """The cells below a heading such as `password`, in a table of Markdown, a database client, or separated values."""
    lines = list(compile_regex(r"[^\r\n]+").finditer(text))
    done = 0
    for number, line in enumerate(lines):
        split, columns = _read_heading(line[0]) if number >= done else ("", [])
        if columns:
            width = line[0].count(split)
            done = number + 1
            while done < len(lines) and (lines[done][0].count(split) == width or _is_rule(lines[done][0])):
                yield from _find_cells_of(lines[done], split, columns)
                done += 1


def _read_heading(line: str) -> tuple[str, list[int]]:
    """What splits the columns of a table that begins with this line, and those of them that hold secrets."""
    split = next((sign for sign in _SPLITS if sign in line), "")
    if not split or len(line) > _LONGEST_HEADING:
        return "", []
    return split, [number for number, cell in enumerate(line.split(split)) if _letters_of(cell) in _COLUMNS]


def _is_rule(line: str) -> bool:
    """Whether a line only separates: `---+---`."""
    return not line.strip("-+|=: \t")


def _find_cells_of(row: re.Match[str], split: str, columns: list[int]) -> Iterator[FoundSecret]:
    at = row.start()
    for column, cell in enumerate(row[0].split(split)):
        value = cell.strip().strip("\\\"'`")
        if (
            column in columns
            and len(value) >= 4
            and compile_regex(LOOKS_CHOSEN).match(value)
            and is_secret(value)
        ):
            start = at + cell.index(value)
            yield FoundSecret(start, start + len(value), "password")
        at += len(cell) + 1


def _letters_of(cell: str) -> str:
    return "".join(filter(str.isalpha, cell.lower()))
