"""`opsleuth demo`: the built-in incident, without any configuration."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from opsleuth.configuration.folders import xdg_folder
from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import write_note
from opsleuth.console.run_attempt import RunRequest, show_starting, start_run
from opsleuth.scenarios.orders_incident import QUESTION, write_case
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError
from opsleuth.state.run_id import new_run_id

Written = TypeVar("Written")


@click.command("demo", cls=CliCommand)
@click.option(
    "--act", is_flag=True, help="Against a small system that runs: go on to the approval of the fix."
)
def run_demo(*, act: bool) -> int:
    """Investigate the built-in incident, offline: an orders API that became slow."""
    options = current_options()
    show_starting(options, QUESTION)
    cache = xdg_folder("XDG_CACHE_HOME", ".cache")  # kept there, so that the run can be resumed
    if not act:
        case = write_incident(write_case, cache / "demo")
        return start_run(options, RunRequest(QUESTION, case), QUESTION)
    from opsleuth.scenarios.demo_plane import start_demo_plane

    run_id = new_run_id(SystemClock().now())
    world = write_incident(start_demo_plane, cache / "act" / run_id)
    write_note(f"a control plane of its own runs at {world.url} (for an hour)")
    platform = {"url": world.url, "name": "shop"}
    asked = RunRequest(QUESTION, world.case, platform=platform)
    return start_run(options, asked, QUESTION, run_id=run_id)


def write_incident(write: Callable[[Path], Written], place: Path) -> Written:
    """What `write` made of the folder, or of a temporary one where that cannot be written. Raises ConfigError."""
    try:
        return write(place)
    except OSError as error:
        reason = error.strerror or error
    try:
        other = Path(tempfile.mkdtemp(prefix="opsleuth-")) / place.name
        written = write(other)
    except OSError as error:
        raise ConfigError(
            f"the built-in incident cannot be written to {place} ({reason}), nor to a temporary folder "
            f"({error.strerror or error}): check permissions, or choose another folder with XDG_CACHE_HOME"
        ) from None
    write_note(
        f"{place} cannot be written ({reason}): the incident is kept in {other}, until that folder is removed"
    )
    return written
