"""Log lines that lie in tables, CSV packed or not and Parquet: a row is a line, a column one of its fields."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opsleuth.tools.sources.packed import is_packed, open_bytes, why_not
from opsleuth.tools.sources.tables import PARQUET_REMEDY, Row, Trouble, can_read_parquet, csv_rows, read_rows

_PARQUET, _CSV = ".parquet", ".csv"


def is_table(path: Path) -> bool:
    return path.suffix == _PARQUET or (path.with_suffix("") if is_packed(path) else path).suffix == _CSV


def why_unread(path: Path) -> str | None:
    """Why a file of this name cannot be read, with the remedy; None where it can."""
    if path.suffix == _PARQUET and not can_read_parquet():
        return PARQUET_REMEDY
    return why_not(path)


def rows_of(path: Path, trouble: Trouble) -> Iterator[tuple[str, Row]]:
    """Each row as a text of JSON and by the names of its columns, in lower case. Raises OSError, Damaged."""
    for _, row in _read(path, trouble):
        fields: dict[str, Any] = {name.strip().lower(): value for name, value in row.items()}
        yield json.dumps(fields, ensure_ascii=False, default=str), fields


def _read(path: Path, trouble: Trouble) -> Iterator[tuple[int, Row]]:
    if path.suffix == _PARQUET:
        yield from read_rows(path, trouble)
        return
    with open_bytes(path) as file, io.TextIOWrapper(file, "utf-8-sig", "replace", newline="") as text:
        yield from csv_rows(text, trouble)
