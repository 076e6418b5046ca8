"""The commands about the database itself: `db migrate`, `db move`."""

from pathlib import Path

import click

from opsleuth.checkpoints.places import Place
from opsleuth.console.options import Command, Database, Group, given

PLACE = Database(dir_okay=False, path_type=Path)


@click.group("db", cls=Group)
def database() -> None:
    """The database that runs are kept in."""


@database.command(
    cls=Command, help="Bring the database up to date with this version; other commands that write do it too."
)
def migrate() -> int:
    from opsleuth.console import database

    return database.migrate(given())


@database.command(
    cls=Command,
    help="Store all runs of FROM in TO as well, such as those of a file on a PostgreSQL server. What was stored before "
    "an interruption is not stored again.",
)
@click.argument("source", metavar="FROM", type=PLACE)
@click.argument("target", metavar="TO", type=PLACE)
def move(source: Place, target: Place) -> int:
    from opsleuth.console import database

    return database.move(given(), source, target)


COMMANDS: tuple[click.Command, ...] = (database,)
