"""The secrets of a process's environment: values of variables with telling names, and passwords in URLs."""

from collections.abc import Iterator, Mapping

from opsleuth.redaction import named_values, secret_patterns

_SHORTEST = 8


def environment_secrets(environ: Mapping[str, str]) -> Iterator[str]:
    """Each secret among these variables. A plain word is not a secret: it would be taken out of every sentence."""
    for name, value in environ.items():
        strength = named_values.strength_of(name)
        if strength and named_values.is_named_secret(value, strength, name) and _stands_out(value):
            yield value
        if "://" in value and "@" in value:
            passwords = {value[found.start : found.end] for found in secret_patterns.url_passwords(value)}
            yield from sorted(filter(_stands_out, passwords))


def _stands_out(value: str) -> bool:
    """Whether a value can be looked for in any text: long enough, not a path, not a word of lower-case letters, not a number."""
    if len(value) < _SHORTEST or value.startswith(("/", "~", ".")) or value.isdigit():
        return False
    return not (value.isascii() and value.isalpha() and value.islower())
