"""Flags that say how log files are read, where recognition goes wrong: format, pattern, zones."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from opsleuth.tools.sources.log_formats.log_file import ReadingRules

_FORMAT_OPTION = click.option(
    "--log-format", metavar="NAME", help="Read logs as this format (docs/formats.md)."
)
_PATTERN_OPTION = click.option(
    "--log-pattern", metavar="REGEX", help="How log lines begin: groups time, level, service, message."
)
_ZONE_OPTION = click.option(
    "--log-zone",
    metavar="OFFSET",
    multiple=True,
    help="Offset of times without a zone (+05:30), or of an abbreviation (IST=+05:30).",
)
_ZONE = re.compile(r"(?:(?P<name>[A-Za-z]{2,6})=)?(?P<offset>.+)")
_EXAMPLE = "write +05:30, UTC, or IST=+05:30"


@dataclass(frozen=True, slots=True)
class ReadingFlags:
    """What the flags say; `zone` is in hours, `zones` maps abbreviations to offsets as they are written."""

    format: str | None = None
    pattern: str | None = None
    zone: float | None = None
    zones: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The keys of a source of log files that these flags stand for."""
        known = {
            "format": self.format,
            "pattern": self.pattern,
            "zone": self.zone,
            "zones": dict(self.zones) or None,
        }
        return {key: value for key, value in known.items() if value is not None}

    @property
    def rules(self) -> "ReadingRules":
        from opsleuth.analysis.zone_offsets import read_offset
        from opsleuth.tools.sources.log_formats.log_file import ReadingRules

        meanings = {name: read_offset(spelled) or 0.0 for name, spelled in self.zones.items()}
        zone = UTC if self.zone is None else timezone(timedelta(hours=self.zone))
        return ReadingRules(zone, meanings, format=self.format, pattern=self.pattern)


def add_reading_flags(command: Callable[..., int]) -> Callable[..., int]:
    """The command with the flags; it takes them as `flags`."""

    @wraps(command)
    def with_flags(
        *, log_format: str | None, log_pattern: str | None, log_zone: tuple[str, ...], **others: object
    ) -> int:
        return command(flags=read_reading_flags(log_format, log_pattern, log_zone), **others)

    return _ZONE_OPTION(_PATTERN_OPTION(_FORMAT_OPTION(with_flags)))


def read_reading_flags(format_name: str | None, pattern: str | None, zones: Sequence[str]) -> ReadingFlags:
    """Raises BadParameter for a format that is not declared, a wrong pattern, an offset that is not valid."""
    if format_name is not None:
        _check_format(format_name)
    if pattern is not None:
        _check_pattern(pattern)
    zone: float | None = None
    meanings: dict[str, str] = {}
    for text in zones:
        name, offset, seconds = _parse_zone(text)
        if name:
            meanings[name] = offset
        else:
            zone = seconds / 3_600
    return ReadingFlags(format_name, pattern, zone, meanings)


def _check_format(name: str) -> None:
    from opsleuth.state.nearest_name import find_nearest_names
    from opsleuth.tools.sources.log_formats.compiled_formats import FORMAT_NAMES

    if name not in FORMAT_NAMES:
        near = find_nearest_names(name, FORMAT_NAMES, 3) or FORMAT_NAMES
        raise click.BadParameter(
            f"no log format is called {name}: choose {', '.join(near)}", param_hint="--log-format"
        )


def _check_pattern(pattern: str) -> None:
    from pydantic import TypeAdapter, ValidationError

    from opsleuth.configuration.source_settings import LinePattern

    try:
        TypeAdapter(LinePattern).validate_python(pattern)
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise click.BadParameter(why, param_hint="--log-pattern") from None


def _parse_zone(text: str) -> tuple[str, str, float]:
    """The abbreviation (empty for the zone of times without one), its offset as `+05:30`, and in seconds."""
    from opsleuth.analysis.zone_offsets import read_offset

    found = _ZONE.fullmatch(text.strip())
    seconds = read_offset(found["offset"]) if found else None
    if found is None or seconds is None or abs(seconds) > 14 * 3_600:
        raise click.BadParameter(f"{text} is not a known offset: {_EXAMPLE}", param_hint="--log-zone")
    sign, minutes = "-" if seconds < 0 else "+", round(abs(seconds) / 60)
    return found["name"] or "", f"{sign}{minutes // 60:02d}:{minutes % 60:02d}", seconds
