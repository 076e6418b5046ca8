"""Lines of a large log counted unit by unit, in several processes where there are processors for it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opsleuth.tools.sources.counted_lines import CountedLines
from opsleuth.tools.sources.counting_pool import CountingPool
from opsleuth.tools.sources.counting_units import (
    CountedPart,
    CountingMessage,
    CountingRules,
    CountingUnit,
    UnitFacts,
    UnitFailure,
    UnitReader,
)
from opsleuth.tools.sources.log_formats.log_file import LogFile

WORTH_IT = 200_000_000
"""Bytes from which on processes are started: what is smaller is counted before they would have begun."""


@dataclass(slots=True)
class FileTotals:
    """What was found out about a file in all of its units."""

    timed: int = 0
    untimed: int = 0
    damaged: bool = False


@dataclass(slots=True)
class UnitCounting:
    """Counts units into `counted`; `file_of` gives the file whose tallies are kept. `failure` is set where one is unreadable."""

    counted: CountedLines
    units: Sequence[CountingUnit]
    file_of: Callable[[Path], LogFile]
    totals: dict[Path, FileTotals] = field(default_factory=dict)
    services: set[str] = field(default_factory=set)
    failure: UnitFailure | None = None
    _over: set[Path] = field(default_factory=set)
    _done: int = 0

    def count(self, rules: CountingRules, processes: int, is_over: Callable[[], bool]) -> None:
        """Count all units until `is_over`. Raises CountingProcessError."""
        if processes > 1:
            with CountingPool(rules, processes) as pool:
                self._take_all(pool.count(self.units, is_over))
        else:
            self._take_all(_count_here(self.units, rules, is_over))
        for path, totals in self.totals.items():
            self.file_of(path).note_records(totals.timed, totals.untimed)

    def _take_all(self, messages: Iterable[CountingMessage]) -> None:
        for message in messages:
            if not self._take(message):
                return
        if self._done < len(self.units):
            self.counted.end_early()

    def _take(self, message: CountingMessage) -> bool:
        """Whether more may come. Of a file nothing counts behind the first line that is later than the stretch."""
        path = self.units[message.unit].path
        if isinstance(message, UnitFailure):
            self.failure = message
            return False
        if isinstance(message, CountedPart):
            return path in self._over or self.counted.add_part(message)
        self._done += 1
        if path not in self._over:
            self._add_facts(path, message)
        return True

    def _add_facts(self, path: Path, facts: UnitFacts) -> None:
        totals = self.totals.setdefault(path, FileTotals())
        totals.timed += facts.timed
        totals.untimed += facts.untimed
        totals.damaged |= facts.damaged
        self.services |= facts.services
        if facts.ended_early:
            self._over.add(path)
        file = self.file_of(path)
        file.cut.left_out.update(facts.left_out)
        file.cut.long_lines |= facts.long_lines
        file.reader.times.tally.without_zone += facts.without_zone
        file.reader.times.tally.unknown_zones.update(facts.unknown_zones)


def _count_here(
    units: Iterable[CountingUnit], rules: CountingRules, is_over: Callable[[], bool]
) -> Iterator[CountingMessage]:
    reader = UnitReader(rules)
    for unit in units:
        for message in reader.count(unit):
            if is_over():
                return
            yield message


def number_units(ranges: Mapping[Path, Sequence[tuple[int, int | None]]]) -> list[CountingUnit]:
    """Units of all files, in turns, so that work that ends early has got about as far in each of them."""
    files = [(path, turn, part) for path, parts in ranges.items() for turn, part in enumerate(parts)]
    placed = sorted(enumerate(files), key=lambda one: (one[1][1], one[0]))
    return [
        CountingUnit(number, path, begin, end, place)
        for number, (place, (path, _, (begin, end))) in enumerate(placed)
    ]


def first_step(lines: float, most: int) -> int:
    """Every which line is kept at first, so that not many more than `most` are until their number is known."""
    step = 1
    while lines / step > 2 * most:
        step *= 2
    return step
