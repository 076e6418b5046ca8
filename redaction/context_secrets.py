"""Secrets that words further off give away: parameters of a statement, values of a secret store, the steps of a login."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from opsleuth.redaction.named_values import strength_of
from opsleuth.redaction.secret_patterns import (
    LOOKS_CHOSEN,
    FoundSecret,
    compile_regex,
    is_secret,
    lower_keeping_length,
)

_STATEMENT = 2_000
"""Characters around parameters in which their statement is looked for."""
_MARK = "redacted:"
_NAME = r"(?<![\w.-])(?P<name>[\w.-]{2,60})"
_LIST_NAME = r"(?:[a-z0-9]{1,20}[_-]){0,3}(?:passwords|passwds|passphrases|secrets|tokens|api[_-]?keys|secret[_-]?keys|access[_-]?keys|private[_-]?keys|credentials)"
_ITEM = rf"(?!redacted:[a-z-]{{1,20}}#)(?<![^\s\"',=\[\]{{}}]){LOOKS_CHOSEN}[^\s\"',\[\]{{}}]{{8,200}}"

_SHAPES: tuple[tuple[str, str], ...] = (
    ('"""', rf"{_NAME}[ \t]{{0,4}}[=:][ \t]{{0,4}}\"\"\"(?P<value>[^\"\r\n]{{1,400}})\"\"\""),
    ("'''", rf"{_NAME}[ \t]{{0,4}}[=:][ \t]{{0,4}}'''(?P<value>[^'\r\n]{{1,400}})'''"),
    ("<%=", rf"{_NAME}[ \t]{{0,4}}[=:][ \t]{{0,4}}[\"']?<%=[^%\r\n]{{0,200}}?(?:\|\||,)[ \t]{{0,4}}[\"'](?P<value>[^\"'\r\n]{{1,400}})[\"']"),
    ("$apr1$$", r"\$\$apr1\$\$[\w./]{1,16}\$\$(?P<value>[\w./]{8,40})"),
    ("$$2", r"\$\$2[abxy]\$\$\d\d\$\$(?P<value>[\w./]{20,80})"),
    ("apr1$", r"(?<!\$)\$apr1\$[\w./]{1,16}\$(?P<value>[\w./]{8,40})"),
    ("schtasks", r"(?i)schtasks[^\r\n|&]{0,300}?[ \t]/rp[ \t]{1,4}[\"']?(?P<value>[^\s\"'/][^\s\"']{2,200})"),
    ("isql", rf"(?<![\w./-])isql[ \t]{{1,4}}(?:-[\w]{{1,10}}[ \t]{{1,4}}){{0,6}}[\w.-]{{1,60}}[ \t]{{1,4}}[\w.-]{{1,60}}[ \t]{{1,4}}(?P<value>{LOOKS_CHOSEN}[^\s\"'<>|&-][^\s\"'<>|&]{{3,200}})"),
    ("securestring", r"\\*\"Type\\*\"\s{0,8}:\s{0,8}\\*\"SecureString\\*\"\s{0,8},\s{0,40}\\*\"Value\\*\"\s{0,8}:\s{0,8}\\*\"(?P<value>[^\"\\\r\n]{1,4000})"),
    ("securestring", r"\\*\"Value\\*\"\s{0,8}:\s{0,8}\\*\"(?P<value>[^\"\\\r\n]{1,4000})\\*\"\s{0,8},\s{0,40}(?:\\*\"(?:Version|ARN|Name)\\*\"[^,\r\n]{1,300},\s{0,40}){0,3}\\*\"Type\\*\"\s{0,8}:\s{0,8}\\*\"SecureString"),
    ("securestring", r"(?m)(?<=\tSecureString\t)(?P<value>[^\t\r\n]{1,4000})"),
    ("payload", r"(?i)payload[\"\\]{0,4}\s{0,8}:\s{0,8}\{?\s{0,40}[\"\\]{0,4}data[\"\\]{0,4}\s{0,8}:\s{0,8}[\"'\\]{0,4}(?P<value>[A-Za-z0-9+/_-]{4,8000}={0,2})(?=[^{}]{0,200}(?:dataCrc32c|secrets/[^/\s]{1,200}/versions)|(?:[^{}]{0,40}\}[^{}]{0,200}secrets/[^/\s]{1,200}/versions))"),
    ("secretstring", r"\\*\"(?:SecretString|SecretBinary)\\*\"\s{0,8}:\s{0,8}\\*\"(?P<value>[^\"\\\r\n{][^\"\\\r\n]{1,4000})"),
    ("name=", r"<[\w:.-]{1,60}\s[^<>]{0,200}?(?<!\w)name=[\"'](?P<name>[\w.-]{2,100})[\"'][^<>]{0,200}>\s{0,20}(?P<value>[^<>\r\n]{1,400}?)\s{0,20}</"),
    ("334 ugfzc3dvcmq6", r"334 UGFzc3dvcmQ6[^\r\n]{0,40}(?:\\n|\r?\n)[^\r\n]{0,60}?(?<![\w+/])(?P<value>[A-Za-z0-9+/]{6,}={0,2})[ \t]{0,4}(?:$|(?=[\r\n\\]))"),
    ("login ", rf"(?<!\S)(?P<tag>[A-Za-z]{{0,4}}\d{{1,6}})[ \t]LOGIN[ \t]{{1,4}}(?:\"[^\"\r\n]{{1,100}}\"|[^\s\"]{{1,100}})[ \t]{{1,4}}\"?(?P<value>{LOOKS_CHOSEN}[^\s\"]{{4,200}})\"?[ \t]{{0,4}}(?:$|(?=[\r\n\\]))"),
)  # fmt: skip
"""Letters without which the shape cannot stand in a text (in lower case), and the shape. A `name` has to be telling."""

