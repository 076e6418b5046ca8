"""The systemd journal: log lines of services and containers, and what systemd and the kernel report.

Read by the program journalctl, argv only; entries are taken as it writes them, in bounded memory.
"""

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, Any

from opsleuth.analysis.records import LogLine, PlatformEvent, Span
from opsleuth.state.canonical import from_json
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.live import Check, Fetched, LiveSource, Surroundings
from opsleuth.tools.sources.settings import Journal
from opsleuth.tools.spec import NotPermitted, Unavailable

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

    def __init__(self, name: str, settings: Journal, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        before = Span(window.start - self._settings.before, window.start)
        if capability == "events":
            span = Span(before.start, window.end)
            events = await asyncio.to_thread(lambda: list(islice(self._events(span), MOST_EVENTS)))
            return Fetched({"events": events}, (self._told(self._argv(span, *_ABOUT_UNITS)),))
        most = self._settings.max_lines
        earlier = await asyncio.to_thread(lambda: list(islice(self._lines(before), most // 2 + 1)))
        inside = await asyncio.to_thread(lambda: list(islice(self._lines(window), most + 1)))
        notes = []
        if len(earlier) > most // 2 or len(inside) > most:
            notes.append(f"more than {most:,} log lines: detectors see the first; log search scans all")
        asked = tuple(self._told(self._argv(span)) for span in (before, window))
        return Fetched({"logs": [*earlier[: most // 2], *inside[:most]]}, asked, tuple(notes))

    def scan_logs(self, *, baseline: bool = False, span: Span | None = None) -> Iterator[LogLine]:
        """Every line of the stretch of time, as journalctl writes it; there is no baseline in a journal."""
        return iter(()) if baseline else self._lines(span)

    def _lines(self, span: Span | None) -> Iterator[LogLine]:
        for entry in self._entries(self._argv(span, *self._settings.match)):
            message = _text(entry.get("MESSAGE"))
            if message:
                yield self._line(entry, message)

    def _line(self, entry: Mapping[str, Any], message: str) -> LogLine:
        level = _text(entry.get("PRIORITY"))
        return LogLine(
            time=int(entry["__REALTIME_TIMESTAMP"]) / 1e6,
            service=self.named(self._service(entry)),
            message=message,
            level=LEVELS[int(level)] if level.isdigit() and int(level) < len(LEVELS) else None,
            pod=_text(entry.get("CONTAINER_ID")) or None,
            host=_text(entry.get("_HOSTNAME")) or None,
        )

    def _service(self, entry: Mapping[str, Any]) -> str:
        for field in self._settings.service_fields:
            if name := _text(entry.get(field)):
                return _unit(name) if field.endswith("UNIT") else name
        return _text(entry.get("_TRANSPORT")) or "unknown"

    def _events(self, span: Span) -> Iterator[PlatformEvent]:
        for entry in self._entries(self._argv(span, *_ABOUT_UNITS)):
            unit = _text(entry.get("UNIT")) or _text(entry.get("USER_UNIT"))
            reason = _UNIT_EVENTS.get(_text(entry.get("MESSAGE_ID")))
            level = _text(entry.get("PRIORITY"))
            severe = level.isdigit() and int(level) <= _WARNING
            kernel = _text(entry.get("_TRANSPORT")) == "kernel"
            if not (severe if kernel else unit and (reason or severe)):
                continue
            name = self.named(_unit(unit)) if unit else _text(entry.get("_HOSTNAME")) or "kernel"
            yield PlatformEvent(
                time=int(entry["__REALTIME_TIMESTAMP"]) / 1e6,
                source="kernel" if kernel else "systemd",
                object=f"{'Node' if kernel else 'Unit'}/{name}",
                type="Warning" if severe or reason in ("Failed", "OOMKilling") else "Normal",
                reason=reason or "Warning",
                message=_text(entry.get("MESSAGE")),
            )

    def _argv(self, span: Span | None, *matches: str) -> Sequence[str]:
        where = [f"--file={file}" for file in self._settings.files]
        where += [f"--directory={self._settings.folder}"] if self._settings.folder else []
        when = [f"--since=@{span.start:.6f}", f"--until=@{span.end:.6f}"] if span else []
        fields = ",".join(dict.fromkeys((*_FIELDS, *self._settings.service_fields)))
        return ("journalctl", "--output=json", f"--output-fields={fields}", "--all", "--no-pager", "--quiet", "--utc",
                *where, *when, *matches)  # fmt: skip

    def _told(self, argv: Sequence[str]) -> str:
        return " ".join(argv)

    def _entries(self, argv: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The entries as they are written; the program is ended with the iterator. Raises NotPermitted, Unavailable."""
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(  # noqa: S603 - argv of our own, no shell
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
            except FileNotFoundError:
                raise Unavailable(f"{self.name}: the program journalctl is not installed") from None
            with process:
                try:
                    for line in process.stdout or ():
                        if entry := _entry(line):
                            yield entry
                finally:
                    if process.poll() is None and _at_end(process) is None:
                        process.kill()
            if process.returncode > 0:
                self._refused(errors)

    def _refused(self, errors: IO[bytes]) -> None:
        errors.seek(0)
        words = " ".join(errors.read(2_000).decode("utf-8", "replace").split())[:400]
        if "ermission denied" in words or "permissions" in words:
            raise NotPermitted(
                f"{self.name}: journalctl may not read this ({words}): join the group systemd-journal"
            )
        raise Unavailable(f"{self.name}: journalctl cannot read this: {words}")

    async def check(self) -> Sequence[Check]:
        now = self.clock.now().timestamp()
        argv = [a for a in self._argv(None) if not a.startswith("--since")]
        lines = await asyncio.to_thread(lambda: list(self._entries((*argv, "--lines=200"))))
        if not lines:
            return [
                Check(
                    "entries",
                    "warning",
                    "the journal is empty, or none of it may be read",
                    "join the group systemd-journal",
                )
            ]
        names = sorted({self._service(entry) for entry in lines})
        age = now - int(lines[-1]["__REALTIME_TIMESTAMP"]) / 1e6
        return [
            Check("entries", "ok", f"the last is {age:,.0f} s old"),
            Check("services", "ok", f"{len(names)}: {', '.join(names[:8])}"),
        ]


_ABOUT_UNITS = ("SYSLOG_IDENTIFIER=systemd", "+", "_TRANSPORT=kernel")


def _at_end(process: "subprocess.Popen[bytes]") -> int | None:
    """The code of a program whose output has ended, or None if it still writes."""
    try:
        return process.wait(0.2)
    except subprocess.TimeoutExpired:
        return None


def _entry(line: bytes) -> Mapping[str, Any] | None:
    try:
        entry = from_json(line)
        return entry if int(entry["__REALTIME_TIMESTAMP"]) > 0 else None
    except (ValueError, TypeError, KeyError):
        return None


def _text(value: Any) -> str:  # noqa: ANN401 - a field is a text, bytes as numbers, or several of them
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if value and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
            return bytes(value).decode("utf-8", "replace")
        return _text(value[0]) if value else ""
    return ""


def _unit(name: str) -> str:
    """A unit's name without its type and instance: `app@1.service` is `app`."""
    return name.removesuffix(".service").partition("@")[0]
