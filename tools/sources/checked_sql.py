"""A free SQL query that can only read what the lists allow: parsed, checked node by node, and rewritten.

What is sent is what was checked: the text of the tree, not the text that came in. Whatever the check does not know is
refused. The transaction that runs it can only read as well; the check keeps out what such a transaction still allows
(files, connections, locks, other people's rows).
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from opsleuth.state.nearest_name import find_nearest_names
from opsleuth.tools.sources import catalog_relations as known
from opsleuth.tools.spec import InvalidArgumentsError

if TYPE_CHECKING:
    from sqlglot import exp

REMEDY = "free SQL needs the extra 'sql': pip install 'opsleuth[sql]'"
LONGEST_SQL = 4_000
_MOST_NODES = 1_500
# Texts that are joined again and again grow without a bound.
_JOINING, _MOST_JOINED = frozenset({"DPipe", "Concat", "CTE"}), 20
_DECLARED_SECRETS = re.compile(r"[.]|conninfo|passw|passphrase|secret|key|command|license|krb|ldap")


@dataclass(frozen=True, slots=True)
class SqlRelations:
    """What may be read: `views` maps a name as it may be written to how it is sent; `tables` are the operator's own."""

    views: Mapping[str, str]

    @classmethod
    def of_postgres(cls, extension_schema: str | None, tables: Sequence[str]) -> "SqlRelations":
        """The catalog and statistics views, those of pg_stat_statements where it is there, and named user tables."""
        views = {name: f"pg_catalog.{name}" for name in known.CATALOG}
        views |= {f"pg_catalog.{name}": f"pg_catalog.{name}" for name in known.CATALOG}
        views |= {(full := f"information_schema.{name}"): full for name in known.INFORMATION_SCHEMA}
        if extension_schema is not None:
            for name in known.EXTENSIONS:
                views[name] = views[f"{extension_schema}.{name}"] = f"{extension_schema}.{name}"
        for table in tables:
            full = table if "." in table else f"public.{table}"
            views.setdefault(full, full)
            views.setdefault(full.partition(".")[2], full)
        return cls(views)


def can_check_sql() -> bool:
    """Whether the parser is installed."""
    return find_spec("sqlglot") is not None


def rewrite_checked_sql(text: str, relations: SqlRelations) -> str:
    """The query, checked and rewritten as one SELECT of PostgreSQL. Raises InvalidArgumentsError."""
    from sqlglot import exp

    root = _parse_one_statement(text)
    if not isinstance(root, exp.Select | exp.SetOperation):
        raise InvalidArgumentsError(
            f"only one SELECT is allowed, not {_name_statement(root)}: write a SELECT"
        )
    nodes = list(root.walk())
    if len(nodes) > _MOST_NODES:
        raise InvalidArgumentsError(
            f"the query has {len(nodes):,} parts, at most {_MOST_NODES:,}: write a shorter one"
        )
    joined = sum(type(node).__name__ in _JOINING for node in nodes)
    if joined > _MOST_JOINED:
        raise InvalidArgumentsError(
            f"the query puts texts together {joined} times, at most {_MOST_JOINED}: leave some out"
        )
    for node in nodes:
        _check_node(node)
    _check_common_tables(root)
    for table, hidden in _list_tables(root):
        _check_table(table, hidden, relations)
    return root.sql(dialect="postgres", comments=False)


def _parse_one_statement(text: str) -> "exp.Expr":
    if len(text) > LONGEST_SQL:
        raise InvalidArgumentsError(
            f"the query has {len(text):,} characters, at most {LONGEST_SQL:,}: write a shorter one"
        )
    if "\\" in text or any(ord(c) < 32 and c not in "\t\n\r" for c in text):
        raise InvalidArgumentsError(
            "backslashes and control characters are not allowed: write plain literals"
        )
    import sqlglot
    from sqlglot.errors import ErrorLevel, SqlglotError

    _silence_parser()
    try:
        parsed = sqlglot.parse(text, read="postgres", error_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError, ValueError) as error:
        said = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split())[:200]
        raise InvalidArgumentsError(f"this is not a query that PostgreSQL reads: {said}") from None
    found = [one for one in parsed if one is not None and type(one).__name__ != "Semicolon"]
    if len(found) != 1:
        raise InvalidArgumentsError(f"exactly one statement is allowed, not {len(found)}: write one SELECT")
    return found[0]


@cache
def _silence_parser() -> None:
    """The parser writes a warning to the screen for each statement that it does not know."""
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


def _name_statement(node: "exp.Expr") -> str:
    return str(node.this).upper()[:20] if type(node).__name__ == "Command" else type(node).__name__.upper()