_LISTS = (
    rf"(?i)(?<![\w-]){_LIST_NAME}[\"'\\]{{0,4}}[ \t]{{0,4}}[=:][ \t]{{0,4}}\[(?P<list>[^\[\]]{{1,4000}})\]",
    rf"(?i)(?<![\w-]){_LIST_NAME}[ \t]{{0,4}}:[ \t]{{0,4}}\r?\n(?P<list>(?:[ \t]{{0,40}}-[ \t]{{1,4}}[^\r\n]{{1,400}}(?:\r?\n|\Z)){{1,50}})",
    rf"(?i)(?<![\w-]){_LIST_NAME}[ \t]{{0,4}}=[ \t]{{0,4}}(?P<list>[^\s,\"'\[]{{4,200}}(?:,[^\s,\"']{{4,200}}){{1,50}})",
)
_PARAMETERS = r"(?i)parameters: (?P<list>\$1 = [^\r\n]{1,4000})"
_PARAMETER = r"\$(?P<number>\d{1,3}) = '(?P<value>(?:[^']|''){1,1000})'"
_BOUND = r"(?i)binding parameter \[?(?P<number>\d{1,3})\]? (?:as|with type) [^\r\n]{1,40}? - \[(?P<value>[^\]\r\n]{1,1000})\]"
_ASSIGNED = (
    r"(?i)(?P<name>[a-z_][\w.]{1,60})[\"`\]]?\s{0,4}=\s{0,4}(?:[\w.]{1,40}\(\s{0,4})?(?P<place>\$\d{1,3}|\?)"
)
_HASHED = r"(?i)(?<!\w)(?:crypt|digest|hmac|password|encrypt|identified\s{1,4}by)\s{0,4}\(?\s{0,4}(?P<place>\$\d{1,3}|\?)"
_INSERTED = r"(?i)insert\s{1,4}into\s{1,4}[^\s(]{1,100}\s{0,4}\((?P<columns>[^()]{1,2000})\)\s{0,4}values\s{0,4}\((?P<values>(?:[^()']|\([^()]{0,100}\)|'(?:[^']|''){0,1000}'){1,4000})\)"
_CELL = r"'(?:[^']|''){0,1000}'|[^,']{1,200}"


def find_context_secrets(text: str) -> Iterator[FoundSecret]:
    """Secrets that no name stands directly before; marks that stand for one stay."""
    for found in _find_all(text):
        if _MARK not in text[found.start : found.end]:
            yield found


def _find_all(text: str) -> Iterator[FoundSecret]:
    low = lower_keeping_length(text)
    for mark, pattern in _SHAPES:
        if mark in low:
            yield from _find_shape(text, pattern)
    if any(mark in low for mark in ("passw", "passphrases", "secrets", "tokens", "keys", "credentials")):
        yield from _find_lists(text)
    if "parameter" in low:
        yield from _find_parameters(text)
    if "insert" in low:
        yield from _find_inserted(text)


def may_hold_context_secrets(text: str) -> bool:
    """Whether `find_context_secrets` finds something."""
    return next(find_context_secrets(text), None) is not None


