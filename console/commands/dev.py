"""`opsleuth dev`: tools for those who try or develop opsleuth."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opsleuth.console.options import CliGroup
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.state.run_status import ExitCode

if TYPE_CHECKING:
    from opsleuth.models.server.model_server import Model, ModelServer


@click.group("dev", cls=CliGroup)
def dev() -> None:
    """Tools for trying and developing opsleuth."""


@dev.command("model-server")
@click.option(
    "--rule",
    type=click.Choice(["investigator", "looper", "obedient", "confabulator"]),
    default="investigator",
    show_default=True,
    help="How it answers.",
)
@click.option(
    "--script",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="Answer by a script instead: a JSON list of entries, the last repeats.",
)
@click.option(
    "--fault", "faults", multiple=True, metavar="NAME[@N]", help="Spoil every answer, or the N-th one."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N", help="Default: a free one.")
def run_model_server(rule: str, script: Path | None, faults: tuple[str, ...], port: int) -> int:
    """A model server on loopback that answers as it is told to, with every fault there is."""
    import asyncio

    from opsleuth.models.server.fault_injection import FaultyModel
    from opsleuth.models.server.model_server import ModelServer

    server = ModelServer(FaultyModel(choose_model(rule, script), faults), port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_until_interrupted(server))
    return ExitCode.OK


async def serve_until_interrupted(server: "ModelServer") -> None:
    """The base URL is the first line on stdout. Raises ConfigError where the port cannot be opened."""
    try:
        async with server.listening() as listening:
            sys.stdout.write(f"{server.base_url}\n")
            sys.stdout.flush()
            await listening.serve_forever()
    except OSError as error:
        raise ConfigError(
            f"the port cannot be opened: {error.strerror}; choose another with --port"
        ) from None


def choose_model(rule: str, script: Path | None) -> "Model":
    """What answers: a rule by its name, or a script. Raises UsageError for a script that cannot be used."""
    from opsleuth.models.server.chat_replies import ScriptedModel
    from opsleuth.models.server.rule_models import RULES

    return RULES[rule] if script is None else ScriptedModel(read_script(script))


def read_script(script: Path) -> Sequence[dict[str, object]]:
    try:
        entries = parse_json_text(script.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the script {script} cannot be read: {error}") from None
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise UsageError(f'the script {script} should be a JSON list of entries such as {{"text": "…"}}')
    return entries