def _check_node(node: "exp.Expr") -> None:
    """Refuse anything that is not in the lists: kinds of nodes, functions, types, settings. Names become what the server makes of them."""
    from sqlglot import exp

    if isinstance(node, exp.Identifier) and not node.args.get("quoted"):
        node.set("this", str(node.this).lower())
    elif isinstance(node, exp.DataType | exp.ObjectIdentifier):
        _check_type(node)
    elif isinstance(node, exp.Anonymous):
        _check_function(node)
    elif type(node).__name__ in known.NODES:
        if isinstance(node, exp.With) and node.args.get("recursive"):
            raise InvalidArgumentsError("WITH RECURSIVE is not allowed: write the steps out")
    elif isinstance(node, exp.Func):
        _check_function(node)
    else:
        raise InvalidArgumentsError(f"{_quote_part(node)} is not allowed in a query that only looks")


def _quote_part(node: "exp.Expr") -> str:
    return repr(node.sql(dialect="postgres", comments=False)[:80])


def _check_function(node: "exp.Expr") -> None:
    """By the name that is sent, which need not be the parser's own."""
    written = node.sql(dialect="postgres", comments=False).partition("(")[0].strip().lower()
    if written == "current_setting":
        _check_setting(node)
    elif written not in known.FUNCTIONS:
        near = _suggest_names(written, known.FUNCTIONS, ("count", "max", "date_trunc"))
        raise InvalidArgumentsError(
            f"the function {written[:60]} is not on the list of functions that only compute ({near})"
        )


def _suggest_names(name: str, valid: Iterable[str], examples: Sequence[str]) -> str:
    near = find_nearest_names(name, valid)
    return f"nearest: {', '.join(near)}" if near else f"such as {', '.join(examples)}"


def _check_setting(node: "exp.Expr") -> None:
    """One setting of the server by its plain name; those that may hold a secret, and an application's own, stay unread."""
    from sqlglot import exp

    asked = node.args.get("expressions") or []
    first = asked[0] if asked else None
    if len(asked) != 1 or not isinstance(first, exp.Literal) or not first.is_string:
        raise InvalidArgumentsError(
            "current_setting takes one literal name: current_setting('max_connections')"
        )
    if _DECLARED_SECRETS.search(str(first.this).lower()):
        raise InvalidArgumentsError(f"the setting {first.this!r} may hold a secret and is not read")


def _check_type(node: "exp.Expr") -> None:
    from sqlglot import exp

    if isinstance(node, exp.DataType) and isinstance(node.args.get("kind"), exp.Expr):
        node = node.args["kind"]
    name = node.sql(dialect="postgres").lower()
    plain = re.sub(r"\(\d+(?:, ?\d+)?\)", "", name).removesuffix("[]").strip()
    if not ({plain, plain.partition(" ")[0]} & known.TYPES):
        raise InvalidArgumentsError(
            f"the type {name[:60]} is not allowed: cast to text, or leave the cast out"
        )


def _check_common_tables(root: "exp.Expr") -> None:
    """WITH only at the top, so that each of its names has one meaning."""
    from sqlglot import exp

    for found in root.find_all(exp.With):
        if found.parent is not root:
            raise InvalidArgumentsError("WITH is allowed only at the beginning of the query: move it there")


def _list_tables(root: "exp.Expr") -> Iterator[tuple["exp.Table", set[str]]]:
    """Each table with the names of WITH that stand before it."""
    from sqlglot import exp

    head = root.args.get("with_")
    seen: set[str] = set()
    inside: set[int] = set()
    for part in head.expressions if head is not None else ():
        for table in part.find_all(exp.Table):
            inside.add(id(table))
            yield table, set(seen)
        seen.add(str(part.alias))
    for table in root.find_all(exp.Table):
        if id(table) not in inside:
            yield table, seen


def _check_table(table: "exp.Table", common: set[str], relations: SqlRelations) -> None:
    """Refuse a relation that is not on the list, and write one that is by its full name."""
    from sqlglot import exp

    if not isinstance(table.this, exp.Identifier):
        raise InvalidArgumentsError(f"{_quote_part(table)} is not a table: functions cannot stand in FROM")
    name = ".".join(str(part.this) for part in table.parts)
    if name in common:
        return
    dotted = any("." in str(part.this) for part in table.parts)
    full = None if dotted else relations.views.get(name)
    if full is None:
        near = _suggest_names(name, relations.views, ("pg_stat_activity", "pg_locks", "pg_stat_user_tables"))
        raise InvalidArgumentsError(
            f"{name} is not on the list of catalog and statistics views ({near}); "
            "the operator adds a table with query_tables"
        )
    schema, _, plain = full.partition(".")
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(plain)))
    table.set("this", exp.to_identifier(plain, quoted=True))
    table.set("db", exp.to_identifier(schema, quoted=True))
    table.set("catalog", None)
