"""The forms in which a known secret turns up: as it is, in JSON, in a URL, in hexadecimal, inside base64."""

import json
import re
from binascii import b2a_base64
from typing import NamedTuple
from urllib.parse import quote, quote_plus

SHORTEST = 6
"""Characters: a shorter secret, or a shorter trace of one, would hit ordinary text."""


_ESCAPE = re.compile("%[0-9a-fA-F]{2}")


class SecretEncoding(NamedTuple):
    """One spelling, in the form that `normal` gives a text. `encoded` spellings are part of a longer base64 word, which goes with them."""

    text: str
    encoded: bool = False


def secret_encodings(secret: str) -> tuple[SecretEncoding, ...]:
    """All spellings of a secret, longest first; none for a secret that is too short."""
    if len(secret) < SHORTEST:
        return ()
    raw = secret.encode("utf-8", "surrogatepass")
    plain = {
        secret,
        *_json_forms(secret),
        *_url_forms(secret),
        raw.hex(),
        raw.hex().upper(),
    }
    cores = {core for core in _base64_cores(raw) if len(core) >= SHORTEST}
    plain, cores = set(map(normalize_escapes, plain)), set(map(normalize_escapes, cores))
    found = [SecretEncoding(text) for text in plain] + [
        SecretEncoding(core, encoded=True) for core in cores - plain
    ]
    return tuple(sorted(found, key=lambda form: (-len(form.text), form.text)))


def _json_forms(secret: str) -> set[str]:
    """Inside a JSON string, and inside JSON that is itself a string in JSON; with and without escaped letters."""
    once = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    return once | {json.dumps(text, ensure_ascii=False)[1:-1] for text in once}


def _url_forms(secret: str) -> set[str]:
    if any(0xD800 <= ord(c) <= 0xDFFF for c in secret):
        return set()
    return {quote(secret), quote(secret, safe=""), quote_plus(secret)}


def normalize_escapes(text: str) -> str:
    """Every escape in capitals (`%2f` as `%2F`), nothing moved: the case of an escape tells nothing apart."""
    return _ESCAPE.sub(lambda found: found[0].upper(), text) if "%" in text else text


def _base64_cores(raw: bytes) -> set[str]:
    """What base64 makes of these bytes wherever they appear in a longer text: three alignments, two alphabets.

    The first and last characters that also depend on the neighbours are not part of a core.
    """
    cores: set[str] = set()
    for before in range(3):
        padded = bytes(before) + raw
        first = -(-before * 4 // 3)
        last = len(padded) * 8 // 6
        standard = b2a_base64(padded + bytes(2), newline=False)[first:last].decode("ascii")
        for core in (standard, standard.replace("+", "-").replace("/", "_")):
            cores |= {core, quote(core, safe="")}
    return cores
