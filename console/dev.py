"""Tools for whoever develops or tries opsleuth: the model server."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from opsleuth.models.server.replies import Script
from opsleuth.models.server.rules import RULES
from opsleuth.models.server.serve import Model, ModelServer
from opsleuth.models.server.spoil import Spoiled
from opsleuth.state.canonical import from_json
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.state.outcome import ExitCode


def model_server(rule: str, script: Path | None, faults: Sequence[str], port: int) -> int:
    """Serve until interrupted; the base URL is the first line on stdout."""
    server = ModelServer(Spoiled(_model(rule, script), faults), port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(server))
    return ExitCode.OK


async def _serve(server: ModelServer) -> None:
    try:
        async with server.listening() as listening:
            sys.stdout.write(f"{server.base_url}\n")
            sys.stdout.flush()
            await listening.serve_forever()
    except OSError as error:
        raise ConfigError(
            f"the port cannot be opened: {error.strerror}; choose another with --port"
        ) from None


def _model(rule: str, script: Path | None) -> Model:
    if script is None:
        return RULES[rule]
    try:
        entries = from_json(script.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the script {script} cannot be read: {error}") from None
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise UsageError(f'the script {script} should be a JSON list of entries such as {{"text": "…"}}')
    return Script(entries)
