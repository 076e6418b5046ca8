"""From a tool's record to the rows of its facts: one reader for each kind of record, one for detectors' findings.

A record that no reader knows (a declared tool, an MCP server) is read object by object.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from opsleuth.state.json_types import JSON
from opsleuth.verification.fact_details import (
    Path,
    Record,
    as_number,
    as_text,
    find_first_detail,
    is_number,
    list_rows,
    make_detail,
    normalize_unit,
    read_leaves,
    read_span,
    with_unit,
)
from opsleuth.verification.facts import (
    Fact,
    FactDetail,
    SearchScope,
    make_pointer,
    seconds_of_time,
)
from opsleuth.verification.series_facts import (
    make_series_fact,
    read_baseline_levels,
    read_series_levels,
    read_series_unit,
)
from opsleuth.verification.units import unit_word_of_key

RowReader = Callable[[Record, Mapping[str, Any]], Iterator[Fact]]


_SUBJECTS = ("service", "database", "object", "name", "instance", "host", "node", "pod", "target", "id")


_NOW, _USUAL = ("incident", "now", "ms a call", "value", "result"), ("usual", "baseline", "before")


_TEXTS = ("pattern", "message", "summary", "statement", "reason", "text", "state", "status")


_TIMES = ("onset", "time", "at", "first", "first_time", "captured_at")


GAPS = ("incomplete", "not_read", "not_shown", "without_time", "sampling", "cut", "skipped", "truncated")


_NOT_TALLIED = ("window", "limit", "matched", "scanned", "depth")


_MOST_DEPTH = 6


class _RowShape(NamedTuple):
    """How the rows of one list are read: which keys name the subject, which measure is the main one, and its usual value."""

    list_key: str
    subject: tuple[str, ...]
    main: tuple[str, ...]
    usual: tuple[str, ...] = ()
    measure: str = ""


_SHAPES: dict[str, tuple[_RowShape, ...]] = {
    "changes_list": (_RowShape("changes", ("service",), ("summary",), measure="change"),),
    "events_list": (_RowShape("events", ("object",), ("message", "reason"), measure="event"),),
    "logs_search": (_RowShape("lines", ("service",), ("message",), measure="log_line"),),
    "logs_patterns": tuple(
        _RowShape(key, ("service",), ("now",), ("usual",), "lines_matching")
        for key in ("failing", "new", "gone", "frequent")
    ),
    "traces_compare": (
        _RowShape("operations", ("service", "operation"), ("own_ms_now",), ("own_ms_usual",), "own_time"),
        _RowShape(
            "between_services",
            ("caller", "callee"),
            ("network_ms_now",),
            ("network_ms_usual",),
            "network_time",
        ),
        _RowShape("services", ("service",), ("calls_now",), ("calls_usual",), "calls"),
        _RowShape("calls_between", ("caller", "callee"), ("calls_now",), ("calls_usual",), "calls"),
    ),
    "objects_get": (
        _RowShape("objects", ("kind", "name"), ("ready", "state", "name")),
        _RowShape("others", ("kind", "name"), ("ready", "state", "name")),
    ),
    "database_statements": (_RowShape("statements", ("database",), ("load", "mean_ms", "calls")),),
    "topology": (),
}


_SEARCHED_ROWS = {"changes_list": "changes", "events_list": "events", "objects_get": "objects",
                  "database_statements": "statements", "logs_search": "lines_matching",
                  "metrics_anomalies": "anomalies", "logs_patterns": "patterns", "traces_compare": "operations"}  # fmt: skip


def read_rows(tool: str, record: Record, asked: Mapping[str, Any]) -> Iterator[Fact]:
    """The rows of a record as facts without ids, strongest first; one of another form is read object by object."""
    known = _read_with_reader(tool, record, asked)
    first = next(known, None)
    if first is None:
        yield from read_any_object(record, (), "")
        return
    yield first
    yield from known


def _read_with_reader(tool: str, record: Record, asked: Mapping[str, Any]) -> Iterator[Fact]:
    if tool == "metrics_query":
        yield from _read_series(record)
    elif tool == "calculate":
        yield from _read_calculation(record)
    elif tool in _SEARCHED_ROWS or tool in _SHAPES or tool == "rank_suspects":
        yield from _read_known_record(tool, record, asked)


def _read_known_record(tool: str, record: Record, asked: Mapping[str, Any]) -> Iterator[Fact]:
    scope = read_search_scope(tool, record)
    if scope and scope.matched == 0:
        yield _search_fact(tool, record, scope, asked)
    yield from _read_findings(record)
    if scope and scope.matched:
        yield _search_fact(tool, record, scope, asked)
    for shape in _SHAPES.get(tool, ()):
        yield from _read_list(record, shape)
    yield from _read_suspects(record)
    yield from _read_neighbours(record)
    yield from _read_edges(record)
    yield from _read_tallies(record)
    if tool == "rank_suspects":
        yield from _read_weighed_rows(record)


def read_listed_row(tool: str, list_key: str, row: Record, path: Path) -> Iterator[Fact]:
    """A row of the list that a tool keeps under this key, as that tool's rows are read; else as any object."""
    shape = next((s for s in _SHAPES.get(tool, ()) if s.list_key == list_key), None)
    return read_row(row, path, shape) if shape else read_any_object(row, path, "")


