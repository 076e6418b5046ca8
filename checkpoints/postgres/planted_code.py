"""Refuse a schema with code that is not ours: triggers, rules, policies and functions run at our statements, with our rights.

What a migration of ours or of the queue made is known by its text. Columns, indexes, checks and the one view may call a few
functions of the server and no others.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from opsleuth.checkpoints import migrations
from opsleuth.checkpoints.postgres.connection import SCHEMA
from opsleuth.checkpoints.postgres.database import PostgresDatabase

_SCRIPTS = migrations.SCRIPTS / "postgres"
_CODE = _SCRIPTS / "planted_code.sql"
_EXPRESSIONS = ("default of", "check", "index", "view")
_CALLED = frozenset(
    ("nextval", "now", "coalesce", "statement_timestamp", "clock_timestamp", "check", "any", "array", "not", "and", "or", "in", "from", "when")
)  # fmt: skip
"""What an expression may have before a parenthesis, words of SQL included."""
_CALL = re.compile(r"([\w.\"]+)\s*\(")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_FUNCTION = re.compile(r"FUNCTION\s+(?:\w+\.)?(\w+)\s*\(.*?AS\s+(\$\w*\$)(.*?)\2", re.DOTALL | re.IGNORECASE)
_TRIGGER = re.compile(
    r"CREATE TRIGGER\s+(\w+)\s.*?\sON\s+(\w+)\s.*?EXECUTE\s+(?:FUNCTION|PROCEDURE)\s+(\w+)",
    re.DOTALL | re.IGNORECASE,
)
_QUEUE = "procrastinate"


def refuse_planted_code(database: PostgresDatabase) -> None:
    """Raises UnreadableStoreError for code in our schema that no migration made: it could approve a call or drop an effect."""
    rows = database.rows(_CODE.read_text("utf-8"), {"schema": SCHEMA})
    planted = [f"{kind} {name}" for kind, name, place, code in rows if not _is_ours(kind, name, place, code)]
    if planted:
        raise migrations.planted_code_error(f"the schema {SCHEMA} of {database.place}", planted)


def _is_ours(kind: str, name: str, place: str, code: str) -> bool:
    if kind in ("function", "trigger") and _is_of_absent_queue(name if kind == "function" else place):
        return True
    if kind == "function":
        return not place and (name, code) in _read_functions()
    if kind == "trigger":
        return (name, place, code) in _read_triggers()
    if kind == "view" and name != "seen_runs":
        return False
    return kind in _EXPRESSIONS and _CALLED.issuperset(_find_calls(code))


def _find_calls(expression: str) -> Iterator[str]:
    return (name.lower() for name in _CALL.findall(_LITERAL.sub("''", expression)))


def _is_of_absent_queue(name: str) -> bool:
    """Whether it is of the queue, which is not installed here: then no statement of this process touches it."""
    return name.startswith(f"{_QUEUE}_") and not _find_queue_scripts()


@cache
def _read_functions() -> frozenset[tuple[str, str]]:
    """The functions of our migrations and of the queue, as (name, body)."""
    return frozenset((name, body) for text in _read_scripts() for name, _, body in _FUNCTION.findall(text))


@cache
def _read_triggers() -> frozenset[tuple[str, str, str]]:
    """Their triggers, as (name, table, function)."""
    return frozenset(found for text in _read_scripts() for found in _TRIGGER.findall(text))


def _read_scripts() -> Iterator[str]:
    """The SQL of our migrations, and of the queue's where it is installed."""
    return (path.read_text("utf-8") for path in (*_SCRIPTS.glob("*.sql"), *_find_queue_scripts()))


@cache
def _find_queue_scripts() -> tuple[Path, ...]:
    """The scripts of the queue that is installed; found without importing it."""
    spec = find_spec(_QUEUE)
    folders = spec.submodule_search_locations if spec else None
    return tuple(sorted(Path(next(iter(folders)), "sql").rglob("*.sql"))) if folders else ()
