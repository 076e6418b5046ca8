"""`opsleuth lab`: a small shop of real processes on this machine, to start, break, repair and stop."""

import hashlib
import importlib.util
import json
import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from opsleuth.configuration.config_file import PROJECT_FILE
from opsleuth.configuration.project_trust import trust_file
from opsleuth.console.options import CliGroup, count_option, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.time_formats import parse_duration
from opsleuth.scenarios.lab.remote import USUAL, Lab, start_lab_process
from opsleuth.state.errors import ConfigError, UsageError

ALERT_SECONDS = 60.0
"""How long `lab fault` waits for the alert."""
WELL_SECONDS = 120.0
"""How long `lab fault` and `lab heal` wait until all is well."""

FOLDER_OPTION = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The lab's folder (default: ./opsleuth-lab, or the current folder if it is a lab).",
)


@click.group(
    "lab", cls=CliGroup, help="A small shop of real processes on this machine, to break and to investigate."
)
def lab_group() -> None:
    pass


@lab_group.command("up")
@FOLDER_OPTION
@count_option("--orders", 1_000_000, "Rows.", least=1_000, most=5_000_000)
@click.option(
    "--for",
    "duration",
    default="1h",
    show_default=True,
    metavar="D",
    help="How long it runs before it ends by itself, such as 20m.",
)
@click.option("--detach", is_flag=True, help="Keep running after the shell that started it has ended.")
def start_lab(folder: Path | None, orders: int, duration: str, *, detach: bool) -> int:
    """Start PostgreSQL, the services, Prometheus, Alertmanager and customers, and write a configuration for them."""
    if (lab := Lab.found(folder)) is not None:
        write_note(
            f"a lab runs in {lab.folder} already, until {format_clock(lab.state()['until'])}: opsleuth lab status"
        )
        return 0
    if importlib.util.find_spec("psycopg") is None:
        raise ConfigError("the lab needs the PostgreSQL driver: pip install 'opsleuth[postgres]'")
    began = time.monotonic()
    folder = folder or USUAL
    lab = start_lab_process(
        folder, orders, parse_seconds(duration), None if detach else os.getppid(), write_note
    )
    config = lab.folder / PROJECT_FILE
    trust_file(config, hashlib.sha256(config.read_bytes()).hexdigest())
    write_note(
        f"the lab is up after {time.monotonic() - began:.0f} s, until {format_clock(lab.state()['until'])}. "
        f"Next: opsleuth lab fault release --dir {folder}"
    )
    return 0


def parse_seconds(duration: str) -> float:
    try:
        return parse_duration(duration).total_seconds()
    except ValueError as error:
        raise UsageError(str(error)) from None


@lab_group.command("fault")
@click.argument("name", metavar="NAME")
@FOLDER_OPTION
@click.option(
    "--after",
    type=click.FloatRange(0, 600),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Seconds of normal operation before the fault, as the baseline.",
)
def break_lab(name: str, folder: Path | None, after: float) -> int:
    """Break the shop, and wait for the alert. NAME: release, index, lock, pool, slow, config or errors."""
    options = current_options()
    lab = Lab.running(folder)
    state = lab.state()
    if state["fault"]:
        raise UsageError(
            f"the lab already has a fault ({state['fault']['happens']}): opsleuth lab heal first"
        )
    well = wait_until_well(lab, after)
    state = lab.fault(name)
    write_note(f"{state['fault']['happens']}; waiting for the alert")
    fired = lab.until(lambda now: now["alerted_at"] is not None, ALERT_SECONDS)
    if fired is None:
        raise UsageError(
            f"no alert came within {ALERT_SECONDS:.0f} s: opsleuth lab status shows how the shop is"
        )
    write_note(
        f"the alert came after {fired['alerted_at'] - fired['fault_at']:.0f} s: {lab.folder / 'alert.json'}"
    )
    command = (
        f"cd {shlex.quote(str(lab.folder))} && opsleuth run --alert alert.json --since {format_stamp(well)}"
    )
    replace(screen_for_options(options), width=None).line(command)  # to be copied: whole, in one line
    return 0


def wait_until_well(lab: Lab, seconds: float) -> float:
    """Since when all is well, once that has been for `seconds`. Raises UsageError if it does not become well."""
    state = lab.until(lambda now: seconds_well(now) >= seconds, seconds + WELL_SECONDS)
    if state is None:
        raise UsageError(
            f"the shop has not recovered: {', '.join(lab.state()['wrong']) or 'see opsleuth lab status'}"
        )
    return float(state["well_since"])


def seconds_well(state: dict[str, Any]) -> float:
    return time.time() - state["well_since"] if state["well_since"] is not None else -1.0


@lab_group.command("heal")
@FOLDER_OPTION
def heal_lab(folder: Path | None) -> int:
    """Undo the fault, and wait until all is well."""
    lab, began = Lab.running(folder), time.monotonic()
    lab.heal()
    wait_until_well(lab, 0.0)
    write_note(f"all is well again after {time.monotonic() - began:.0f} s")
    return 0


@lab_group.command("status")
@FOLDER_OPTION
def show_lab_status(folder: Path | None) -> int:
    """What runs where, and how the shop is."""
    options = current_options()
    state = Lab.running(folder).state()
    screen = screen_for_options(options)
    if options.json:
        sys.stdout.write(json.dumps(state) + "\n")
        return 0
    screen.line(
        f"{state['folder']}, since {format_clock(state['began'])}, until {format_clock(state['until'])}"
    )
    for process in state["processes"]:
        port = f"127.0.0.1:{process['port']}" if process["port"] else ""
        version = state["version"] if process["name"] == "orders-api" else ""
        screen.line(
            f"  {process['name']:<13} pid {process['pid']:<8} {port:<16} {version}".rstrip()
            + ("" if process["runs"] else "  has ended")
        )
    broken = f"broken: {state['fault']['happens']}" if state["fault"] else "not broken"
    screen.line(f"{broken}; {', '.join(state['wrong']) or 'all is well'}")
    return 0


@lab_group.command("down")
@FOLDER_OPTION
def stop_lab(folder: Path | None) -> int:
    """End every process of the lab."""
    lab = Lab.running(folder)
    if not lab.down():
        raise ConfigError(
            f"the lab in {lab.folder} does not end: kill {lab.pid} ends it, and all that it started"
        )
    write_note(f"the lab in {lab.folder} has ended; its logs are still there")
    return 0


def format_clock(moment: float) -> str:
    return time.strftime("%H:%MZ", time.gmtime(moment))


def format_stamp(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
