"""Alerts by HTTP: one GET, bounded in time and size, with the credentials of the source that is configured there."""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from opsleuth.checkpoints.redact import Redactor
from opsleuth.console.handing import LARGEST
from opsleuth.console.output import note
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError, OpsleuthError, UsageError
from opsleuth.state.outcome import ExitCode
from opsleuth.tools.sources.config import SETTINGS
from opsleuth.tools.sources.http import Api
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.sources.settings import Http
from opsleuth.tools.spec import NotPermitted, ToolError

DEADLINE = 15.0
"""Seconds until the whole answer must be there."""


class NotFetched(OpsleuthError):
    """The server that was to tell of alerts could not be asked, or told none; the text says why."""

    exit_code = ExitCode.UNREACHABLE


def fetched(where: str, sources: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The JSON document at this URL; a list is one of alerts.

    Raises UsageError for what is no address, ConfigError for credentials that are refused, NotFetched.
    """
    return _document(where, _body(_address(where), sources))


def _address(where: str) -> SplitResult:
    try:
        parts = urlsplit(where)
        named = bool(parts.hostname) and parts.port != 0 and not re.search(r"[\s\\]", parts.netloc)
    except ValueError:
        named = False
    if not named:
        raise UsageError(
            "this is no address of a server of alerts: write https://alertmanager.example.com/api/v2/alerts"
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "a password has no place in an address: configure a source at this host (opsleuth init), "
            "its credentials are used"
        )
    return parts


def _body(parts: SplitResult, sources: Mapping[str, Mapping[str, Any]]) -> str:
    """The body of the answer. Raises ConfigError, NotFetched."""
    place = f"{parts.scheme}://{parts.netloc}"
    name, settings = _credentials(parts, sources)
    note(f"asking {place} for alerts" + (f" as the source {name} does" if name else ""))
    api = Api("--alert", settings, Vault(), SystemClock())
    try:
        return asyncio.run(_got(api, parts))
    except NotPermitted as error:
        remedy = "mend its credentials" if name else "configure a source at this host with its credentials"
        raise ConfigError(f"{_told(str(error))}: {remedy} (opsleuth doctor tries them)") from None
    except (ToolError, TimeoutError) as error:
        raise _told(str(error) or f"{place} gave no whole answer within {DEADLINE:g} s") from None


async def _got(api: Api, parts: SplitResult) -> str:
    async with asyncio.timeout(DEADLINE), api.session() as session:
        return await session.text(parts.path, *parse_qsl(parts.query, keep_blank_values=True))


def _credentials(parts: SplitResult, sources: Mapping[str, Mapping[str, Any]]) -> tuple[str, Http]:
    """How to speak to the server: as the source does that is configured at the same scheme, host and port."""
    bounds = {"url": f"{parts.scheme}://{parts.netloc}", "max_bytes": LARGEST}
    for name, stored in sources.items():
        if isinstance(url := stored.get("url"), str) and _origin(urlsplit(url)) == _origin(parts):
            settings = SETTINGS.validate_python(stored)
            if isinstance(settings, Http):
                shared = settings.model_dump(include=set(Http.model_fields), exclude_defaults=True)
                return name, Http.model_validate(shared | bounds)
    return "", Http.model_validate(bounds)


def _origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _document(where: str, body: str) -> Mapping[str, Any]:
    """A server's answer is JSON: a page for people is none of its alerts. Raises NotFetched."""
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
    raise _told(
        f"{where.partition('?')[0]} answered with something that tells of no alerts ({shown or 'nothing'}): give the address of "
        "JSON, such as …/api/v2/alerts of Alertmanager or …/api/v1/alerts of Prometheus"
    )


def _told(text: str) -> NotFetched:
    """The text may quote what the server said."""
    return NotFetched(Redactor().text(text).value)
