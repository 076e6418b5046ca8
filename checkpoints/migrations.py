"""The numbered migrations: one for each version of the tables, the same for every database.

They are written in the words of SQLite. What another database needs besides lies in a folder of its own, under the
same numbers.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from opsleuth.checkpoints.errors import UnreadableStoreError

SCHEMA_VERSION = 7
SCRIPTS = Path(__file__).parent / "sql"


def check_known(version: int, place: object) -> int:
    """The version of the tables at `place`. Raises UnreadableStoreError for one that only a newer opsleuth knows."""
    if version > SCHEMA_VERSION:
        raise UnreadableStoreError(
            f"database {place} has schema version {version}, this opsleuth knows up to {SCHEMA_VERSION}: "
            "use the newer opsleuth that wrote it; nothing was changed"
        )
    return version


def check_writable(version: int, place: object, *, read_only: bool) -> None:
    """Raises UnreadableStoreError where older tables would have to be brought up to date, and nothing may be written."""
    if read_only:
        raise UnreadableStoreError(
            f"database {place} has schema version {version}, older than {SCHEMA_VERSION}: "
            "`opsleuth db migrate` brings it up to date; nothing was changed"
        )


def foreign_database_error(place: object, choose: str) -> UnreadableStoreError:
    """The error of a place that holds the tables of another program; `choose` is what to take instead."""
    return UnreadableStoreError(
        f"{place} belongs to another program: choose {choose} with --db; nothing was changed"
    )


def planted_code_error(place: object, planted: Sequence[str]) -> UnreadableStoreError:
    """The error of a place with triggers or other code that no migration made."""
    return UnreadableStoreError(
        f"{place} has code that opsleuth did not make ({', '.join(planted)[:200]}): it can change what is stored, such as approvals and "
        "effects. Nothing was changed: find out who made it, then remove it with DROP (for example DROP TRIGGER)"
    )


def read_migrations(after: int, folder: Path | None = None) -> list[tuple[int, str]]:
    """Those after version `after`, in order, as (version, SQL); none where there is no such folder."""
    scripts = folder or SCRIPTS
    named = {
        p: re.match(r"(\d{4})_\w+\.sql$", p.name) for p in (scripts.iterdir() if scripts.is_dir() else ())
    }
    found = sorted((int(name[1]), path) for path, name in named.items() if name)
    return [(number, path.read_text("utf-8")) for number, path in found if number > after]
