"""The numbered migrations: one for each version of the tables, the same for every database.

They are written in the words of SQLite. What another database needs besides lies in a folder of its own, under the
same numbers.
"""

import re
from pathlib import Path

SCHEMA_VERSION = 3
SCRIPTS = Path(__file__).parent / "sql"


def scripts(after: int, folder: Path | None = None) -> list[tuple[int, str]]:
    """Those after version `after`, in order, as (version, SQL)."""
    named = {p: re.match(r"(\d{4})_\w+\.sql$", p.name) for p in (folder or SCRIPTS).iterdir()}
    found = sorted((int(name[1]), path) for path, name in named.items() if name)
    return [(number, path.read_text("utf-8")) for number, path in found if number > after]
