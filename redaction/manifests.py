"""Values of Kubernetes Secrets in the text of a manifest, as YAML or JSON."""

import re
from collections.abc import Iterator

from opsleuth.redaction.secret_patterns import FoundSecret, compile_regex, is_secret

_KIND = r"\\*+[\"']?kind\\*+[\"']?\s{0,4}:\s{0,4}\\*+[\"']?Secret(?:List)?\b"
_YAML_DATA = r"(?m)(?:^|(?<=[\"']))(?P<indent>[ \t]*(?:-[ \t]+)?)(?:data|stringData):[ \t]*\r?\n(?P<body>(?:(?P=indent)[ \t]+\S[^\r\n]*(?:\r?\n|\Z))+)"
_YAML_VALUE = r"(?m)^[ \t]+[\w.\"'-]+:[ \t]+[\"']?(?P<value>[^\s\"'][^\r\n\"']*)"
_YAML_LINE = r"(?m)^[ \t]{2,}(?P<value>[A-Za-z0-9+/=]{16,})[ \t]*$"
_JSON_DATA = r"(?:data|stringData)\\*+[\"']\s{0,8}:\s{0,8}\{(?P<body>[^{}]{0,100000})\}"
_JSON_VALUE = r":\s{0,8}\\*+[\"'](?P<value>[^\"'\\]+)"
_DOCUMENT = r"(?m)^---"


def find_manifest_secrets(text: str) -> Iterator[FoundSecret]:
    """Every value below `data` and `stringData` of a document whose kind is Secret."""
    at = 0
    for part in compile_regex(_DOCUMENT).split(text):
        if compile_regex(_KIND).search(part):
            yield from _find_values(part, at)
        at += len(part) + 3


def _find_values(part: str, at: int) -> Iterator[FoundSecret]:
    for data, values in ((_YAML_DATA, (_YAML_VALUE, _YAML_LINE)), (_JSON_DATA, (_JSON_VALUE,))):
        for block in compile_regex(data).finditer(part):
            for value in values:
                yield from _values_in(block, value, at)


def _values_in(block: re.Match[str], pattern: str, at: int) -> Iterator[FoundSecret]:
    for match in compile_regex(pattern).finditer(block["body"]):
        start = at + block.start("body") + match.start("value")
        value = match["value"].rstrip()
        if is_secret(value):
            yield FoundSecret(start, start + len(value), "password")
