"""The systemd journal: log lines of services and containers, and what systemd and the kernel report.

Read by the program journalctl, argv only; entries are taken as it writes them, in bounded memory.
"""

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, Any

from opsleuth.analysis.records import LogLine, PlatformEvent, TimeRange
from opsleuth.configuration.source_settings import JournalSettings
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import NotPermittedError, UnavailableError

LEVELS = ("emerg", "alert", "crit", "error", "warning", "notice", "info", "debug")
MOST_EVENTS = 5_000
# systemd's own message ids (systemd.journal-fields, sd-messages.h) of what happens to units.
_UNIT_EVENTS = {
    "39f53479d3a045ac8e11786248231fbf": "Started",
    "9d1aaa27d60140bd96365438aad20286": "Stopped",
    "be02cf6855d2428ba40df7e9d022f03d": "Failed",
    "d9b373ed55a64feb8242e02dbe79a49c": "Failed",
    "98e322203f7a4ed290d09fe03c09fe15": "Exited",
    "fe6faa94e7774663a0da52717891d8ef": "OOMKilling",
    "5eb03494b6584870a536b337290809b3": "Restarting",
}
_WARNING = 4
_FIELDS = (
    "MESSAGE",
    "PRIORITY",
    "CONTAINER_ID",
    "_HOSTNAME",
    "_TRANSPORT",
    "UNIT",
    "USER_UNIT",
    "MESSAGE_ID",
)