def _read_weighed_rows(record: Record) -> Iterator[Fact]:
    """What a ranking says beside its suspects: what else moved, the changes that it graded, what began too late.

    They come last: a stored conclusion names the facts before them by number.
    """
    for i, finding in list_rows(record.get("also_moved")):
        yield from read_finding(finding, ("also_moved", i))
    yield from _read_list(record, _RowShape("graded_changes", ("service",), ("summary",), measure="change"))
    for key in ("later", "earlier"):
        for i, finding in list_rows(record.get(key)):
            yield from read_finding(finding, (key, i))


def _read_list(record: Record, shape: _RowShape) -> Iterator[Fact]:
    for i, row in list_rows(record.get(shape.list_key)):
        yield from read_row(row, (shape.list_key, i), shape, span=read_span(record))


def _read_findings(record: Record) -> Iterator[Fact]:
    """The adapter of detectors' findings: those of the record itself, then those of its suspects, then what is as usual."""
    for path, finding in _list_findings(record):
        yield from read_finding(finding, path)


def _list_findings(record: Record) -> Iterator[tuple[Path, Record]]:
    for key in ("findings", "as_usual"):
        for i, finding in list_rows(record.get(key)):
            yield (key, i), finding
    for i, suspect in list_rows(record.get("suspects")):
        for j, finding in list_rows(suspect.get("findings")):
            yield ("suspects", i, "findings", j), finding


def _is_finding(row: Record) -> bool:
    """Whether a row is what a detector found, with a sentence of its own."""
    said = row.get("text")
    marked = any(isinstance(row.get(key), str) for key in ("detector", "direction"))
    return marked and isinstance(said, str) and " " in said.strip()


def read_finding(finding: Record, path: Path) -> Iterator[Fact]:
    """A detector's finding as a fact: its figures, its onset, its metric, and its own sentence."""
    figures = finding.get("figures") if isinstance(finding.get("figures"), Mapping) else {}
    unit = str(figures.get("unit") or "") if figures else ""
    details = list(read_leaves(finding, path, skip=("detector", "signal", "size", "unit", "text")))
    at_figures = {d.path: d for d in details}
    main = find_first_detail(at_figures, (*path, "figures"), (*_NOW, "lines", "occurrences", "restarts", "ready", "high", "excess"))  # fmt: skip
    usual = find_first_detail(at_figures, (*path, "figures"), _USUAL)
    unit = normalize_unit(unit)
    details = [d if d not in (main, usual) else with_unit(d, unit) for d in details]
    words = find_first_detail(at_figures, (*path, "figures"), ("message", "summary", "failure", "statement"))
    text = (
        FactDetail("text", said, "", make_pointer((*path, "text")))
        if (said := finding.get("text")) and isinstance(said, str)
        else None
    )
    value = main or words or text
    if value is None:
        return
    yield Fact(
        id="",
        subject=str(finding.get("service") or ""),
        measure=_measure_of_finding(finding, main),
        value=value.value,
        path=value.path,
        before=as_number(usual.value) if usual and main else None,
        before_path=usual.path if usual and main else "",
        unit=unit if main else "",
        at=as_text(finding.get("onset")),
        direction=str(finding.get("direction") or ""),
        text=str(text.value) if text else "",
        details=(*details, text) if text else tuple(details),
    )


def _measure_of_finding(finding: Record, main: FactDetail | None) -> str:
    detector = str(finding.get("detector") or "")
    if detector == "harm.failures":
        return "failed_share"
    if detector == "harm.waiting":
        return "time_a_request"
    if (main is not None and main.name in ("lines", "excess")) or "failure" in (finding.get("figures") or {}):
        return "lines_matching"
    if detector == "changes":
        return "change"
    kind = finding.get("kind")
    return str(finding.get("metric") or (kind if kind != "other" else "state"))


