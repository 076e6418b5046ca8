"""Lines of `key=value` pairs, as logfmt writes them."""

import json
import re

_LOGFMT = re.compile(
    r"(?:time|ts|t|timestamp|level|lvl|severity|msg|at|logger|caller|source|app|service|component|host|name)=\S"
)
_PAIRS = re.compile(r'([A-Za-z_][\w.@/-]{0,400})=("(?:[^"\\]|\\.)*"|\S*)')


def is_logfmt(text: str) -> bool:
    """Whether the text begins with one of the keys that writers of logfmt put first."""
    return _LOGFMT.match(text) is not None


def read_logfmt(text: str) -> dict[str, str]:
    """The values by their keys, without quotes; of a key that is repeated the last."""
    return {key: _drop_quotes(value) for key, value in _PAIRS.findall(text)}


def _drop_quotes(text: str) -> str:
    if len(text) < 2 or text[0] != '"':
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]
