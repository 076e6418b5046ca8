"""Reading one line of a log, whoever wrote it, into a `LogLine`: by the declarations in `log_formats`.

A time without a zone is in the zone that the source is configured with. What has no time that is understood has
none: it is never guessed from the file.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

from opsleuth.analysis.log_times import TimeReader, read_epoch
from opsleuth.analysis.records import LogLine
from opsleuth.tools.sources.log_formats.compiled_formats import (
    COMPILED,
    NUMERIC_GROUPS,
    SPECIAL_FORMS,
    CompiledFormat,
)
from opsleuth.tools.sources.log_formats.declaration import Finish, Levels
from opsleuth.tools.sources.log_formats.encodings import decode_line
from opsleuth.tools.sources.log_formats.fields import FieldPlans, first_value, first_word, text_of, words_of
from opsleuth.tools.sources.log_formats.generic_text import find_level, find_time
from opsleuth.tools.sources.log_formats.logfmt import is_logfmt, read_logfmt
from opsleuth.tools.sources.log_formats.names import (
    FileNames,
    named_service,
    service_of_compose_container,
    service_of_container,
    service_of_file,
)

__all__ = ["LogLineReader", "ParsedLine", "service_of_file"]

_CONTINUES = re.compile(
    r"\s|Caused by:|Suppressed:|Traceback \(|\.\.\. \d+ (?:more|common)|During handling of|The above exception|goroutine \d+ \["
    r"|(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Throwable)\b(?:: |$)|[}\])]+[,;]?$"
)
"""Lines without a time of their own that belong to the one before, in an envelope that gives each line its time."""
_COLOURS = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
_TEMPLATE_FIELD = re.compile(r"\{[@$]?(\w+)(?:[,:][^{}]*)?\}")
# Where in a line of text its time and level stand.
_HEAD = 160
_MOST_NESTED = 4


class ParsedLine(NamedTuple):
    """A line and what it is: whether a record begins with it, how the whole record is read, which format it has."""

    line: LogLine
    starts: bool
    finish: Finish | None
    format: str


class LogLineReader:
    """Reads lines; `zone` is that of times without one, `meanings` the offsets of abbreviations.

    `preferred` are the formats of the file, `firsts` the characters with which its lines begin: others are tried only
    for lines that begin otherwise, and never with `only`. `inner` are those met inside envelopes, where all others are
    tried as well. `names` are those of the file's lines that name none, `named` maps services.
    """

    def __init__(
        self,
        zone: tzinfo = UTC,
        meanings: Mapping[str, float] | None = None,
        *,
        preferred: Sequence[CompiledFormat] = (),
        firsts: Iterable[str] = (),
        only: bool = False,
        inner: Sequence[CompiledFormat] = (),
        names: FileNames | None = None,
        named: Callable[[str], str] | None = None,
    ) -> None:
        self.times = TimeReader(zone, meanings)
        self._preferred = tuple(preferred)
        self._others = () if only else COMPILED
        self._tried = {first: self._fitting(self._preferred, first) for first in firsts}
        self._tried_inside: dict[str, tuple[CompiledFormat, ...]] = {}
        self._inner = (*inner, *COMPILED)
        self.met_inside: Counter[str] = Counter()
        self._names = names or FileNames("")
        self._named = named or (lambda name: name)
        self._plans = FieldPlans()
        self._services: dict[str, str] = {}
        self._of_file = self._service(None)

    def read(self, text: str, year_of: float) -> LogLine:
        """The line; its service is empty where nothing names one. `year_of` is a time in or after the line's year."""
        return self.parse(text, year_of).line

    def parse(self, text: str, year_of: float) -> ParsedLine:
        if "\x1b" in text:
            text = _COLOURS.sub("", text)
        return self._parse(text, year_of, 0)

    def time_of(self, year_of: float) -> Callable[[bytes], float | None]:
        """What tells the time of a raw line, for the search by halves."""
        return lambda raw: self.parse(decode_line(raw), year_of).line.time

    def starts_record(self, raw: bytes, year_of: float) -> bool:
        return self.parse(decode_line(raw), year_of).starts

    def of_row(self, row: Mapping[str, Any], text: str, year_of: float = 0.0) -> LogLine:
        """The line that an object or a row of a table is; `text` is all of it."""
        return self._of_object(row, text, year_of, 0).line

    # --- lines of text ----------------------------------------------------------------------------------------

    def _parse(self, text: str, year_of: float, depth: int) -> ParsedLine:
        first = text[:1]
        if first == "{" and (row := _parse_json_object(text)) is not None:
            return self._of_object(row, text, year_of, depth)
        formats = (self._tried_inside if depth else self._tried).get(first)
        if formats is None:
            formats = self._formats_for(first, depth)
        for compiled in formats:
            if found := compiled.pattern.match(text):
                if depth:
                    self.met_inside[compiled.declared.name] += 1
                return self._of_match(compiled, found, text, year_of, depth)
        if is_logfmt(text):
            return self._of_logfmt(text, year_of, depth)
        return self._of_text(text, year_of)

    def _formats_for(self, first: str, depth: int) -> tuple[CompiledFormat, ...]:
        """The formats to try for lines that begin so, remembered."""
        if depth:
            formats = self._tried_inside[first] = self._fitting(self._inner, first)
        else:
            formats = self._tried[first] = self._fitting((*self._preferred, *self._others), first)
        return formats

    def _fitting(self, formats: Sequence[CompiledFormat], first: str) -> tuple[CompiledFormat, ...]:
        fits = (c for c in formats if not c.declared.begins or (first and first in c.declared.begins))
        return () if first.isspace() else tuple(dict.fromkeys(fits))

    def _of_match(
        self, compiled: CompiledFormat, found: re.Match[str], text: str, year_of: float, depth: int
    ) -> ParsedLine:
        groups = (*found.groups(), None)  # a format without a group has it at place -1
        declared = compiled.declared
        at_time, at_fraction, at_zone, at_level, at_service, at_message, at_host, at_trace = compiled.main
        whole = groups[at_time]
        if whole is not None and compiled.plain_time:
            time = self.times.read(declared.form, whole, groups[at_fraction], groups[at_zone], year_of)
        else:
            time = self._time_of_match(compiled, groups, year_of)
        if compiled.is_envelope:
            return self._of_envelope(compiled, groups, time, year_of, depth)
        message = text if compiled.keeps_line else groups[at_message] or ""
        level = groups[at_level]
        if level in declared.continuing:
            return ParsedLine(self._line(None, "", f"{level}:  {message}", level), False, None, declared.name)
        if level is None or declared.levels is not None:
            level = _translate_level(
                level, message, declared.levels, searched=at_level < 0 and not compiled.has_status
            )
        if message[:1] == "{" and depth < _MOST_NESTED and (row := _parse_json_object(message)) is not None:
            return self._enveloped(self._of_object(row, message, year_of, depth + 1), time, groups, compiled)
        extra = {name: value for name, at in compiled.others if (value := groups[at])}
        line = LogLine(
            time,
            self._of_file if at_service < 0 else self._service(groups[at_service]),
            message,
            level,
            self._names.pod,
            self._names.namespace,
            groups[at_host],
            groups[at_trace],
            False,
            (_with_numbers(extra) if compiled.has_numbers else extra) or None,
            None if compiled.keeps_line else _collect_context(compiled, found, text),
        )
        return ParsedLine(line, True, declared.finish, declared.name)

    def _time_of_match(
        self, compiled: CompiledFormat, groups: tuple[str | None, ...], year_of: float
    ) -> float | None:
        own = compiled.own
        whole = groups[own["time"]] if own["time"] >= 0 else None
        if whole is None:
            if own["epoch"] >= 0 and (stamp := groups[own["epoch"]]):
                return read_epoch(float(stamp))
            if own["old_time"] >= 0 and (old := groups[own["old_time"]]):
                return self.times.read("compact", old, None, None, year_of)
            return None
        if compiled.declared.form in SPECIAL_FORMS:
            return self._special_time(compiled.declared.form, whole, year_of)
        if own["year"] >= 0:
            whole += groups[own["year"]] or ""
        fraction = groups[own["frac"]] if own["frac"] >= 0 else None
        return self.times.read(compiled.declared.form, whole, fraction, groups[own["zone"]] if own["zone"] >= 0 else None, year_of)  # fmt: skip

    def _special_time(self, form: str, whole: str, year_of: float) -> float | None:
        """A time that is UTC by the rules of its format, or that a pattern of the settings names in any form."""
        if form == "iso_utc":
            return self.times.read("iso", whole, None, "Z", year_of)
        time = self.times.read_value(whole)
        return find_time(self.times, whole, year_of)[0] if time is None else time

    # --- lines in envelopes -----------------------------------------------------------------------------------

    def _of_envelope(
        self,
        compiled: CompiledFormat,
        groups: tuple[str | None, ...],
        time: float | None,
        year_of: float,
        depth: int,
    ) -> ParsedLine:
        inner = groups[compiled.own["inner"]] or ""
        if depth >= _MOST_NESTED:
            return ParsedLine(self._line(time, "", inner, None), True, None, compiled.declared.name)
        return self._enveloped(self._parse(inner, year_of, depth + 1), time, groups, compiled)

    def _enveloped(
        self, inner: ParsedLine, time: float | None, groups: tuple[str | None, ...], compiled: CompiledFormat
    ) -> ParsedLine:
        """The inner line with what its envelope knows: its time is that of the envelope, where that has one."""
        own, line = compiled.own, inner.line
        pod = groups[own["pod"]] if own["pod"] >= 0 else line.pod
        container = groups[own["container"]] if own["container"] >= 0 else None
        host = groups[own["host"]] if own["host"] >= 0 else None
        service = line.service if line.service != self._of_file else ""
        if container and compiled.declared.name == "compose":
            pod, service = container, service or service_of_compose_container(container)
        elif container:
            service = service or service_of_container(container, pod)
        elif own["service"] >= 0:
            service = service or named_service(groups[own["service"]])
        changed = replace(
            line,
            time=line.time if time is None else time,
            service=self._service(service or None),
            pod=pod,
            namespace=(groups[own["namespace"]] if own["namespace"] >= 0 else None) or line.namespace,
            host=host or line.host,
        )
        starts = inner.starts or (time is not None and not _CONTINUES.match(line.message))
        return ParsedLine(changed, starts and bool(line.message), inner.finish, compiled.declared.name)

    # --- objects ----------------------------------------------------------------------------------------------

    def _of_object(self, row: Mapping[str, Any], text: str, year_of: float, depth: int) -> ParsedLine:
        plan = self._plans.plan_for(row)
        declared = plan.format
        message = first_value(row, plan.message)
        time = self._time_of_fields(row, plan.time, year_of)
        inner: ParsedLine | None = None
        if isinstance(message, Mapping) and depth < _MOST_NESTED and len(message) > 1:
            inner = self._of_object(message, text_of(message), year_of, depth + 1)
        elif depth < _MOST_NESTED and (
            declared.envelope or (isinstance(message, str) and message[:1] == "{")
        ):
            inner = self._parse(text_of(message).rstrip("\r\n"), year_of, depth + 1)
        service = named_service(first_word(row, plan.service))
        level = (
            _translate_level(first_word(row, plan.level), "", declared.levels, searched=False)
            or declared.level_if_absent
        )
        extra = {key: value for key, value in row.items() if key not in plan.used and value not in (None, "")}
        if inner is not None:
            return self._inside_object(
                inner, time, service, level, row, declared.name, envelope=declared.envelope
            )
        stack = first_value(row, plan.stack)
        whole = text if message is None else text_of(message)
        if declared.name == "serilog":
            whole = _TEMPLATE_FIELD.sub(lambda found: text_of(row.get(found[1], found[0])), whole)
        line = LogLine(
            time,
            self._service(service or None),
            f"{whole}\n{text_of(stack)}" if stack and message is not None else whole,
            level,
            first_word(row, plan.pod) or self._names.pod,
            first_word(row, plan.namespace) or self._names.namespace,
            first_word(row, plan.host) if depth else None,
            first_word(row, plan.trace),
            False,
            extra or None,
            words_of(extra) if extra and message is not None else None,
        )
        return ParsedLine(line, True, None, declared.name)

    def _inside_object(
        self,
        inner: ParsedLine,
        time: float | None,
        service: str,
        level: str | None,
        row: Mapping[str, Any],
        name: str,
        *,
        envelope: bool,
    ) -> ParsedLine:
        """The line that an object carries as a text or an object of its own."""
        line = inner.line
        plan = self._plans.plan_for(row)
        changed = replace(
            line,
            time=line.time if time is None else time,
            service=self._service(service) if service else line.service,
            level=line.level or level,
            pod=first_word(row, plan.pod) or line.pod,
            namespace=first_word(row, plan.namespace) or line.namespace,
            trace_id=line.trace_id or first_word(row, plan.trace),
        )
        starts = inner.starts or not envelope or not _CONTINUES.match(line.message)
        return ParsedLine(changed, starts, inner.finish, name)

    def _time_of_fields(
        self, row: Mapping[str, Any], paths: tuple[tuple[str, ...], ...], year_of: float
    ) -> float | None:
        """The first of the fields that holds a time which is understood."""
        for path in paths:
            value = first_value(row, (path,))
            if value is None:
                continue
            time = self.times.read_value(value)
            if time is None and isinstance(value, str):
                time = find_time(self.times, value, year_of)[0]
            if time is not None:
                return time
        return None

    def _of_logfmt(self, text: str, year_of: float, depth: int) -> ParsedLine:
        row = read_logfmt(text)
        if len(row) < 2:
            return self._of_text(text, year_of)
        return self._of_object(row, text, year_of, depth)._replace(format="logfmt")

    # --- anything else ----------------------------------------------------------------------------------------

    def _of_text(self, text: str, year_of: float) -> ParsedLine:
        head = text[:_HEAD]
        level = find_level(head)
        time, end = find_time(self.times, head, year_of)
        message = text
        if end and text[:1] in "[0123456789":
            message = text[end:].strip(" ]:-\t") or text
        return ParsedLine(
            self._line(time, "", message, level),
            time is not None,
            None,
            "text" if time is None else "timed text",
        )

    def _line(self, time: float | None, service: str, message: str, level: str | None) -> LogLine:
        return LogLine(
            time, self._service(service or None), message, level, self._names.pod, self._names.namespace
        )

    def _service(self, written: str | None) -> str:
        """The service by the source's own names: what the line says, else what the file says."""
        written = named_service(written) or self._names.service
        if not written:
            return ""
        known = self._services.get(written)
        if known is None:
            known = self._services[written] = self._named(written)
        return known


