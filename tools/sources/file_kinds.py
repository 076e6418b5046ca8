"""What a file is, in one line: logs in which format, metrics, traces, an alert, or why it is not read.

Files that look like keys are named and never opened; nothing is read from anything but regular files.
"""

import json
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from opsleuth.alerts.documents import parse_alert_document
from opsleuth.alerts.unknown_documents import looks_like_alert
from opsleuth.analysis.cluster.documents import LONGEST_TEXT, parse_documents
from opsleuth.analysis.zone_offsets import explain_unknown_zone
from opsleuth.state.json_types import JSON
from opsleuth.state.plurals import format_count
from opsleuth.tools.sources.cluster_dumps import is_events_table
from opsleuth.tools.sources.compressed_files import DamagedFileError, open_decompressed
from opsleuth.tools.sources.described_dumps import is_description
from opsleuth.tools.sources.dump_times import find_newest_time
from opsleuth.tools.sources.log_formats.encodings import decode_text, detect_encoding
from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules
from opsleuth.tools.sources.logtables import is_log_table, read_log_rows, why_unreadable
from opsleuth.tools.sources.long_lines import read_line_starts
from opsleuth.tools.sources.metric_documents import (
    is_exposition,
    read_exposition,
    read_metric_document,
    read_metric_table,
)
from opsleuth.tools.sources.record_tables import NAMES, find_record_table, read_records
from opsleuth.tools.sources.table_files import FileProblems
from opsleuth.tools.sources.trace_documents import read_trace_document

