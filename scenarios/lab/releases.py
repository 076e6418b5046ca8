"""The orders API's repository: tagged releases, what each changed, and the one that is checked out to run."""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from opsleuth.scenarios.lab import orders_api

SERVICE = "orders-api"
_QUERIES = '''\
# What the orders API asks its database.

# Each with the time of the one before it: a few look-ups by the index, and as many scans of the table without it.
recent_orders = """
SELECT id, total_cents, created_at, (
    SELECT max(earlier.created_at) FROM orders AS earlier
    WHERE earlier.customer_id = orders.customer_id AND earlier.created_at < orders.created_at) AS before
FROM orders
WHERE customer_id = %s
ORDER BY created_at DESC LIMIT 5
"""

reserve_stock = """
UPDATE stock SET reserved = reserved + 1 WHERE product_id = %s RETURNING reserved
"""

insert_order = """
INSERT INTO orders (customer_id, product_id, total_cents) VALUES (%s, %s, 1990) RETURNING id
"""

export_page = """
SELECT id, total_cents FROM orders WHERE id > %s ORDER BY id LIMIT 100
"""
'''
_SETTINGS = """\
database = "{database}"
pool_size = 12
pool_timeout = 1.0
payments_url = "{payments}"
payments_timeout = 2.0
"""
WORSE_QUERY = ("WHERE customer_id = %s\n", "WHERE lower(customer_id::text) = lower(%s::text)\n")
BAD_SETTING = ("payments_timeout = 2.0", "payments_timeout = 0.002")
Edit = tuple[str, str]


class ReleaseRepository:
    """A git repository in `folder`, and checked-out releases beside it in `running`."""

    def __init__(self, folder: Path, running: Path) -> None:
        self._folder, self._running = folder, running

    def create(self, database: str, payments: str) -> str:
        """The repository with its first two releases, days old; the version of the newer one."""
        self._folder.mkdir()
        self._running.mkdir()
        self._git("init", "--quiet", "--initial-branch=main")
        files = {
            "queries.toml": _QUERIES,
            "settings.toml": _SETTINGS.format(database=database, payments=payments),
            "orders_api.py": Path(orders_api.__file__).read_text(encoding="utf-8"),
        }
        for name, text in files.items():
            (self._folder / name).write_text(text, encoding="utf-8")
        day = 86_400.0
        self._commit("Take orders and list them", "2.13.0", time.time() - 9 * day)
        (self._folder / "CHANGES.md").write_text("2.13.1: nothing that customers see\n", encoding="utf-8")
        self._commit("Keep a list of changes", "2.13.1", time.time() - 5 * day)
        return "2.13.1"

    def release(self, version: str, subject: str, file: str, edit: Edit, kind: str = "deploy") -> None:
        """Commit the edit and tag it as a release, now; what is released is the version before with this edit."""
        path = self._folder / file
        old, new = edit
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        self._commit(subject, version, time.time(), kind)

    def take_back(self, version: str) -> None:
        """Make the files of `version` those of the branch again: a commit that says so."""
        self._git("checkout", "--quiet", f"{SERVICE}-v{version}", "--", ".")
        self._commit(f"Roll back to {version}", None, time.time(), "rollback", version)

    def check_out(self, version: str) -> Path:
        """A folder with the files of the release, made once."""
        place = self._running / version
        if not place.exists():
            self._git("clone", "--quiet", "--branch", f"{SERVICE}-v{version}", str(self._folder), str(place))
            shutil.rmtree(place / ".git")
        return place

    def _commit(
        self, subject: str, tag: str | None, when: float, kind: str = "deploy", version: str | None = None
    ) -> None:
        message = f"{subject}\n\nService: {SERVICE}\nKind: {kind}\nVersion: {tag or version}\n"
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", message, when=when)
        if tag:
            self._git("tag", "--annotate", f"{SERVICE}-v{tag}", "--message", subject, when=when)

    def _git(self, *arguments: str, when: float | None = None) -> None:
        subprocess.run(  # fixed arguments
            ["git", "-C", str(self._folder), "-c", "advice.detachedHead=false", *arguments],
            check=True,
            capture_output=True,
            env=_git_environment(when),
        )


def _git_environment(when: float | None) -> Mapping[str, str]:
    """An author of the lab's own, and nothing of what this machine's user configured."""
    people = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
              for what, value in (("NAME", "shop team"), ("EMAIL", "shop@localhost"))}  # fmt: skip
    dates = (
        {"GIT_AUTHOR_DATE": f"@{when:.0f} +0000", "GIT_COMMITTER_DATE": f"@{when:.0f} +0000"} if when else {}
    )
    return {
        "PATH": os.environ.get("PATH", ""),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        **people,
        **dates,
    }
