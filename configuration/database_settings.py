"""Settings of the database sources: PostgreSQL, Redis, MySQL and MariaDB."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from opsleuth.configuration.secret_references import Secret
from opsleuth.configuration.source_settings import Before, CommonSettings, Seconds
from opsleuth.state.base import Name

TableName = Annotated[
    str, StringConstraints(pattern=r"^[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)?$", max_length=130)
]


class DatabaseSettings(CommonSettings):
    """What the settings of every database have. `name` is what the service is called (default: the source's name)."""

    name: Name | None = None


class PostgresSettings(DatabaseSettings):
    """A PostgreSQL database.

    `dsn` holds no password; one that does (DATABASE_URL) is a secret itself: `dsn = { env = "DATABASE_URL" }`.

    `history` is a SELECT of your own over stored snapshots, between the named times `%(start)s` and `%(end)s`,
    with the columns captured_at, statement, calls and total_ms or mean_ms, and calls_per_sec, rows, waits where
    it has them. `sample` in seconds is how long live statements are watched.

    `query_tables` names tables of users (`schema.table`) that free SQL may read besides the catalog and statistics
    views; whoever plans then sees their rows.
    """

    kind: Literal["postgres"] = "postgres"
    dsn: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] | Secret
    password: Secret | None = None
    history: Annotated[str, StringConstraints(max_length=4_000)] | None = None
    sample: Annotated[float, Field(ge=0.2, le=5)] = 2.0
    connect_seconds: Annotated[int, Field(ge=1, le=30)] = 3
    statement_seconds: Annotated[float, Field(ge=0.1, le=30)] = 4.0
    max_statements: Annotated[int, Field(ge=1, le=5_000)] = 200
    before: Before = 3_600.0
    query_tables: Annotated[tuple[TableName, ...], Field(max_length=100)] = ()

    @model_validator(mode="after")
    def _no_password(self) -> "PostgresSettings":
        if isinstance(self.dsn, Secret):
            return self
        if "password=" in self.dsn.replace(" ", "").lower() or _has_userinfo_password(self.dsn):
            raise ValueError("the dsn holds a password: name its place with `password = { env = … }`")
        return self


def _has_userinfo_password(dsn: str) -> bool:
    return "://" in dsn and "@" in dsn and ":" in dsn.partition("://")[2].rpartition("@")[0]


class RedisSettings(DatabaseSettings):
    """A Redis or Valkey server.

    `url` (redis:// or rediss://) holds no password; one that does is a secret itself. `sample` in seconds is how long
    commands are watched.
    """

    kind: Literal["redis"] = "redis"
    url: Annotated[str, StringConstraints(pattern=r"^rediss?://[^\s@]+$", max_length=2_000)] | Secret
    user: Name | None = None
    password: Secret | None = None
    ca_file: Name | None = None
    sample: Annotated[float, Field(ge=0.2, le=5)] = 1.0
    timeout: Seconds = 4.0


class MySqlSettings(DatabaseSettings):
    """A MySQL or MariaDB server.

    The account needs PROCESS, and SELECT on performance_schema and mysql.slow_log. `sample` in seconds is how long
    statements are watched.
    """

    kind: Literal["mysql", "mariadb"] = "mysql"
    host: Name = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65_535)] = 3306
    socket: Name | None = None
    user: Name
    password: Secret | None = None
    ca_file: Name | None = None
    sample: Annotated[float, Field(ge=0.2, le=5)] = 2.0
    connect_seconds: Annotated[int, Field(ge=1, le=30)] = 3
    statement_seconds: Annotated[float, Field(ge=0.5, le=30)] = 5.0
    max_statements: Annotated[int, Field(ge=1, le=5_000)] = 200