def strength_in_mapping(value: Mapping[Any, Any], key: object) -> str | None:
    """The strength "strong" where the other fields of a mapping say that this one holds a secret, as secret stores answer."""
    if key == "Value" and value.get("Type") == "SecureString":
        return "strong"
    if key in ("SecretString", "SecretBinary"):
        return "strong"
    if key == "payload" and isinstance(value[key], Mapping) and "/secrets/" in str(value.get("name")):
        return "strong"
    return "strong" if _is_list_of_secrets(key, value[key]) else None


def _is_list_of_secrets(key: object, item: object) -> bool:
    """Whether a list of words that look chosen stands under the plural of a telling name."""
    return (
        isinstance(item, list | tuple)
        and bool(item)
        and compile_regex(rf"(?i){_LIST_NAME}").fullmatch(str(key)) is not None
        and all(isinstance(word, str) and compile_regex(_ITEM).fullmatch(word) for word in item)
    )


def _find_shape(text: str, pattern: str) -> Iterator[FoundSecret]:
    for match in compile_regex(pattern).finditer(text):
        name = match.groupdict().get("name")
        if (name is None or strength_of(name)) and is_secret(match["value"]):
            yield FoundSecret(*match.span("value"), "password")


def _find_lists(text: str) -> Iterator[FoundSecret]:
    """The items of a list whose name is the plural of a telling one; each has to look chosen."""
    for pattern in _LISTS:
        for match in compile_regex(pattern).finditer(text):
            for item in compile_regex(_ITEM).finditer(text, *match.span("list")):
                if is_secret(item[0]):
                    yield FoundSecret(*item.span(), "password")


def _find_parameters(text: str) -> Iterator[FoundSecret]:
    """Parameters of a statement that stands beside them: PostgreSQL writes it after them, Hibernate before."""
    for line in compile_regex(_PARAMETERS).finditer(text):
        around = (
            text[max(0, line.start() - _STATEMENT) : line.start()]
            + text[line.end() : line.end() + _STATEMENT]
        )
        places = _secret_places(around)
        for value in compile_regex(_PARAMETER).finditer(text, *line.span("list")):
            if f"${value['number']}" in places and is_secret(value["value"]):
                yield FoundSecret(*value.span("value"), "password")
    for value in compile_regex(_BOUND).finditer(text):
        places = _secret_places(text[max(0, value.start() - _STATEMENT) : value.start()])
        if f"?{value['number']}" in places and is_secret(value["value"]):
            yield FoundSecret(*value.span("value"), "password")


def _secret_places(statement: str) -> set[str]:
    """The parameters of a statement that hold secrets: `$2`, or `?2` for the second question mark."""
    numbers = {mark.start(): number for number, mark in enumerate(re.finditer(r"\?", statement), 1)}
    found = set[str]()
    for match in compile_regex(_ASSIGNED).finditer(statement):
        if strength_of(match["name"].rpartition(".")[2]):
            found.add(_name_place(match["place"], match.start("place"), numbers))
    for match in compile_regex(_HASHED).finditer(statement):
        found.add(_name_place(match["place"], match.start("place"), numbers))
    for insert in compile_regex(_INSERTED).finditer(statement):
        for start, cell in _secret_cells(insert):
            found.add(_name_place(cell, start, numbers))
    return found


def _name_place(place: str, start: int, numbers: dict[int, int]) -> str:
    return f"?{numbers.get(start, 0)}" if place.startswith("?") else place


def _secret_cells(insert: re.Match[str]) -> Iterator[tuple[int, str]]:
    """Where the values of telling columns begin, and those values."""
    columns = [name.strip(' \t\r\n"`[]') for name in insert["columns"].split(",")]
    cells = list(compile_regex(_CELL).finditer(insert.string, *insert.span("values")))
    cells = [cell for cell in cells if cell[0].strip()]
    if len(cells) == len(columns):
        for name, cell in zip(columns, cells, strict=True):
            if strength_of(name):
                text = cell[0]
                yield cell.start() + len(text) - len(text.lstrip()), text.strip()


def _find_inserted(text: str) -> Iterator[FoundSecret]:
    """Quoted values of telling columns of an INSERT."""
    for insert in compile_regex(_INSERTED).finditer(text):
        for start, cell in _secret_cells(insert):
            if cell.startswith("'") and len(cell) > 5 and is_secret(cell[1:-1]):
                yield FoundSecret(start + 1, start + len(cell) - 1, "password")
