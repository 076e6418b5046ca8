"""The facts of a metric series: its levels, its change point, what was usual, its points."""

from collections.abc import Iterator, Mapping
from typing import Any

from opsleuth.state.json_types import JSON
from opsleuth.verification.fact_details import Path, Record, is_number, make_detail, normalize_unit, read_span
from opsleuth.verification.facts import (
    Fact,
    FactDetail,
    Number,
    make_pointer,
    seconds_of_time,
)
from opsleuth.verification.units import unit_word_of_key


def read_series_levels(record: Record) -> Iterator[Fact]:
    unit, usual = read_series_unit(record), _baseline_level(record)
    for key in ("max", "last", "first", "min"):
        level = record.get(key)
        if isinstance(level, Mapping) and is_number(level.get("value")):
            yield make_series_fact(
                record, (key, "value"), f" {key}", unit, usual, level.get("time"), (key, "time")
            )
    for key in ("median", "mean", "p95"):
        if is_number(record.get(key)):
            yield make_series_fact(record, (key,), f" {key}", unit, usual, None, ())
    if isinstance(turn := record.get("change_point"), str) and seconds_of_time(turn) is not None:
        detail = FactDetail("change_point", turn, "", make_pointer(("change_point",)))
        about = str(record.get("service") or "")
        yield Fact(
            "", about, f"{record.get('metric')} change_point", turn, detail.path, at=turn, details=(detail,)
        )


def read_baseline_levels(record: Record) -> Iterator[Fact]:
    unit = read_series_unit(record)
    for key in ("baseline", "before_window"):
        levels = record.get(key)
        for name, value in levels.items() if isinstance(levels, Mapping) else ():
            if is_number(value):
                own = "" if name == "samples" else unit
                yield make_series_fact(record, (key, name), f" {name} ({key})", own, None, None, ())
    if is_number(record.get("samples")):
        yield make_series_fact(record, ("samples",), " samples", "", None, None, ())


def read_series_unit(record: Record) -> str:
    return normalize_unit(str(record.get("unit") or "")) or unit_word_of_key(str(record.get("metric") or ""))


def _baseline_level(record: Record) -> tuple[Number, Path] | None:
    for key in ("baseline", "before_window"):
        level = record.get(key)
        if isinstance(level, Mapping) and is_number(level.get("median")):
            return level["median"], (key, "median")
    return None


def make_series_fact(
    record: Record,
    path: Path,
    what: str,
    unit: str,
    usual: tuple[Number, Path] | None,
    time: JSON,
    time_path: Path,
) -> Fact:
    value: Any = record
    for part in path:
        value = value[part]
    details = [FactDetail("value", value, unit, make_pointer(path))]
    if usual:
        details.append(FactDetail("usual", usual[0], unit, make_pointer(usual[1])))
    if isinstance(time, str):
        details.append(FactDetail("time", time, "", make_pointer(time_path)))
    details += [make_detail(k, record[k], (k,)) for k in ("metric", "service", "instance") if isinstance(record.get(k), str)]  # fmt: skip
    return Fact(
        id="",
        subject=str(record.get("service") or ""),
        measure=f"{record.get('metric')}{what}",
        value=value,
        path=make_pointer(path),
        before=usual[0] if usual else None,
        before_path=make_pointer(usual[1]) if usual else "",
        unit=unit,
        at=time if isinstance(time, str) else None,
        span=read_span(record),
        details=tuple(details),
    )
