"""A stored record as lines for people: names and values, rows as a table where they fit, and nothing left out."""

from collections.abc import Iterator, Mapping, Sequence

from opsleuth.console import terminal_text as texts
from opsleuth.state.json_types import JSON

_NARROWEST = 40
_MOST_COLUMNS = 8
_SHORT = 30
"""Characters of a text that stands beside others on one line."""


def render_record_lines(record: Mapping[str, JSON], width: int | None, encoding: str) -> list[str]:
    """The record as lines; those of a table are at most `width` cells wide, others may have to be wrapped."""
    return list(_list_fields(record, "", max(width or 120, _NARROWEST), encoding))


def _list_fields(record: Mapping[str, JSON], indent: str, width: int, encoding: str) -> Iterator[str]:
    for name, value in record.items():
        label = texts.clean_line(str(name).replace("_", " "), encoding)
        yield from _list_field(f"{indent}{label}:", value, indent, width, encoding)


def _list_field(head: str, value: JSON, indent: str, width: int, encoding: str) -> Iterator[str]:
    below = f"{indent}  "
    if value in ([], {}, ""):
        yield f"{head} none"
    elif isinstance(value, Mapping):
        if all(_is_short(item) for item in value.values()):
            pairs = [
                f"{texts.clean_line(str(k).replace('_', ' '), encoding)} {_format_scalar(v)}"
                for k, v in value.items()
            ]
            yield f"{head} {', '.join(pairs)}"
        else:
            yield head
            yield from _list_fields(value, below, width, encoding)
    elif isinstance(value, list):
        if all(_is_short(item) for item in value):
            yield f"{head} {', '.join(map(_format_scalar, value))}"
        else:
            yield head
            yield from _list_items(value, below, width, encoding)
    else:
        yield from _list_text(head, _format_scalar(value), below, encoding)


def _list_text(head: str, text: str, below: str, encoding: str) -> Iterator[str]:
    """A text of one line beside its name, one of several lines below it."""
    lines = texts.clean_lines(text, encoding)
    if len(lines) == 1:
        yield f"{head} {lines[0]}"
        return
    yield head
    yield from (f"{below}{line}" for line in lines)


def _list_items(items: Sequence[JSON], indent: str, width: int, encoding: str) -> Iterator[str]:
    if table := _lay_out_items(items, indent, width, encoding):
        yield from table
        return
    for item in items:
        if isinstance(item, Mapping) and item:
            first, *rest = _list_fields(item, f"{indent}  ", width, encoding)
            yield f"{indent}- {first.lstrip(' ')}"
            yield from rest
        elif isinstance(item, list):
            yield from _list_field(f"{indent}-", item, indent, width, encoding)
        else:
            yield from _list_text(f"{indent}-", _format_scalar(item), f"{indent}  ", encoding)


def _lay_out_items(items: Sequence[JSON], indent: str, width: int, encoding: str) -> list[str]:
    """Flat rows as a table under their names; empty where they are not flat, or would not fit."""
    rows = [item for item in items if isinstance(item, Mapping)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    flat = all(_is_scalar(value) for row in rows for value in row.values())
    if len(rows) != len(items) or len(rows) < 2 or not flat or len(names) > _MOST_COLUMNS:
        return []
    cells = [[str(name).replace("_", " ") for name in names]]
    cells += [[_format_scalar(row.get(name)) for name in names] for row in rows]
    cells = [[texts.clean_line(cell, encoding) for cell in row] for row in cells]
    sizes = [max(texts.measure_width(row[i]) for row in cells) for i in range(len(names))]
    if len(indent) + sum(sizes) + 2 * (len(names) - 1) > width:
        return []
    return [indent + "  ".join(map(texts.pad_to_width, row, sizes)).rstrip(" ") for row in cells]


def _is_scalar(value: JSON) -> bool:
    return not isinstance(value, Mapping | list)


def _is_short(value: JSON) -> bool:
    return _is_scalar(value) and not (
        isinstance(value, str) and (len(value) > _SHORT or len(value.splitlines()) > 1 or "," in value)
    )


def _format_scalar(value: JSON) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
