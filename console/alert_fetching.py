"""Alerts by HTTP: one GET, bounded in time and size, with the credentials of the source that is configured there."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from opsleuth.configuration.secret_references import Vault
from opsleuth.configuration.source_settings import HttpSettings
from opsleuth.configuration.sources import SETTINGS
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError, OpsleuthError, UsageError
from opsleuth.state.run_status import ExitCode
from opsleuth.state.text_input import LARGEST
from opsleuth.tools.sources.http_client import HttpApi
from opsleuth.tools.spec import NotPermittedError, ToolError

DEADLINE = 15.0
"""Seconds until the whole answer must be there."""


class AlertFetchError(OpsleuthError):
    """The server that was to report alerts could not be asked, or reported none; the text says why."""

    exit_code = ExitCode.UNREACHABLE


def fetch_alerts(
    where: str, sources: Mapping[str, Mapping[str, Any]], announce: Callable[[str], None]
) -> Mapping[str, Any]:
    """The JSON document at this URL; a list is one of alerts. `announce` receives the address before it is asked.

    Raises UsageError for anything that is not an address, ConfigError for credentials that are refused, AlertFetchError.
    """
    return _parse_alert_response(where, _fetch_alert_body(_parse_alert_url(where), sources, announce))


def _parse_alert_url(where: str) -> SplitResult:
    try:
        parts = urlsplit(where)
        named = bool(parts.hostname) and parts.port != 0 and not re.search(r"[\s\\]", parts.netloc)
    except ValueError:
        named = False
    if not named:
        raise UsageError(
            "this is not the address of an alert server: write https://alertmanager.example.com/api/v2/alerts"
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "a password has no place in an address: configure a source at this host (opsleuth init), "
            "its credentials are used"
        )
    return parts


def _fetch_alert_body(
    parts: SplitResult, sources: Mapping[str, Mapping[str, Any]], announce: Callable[[str], None]
) -> str:
    """The body of the answer. Raises ConfigError, AlertFetchError."""
    place = f"{parts.scheme}://{parts.netloc}"
    name, settings = _http_settings_for_url(parts, sources)
    announce(f"asking {place} for alerts" + (f" as the source {name} does" if name else ""))
    api = HttpApi("--alert", settings, Vault(), SystemClock())
    try:
        return asyncio.run(_request_text(api, parts))
    except NotPermittedError as error:
        remedy = "correct its credentials" if name else "configure a source at this host with its credentials"
        raise ConfigError(
            f"{_redacted_fetch_error(str(error))}: {remedy} (opsleuth doctor tries them)"
        ) from None
    except (ToolError, TimeoutError) as error:
        raise _redacted_fetch_error(
            str(error) or f"{place} gave no complete answer within {DEADLINE:g} s"
        ) from None


async def _request_text(api: HttpApi, parts: SplitResult) -> str:
    async with asyncio.timeout(DEADLINE), api.session() as session:
        return await session.text(parts.path, *parse_qsl(parts.query, keep_blank_values=True))


def _http_settings_for_url(
    parts: SplitResult, sources: Mapping[str, Mapping[str, Any]]
) -> tuple[str, HttpSettings]:
    """How to speak to the server: as the source does that is configured at the same scheme, host and port."""
    bounds = {"url": f"{parts.scheme}://{parts.netloc}", "max_bytes": LARGEST}
    for name, stored in sources.items():
        if isinstance(url := stored.get("url"), str) and _url_origin(urlsplit(url)) == _url_origin(parts):
            settings = SETTINGS.validate_python(stored)
            if isinstance(settings, HttpSettings):
                shared = settings.model_dump(include=set(HttpSettings.model_fields), exclude_defaults=True)
                return name, HttpSettings.model_validate(shared | bounds)
    return "", HttpSettings.model_validate(bounds)


def _url_origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _parse_alert_response(where: str, body: str) -> Mapping[str, Any]:
    """A server's answer is JSON: a page for people holds no alerts. Raises AlertFetchError."""
    text = body.strip()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, list):
        return {"alerts": document}
    if isinstance(document, dict):
        return document
    shown = " ".join(text.split())[:80]
    raise _redacted_fetch_error(
        f"{where.partition('?')[0]} answered with something that holds no alerts ({shown or 'nothing'}): give the address of "
        "JSON, such as Alertmanager's …/api/v2/alerts or Prometheus's …/api/v1/alerts"
    )


def _redacted_fetch_error(text: str) -> AlertFetchError:
    """The text may quote what the server said."""
    return AlertFetchError(Redactor().text(text).value)
