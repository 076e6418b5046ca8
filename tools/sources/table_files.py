"""Streaming readers for the tables of a folder: CSV and JSONL, plain or `.gz`, and `.parquet` with its extra.

A reader yields good rows and counts the broken ones; it never ends because of a row. What was wrong is in
`Trouble`, in plain words.
"""

import csv
import gzip
import importlib.util
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, TextIO

from opsleuth.state.clock import convert_to_utc
from opsleuth.state.json_types import JSON
from opsleuth.state.plurals import format_count

Row = Mapping[str, Any]
SUFFIXES = ("", ".gz")
# Rows of one table that are held in memory (log lines: about 300 MB). Log search streams past this bound.
MAX_ROWS = 500_000
PARQUET_REMEDY = "reading .parquet needs the extra 'parquet': pip install 'opsleuth[parquet]'"

# A number beyond is not a measurement; its square and cube must still be numbers.
LARGEST_NUMBER = 1e100
# Lists and objects in each other, in one row. What walks through a record later has the same end.
MOST_NESTED = 64
# Characters of a value that a message about a broken row repeats.
_SHOWN = 80

# A plan or a stack trace in a cell may be long; the csv module's own limit is 128 kB.
csv.field_size_limit(16 * 1024 * 1024)


@dataclass(slots=True)
class FileProblems:
    """What was wrong with one file: broken rows (the first with its line and reason), zone-less times, an early end."""

    file: str
    rows: int = 0
    broken: int = 0
    first: str = ""
    zoneless: int = 0
    ended: str = ""
    left_out: int = 0
    note: str = ""

    @property
    def lost(self) -> float:
        """The share of the rows that are broken."""
        return self.broken / self.rows if self.rows else 0.0

    def add_broken_row(self, line: int, why: str) -> None:
        self.broken += 1
        if not self.first:
            self.first = f"line {line}: {why}"

    def time(self, text: object) -> float:
        """Seconds since the epoch of an RFC 3339 text. Raises TypeError, ValueError. A time without zone is read as UTC and counted."""
        if not isinstance(text, str):
            raise TypeError(f"{shorten_value(text)} is not an RFC 3339 time")
        seconds, zoned = _parse_rfc3339(text)
        if not zoned:
            self.zoneless += 1
        return seconds

    def sentences(self) -> list[str]:
        """The troubles of this file as sentences; none if all went well."""
        found = []
        if self.broken:
            found.append(
                f"{self.file}: {self.broken:,} of {format_count(self.rows, 'row is broken and was', 'rows are broken and were')} left out ({self.first})"
            )
        if self.zoneless:
            found.append(
                f"{self.file}: {format_count(self.zoneless, 'time has no zone and was', 'times have no zone and were')} read as UTC"
            )
        if self.ended:
            found.append(f"{self.file}: {self.ended}; the {self.rows:,} rows before were read")
        if self.note:
            found.append(f"{self.file}: {self.note}")
        if self.left_out:
            found.append(
                f"{self.file}: {self.left_out:,} of {format_count(self.rows, 'row was', 'rows were')} left out to bound memory; log search still scans them"
            )
        return found


def shorten_value(value: object) -> str:
    """How a message about a broken row repeats a value: as Python writes it, cut if it is long."""
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@lru_cache(maxsize=65_536)
def _parse_rfc3339(text: str) -> tuple[float, bool]:
    """(seconds since the epoch, whether the text had a zone)."""
    if not 16 <= len(text) <= 40:
        raise ValueError(f"{shorten_value(text)} is not an RFC 3339 time")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        return convert_to_utc(moment.replace(tzinfo=UTC)).timestamp(), False
    return convert_to_utc(moment).timestamp(), True