WhatItHolds = Literal["logs", "metrics", "traces", "alert", "kubernetes", "records", "other", "skipped"]
LARGEST_DOCUMENT = 64_000_000
"""Bytes of a JSON document or a table of metrics that are read."""
MOST_READ = 64_000_000
"""Bytes of a log that are read to say what it is; of a longer one its beginning and its end."""
_HEAD = 65_536
_KEY_NAMES = re.compile(
    r"id_.*|\.env(?:\..*)?|.*\.env|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg|kubeconfig|ovpn)|kubeconfig.*|credentials.*|\.netrc|\.pgpass"
    r"|\.htpasswd|\.npmrc|\.pypirc|\.git-credentials|\.my\.cnf|\.vault-token|secrets?\.(?:ya?ml|json|toml|txt)|.*_(?:rsa|dsa|ecdsa|ed25519)",
    re.IGNORECASE,
)
_KEY_FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".kube", ".docker"))
_CLUSTER_YAML = re.compile(r"\A\ufeff?(?:\s|---[^\n]*\n)*(?:apiVersion|kind|items|metadata):", re.MULTILINE)
_TIMED_SHARE = 0.05
"""Below this share of lines with a time, text of no known format is not a log."""
_ALERT_KEYS = frozenset(
    [
        "alerts",
        "alertname",
        "AlarmName",
        "alert",
        "incident",
        "event_action",
        "alert_name",
        "alertName",
        "severity",
        "priority",
    ]
)
_TITLE_KEYS = frozenset(
    [
        "title",
        "name",
        "summary",
        "description",
        "message",
        "text",
        "alerts",
        "AlarmName",
        "event",
        "alert",
        "subject",
    ]
)
_LOG_KEYS = frozenset(
    ("message", "msg", "log", "textPayload", "jsonPayload", "MESSAGE", "@m", "@mt", "body", "event")
)


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file holds. `lines` counts records, `without_time` those of them that have none; `why` says why it is skipped.

    `whole` is false where only the beginning and the end were read: the counts are then those of the parts read.
    `offset` is the one in seconds that all times of a log carry; `zoneless` says that none of them carries any.
    """

    path: Path
    holds: WhatItHolds
    format: str = ""
    lines: int = 0
    first: float | None = None
    last: float | None = None
    without_time: int = 0
    services: tuple[str, ...] = ()
    why: str = ""
    whole: bool = True
    notes: tuple[str, ...] = field(default=())
    offset: float | None = None
    zoneless: bool = False

    @property
    def sentence(self) -> str:
        """The kind in one line: `app.log: klog, 2,000 lines, 10:00–11:12, 300 without a time`."""
        if self.holds == "skipped":
            return f"{self.path.name}: skipped: {self.why}"
        unit = {"metrics": "series", "traces": "span", "logs": "line", "records": "row"}.get(self.holds, "")
        count = (
            ""
            if not unit
            else f"{self.lines:,} series"
            if unit == "series"
            else format_count(self.lines, unit)
        )
        parts = [
            self.format,
            count if self.whole or not count else f"{count} read of its beginning and end",
            _times_in_words(self.first, self.last),
            f"{self.without_time:,} without a time" if self.without_time else "",
            *self.notes,
        ]
        return f"{self.path.name}: {', '.join(part for part in parts if part)}"


def looks_like_key(path: Path) -> bool:
    """Whether the name is that of a key, a password or a configuration that holds some."""
    return bool(_KEY_NAMES.fullmatch(path.name)) or path.parent.name in _KEY_FOLDERS


_PACKAGE_LOGS = re.compile(
    r"(?:dpkg|alternatives|yum|dnf(?:\.(?:rpm|librepo))?|hawkey|zypper|pacman|emerge|apk|bootstrap|fontconfig|ubuntu-advantage(?:-.*)?)\.log"
    r"|(?:apt/(?:history|term|eipp)|zypp/history|unattended-upgrades/[\w.-]+?)(?:\.log)?"
)
_ROTATION = re.compile(r"(?:[.-]\d+)?(?:\.(?:gz|bz2|xz|zst))?$")


def is_package_log(path: Path) -> bool:
    """Whether the name is that of a log in which a package manager says what it installed: no application writes it."""
    name = _ROTATION.sub("", path.name)
    return any(_PACKAGE_LOGS.fullmatch(text) for text in (name, f"{path.parent.name}/{name}"))


def recognize_file(path: Path, rules: ReadingRules | None = None) -> FileKind:
    """What the file is. Nothing is raised: what cannot be read is skipped, with the reason."""
    if looks_like_key(path):
        return _skip_file(path, "not opened: its name is that of a key or a secret")
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return _skip_file(path, _name_irregular_file(mode))
        if why := why_unreadable(path):
            return _skip_file(path, why)
        return _recognize_content(path, rules or ReadingRules())
    except DamagedFileError as error:
        return _skip_file(path, f"damaged ({error})")
    except (OSError, ValueError) as error:
        return _skip_file(path, str(getattr(error, "strerror", None) or error))


def _recognize_content(path: Path, rules: ReadingRules) -> FileKind:
    if path.suffix == ".parquet":
        return _recognize_table(path)
    with open_decompressed(path) as file:
        head = file.read(_HEAD)
    if not head.strip():
        return _skip_file(path, "empty")
    if detect_encoding(head) is None:
        return _skip_file(path, "binary")
    text = decode_text(head)
    return (
        _of_records(path)
        or _of_json(path, text, rules)
        or _of_cluster_text(path, text)
        or _of_exposition(path, text, rules)
        or _of_table(path, rules)
        or _of_lines(path, rules)
    )


def _of_json(path: Path, head: str, rules: ReadingRules) -> FileKind | None:
    """One JSON document, or the first of many; None where the lines are those of a log."""
    if head.lstrip()[:1] not in ("{", "["):
        return None
    documents = list(_read_documents(path, head))
    if not documents:
        return None
    first = documents[0]
    spans = [span for one in documents if (found := read_trace_document(one)) is not None for span in found]
    if spans:
        times = [span.start for span in spans]
        services = tuple(sorted({span.service for span in spans}))
        return FileKind(
            path, "traces", _trace_format(first), len(spans), min(times), max(times), services=services
        )
    if (series := read_metric_document(first, LogFile(path, rules).names.service)) is not None:
        return _of_series(path, "metrics as JSON", series)
    if len(documents) == 1 and _is_kubernetes(first):
        return _of_cluster_dump(path, documents)
    if len(documents) == 1 and (_is_alert(first) or _is_lone_alert(first, head)):
        return FileKind(path, "alert", "an alert as JSON", 1)
    return None


def _of_records(path: Path) -> FileKind | None:
    """Rows of the case format: changes, calls, events, spans, statements; None for anything else."""
    table = find_record_table(path)
    if table is None:
        return None
    problems = FileProblems(path.name)
    rows = list(read_records(path, table, problems))
    times = [time for row in rows if (time := getattr(row, "start", None)) is not None]
    named = ("service", "caller", "callee")
    services = tuple(sorted({value for row in rows for name in named if (value := getattr(row, name, None))}))
    return FileKind(
        path, "records", NAMES[table], len(rows), min(times, default=None), max(times, default=None),
        services=services, notes=tuple(problems.sentences()),
    )  # fmt: skip


def _of_cluster_text(path: Path, head: str) -> FileKind | None:
    """Objects as YAML, or the table that `kubectl get events` prints; None for anything else."""
    if is_events_table(head):
        return FileKind(path, "kubernetes", "Kubernetes events", head.count("\n"))
    if is_description(head):
        return FileKind(path, "kubernetes", "descriptions of Kubernetes objects", last=path.stat().st_mtime)
    if not _CLUSTER_YAML.search(head) or path.stat().st_size > LONGEST_TEXT:
        return None
    with open_decompressed(path) as file:
        documents = list(parse_documents(decode_text(file.read()).removeprefix("\ufeff")))
    if not documents or not all(map(_is_kubernetes, documents)):
        return None
    found = _of_cluster_dump(path, documents)
    return found if found.last is not None else None  # a manifest that no cluster has accepted has no times


def _of_cluster_dump(path: Path, documents: list[Any]) -> FileKind:
    """Objects as of the newest time that they carry."""
    times = [time for one in documents if (time := find_newest_time(one)) is not None]
    as_of = max(times, default=None)
    note = () if as_of is None else (f"as of {datetime.fromtimestamp(as_of, UTC):%Y-%m-%d %H:%M} UTC",)
    count = sum(len(one.get("items") or (one,)) for one in documents)
    return FileKind(path, "kubernetes", "Kubernetes objects", count, last=as_of, notes=note)


def _read_documents(path: Path, head: str) -> Iterator[Any]:
    """The document, or those on the first lines of a file that has one to a line."""
    lines = head.splitlines()
    try:
        first = json.loads(lines[0])
    except (ValueError, RecursionError, IndexError):
        with open_decompressed(path) as file:
            raw = file.read(LARGEST_DOCUMENT + 1)
        try:
            yield json.loads(decode_text(raw)) if len(raw) <= LARGEST_DOCUMENT else None
        except (ValueError, RecursionError):
            return
        return
    yield first
    if isinstance(first, Mapping) and {"resourceSpans", "batches"} & first.keys():
        yield from _further_lines(path)


def _further_lines(path: Path) -> Iterator[Any]:
    with open_decompressed(path) as file:
        for raw in islice(file, 1, 100_000):
            try:
                yield json.loads(raw)
            except (ValueError, RecursionError):
                continue


def _of_exposition(path: Path, head: str, rules: ReadingRules) -> FileKind | None:
    lines = head.splitlines()
    if not is_exposition(lines[:-1] or lines):
        return None
    with open_decompressed(path) as file:
        text = decode_text(file.read(LARGEST_DOCUMENT))
    service = rules.service or path.name.partition(".")[0]
    format_name = "OpenMetrics" if "# EOF" in text[-20:] else "Prometheus text"
    return _of_series(path, format_name, read_exposition(text.splitlines(), service, path.stat().st_mtime))


def _of_table(path: Path, rules: ReadingRules) -> FileKind | None:
    if path.suffix not in (".csv", ".tsv") and not is_log_table(path):
        return None
    with open_decompressed(path) as file:
        text = decode_text(file.read(LARGEST_DOCUMENT))
    names = {name.strip().strip('"').lower() for name in re.split(r"[,;\t]", text.split("\n", 1)[0])}
    if names & {"message", "msg", "log", "content", "text"}:
        return _recognize_table(path)
    series = read_metric_table(text, rules.service or path.name.partition(".")[0], rules.zone)
    return None if not series else _of_series(path, "metrics as CSV", series)


def _recognize_table(path: Path) -> FileKind:
    """Rows of a table whose first row names its columns, read as lines of a log."""
    reader, times, rows = LogFile(path, ReadingRules(), samples=(b"", [])).reader, list[float](), 0
    for text, row in read_log_rows(path, FileProblems(path.name)):
        rows += 1
        if (time := reader.of_row(row, text).time) is not None:
            times.append(time)
    return FileKind(
        path, "logs", "a table", rows, min(times, default=None), max(times, default=None), rows - len(times)
    )


def _of_series(path: Path, format_name: str, series: list[Any]) -> FileKind:
    times = [moment for one in series for moment in (one.times[0], one.times[-1])]
    services = tuple(sorted({one.service for one in series}))
    return FileKind(
        path,
        "metrics",
        format_name,
        len(series),
        min(times, default=None),
        max(times, default=None),
        services=services,
    )


def _of_lines(path: Path, rules: ReadingRules) -> FileKind:
    file = LogFile(path, rules)
    whole = path.stat().st_size <= MOST_READ
    count, untimed, first, last = 0, 0, None, None
    services: dict[str, None] = {}
    for line in file.records(_raw_lines(file, whole=whole)):
        count += 1
        if len(services) < 50:
            services[line.service] = None
        if line.time is None:
            untimed += 1
            continue
        first = line.time if first is None else min(first, line.time)
        last = line.time if last is None else max(last, line.time)
    unknown = set(file.formats.counts) <= {"text", "timed text"}
    if unknown and count - untimed <= _TIMED_SHARE * count:
        zones = tuple(explain_unknown_zone(zone) for zone in file.reader.times.tally.unknown_zones)
        return FileKind(path, "other", "text without times", why="hardly a line has a time", notes=zones[:1])
    notes = tuple(text.partition(": ")[2] for text in file.troubles(timed=True))
    named = tuple(sorted(name for name in services if name))
    tally = file.reader.times.tally
    return FileKind(
        path, "logs", file.formats.name, count, first, last, untimed, named, whole=whole, notes=notes,
        offset=next(iter(tally.offsets)) if len(tally.offsets) == 1 and not tally.without_zone else None,
        zoneless=bool(tally.without_zone) and not tally.offsets,
    )  # fmt: skip


def _raw_lines(file: LogFile, *, whole: bool) -> Iterator[bytes]:
    if file.is_document:
        yield from file.documents()
        return
    with file.open() as stream:
        long_lines = file.cut.long_lines
        if whole:
            yield from read_line_starts(stream, long_lines)
            return
        yield from islice(read_line_starts(stream, long_lines), 10_000)
        if file.is_seekable:
            stream.seek(-_HEAD * 16, 2)
            yield from islice(read_line_starts(stream, set()), 1, None)


def _trace_format(document: JSON) -> str:
    if isinstance(document, list):
        return "Zipkin traces"
    return "OTLP traces" if {"resourceSpans", "batches", "trace"} & document.keys() else "Jaeger traces"


def _is_kubernetes(document: JSON) -> bool:
    return (
        isinstance(document, Mapping)
        and "kind" in document
        and ("apiVersion" in document or "items" in document)
    )


def _is_alert(document: JSON) -> bool:
    if isinstance(document, list):
        return bool(document) and _is_alert(document[0])
    if not isinstance(document, Mapping):
        return False
    if "alertname" in (document.get("labels") or ()):
        return True
    if document.keys() & {"alerts", "AlarmName", "alertname", "alert", "incident", "event_action"}:
        return True
    return (
        bool(document.keys() & _ALERT_KEYS)
        and bool(document.keys() & _TITLE_KEYS)
        and not document.keys() & _LOG_KEYS
    )


def _is_lone_alert(document: JSON, head: str) -> bool:
    """Whether the one document of a file is an alert of a system that is known, or visibly announces trouble."""
    if not isinstance(document, Mapping) or _is_one_of_many_lines(head):
        return False
    return bool(parse_alert_document(document)) or looks_like_alert(document)


def _is_one_of_many_lines(head: str) -> bool:
    """Whether the first line is a document of its own, and others follow."""
    first, _, rest = head.lstrip().partition("\n")
    return bool(rest.strip()) and first.rstrip().endswith("}") and first.count("{") == first.count("}")


def _name_irregular_file(mode: int) -> str:
    for test, name in ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket")):
        if test(mode):
            return name
    return "a device"


def _skip_file(path: Path, why: str) -> FileKind:
    return FileKind(path, "skipped", why=why)


def _times_in_words(first: float | None, last: float | None) -> str:
    """`10:00–11:12`, with dates where they are not of one day; in UTC."""
    if first is None or last is None:
        return ""
    begin, end = (datetime.fromtimestamp(time, UTC) for time in (first, last))
    if begin.date() == end.date():
        return f"{begin:%Y-%m-%d %H:%M}–{end:%H:%M} UTC"
    return f"{begin:%Y-%m-%d %H:%M}–{end:%Y-%m-%d %H:%M} UTC"
