"""All formats in one place, compiled: what `docs/formats.md` lists, and what recognition chooses from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from opsleuth.tools.sources.log_formats.application_formats import APPLICATION_FORMATS
from opsleuth.tools.sources.log_formats.declaration import LogFormat
from opsleuth.tools.sources.log_formats.json_formats import JSON_FORMATS
from opsleuth.tools.sources.log_formats.rarer_formats import (
    PROCESS_ENVELOPE,
    RARER_FORMATS,
    TIMESTAMP_ENVELOPE,
)
from opsleuth.tools.sources.log_formats.server_formats import ENVELOPES, SERVER_FORMATS

_OWN_GROUPS = frozenset(
    [
        "time",
        "frac",
        "zone",
        "level",
        "service",
        "message",
        "pod",
        "namespace",
        "host",
        "trace",
        "inner",
        "epoch",
        "old_time",
        "year",
        "stream",
        "part",
        "container",
        "fields",
    ]
)
NUMERIC_GROUPS = frozenset(
    ("status", "bytes", "bytes_received", "duration_ms", "upstream_ms", "request_time")
)
"""Groups whose text is a number."""
SPECIAL_FORMS = ("iso_utc", "any")
"""Forms of times that are UTC by a rule, or that are found out line by line."""
_KEPT = frozenset(
    [
        "logger",
        "logger2",
        "source",
        "status",
        "client",
        "request",
        "module",
        "node",
        "tags",
        "virtual_host",
        "frontend",
        "backend",
        "server",
        "timers",
        "flags",
        "method",
        "path",
        "duration",
        "code",
        "request_id",
        "tenant",
    ]
)
"""Groups that become fields of the line; of the others the text can be searched."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledFormat:
    """A format with its pattern and the places of its groups (-1 where it has none)."""

    declared: LogFormat
    pattern: re.Pattern[str]
    own: Mapping[str, int] = field(repr=False)
    others: tuple[tuple[str, int], ...] = field(repr=False)
    is_envelope: bool = False
    keeps_line: bool = False
    has_numbers: bool = False
    has_status: bool = False
    plain_time: bool = False
    main: tuple[int, int, int, int, int, int, int, int] = (-1,) * 8
    """Places of time, frac, zone, level, service, message, host, trace."""
    time_groups: tuple[int, ...] = ()


def compile_format(declared: LogFormat) -> CompiledFormat:
    """Raises re.error where the pattern of an own format is wrong."""
    pattern = re.compile(declared.start, re.DOTALL)
    places = {name: index - 1 for name, index in pattern.groupindex.items()}
    own = {name: places.get(name, -1) for name in _OWN_GROUPS}
    others = tuple((n.removesuffix("2"), i) for n, i in places.items() if n in _KEPT or n in NUMERIC_GROUPS)  # fmt: skip
    return CompiledFormat(
        declared,
        pattern,
        own,
        others,
        is_envelope=own["inner"] >= 0,
        keeps_line=own["message"] < 0 and own["inner"] < 0,
        has_numbers=not NUMERIC_GROUPS.isdisjoint(places),
        has_status="status" in places,
        plain_time=own["year"] < 0 and declared.form not in SPECIAL_FORMS,
        main=(
            *(own["time"], own["frac"], own["zone"], own["level"]),
            *(own["service"], own["message"], own["host"], own["trace"]),
        ),
        time_groups=tuple(own[name] + 1 for name in ("time", "frac", "zone") if own[name] >= 0),
    )


TEXT_FORMATS: tuple[LogFormat, ...] = (
    *(*ENVELOPES, PROCESS_ENVELOPE),
    *(*SERVER_FORMATS, *RARER_FORMATS, *APPLICATION_FORMATS),
    TIMESTAMP_ENVELOPE,
)
"""In the order in which they are tried."""
COMPILED: tuple[CompiledFormat, ...] = tuple(map(compile_format, TEXT_FORMATS))
BY_NAME: Mapping[str, CompiledFormat] = {compiled.declared.name: compiled for compiled in COMPILED}
FORMAT_NAMES: tuple[str, ...] = tuple(
    dict.fromkeys((*BY_NAME, *(one.name for one in JSON_FORMATS), "logfmt", "text"))
)
"""What a source's key `format` may say."""