def parse_number(value: object) -> float | None:
    """A number up to `LARGEST`, or None where nothing was recorded. Raises TypeError, ValueError for anything else."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"{shorten_value(value)} is not a number")
    try:
        result = float(value)
    except OverflowError:
        result = inf
    except ValueError:
        raise ValueError(f"{shorten_value(value)} is not a number") from None
    if result - result != 0.0:
        raise ValueError(f"{shorten_value(value)} is not a finite number")
    if abs(result) > LARGEST_NUMBER:
        raise ValueError(f"{shorten_value(value)} is beyond {LARGEST_NUMBER:g}")
    return result


def can_read_parquet() -> bool:
    return importlib.util.find_spec("duckdb") is not None


def find_table_files(folder: Path, name: str) -> list[Path]:
    """The files that hold the table `name` (`logs.jsonl`), the one to read first."""
    stem = name.rsplit(".", 1)[0]
    candidates = [folder / f"{name}{suffix}" for suffix in SUFFIXES] + [folder / f"{stem}.parquet"]
    return [path for path in candidates if path.is_file()]


def read_rows(path: Path, trouble: FileProblems, start: int = 0) -> Iterator[tuple[int, Row]]:
    """(line number, row) of every row that could be taken apart, read as the file is read.

    With `start`, a plain JSONL file is read from the first line after that byte offset.

    Raises OSError if the file cannot be opened, ImportError for `.parquet` without its extra.
    """
    if path.suffix == ".parquet":
        yield from _read_parquet_rows(path, trouble)
        return
    reader = _read_jsonl_rows if ".jsonl" in path.name else read_csv_rows
    try:
        with open_text(path, start) as file:
            yield from reader(file, trouble)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        trouble.ended = f"the compressed file is damaged or cut short ({error})"


def open_text(path: Path, start: int = 0) -> TextIO:
    """The file as text; bytes that are not UTF-8 become replacement marks, a byte order mark is dropped."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline="")
    if not start:
        return path.open(encoding="utf-8-sig", errors="replace", newline="")
    file = path.open("rb")
    file.seek(start)
    file.readline()
    return io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")


def _read_csv_cells(file: TextIO, trouble: FileProblems) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(file)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            trouble.rows += 1
            trouble.add_broken_row(reader.line_num, str(error))
            continue
        if cells:
            yield reader.line_num, cells


def read_csv_rows(file: TextIO, trouble: FileProblems) -> Iterator[tuple[int, Row]]:
    """(line number, row) of every row that has a cell under each column; the first row names those."""
    lines = _read_csv_cells(file, trouble)
    _, header = next(lines, (0, []))
    if twice := [name for name, times in Counter(header).items() if times > 1]:
        trouble.note = f"duplicate columns, of which the last was read: {shorten_value(', '.join(twice))}"
    for line, cells in lines:
        trouble.rows += 1
        if len(cells) == len(header):
            yield line, dict(zip(header, cells, strict=True))
        else:
            trouble.add_broken_row(
                line, f"{format_count(len(cells), 'cell')} under {format_count(len(header), 'column')}"
            )


def _read_jsonl_rows(file: TextIO, trouble: FileProblems) -> Iterator[tuple[int, Row]]:
    for line, text in enumerate(file, 1):
        if text.isspace():
            continue
        trouble.rows += 1
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            trouble.add_broken_row(line, f"no JSON ({error})")
            continue
        if not isinstance(row, dict):
            trouble.add_broken_row(line, f"a JSON {type(row).__name__}, not an object")
        elif text.count("{") + text.count("[") > MOST_NESTED and _is_nested_deeper(row, MOST_NESTED):
            trouble.add_broken_row(line, f"more than {MOST_NESTED} nested lists or objects")
        else:
            yield line, row


def _is_nested_deeper(value: JSON, room: int) -> bool:
    """Whether there are more than `room` lists and objects in each other."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return False
    return room == 0 or any(_is_nested_deeper(item, room - 1) for item in value)


def _read_parquet_rows(path: Path, trouble: FileProblems) -> Iterator[tuple[int, Row]]:
    import duckdb  # 67 MB, an extra

    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        try:
            cursor = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
            names = [column[0] for column in cursor.description]
            while batch := cursor.fetchmany(10_000):
                for cells in batch:
                    trouble.rows += 1
                    yield trouble.rows, {k: _cell_as_json(v) for k, v in zip(names, cells, strict=True)}
        except duckdb.Error as error:
            trouble.ended = f"the file is damaged ({str(error).splitlines()[0]})"


def _cell_as_json(value: object) -> JSON:
    """The cell as JSON would hold it."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(k): _cell_as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_cell_as_json(v) for v in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
