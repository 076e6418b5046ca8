"""A connection to MySQL or MariaDB on which the driver sets nothing."""

from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import DictCursor


class UnsetConnection(Connection):  # type: ignore[misc] # the driver has no types
    """The handshake names the character set; SET NAMES and SET AUTOCOMMIT, which the driver sends too, are left out.

    A proxy that shares connections may keep what is set on one for the next client.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - whatever the driver takes
        super().__init__(charset="utf8mb4", autocommit=None, cursorclass=DictCursor, **settings)

    def set_character_set(self, charset: str, collation: str | None = None) -> None:
        """Nothing: the driver calls this when it has connected."""
