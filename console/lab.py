"""The live lab from the command line: up, broken, healed, looked at, down."""

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

from opsleuth.console.options import Options
from opsleuth.console.output import note, screen_of
from opsleuth.console.times import parse_duration
from opsleuth.scenarios.lab.remote import USUAL, Lab, start
from opsleuth.state.configfile import PROJECT_FILE
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.state.trust import trust

_ALERT_SECONDS = 60.0
_WELL_SECONDS = 120.0


def up(folder: Path | None, orders: int, duration: str, *, detach: bool) -> int:
    """`lab up`: says so where one runs already. Raises ConfigError where it cannot run."""
    if (lab := Lab.found(folder)) is not None:
        note(f"a lab runs in {lab.folder} already, until {_clock(lab.state()['until'])}: opsleuth lab status")
        return 0
    if importlib.util.find_spec("psycopg") is None:
        raise ConfigError("the lab needs the PostgreSQL driver: pip install 'opsleuth[postgres]'")
    began = time.monotonic()
    folder = folder or USUAL
    lab = start(folder, orders, _seconds(duration), None if detach else os.getppid(), note)
    config = lab.folder / PROJECT_FILE
    trust(config, hashlib.sha256(config.read_bytes()).hexdigest())
    note(
        f"the lab is up after {time.monotonic() - began:.0f} s, until {_clock(lab.state()['until'])}. "
        f"Next: opsleuth lab fault release --dir {folder}"
    )
    return 0


def _seconds(duration: str) -> float:
    try:
        return parse_duration(duration).total_seconds()
    except ValueError as error:
        raise UsageError(str(error)) from None


def fault(options: Options, folder: Path | None, name: str, after: float) -> int:
    """`lab fault`: exit code 0 once the alert has come. Raises UsageError."""
    lab = Lab.running(folder)
    state = lab.state()
    if state["fault"]:
        raise UsageError(f"the lab is broken already ({state['fault']['happens']}): opsleuth lab heal first")
    well = _well(lab, after)
    state = lab.fault(name)
    note(f"{state['fault']['happens']}; waiting for the alert")
    fired = lab.until(lambda now: now["alerted_at"] is not None, _ALERT_SECONDS)
    if fired is None:
        raise UsageError(
            f"no alert came within {_ALERT_SECONDS:.0f} s: opsleuth lab status shows how the shop is"
        )
    note(f"the alert came after {fired['alerted_at'] - fired['fault_at']:.0f} s: {lab.folder / 'alert.json'}")
    command = f"cd {shlex.quote(str(lab.folder))} && opsleuth run --alert alert.json --since {_stamp(well)}"
    replace(screen_of(options), width=None).line(command)  # to be copied: whole, in one line
    return 0


def _well(lab: Lab, seconds: float) -> float:
    """Since when all is well, once that has been for `seconds`. Raises UsageError if it does not become well."""
    state = lab.until(lambda now: _well_for(now) >= seconds, seconds + _WELL_SECONDS)
    if state is None:
        raise UsageError(
            f"the shop does not become well: {', '.join(lab.state()['wrong']) or 'see opsleuth lab status'}"
        )
    return float(state["well_since"])


def _well_for(state: dict[str, Any]) -> float:
    return time.time() - state["well_since"] if state["well_since"] is not None else -1.0


def heal(folder: Path | None) -> int:
    """`lab heal`: exit code 0 once all is well."""
    lab, began = Lab.running(folder), time.monotonic()
    lab.heal()
    _well(lab, 0.0)
    note(f"all is well after {time.monotonic() - began:.0f} s")
    return 0


def status(options: Options, folder: Path | None) -> int:
    """`lab status`: what runs where. Raises UsageError."""
    state = Lab.running(folder).state()
    screen = screen_of(options)
    if options.json:
        sys.stdout.write(json.dumps(state) + "\n")
        return 0
    screen.line(f"{state['folder']}, since {_clock(state['began'])}, until {_clock(state['until'])}")
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


def down(folder: Path | None) -> int:
    """`lab down`: exit code 0 once every process has ended. Raises UsageError."""
    lab = Lab.running(folder)
    if not lab.down():
        raise ConfigError(
            f"the lab in {lab.folder} does not end: kill {lab.pid} ends it, and all that it started"
        )
    note(f"the lab in {lab.folder} has ended; its logs are still there")
    return 0


def _clock(moment: float) -> str:
    return time.strftime("%H:%MZ", time.gmtime(moment))


def _stamp(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
