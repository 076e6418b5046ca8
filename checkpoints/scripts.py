"""The numbered migrations in a folder."""

import re
from pathlib import Path


def scripts_of(folder: Path, after: int) -> list[tuple[int, str]]:
    """Those after version `after`, in order, as (version, SQL)."""
    found = [(int(p.name[:4]), p) for p in folder.iterdir() if re.match(r"\d{4}_\w+\.sql$", p.name)]
    return [(number, path.read_text("utf-8")) for number, path in sorted(found) if number > after]
