"""Records of many lines, whole: stack traces, statements, entries of an exported journal."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from opsleuth.analysis.records import LogLine
from opsleuth.tools.sources.log_formats.declaration import Finish

MOST_LINES = 1_000
MOST_CHARACTERS = 256_000
"""Lines and characters of one record that are kept: of a longer one the beginning and the end."""
_LAST_LINES = 200
_MOST_OPEN = 64
_TOLD_APART = 80


@dataclass(slots=True)
class CutTally:
    """Records that were longer than what is kept, by time and beginning, with how many of their lines were left out."""

    left_out: dict[tuple[float | None, str], int] = field(default_factory=dict)
    long_lines: set[int] = field(default_factory=set)
    """Where lines begin of which only the beginning was looked at."""

    @property
    def records(self) -> int:
        return len(self.left_out)

    @property
    def lines(self) -> int:
        return sum(self.left_out.values())


@dataclass(slots=True)
class OpenRecord:
    """A record of which more lines may come."""

    line: LogLine
    finish: Finish | None
    first: str
    more: list[str] = field(default_factory=list)
    last: deque[str] = field(default_factory=deque)
    size: int = 0
    last_size: int = 0
    left_out: int = 0

    def add(self, text: str) -> None:
        self.size += len(text)
        if len(self.more) < MOST_LINES - _LAST_LINES and self.size < MOST_CHARACTERS:
            self.more.append(text)
            return
        if len(self.last) == _LAST_LINES:
            self.last_size -= len(self.last.popleft())
            self.left_out += 1
        self.last.append(text)
        self.last_size += len(text)
        while self.last_size > MOST_CHARACTERS and len(self.last) > 1:
            self.last_size -= len(self.last.popleft())
            self.left_out += 1

    def whole(self, tally: CutTally) -> LogLine:
        line = self.line
        if self.left_out:
            tally.left_out[line.time, line.message[:_TOLD_APART]] = self.left_out
        if self.finish is not None:
            return self.finish(line, "\n".join((self.first, *self.more, *self.last)))
        if not self.more and not self.last:
            return line
        return replace(line, message="\n".join((line.message, *self.more, *self.last)))


class RecordAssembler:
    """Joins lines to records. Lines of several writers, distinguished by pod and service, may alternate."""

    def __init__(self, tally: CutTally) -> None:
        self._tally = tally
        self._open: dict[tuple[str | None, str], OpenRecord] = {}

    def add(self, line: LogLine, text: str, finish: Finish | None, *, starts: bool) -> Iterator[LogLine]:
        """The records that are whole with this line."""
        key = (line.pod, line.service)
        held = self._open.get(key)
        if not starts and held is not None:
            held.add(text)
            return
        if held is not None:
            yield self._open.pop(key).whole(self._tally)
        elif len(self._open) >= _MOST_OPEN:
            yield self._open.pop(next(iter(self._open))).whole(self._tally)
        self._open[key] = OpenRecord(line, finish, text)

    def end(self) -> Iterator[LogLine]:
        """The records that are still open."""
        yield from (record.whole(self._tally) for record in self._open.values())
        self._open.clear()
