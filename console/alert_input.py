"""The alert that `run` is handed: from a file, from stdin, or from the address of a server that tells of alerts."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from opsleuth.console.handing import from_stdin, text_of
from opsleuth.graph.alerts import nothing_fires

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HTTP = ("http", "https")
_HINT = "--alert"

Sources = Mapping[str, Mapping[str, Any]]


def handed_in(where: str | None, sources: Callable[[], Sources]) -> Mapping[str, Any] | None:
    """The document at `where`, a file, `-` or a URL; text that is no JSON is the alert's own text.

    `sources` are the configured ones: one at the URL's own scheme, host and port lends its credentials. Raises
    BadParameter for what cannot be read, UsageError, ConfigError, NotFetched for a server that tells nothing.
    """
    if where is None:
        return None
    scheme = _SCHEME.match(where)
    if scheme is None:
        return _checked(_of_text(_local(where)))
    if scheme[1].lower() not in _HTTP:
        raise _wrong(
            f"{scheme[1]}:// is no way to an alert: give http:// or https://, a file, or - for stdin"
        )
    from opsleuth.console.alert_fetch import fetched

    return _checked(fetched(where, sources()))


def _local(where: str) -> str:
    if where == "-":
        return from_stdin("the alert")
    try:
        with Path(where).open("rb") as file:
            return text_of(file, "the alert")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _wrong(f"{where} cannot be read: {reason}") from None


def _of_text(text: str) -> Mapping[str, Any]:
    text = text.strip()
    if not text:
        raise _wrong("the alert is empty")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        if not text.startswith(("{", "[{")):
            return {"text": text}  # as people write, "[FIRING:1] …" too
        where = (
            f"line {error.lineno}, column {error.colno}: {error.msg}"
            if isinstance(error, json.JSONDecodeError)
            else error
        )
        raise _wrong(f"the alert is no valid JSON ({where})") from None
    if isinstance(document, list):
        return {"alerts": document}
    return document if isinstance(document, dict) else {"text": text}


def _checked(document: Mapping[str, Any]) -> Mapping[str, Any]:
    if nothing_fires(document):
        raise _wrong(
            "no alert fires there, so there is nothing to look into: ask a question, or give --since"
        )
    return document


def _wrong(text: str) -> click.BadParameter:
    return click.BadParameter(text, param_hint=_HINT)
