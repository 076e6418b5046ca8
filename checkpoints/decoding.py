"""Rows of a table as objects: every table decodes its rows in this one way."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from opsleuth.checkpoints.database import Row
from opsleuth.checkpoints.errors import UnreadableStoreError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
Decoders = Mapping[str, Callable[[Any], Any]]
"""How the value of a column becomes the value of a field, by name. What has no decoder is kept as it is stored."""


def decode_row(
    kind: type[T], row: Row | Mapping[str, Any], decoders: Decoders | None = None, *, name: str = ""
) -> T:
    """The object whose fields are the columns of the same names; a column that is missing leaves a field's default.

    NULL is never decoded. Raises UnreadableStoreError for a value that this version does not know; `name` says whose row it is.
    """
    stored = row.keys()
    values = {field: row[field] for field in _field_names(kind) if field in stored}
    try:
        for field, decode in (decoders or {}).items():
            if values.get(field) is not None:
                values[field] = decode(values[field])
        return kind(**values)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise UnreadableStoreError(
            f"{name or f'a row of {kind.__name__}'} cannot be read ({error}); nothing was changed"
        ) from error


def decode_fields(kind: type[T], row: Row, decoders: Decoders | None = None, **more: object) -> T:
    """The same for a row that keeps most fields as one JSON document in its column `fields`; `more` are the others."""
    try:
        document = dict(json.loads(row["fields"]))
    except (ValueError, TypeError) as error:
        raise UnreadableStoreError(
            f"a row of {kind.__name__} cannot be read ({error}); nothing was changed"
        ) from error
    return decode_row(kind, document | more, decoders)


@cache
def _field_names(kind: type["DataclassInstance"]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