def _read_suspects(record: Record) -> Iterator[Fact]:
    for i, suspect in list_rows(record.get("suspects")):
        shape = _RowShape("suspects", ("service",), ("score",), measure="suspect_score")
        plain = {k: v for k, v in suspect.items() if k != "findings"}
        yield from read_row(plain, ("suspects", i), shape)


def _read_neighbours(record: Record) -> Iterator[Fact]:
    """Who calls whom, from the record of one service's neighbours."""
    service = record.get("service")
    for key in ("calls", "called_by"):
        for i, row in list_rows(record.get(key)):
            if isinstance(service, str) and isinstance(row.get("service"), str):
                path, details = make_pointer((key, i, "service")), tuple(read_leaves(row, (key, i)))
                yield Fact("", service, key, row["service"], path, details=details)


def _read_edges(record: Record) -> Iterator[Fact]:
    for key in ("propagation", "caller_callee"):
        pairs = record.get(key)
        for i, pair in enumerate(pairs if isinstance(pairs, list | tuple) else ()):
            if isinstance(pair, list | tuple) and len(pair) == 2:
                a, b = (str(name) for name in pair)
                details = (FactDetail("from", a, "", make_pointer((key, i, 0))), FactDetail("to", b, "", make_pointer((key, i, 1))))  # fmt: skip
                measure = "passes_to" if key == "propagation" else "calls"
                yield Fact("", a, measure, b, make_pointer((key, i, 1)), details=details)


def _read_tallies(record: Record) -> Iterator[Fact]:
    """What the record itself counts beside its rows, and the notes that it adds."""
    plain = {k: v for k, v in record.items() if not isinstance(v, list | tuple) and k not in _NOT_TALLIED}
    for key, value in plain.items():
        if isinstance(value, Mapping):
            yield from _tally_facts(key, value)
        elif is_number(value):
            yield Fact("", str(record.get("service") or record.get("database") or ""), key, value, make_pointer((key,)),
                       unit=unit_word_of_key(key), details=(make_detail(key, value, (key,)),))  # fmt: skip
    for i, note in enumerate(record.get("notes") or ()):
        if isinstance(note, str):
            yield Fact("", "", "note", note, make_pointer(("notes", i)), text=note,
                       details=(FactDetail("note", note, "", make_pointer(("notes", i))),))  # fmt: skip


def _tally_facts(key: str, tally: Record) -> Iterator[Fact]:
    for name, value in tally.items():
        if is_number(value):
            detail = FactDetail(key, value, "", make_pointer((key, name)))
            called = FactDetail("name", str(name), "", "")
            yield Fact("", "", f"{key} {name}", value, detail.path, details=(detail, called))


def _read_series(record: Record) -> Iterator[Fact]:
    """A series: its greatest, last, first and least value and its middle, each beside what was usual; then its points."""
    if instances := list_rows(record.get("instances")):
        shape = _RowShape(
            "instances", ("instance",), ("max.value", "median"), measure=str(record.get("metric"))
        )
        for i, row in instances:
            yield from read_row(row, ("instances", i), shape, unit=read_series_unit(record))
        return
    yield from read_series_levels(record)
    yield from read_baseline_levels(record)
    unit = read_series_unit(record)
    for i, row in list_rows(record.get("points")):
        if is_number(row.get("value")):
            path: Path = ("points", i, "value")
            yield make_series_fact(record, path, "", unit, None, row.get("time"), ("points", i, "time"))


def _read_calculation(record: Record) -> Iterator[Fact]:
    if not is_number(record.get("result")):
        return
    details = tuple(read_leaves(record, ()))
    of = " ".join(str(d.value) for d in details if d.name.endswith("reference"))
    yield Fact("", of, str(record.get("operation") or "result"), record["result"], make_pointer(("result",)),
               unit=str(record.get("unit") or ""), details=tuple(with_unit(d, str(record.get("unit") or "")) if d.name == "result" else d for d in details))  # fmt: skip


