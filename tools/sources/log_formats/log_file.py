"""One log file: how its bytes, lines and records are read, found out once from its beginning, middle and end."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import BinaryIO

from opsleuth.analysis.records import LogLine
from opsleuth.analysis.zone_offsets import explain_unknown_zone
from opsleuth.state.plurals import format_count
from opsleuth.tools.sources.compressed_files import is_compressed, open_decompressed
from opsleuth.tools.sources.log_formats.assembly import CutTally, OpenRecord, RecordAssembler
from opsleuth.tools.sources.log_formats.encodings import (
    as_utf8,
    decode_latin,
    decode_line,
    detect_encoding,
    is_bytewise,
)
from opsleuth.tools.sources.log_formats.names import FileNames, names_of_file
from opsleuth.tools.sources.log_formats.recognition import RecognizedFormats, chosen_formats, recognize_lines
from opsleuth.tools.sources.log_formats.server_files import server_of_file
from opsleuth.tools.sources.log_formats.whole_lines import (
    expand_otlp,
    join_cri_parts,
    join_docker_parts,
    join_slow_heads,
    split_documents,
)
from opsleuth.tools.sources.logformat import LogLineReader
from opsleuth.tools.sources.long_lines import LONGEST_LINE

SAMPLE_LINES = 300
_SAMPLE_BYTES = 65_536
LARGEST_DOCUMENT = 64_000_000
"""Bytes of a file that is one JSON document: it has to be read whole."""
_TIME_SLACK = 60.0
_MOST_UNTOLD = 3
_UNTIMED_SHARE = 0.01
"""Fewer records without a time than these, and than this share, are banners: nothing is said of them."""


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """What the settings say about files: each is found out where they say nothing."""

    zone: tzinfo = UTC
    meanings: Mapping[str, float] = field(default_factory=dict)
    service: str | None = None
    format: str | None = None
    pattern: str | None = None
    encoding: str | None = None


class LogFile:
    """A file with what was found out about it. `named` maps services to the source's names."""

    def __init__(
        self,
        path: Path,
        rules: ReadingRules,
        named: Callable[[str], str] | None = None,
        samples: tuple[bytes, list[bytes]] | None = None,
    ) -> None:
        self.path = path
        self.year_of = path.stat().st_mtime
        self.cut = CutTally()
        self.timed = self.untimed = 0
        self.unread = ""
        head, others = _read_samples(path) if samples is None else samples
        self.bytes_per_line = max(1.0, len(head) / max(1, head.count(b"\n")))
        self._is_latin = rules.encoding == "latin-1"
        self.encoding = rules.encoding or detect_encoding(head) or ""
        if not self.encoding:
            self.unread = f"{path.name} was not read: it is binary"
        self.is_document = _is_document(head.removeprefix(b"\xef\xbb\xbf"))
        self.names = names_of_file(path)
        self.formats = chosen_formats(rules.format, rules.pattern) or self._recognize(head, others, rules)
        if server := server_of_file(path, tuple(self.formats.counts)):
            self.names = replace(self.names, service=server)
        self.reader = LogLineReader(
            rules.zone,
            rules.meanings,
            preferred=self.formats.preferred,
            firsts=self.formats.firsts,
            only=self.formats.only,
            inner=self.formats.inner,
            names=FileNames(rules.service or self.names.service, self.names.pod, self.names.namespace),
            named=named,
        )
        self._prepare = self._preparation()

    @classmethod
    def damaged(cls, path: Path, rules: ReadingRules) -> "LogFile":
        """A file of whose beginning nothing can be read."""
        return cls(path, rules, samples=(b"", []))

    @property
    def is_plain(self) -> bool:
        return not is_compressed(self.path)

    @property
    def is_seekable(self) -> bool:
        """Whether reading may begin at any line."""
        return not is_compressed(self.path) and is_bytewise(self.encoding) and not self.is_document

    @property
    def is_verbatim(self) -> bool:
        """Whether a program may search the raw lines."""
        return self.is_seekable and self.formats.verbatim and not self._is_latin

    @property
    def is_cuttable(self) -> bool:
        """Whether records of a part of the file are the same as when all of it is read."""
        return self.is_seekable and not self.unread and not self.formats.streams and self._prepare is iter

    def open(self) -> BinaryIO:
        return as_utf8(open_decompressed(self.path), self.encoding)

    def time_of(self, raw: bytes) -> float | None:
        return self.reader.parse(self.decode(raw), self.year_of).line.time

    def starts_record(self, raw: bytes) -> bool:
        """Whether a record with a time begins with this raw line."""
        text = self.decode(raw)
        return bool(text) and self._starts(text, starts=self.reader.parse(text, self.year_of).starts)

    def decode(self, raw: bytes) -> str:
        if self._is_latin:
            return decode_latin(raw).rstrip("\r\n")
        text = decode_line(raw)
        return text[1:] if text[:1] == "\ufeff" else text

    def records(self, raws: Iterable[bytes], until: float | None = None) -> Iterator[LogLine]:
        """The records of raw lines, up to the first that begins well after `until`."""
        texts = self._prepare(self._decoded(raws))
        found = self._of_streams(texts, until) if self.formats.streams else self._of_lines(texts, until)
        return self._counted(found)

    def _counted(self, records: Iterator[LogLine]) -> Iterator[LogLine]:
        """The records; those with and without a time are counted, of several readings the one that met most."""
        count = untimed = 0
        try:
            for line in records:
                count += 1
                if line.time is None:
                    untimed += 1
                yield line
        finally:
            self.note_records(count - untimed, untimed)

    def note_records(self, timed: int, untimed: int) -> None:
        """Remember how many records of a reading had a time and had none, if no reading met more."""
        if timed + untimed > self.timed + self.untimed:
            self.timed, self.untimed = timed, untimed

    def _decoded(self, raws: Iterable[bytes]) -> Iterator[str]:
        """The lines that are not empty."""
        for raw in raws:
            try:
                text = decode_latin(raw) if self._is_latin else raw.decode()
            except UnicodeDecodeError:
                text = decode_latin(raw)
            if text := text.strip("\r\n\ufeff"):
                yield text

    def _of_lines(self, texts: Iterable[str], until: float | None) -> Iterator[LogLine]:
        """A record is open until the next begins; one of a single line, as most are, is handed on as it is."""
        parse, year_of, untimed = self.reader.parse, self.year_of, self.formats.untimed
        last = math.inf if until is None else until + _TIME_SLACK
        held: LogLine | OpenRecord | None = None
        for text in texts:
            line, starts, finish, name = parse(text, year_of)
            if not starts and held is not None and not (untimed and self._starts(text, starts=False)):
                if isinstance(held, LogLine):
                    held = OpenRecord(held, None, "")
                held.add(text if name == "text" else line.message)
                continue
            if held is not None:
                yield held if isinstance(held, LogLine) else held.whole(self.cut)
            if line.time is not None and line.time > last:
                return
            held = line if finish is None else OpenRecord(line, finish, text)
        if held is not None:
            yield held if isinstance(held, LogLine) else held.whole(self.cut)

    def _of_streams(self, texts: Iterable[str], until: float | None) -> Iterator[LogLine]:
        """Lines of several writers may alternate: a record is open until the next of its writer begins."""
        assembler = RecordAssembler(self.cut)
        for text in texts:
            line, starts, finish, _ = self.reader.parse(text, self.year_of)
            starts = self._starts(text, starts=starts)
            if starts and until is not None and line.time is not None and line.time > until + _TIME_SLACK:
                break
            yield from assembler.add(line, text if starts else line.message, finish, starts=starts)
        yield from assembler.end()

    def _starts(self, text: str, *, starts: bool) -> bool:
        return starts or (
            self.formats.untimed and not text[0].isspace() and not text.startswith("Caused by:")
        )

    def documents(self) -> Iterator[bytes]:
        """The objects of a file that is one document, each as a raw line. Raises OSError."""
        with self.open() as file:
            raw = file.read(LARGEST_DOCUMENT + 1)
        if len(raw) > LARGEST_DOCUMENT:
            self.unread = (
                f"{self.path.name} was not read: one JSON document of more than {LARGEST_DOCUMENT:,} bytes"
            )
            return
        for text in split_documents(self.decode(raw)):
            yield text.encode("utf-8", "replace")

    def troubles(self, *, timed: bool = False) -> Iterator[str]:
        """What of this file could not be read; with `timed` also which lines support no claim about time."""
        name = self.path.name
        if self.unread:
            yield self.unread
        if timed:
            yield from self._without_time()
        if self.cut.long_lines:
            yield f"{name}: of {format_count(len(self.cut.long_lines), 'line')} longer than {LONGEST_LINE:,} bytes, only the beginning was read"
        if self.cut.records:
            yield f"{name}: {self.cut.lines:,} lines in the middle of {format_count(self.cut.records, 'long record')} were left out"

    def _without_time(self) -> Iterator[str]:
        name = self.path.name
        if self.formats.untimed and not self.formats.timed and not self.reader.times.tally.unknown_zones:
            yield f"{name}: none of its lines has a time that is understood: set format, or pattern with a group time"
        elif (
            not self.reader.times.tally.unknown_zones
            and self.untimed >= _MOST_UNTOLD
            and self.untimed > self.timed * _UNTIMED_SHARE
        ):
            yield f"{name}: {format_count(self.untimed, 'record has', 'records have')} no time that is understood"
        for zone, _ in self.reader.times.tally.unknown_zones.most_common(3):
            yield f"{name}: {format_count(self.untimed, 'record has', 'records have')} no time, for {explain_unknown_zone(zone)}"

    def _preparation(self) -> Callable[[Iterator[str]], Iterator[str]]:
        if "cri" in self.formats.counts:
            return join_cri_parts
        if "docker" in self.formats.counts:
            return join_docker_parts
        if "mysql-slow" in self.formats.counts:
            return join_slow_heads
        return expand_otlp if "otlp" in self.formats.counts else iter

    def _recognize(self, head: bytes, others: list[bytes], rules: ReadingRules) -> RecognizedFormats:
        texts = self._sampled(head, others)
        if any('"resourceLogs"' in text[:200] for text in texts[:3]):
            texts = list(expand_otlp(texts[:3]))
            found = recognize_lines(texts, self.year_of, zone=rules.zone, meanings=rules.meanings)
            found.counts["otlp"] += 1
            return found
        return recognize_lines(texts, self.year_of, zone=rules.zone, meanings=rules.meanings)

    def _sampled(self, head: bytes, others: list[bytes]) -> list[str]:
        if not self.encoding:
            return []
        if self.is_document:
            return [raw.decode() for raw, _ in zip(self.documents(), range(SAMPLE_LINES), strict=False)]
        if not is_bytewise(self.encoding):
            text = head[: len(head) // 2 * 2].decode(self.encoding, "replace")
            return text.removeprefix("\ufeff").splitlines()[:-1][:SAMPLE_LINES] or [text]
        lines = head.splitlines()
        whole = lines[:-1] if len(head) >= _SAMPLE_BYTES and len(lines) > 1 else lines
        more = [line for part in others for line in part.splitlines()[1:-1][: SAMPLE_LINES // 2]]
        return [self.decode(raw) for raw in (*whole[:SAMPLE_LINES], *more)]


def _read_samples(path: Path) -> tuple[bytes, list[bytes]]:
    """The first bytes of a file, and some of its middle and end where it is large and plain. Raises OSError, Damaged."""
    with open_decompressed(path) as file:
        head = file.read(_SAMPLE_BYTES)
        size = path.stat().st_size
        if is_compressed(path) or size < 4 * _SAMPLE_BYTES:
            return head, []
        others = []
        for offset in (size // 2, size - _SAMPLE_BYTES):
            file.seek(offset)
            others.append(file.read(_SAMPLE_BYTES))
        return head, others


def _is_document(head: bytes) -> bool:
    """Whether a file holds a list of JSON objects, or objects over several lines."""
    text = head.lstrip()
    if text[:1] == b"[":
        return text[1:].lstrip()[:1] == b"{"
    return text[:1] == b"{" and text.split(b"\n", 1)[0].strip() in (b"{", b'{"events": [', b'{"entries": [')
