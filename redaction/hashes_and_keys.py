"""Secrets as servers and secret stores keep them: password hashes, keys that are not PEM, values given to a secret store.

A hash is as sensitive as its password, because it can be guessed offline.
"""

import re
from collections.abc import Iterator

from opsleuth.redaction.secret_patterns import FoundSecret, compile_regex, is_secret

# --- password hashes: crypt(3), LDAP, SCRAM, Django, Werkzeug

_CRYPT = (
    r"(?<![\w$])\$(?:1|2[abxy]?|5|6|7|8|9|y|gy|sha1|md5|apr1|argon2(?:id|i|d)|scrypt|pbkdf2(?:-sha\d{1,3})?|bcrypt-sha256)"
    r"(?:\$[\w=,./+-]{1,80}){0,4}\$[A-Za-z0-9./+]{22,}={0,2}"
)
_LDAP = r"\{(?i:S?SHA(?:\d{3})?|S?MD5|CRYPT|PBKDF2(?:-SHA\d{1,3})?|ARGON2)\}(?=\S{0,400}\d)[\w+/=.$-]{20,}"
_SCRAM = r"(?<!\w)SCRAM-SHA-\d{1,3}\$\d{1,8}:[A-Za-z0-9+/=]{8,}\$[A-Za-z0-9+/=]{20,}:[A-Za-z0-9+/=]{20,}"
_FRAMEWORK = r"(?<!\w)(?:pbkdf2_sha\d{1,3}|pbkdf2:sha\d{1,3}:\d{1,8}|scrypt:\d{1,8}:\d{1,3}:\d{1,3}|bcrypt_sha256|argon2)\$[\w=,./+$-]{1,120}\$[A-Za-z0-9./+]{20,}={0,2}"
_HASHES = rf"(?:{_CRYPT}|{_LDAP}|{_SCRAM}|{_FRAMEWORK})"

# --- keys of other formats than PEM

_KEY_BLOCKS = (
    ("BEGIN OpenVPN", r"-----BEGIN OpenVPN (?:Static|tls-crypt-v2 (?:client|server)) key(?: V1)?-----[0-9A-Za-z+/=\s\\]*+(?:-----END OpenVPN [\w -]{1,40}-----)?"),
    ("BEGIN SSH2", r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----[^-]{0,20000}(?:---- END SSH2 ENCRYPTED PRIVATE KEY ----)?"),
    ("Private-Lines:", r"Private-Lines: \d{1,4}(?:\\n|\r?\n)(?P<value>[A-Za-z0-9+/=\s\\]++)"),
    ("RSAKeyValue", r"<(?P<part>D|P|Q|DP|DQ|InverseQ)>(?P<value>[A-Za-z0-9+/=\s]{16,})</(?P=part)>"),
    ("kty", r"\\*\"(?:d|p|q|dp|dq|qi|k)\\*\"\s{0,4}:\s{0,4}\\*\"(?P<value>[\w-]{16,})\\*\""),
)  # fmt: skip
"""The letters without which a block cannot appear in a text, and the block or the value in it."""

# --- commands that put a value into a secret store, or give it to a server

_STORE_COMMANDS = (
    ("--from-literal", r"--from-literal[ =\"',]{1,4}[\w.-]{1,200}=(?P<value>[^\s\"']{3,})"),
    ("--secret-string", r"--secret-string[ =\"',]{1,4}(?P<value>[^\s\"'][^\r\n]*)"),
    ("secret", r"(?<![\w-])secrets?[ \"',]{1,4}(?:set|create|put|add)[ \"',][^\r\n|;&]{0,200}?(?:--(?:body|value|text|plaintext|data)|-b)[ =\"',]{1,4}(?P<value>[^\s\"'-][^\s\"']{2,})"),
    ("secrets", r"(?<![\w-])(?:secrets|config):?[ \"',]?(?:set|import)[ \"',]{1,4}(?:[^\s|;&]{1,100}[ ]){0,6}?[A-Z][A-Z0-9_]{0,100}=(?P<value>[^\s\"']{3,})"),
    ("config:set", r"config:set[ \"',]{1,4}(?:[^\s|;&]{1,400}[ ]){0,20}?[A-Z][A-Z0-9_]{0,100}=(?P<value>[^\s\"']{3,})"),
    ("kv", r"(?<!\w)vault[ \"',]{1,4}(?:kv[ \"',]{1,4}(?:put|patch)|write)[ \"',][^\r\n|;&]{0,600}"),
    ("AUTH", r"(?<!\w)\\*\"AUTH\\*\"(?: \\*\"[^\"\r\n]{0,200}\")? \\*\"(?P<value>[^\"\r\n\\]{1,400})\\*\""),
    ("AUTH", r"(?i:\bHELLO\"? \"?[23]\"? \"?AUTH)\"? \"?[^\s\"]{1,200}\"? \"?(?P<value>[^\s\"]{1,400})"),
    ("SETUSER", r"SETUSER\"? [^\r\n]{0,200}?[ \"][>#](?P<value>[^\s\"]{4,400})"),
)  # fmt: skip
_STORE_PAIR = r"(?<=[ \"'])[\w.-]{1,200}=(?P<value>[^\s\"'@][^\s\"']{2,})"
_PUBLIC = re.compile(r"https?://[^@\s]*\Z|\d+\Z|\{\{|\$")


def may_hold_hashes_or_keys(text: str) -> bool:
    """Whether `find_stored_secrets` may find something."""
    return next(find_hashes_and_keys(text), None) is not None


def find_hashes_and_keys(text: str) -> Iterator[FoundSecret]:
    """Password hashes, private keys that are not PEM, and what a command writes to a secret store."""
    if "$" in text or "}" in text:
        for match in compile_regex(_HASHES).finditer(text):
            yield FoundSecret(*match.span(), "password-hash")
    for mark, pattern in _KEY_BLOCKS:
        if mark in text:
            for match in compile_regex(pattern).finditer(text):
                yield FoundSecret(
                    *match.span("value" if "value" in match.re.groupindex else 0), "private-key"
                )
    yield from _find_stored_values(text)


def _find_stored_values(text: str) -> Iterator[FoundSecret]:
    for mark, pattern in _STORE_COMMANDS:
        if mark not in text:
            continue
        for match in compile_regex(pattern).finditer(text):
            pairs = (
                [match]
                if "value" in match.re.groupindex
                else compile_regex(_STORE_PAIR).finditer(text, *match.span())
            )
            for pair in pairs:
                if is_secret(pair["value"]) and not _PUBLIC.match(pair["value"]):
                    yield FoundSecret(*pair.span("value"), "password")
