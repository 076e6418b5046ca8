"""Where a command writes: its answer to stdout, everything else to stderr."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

import click

from opsleuth.console.options import GlobalOptions, current_options
from opsleuth.console.screen import Screen, open_screen
from opsleuth.console.time_formats import TimeDisplay, parse_moment
from opsleuth.state.clock import SystemClock
from opsleuth.state.local_times import LocalTimes, SystemZone


def screen_for_options(options: GlobalOptions, stream: TextIO | None = None) -> Screen:
    """The screen on stdout, or on `stream`."""
    times = TimeDisplay(options.tz or UTC)
    return open_screen(stream or sys.stdout, color=options.color, plain=options.plain, times=times)


def write_note(text: str) -> None:
    """A line for people on stderr, whole, so that stdout holds the answer alone."""
    Screen(sys.stderr, encoding=sys.stderr.encoding).line(text)


def local_times(options: GlobalOptions, note: Callable[[str], None]) -> LocalTimes:
    """Times without a zone are in the zone of --tz, else in that of this machine; `note` hears how each was read."""
    return LocalTimes(options.tz or SystemZone(), note)


def parse_time_option(text: str | None, option: str) -> datetime | None:
    """A time option's value; a time that cannot be read ends the command as wrong usage."""
    if text is None:
        return None
    try:
        return parse_moment(text, SystemClock().now(), local_times(current_options(), write_note))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
