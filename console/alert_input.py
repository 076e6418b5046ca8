"""The alert given to `run`: from a file, from stdin, or from the address of a server that reports alerts."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from opsleuth.alerts.documents import all_muted, find_muted_alerts, nothing_fires, parse_alert_document
from opsleuth.state.text_input import read_bounded_text, read_stdin_text

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HTTP = ("http", "https")
_HINT = "--alert"

SourceTables = Mapping[str, Mapping[str, Any]]


def read_alert_document(
    where: str | None, sources: Callable[[], SourceTables], announce: Callable[[str], None]
) -> Mapping[str, Any] | None:
    """The document at `where`, a file, `-` or a URL; text that is not JSON is the alert's own text.

    `sources` are the configured ones: one at the URL's own scheme, host and port lends its credentials.
    `announce` receives the server that is asked. Raises
    BadParameter for what cannot be read, UsageError, ConfigError, AlertFetchError for a server that tells nothing.
    """
    if where is None:
        return None
    scheme = _SCHEME.match(where)
    if scheme is None:
        return _require_firing_alert(_parse_alert_text(_read_local_text(where)))
    if scheme[1].lower() not in _HTTP:
        raise _alert_option_error(
            f"cannot read an alert from {scheme[1]}://: use http:// or https://, a file, or - for stdin"
        )
    from opsleuth.console.alert_fetching import fetch_alerts

    return _require_firing_alert(fetch_alerts(where, sources(), announce))


def _read_local_text(where: str) -> str:
    if where == "-":
        return read_stdin_text("the alert")
    try:
        with Path(where).open("rb") as file:
            return read_bounded_text(file, "the alert")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _alert_option_error(f"{where} cannot be read: {reason}") from None


def _parse_alert_text(text: str) -> Mapping[str, Any]:
    text = text.strip()
    if not text:
        raise _alert_option_error("the alert is empty")
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
        raise _alert_option_error(f"the alert is not valid JSON ({where})") from None
    if isinstance(document, list):
        return {"alerts": document}
    return document if isinstance(document, dict) else {"text": text}


def _require_firing_alert(document: Mapping[str, Any]) -> Mapping[str, Any]:
    if nothing_fires(document):
        raise _alert_option_error(
            "no alert fires there, so there is nothing to look into: ask a question, or give --since"
        )
    if (quiet := find_muted_alerts(document)) and len(quiet) == len(parse_alert_document(document)):
        raise _alert_option_error(all_muted(quiet))
    return document


def _alert_option_error(text: str) -> click.BadParameter:
    return click.BadParameter(text, param_hint=_HINT)
