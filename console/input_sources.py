"""Turn the paths given on the command line into sources of a run: what each file is, and which source reads it."""

import glob
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opsleuth.console.input_arguments import STDIN
from opsleuth.console.reading_flags import ReadingFlags
from opsleuth.console.sibling_zones import describe_offset, infer_sibling_offset
from opsleuth.state.errors import ConfigError
from opsleuth.state.plurals import format_count
from opsleuth.state.real_paths import resolve_path
from opsleuth.tools.sources.compressed_files import open_decompressed
from opsleuth.tools.sources.file_kinds import FileKind, is_package_log, recognize_file
from opsleuth.tools.sources.input_files import InputListing, collect_input_files

MOST_LINES_SHOWN = 12
LARGEST_STDIN = 4_000_000_000
_SOURCE_KINDS = {
    "logs": "logfiles",
    "other": "logfiles",
    "metrics": "metricfiles",
    "traces": "tracefiles",
    "kubernetes": "clusterfiles",
    "records": "recordfiles",
}
_MOST_SERVICES = 200
_DUMP_SECONDS = 3_600.0
_SHORT_SECONDS = 600.0
_JUST_BEFORE = 1_800.0
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class RecognizedInput:
    """What the paths hold. `skipped` are names with the reason, `span` the first and the last time in seconds.

    `log_zone` is the zone in hours of logs without one, where the files beside them tell it.
    """

    kinds: tuple[FileKind, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    span: tuple[float, float] | None = None
    alert: Mapping[str, Any] | None = None
    services: tuple[str, ...] = field(default=())
    flags: ReadingFlags = field(default=ReadingFlags())
    log_zone: float | None = None

    @property
    def sources(self) -> dict[str, dict[str, Any]]:
        """The settings of one source for each kind of file, with absolute paths."""
        files: dict[str, list[str]] = {}
        services: dict[str, dict[str, str]] = {}
        for kind in self.kinds:
            if source := _SOURCE_KINDS.get(kind.holds):
                files.setdefault(source, []).append(glob.escape(str(kind.path)))
                services.setdefault(source, {}).update((name, name) for name in kind.services if name)
        return {
            source.removesuffix("files"): {
                "kind": source,
                "files": named,
                "services": dict(list(services[source].items())[:_MOST_SERVICES]),
                **self._reading_settings(source),
            }
            for source, named in files.items()
        }

    def _reading_settings(self, source: str) -> dict[str, Any]:
        """The flags as keys of the source: metrics have a zone alone."""
        known = {"logfiles": ("format", "pattern", "zone", "zones"), "metricfiles": ("zone",)}.get(source, ())
        told = {"zone": self.log_zone} if self.log_zone is not None and source == "logfiles" else {}
        return told | {key: value for key, value in self.flags.settings.items() if key in known}

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        """From the first second of the files to the one after their last."""
        if self.span is None:
            return None
        start, end = self.span
        return datetime.fromtimestamp(int(start), UTC), datetime.fromtimestamp(int(end) + 1, UTC)

    def covers_moment(self, moment: datetime) -> bool:
        """Whether any file has times from before this moment to after it, or ends at most half an hour before it."""
        time = moment.timestamp()
        return any(
            kind.first <= time <= kind.last + _JUST_BEFORE
            for kind in self.kinds
            if kind.first is not None and kind.last is not None
        )


def read_input_paths(
    paths: Sequence[str], scratch: Path, flags: ReadingFlags | None = None
) -> RecognizedInput:
    """What the paths hold; archives and standard input are unpacked into `scratch`. Raises ConfigError for nothing readable."""
    named = {resolve_path(Path(path)) for path in paths if path != STDIN}
    where = [Path(path) for path in paths if path != STDIN]
    if STDIN in paths:
        where.append(_copy_stdin(scratch))
        named.add(resolve_path(where[-1]))
    try:
        listing = collect_input_files(where, scratch)
    except OSError as error:
        raise ConfigError(f"cannot read {error.filename}: {error.strerror}") from None
    found = recognize_listing(listing, named, flags or ReadingFlags())
    if not found.sources and found.alert is None:
        reasons = "; ".join(f"{name}: {why}" for name, why in found.skipped[:5])
        raise ConfigError(
            f"nothing to investigate in {', '.join(paths)}: no logs, metrics, traces or cluster objects"
            + (f" ({reasons})" if reasons else "")
        )
    return found


def recognize_listing(listing: InputListing, named: set[Path], flags: ReadingFlags) -> RecognizedInput:
    """Recognise each file. Text without times counts only where the file itself was named: a folder holds notes, too."""
    kinds, skipped = list[FileKind](), list(listing.skipped)
    for path in listing.files:
        if is_package_log(path) and path not in named:
            skipped.append((path.name, "a package manager's log: name it to read it"))
            continue
        kind = recognize_file(path, flags.rules)
        if kind.holds == "skipped":
            skipped.append((path.name, kind.why))
        elif kind.holds == "other" and path not in named:
            skipped.append((path.name, kind.why or "not a log, metrics or traces"))
        else:
            kinds.append(kind)
    offset = infer_sibling_offset(kinds) if flags.zone is None else None
    if offset is not None:
        kinds = [_read_in_zone(kind, offset, flags) if kind.zoneless else kind for kind in kinds]
    services = dict.fromkeys(name for kind in kinds for name in kind.services if name)
    return RecognizedInput(
        tuple(kinds), tuple(skipped), _joined_span(kinds), _first_alert(kinds), tuple(services), flags,
        None if offset is None else offset / 3_600,
    )  # fmt: skip


def _read_in_zone(kind: FileKind, offset: float, flags: ReadingFlags) -> FileKind:
    found = recognize_file(kind.path, replace(flags, zone=offset / 3_600).rules)
    note = f"times without a zone read as {describe_offset(offset)}, as in the files beside it (--log-zone overrides)"
    return replace(found, notes=(*found.notes, note))


def _joined_span(kinds: Sequence[FileKind]) -> tuple[float, float] | None:
    """The time that logs and traces cover, else that of metrics, else the hour up to the newest time of a dump.

    Logs and traces too short to hold a before and an after say nothing about the window where metrics go beyond them.
    """
    told = _span_of(kinds, ("logs", "traces", "records"))
    measured = _span_of(kinds, ("metrics",))
    if told and measured and told[1] - told[0] < min(_SHORT_SECONDS, measured[1] - measured[0]):
        return min(told[0], measured[0]), max(told[1], measured[1])
    if told or measured:
        return told or measured
    dumps = [kind.last for kind in kinds if kind.holds == "kubernetes" and kind.last is not None]
    return (max(dumps) - _DUMP_SECONDS, max(dumps)) if dumps else None


def _span_of(kinds: Sequence[FileKind], holds: tuple[str, ...]) -> tuple[float, float] | None:
    spans = [(k.first, k.last) for k in kinds if k.holds in holds and k.first is not None and k.last is not None]  # fmt: skip
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _first_alert(kinds: Sequence[FileKind]) -> Mapping[str, Any] | None:
    for kind in kinds:
        if kind.holds == "alert":
            with open_decompressed(kind.path) as file:
                document = json.loads(file.read().decode("utf-8-sig", "replace"))
            return document if isinstance(document, dict) else {"alerts": document}
    return None


def describe_input(found: RecognizedInput) -> Iterator[str]:
    """What each file is, in a few lines: many files of one kind share a line."""
    if len(found.kinds) <= MOST_LINES_SHOWN:
        yield from (kind.sentence for kind in found.kinds)
    else:
        yield from _summarize_kinds(found.kinds)
    if found.skipped:
        shown = ", ".join(f"{name} ({why})" for name, why in found.skipped[:6])
        rest = len(found.skipped) - 6
        yield f"skipped: {shown}" + (f", and {rest:,} more" if rest > 0 else "")


def _summarize_kinds(kinds: Sequence[FileKind]) -> Iterator[str]:
    groups: dict[tuple[str, str], list[FileKind]] = {}
    for kind in kinds:
        groups.setdefault((kind.holds, kind.format), []).append(kind)
    for (_, form), members in list(groups.items())[:MOST_LINES_SHOWN]:
        names = ", ".join(member.path.name for member in members[:3])
        more = ", …" if len(members) > 3 else ""
        total = sum(member.lines for member in members)
        yield f"{format_count(len(members), 'file')} ({names}{more}): {form}, {total:,} records"
    if len(groups) > MOST_LINES_SHOWN:
        yield f"and {len(groups) - MOST_LINES_SHOWN} more kinds of files"


def _copy_stdin(scratch: Path) -> Path:
    """Standard input as a file of the run, so that a run can be resumed. Raises ConfigError above the limit."""
    scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    path, size = scratch / "stdin.log", 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := sys.stdin.buffer.read(_CHUNK):
            size += len(chunk)
            if size > LARGEST_STDIN:
                raise ConfigError(
                    f"standard input is larger than {LARGEST_STDIN:,} bytes: save it and name the file"
                )
            file.write(chunk)
    return path