def read_any_object(value: JSON, path: Path, subject: str) -> Iterator[Fact]:
    """Each object that has scalars as one row; nested ones follow it, under the outer one's name."""
    if len(path) > _MOST_DEPTH:
        return
    if isinstance(value, Mapping):
        yield from _read_mapping(value, path, subject)
    elif isinstance(value, list | tuple):
        for i, child in enumerate(value):
            if isinstance(child, Mapping | list | tuple):
                yield from read_any_object(child, (*path, i), subject)
            elif isinstance(child, str) and child:
                key = str(path[-1]) if path else "text"
                yield Fact("", subject, key, child, make_pointer((*path, i)), details=(FactDetail(key, child, "", make_pointer((*path, i))),))  # fmt: skip


def _read_mapping(value: Record, path: Path, subject: str) -> Iterator[Fact]:
    if _is_finding(value):
        yield from read_finding(value, path)
        return
    scalars = {k: v for k, v in value.items() if isinstance(v, str | int | float) and not isinstance(v, bool)}
    name = next((str(value[k]) for k in _SUBJECTS if isinstance(value.get(k), str)), subject)
    if scalars:
        numbers = tuple(k for k, v in scalars.items() if is_number(v))
        yield from read_row(
            scalars, path, _RowShape("", (), (*_NOW, *numbers, *_TEXTS, *scalars), _USUAL), subject=name
        )
    for key, child in value.items():
        if isinstance(child, Mapping | list | tuple):
            yield from read_any_object(child, (*path, str(key)), name or str(key))


def read_row(
    row: Record,
    path: Path,
    shape: _RowShape,
    *,
    subject: str = "",
    unit: str = "",
    span: tuple[str, str] | None = None,
) -> Iterator[Fact]:
    """One object of a list as a fact, after its shape."""
    details = list(read_leaves(row, path))
    by_path = {d.path: d for d in details}
    main = find_first_detail(by_path, path, shape.main) or (details[0] if details else None)
    if main is None:
        return
    usual = find_first_detail(by_path, path, shape.usual)
    names = [str(row[key]) for key in shape.subject if isinstance(row.get(key), str)]
    if unit:
        details = [with_unit(d, unit) if not d.unit and d.name.split(".")[-1] in ("value", "median", "mean") else d for d in details]  # fmt: skip
    at = next((row[key] for key in _TIMES if seconds_of_time(row.get(key)) is not None), None)
    number = is_number(main.value)
    yield Fact(
        id="",
        subject=(" → " if shape.subject == ("caller", "callee") else " ").join(names) or subject,
        measure=shape.measure or main.name,
        value=main.value,
        path=main.path,
        before=as_number(usual.value) if usual and number else None,
        before_path=usual.path if usual and number else "",
        unit=(main.unit or unit) if number else "",
        at=at,
        span=span,
        details=tuple(details),
    )


def read_search_scope(tool: str, record: Record) -> SearchScope | None:
    """What the call went through, where its record counts it."""
    rows = next((record[k] for k in ("scanned", "scanned_series", "lines_now", "operations_compared") if is_number(record.get(k))), None)  # fmt: skip
    matched = next((record[k] for k in ("matched", "patterns", "operations_compared") if is_number(record.get(k))), None)  # fmt: skip
    if rows is None or matched is None:
        return None
    gaps = tuple(f"{key}: {record[key]}"[:200] for key in GAPS if record.get(key))
    if matched == 0 and rows == 0:
        gaps = (*gaps, "nothing was there to search")
    criteria = tuple(
        (key, str(record[key]))
        for key in (
            "service",
            "database",
            "text",
            "contains",
            "level",
            "about",
            "type",
            "kind",
            "name",
            "namespace",
        )
        if isinstance(record.get(key), str) and record[key]
    )
    return SearchScope(tool, criteria, read_span(record), int(rows), int(matched), not gaps, gaps)


def _search_fact(tool: str, record: Record, scope: SearchScope, asked: Mapping[str, Any]) -> Fact:
    key = next(k for k in ("matched", "patterns", "operations_compared") if is_number(record.get(k)))
    subject = next(
        (v for k, v in scope.criteria if k in ("service", "database", "about", "name", "kind")), ""
    )
    first = as_text(record.get("first"))
    details = list(
        read_leaves({k: v for k, v in record.items() if not isinstance(v, list | tuple | Mapping)}, ())
    )
    details += [FactDetail(k, str(v), "", "") for k, v in asked.items() if isinstance(v, str) and v]
    return Fact(
        id="",
        subject=subject,
        measure=_SEARCHED_ROWS.get(tool, "rows_matching"),
        value=record[key],
        path=make_pointer((key,)),
        at=first,
        span=scope.span,
        searched=scope,
        details=tuple(details),
    )
