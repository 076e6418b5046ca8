"""Log lines in tables, CSV (also compressed) and Parquet: a row is a line, a column one of its fields."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opsleuth.tools.sources.compressed_files import (
    is_compressed,
    open_decompressed,
    why_not_decompressible,
)
from opsleuth.tools.sources.table_files import (
    PARQUET_REMEDY,
    FileProblems,
    Row,
    can_read_parquet,
    read_csv_rows,
    read_rows,
)

_PARQUET, _CSV = ".parquet", ".csv"


def is_log_table(path: Path) -> bool:
    return path.suffix == _PARQUET or (path.with_suffix("") if is_compressed(path) else path).suffix == _CSV


def why_unreadable(path: Path) -> str | None:
    """Why a file of this name cannot be read, with the remedy; None where it can."""
    if path.suffix == _PARQUET and not can_read_parquet():
        return PARQUET_REMEDY
    return why_not_decompressible(path)


def read_log_rows(path: Path, trouble: FileProblems) -> Iterator[tuple[str, Row]]:
    """Each row as JSON text and as a mapping by lower-case column names. Raises OSError, DamagedFileError."""
    for _, row in _read_numbered_rows(path, trouble):
        fields: dict[str, Any] = {name.strip().lower(): value for name, value in row.items()}
        yield json.dumps(fields, ensure_ascii=False, default=str), fields


def _read_numbered_rows(path: Path, trouble: FileProblems) -> Iterator[tuple[int, Row]]:
    if path.suffix == _PARQUET:
        yield from read_rows(path, trouble)
        return
    with open_decompressed(path) as file, io.TextIOWrapper(file, "utf-8-sig", "replace", newline="") as text:
        yield from read_csv_rows(text, trouble)