class JournalSource(LiveSource):
    """The source of kind `journal`."""

    capabilities: frozenset[Capability] = frozenset({"logs", "events"})

    def __init__(self, name: str, settings: JournalSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        before = TimeRange(window.start - self._settings.before, window.start)
        if capability == "events":
            span = TimeRange(before.start, window.end)
            events = await asyncio.to_thread(lambda: list(islice(self._events(span), MOST_EVENTS)))
            return FetchedRows({"events": events}, (self._told(self._argv(span, *_ABOUT_UNITS)),))
        most = self._settings.max_lines
        earlier = await asyncio.to_thread(lambda: list(islice(self._lines(before), most // 2 + 1)))
        inside = await asyncio.to_thread(lambda: list(islice(self._lines(window), most + 1)))
        notes = []
        if len(earlier) > most // 2 or len(inside) > most:
            notes.append(f"more than {most:,} log lines: detectors see the first; log search scans all")
        asked = tuple(self._told(self._argv(span)) for span in (before, window))
        return FetchedRows({"logs": [*earlier[: most // 2], *inside[:most]]}, asked, tuple(notes))

    def scan_logs(self, *, baseline: bool = False, span: TimeRange | None = None) -> Iterator[LogLine]:
        """Every line of the time range, as journalctl writes it; there is no baseline in a journal."""
        return iter(()) if baseline else self._lines(span)

    def _lines(self, span: TimeRange | None) -> Iterator[LogLine]:
        for entry in self._entries(self._argv(span, *self._settings.match)):
            message = _field_text(entry.get("MESSAGE"))
            if message:
                yield self._line(entry, message)

    def _line(self, entry: Mapping[str, Any], message: str) -> LogLine:
        level = _field_text(entry.get("PRIORITY"))
        return LogLine(
            time=int(entry["__REALTIME_TIMESTAMP"]) / 1e6,
            service=self.named(self._service(entry)),
            message=message,
            level=LEVELS[int(level)] if level.isdigit() and int(level) < len(LEVELS) else None,
            pod=_field_text(entry.get("CONTAINER_ID")) or None,
            host=_field_text(entry.get("_HOSTNAME")) or None,
        )

    def _service(self, entry: Mapping[str, Any]) -> str:
        for field in self._settings.service_fields:
            if name := _field_text(entry.get(field)):
                return _unit_base_name(name) if field.endswith("UNIT") else name
        return _field_text(entry.get("_TRANSPORT")) or "unknown"

    def _events(self, span: TimeRange) -> Iterator[PlatformEvent]:
        for entry in self._entries(self._argv(span, *_ABOUT_UNITS)):
            unit = _field_text(entry.get("UNIT")) or _field_text(entry.get("USER_UNIT"))
            reason = _UNIT_EVENTS.get(_field_text(entry.get("MESSAGE_ID")))
            level = _field_text(entry.get("PRIORITY"))
            severe = level.isdigit() and int(level) <= _WARNING
            kernel = _field_text(entry.get("_TRANSPORT")) == "kernel"
            if not (severe if kernel else unit and (reason or severe)):
                continue
            name = (
                self.named(_unit_base_name(unit)) if unit else _field_text(entry.get("_HOSTNAME")) or "kernel"
            )
            yield PlatformEvent(
                time=int(entry["__REALTIME_TIMESTAMP"]) / 1e6,
                source="kernel" if kernel else "systemd",
                object=f"{'Node' if kernel else 'Unit'}/{name}",
                type="Warning" if severe or reason in ("Failed", "OOMKilling") else "Normal",
                reason=reason or "Warning",
                message=_field_text(entry.get("MESSAGE")),
            )

    def _argv(self, span: TimeRange | None, *matches: str) -> Sequence[str]:
        where = [f"--file={file}" for file in self._settings.files]
        where += [f"--directory={self._settings.folder}"] if self._settings.folder else []
        when = [f"--since=@{span.start:.6f}", f"--until=@{span.end:.6f}"] if span else []
        fields = ",".join(dict.fromkeys((*_FIELDS, *self._settings.service_fields)))
        return ("journalctl", "--output=json", f"--output-fields={fields}", "--all", "--no-pager", "--quiet", "--utc",
                *where, *when, *matches)  # fmt: skip

    def _told(self, argv: Sequence[str]) -> str:
        return " ".join(argv)

    def _entries(self, argv: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The entries as they are written; the program is ended with the iterator. Raises NotPermittedError, UnavailableError."""
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(  # argv of our own, no shell
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
            except FileNotFoundError:
                raise UnavailableError(f"{self.name}: the program journalctl is not installed") from None
            with process:
                try:
                    for line in process.stdout or ():
                        if entry := _parse_entry(line):
                            yield entry
                finally:
                    if process.poll() is None and _exit_code_at_end(process) is None:
                        process.kill()
            if process.returncode > 0:
                self._refused(errors)

    def _refused(self, errors: IO[bytes]) -> None:
        errors.seek(0)
        words = " ".join(errors.read(2_000).decode("utf-8", "replace").split())[:400]
        if "ermission denied" in words or "permissions" in words:
            raise NotPermittedError(
                f"{self.name}: journalctl may not read this ({words}): join the group systemd-journal"
            )
        raise UnavailableError(f"{self.name}: journalctl cannot read this: {words}")

    async def check(self) -> Sequence[SourceCheck]:
        now = self.clock.now().timestamp()
        argv = (*self._argv(None), "--lines=200")
        lines = await asyncio.to_thread(lambda: list(self._entries(argv)))
        if not lines:
            return [
                SourceCheck(
                    "entries",
                    "warning",
                    "the journal is empty, or none of it may be read",
                    "join the group systemd-journal",
                )
            ]
        names = sorted({self._service(entry) for entry in lines})
        age = now - int(lines[-1]["__REALTIME_TIMESTAMP"]) / 1e6
        return [
            SourceCheck("entries", "ok", f"the last is {age:,.0f} s old"),
            SourceCheck("services", "ok", f"{len(names)}: {', '.join(names[:8])}"),
        ]


_ABOUT_UNITS = ("SYSLOG_IDENTIFIER=systemd", "+", "_TRANSPORT=kernel")


def _exit_code_at_end(process: "subprocess.Popen[bytes]") -> int | None:
    """The code of a program whose output has ended, or None if it still writes."""
    try:
        return process.wait(0.2)
    except subprocess.TimeoutExpired:
        return None


def _parse_entry(line: bytes) -> Mapping[str, Any] | None:
    try:
        entry = parse_json_text(line)
        return entry if int(entry["__REALTIME_TIMESTAMP"]) > 0 else None
    except (ValueError, TypeError, KeyError):
        return None


def _field_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if value and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
            return bytes(value).decode("utf-8", "replace")
        return _field_text(value[0]) if value else ""
    return ""


def _unit_base_name(name: str) -> str:
    """A unit's name without its type and instance: `app@1.service` is `app`."""
    return name.removesuffix(".service").partition("@")[0]