def _collect_context(compiled: CompiledFormat, found: re.Match[str], text: str) -> str | None:
    """What appears in the line beside its time and message, one part to a row."""
    begin, end = found.span(compiled.main[5] + 1)
    first = since = -1
    for group in compiled.time_groups:
        since = max(since, found.end(group))
    if compiled.time_groups:
        first = found.start(compiled.time_groups[0])
    if 0 <= first < 2 and since <= begin and end == len(text):
        return text[since:begin]
    if first < 0:
        parts = [text[:begin], text[end:]]
    elif since <= begin:
        parts = [text[:first], text[since:begin], text[end:]]
    else:
        parts = [text[:begin], text[end:first], text[since:]]
    return "\n".join(part for part in parts if part.strip()) or None


def _parse_json_object(text: str) -> Mapping[str, Any] | None:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _translate_level(
    written: str | None, message: str, levels: Levels | None, *, searched: bool
) -> str | None:
    if written is None:
        return find_level(message[:_HEAD]) if searched else None
    if levels is None:
        return written
    return levels(written) if callable(levels) else levels.get(written, written)


def _with_numbers(extra: Mapping[str, str]) -> dict[str, Any]:
    return {name: _parse_number(value) if name in NUMERIC_GROUPS else value for name, value in extra.items()}


def _parse_number(text: str) -> int | float | str:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text
