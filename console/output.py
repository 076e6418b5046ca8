"""Where a command's words go: its answer to the screen on stdout, what is said besides to stderr."""

import sys
from datetime import UTC, datetime
from typing import TextIO

import click

from opsleuth.console.options import Options
from opsleuth.console.screen import Screen, open_screen
from opsleuth.console.times import Display, parse_moment
from opsleuth.state.clock import SystemClock


def screen_of(options: Options, stream: TextIO | None = None) -> Screen:
    """The screen on stdout, or on `stream`."""
    times = Display(options.tz or UTC)
    return open_screen(stream or sys.stdout, color=options.color, plain=options.plain, times=times)


def note(text: str) -> None:
    """A line for people on stderr, whole, so that stdout holds the answer alone."""
    Screen(sys.stderr, encoding=sys.stderr.encoding).line(text)


def moment(text: str | None, option: str) -> datetime | None:
    """A time option's value; a time that cannot be read ends the command as wrong usage."""
    if text is None:
        return None
    try:
        return parse_moment(text, SystemClock().now())
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
