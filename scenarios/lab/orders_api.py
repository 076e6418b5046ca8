"""The orders API: lists and takes orders, with a small pool of database connections.

    python orders_api.py --folder RELEASE --port N --log FILE --version V

RELEASE holds `queries.toml` and `settings.toml`, which each release may change.
"""

import http.client
import queue
import random
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import psycopg

from opsleuth.scenarios.lab.serving import (
    JsonLog,
    LabHttpServer,
    LabRequestError,
    Query,
    RequestMeter,
    serve_until_killed,
)

PRODUCTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdersApiSettings:
    """What the file `settings.toml` says; times in seconds."""

    database: str
    pool_size: int
    pool_timeout: float
    payments_url: str
    payments_timeout: float


class ConnectionPool:
    """A fixed number of connections; whoever finds none waits for `timeout` seconds at most."""

    def __init__(self, settings: OrdersApiSettings) -> None:
        self.size, self._timeout, self._dsn = settings.pool_size, settings.pool_timeout, settings.database
        self._free: queue.LifoQueue[psycopg.Connection[Any] | None] = queue.LifoQueue()
        for _ in range(self.size):
            self._free.put(None)
        self.waiting = 0
        self._lock = threading.Lock()

    @property
    def in_use(self) -> int:
        return self.size - self._free.qsize()

    def take(self) -> "psycopg.Connection[Any]":
        """Raises Refused where none becomes free in time."""
        with self._counted():
            try:
                connection = self._free.get(timeout=self._timeout)
            except queue.Empty:
                raise LabRequestError(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    f"connection pool exhausted: none of {self.size} connections became free in {self._timeout:g} s",
                ) from None
        if connection is not None and not connection.closed:
            return connection
        try:
            return psycopg.connect(self._dsn, autocommit=True, application_name="orders-api")
        except psycopg.Error as error:
            self._free.put(None)
            raise LabRequestError(
                HTTPStatus.SERVICE_UNAVAILABLE, f"database connection failed: {error}"
            ) from None

    def give_back(self, connection: "psycopg.Connection[Any]") -> None:
        self._free.put(connection)

    @contextmanager
    def one(self) -> "Iterator[psycopg.Connection[Any]]":
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self.waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self.waiting -= 1


class OrdersRoutes:
    """The routes of the service."""

    def __init__(self, settings: OrdersApiSettings, queries: dict[str, str], log: JsonLog) -> None:
        self._settings, self._queries, self._log = settings, queries, log
        self.pool = ConnectionPool(settings)
        self._random = random.Random(11)

    def recent(self, query: Query) -> dict[str, Any]:
        with self.pool.one() as connection:
            rows = self._run(connection, "recent_orders", int(query["customer"]))
        return {"orders": [{"id": row[0], "total_cents": row[1]} for row in rows]}

    def place(self, query: Query) -> dict[str, Any]:
        product = self._random.randrange(PRODUCTS)
        with self.pool.one() as connection:
            self._run(connection, "reserve_stock", product)
        self._charge(query["customer"])
        with self.pool.one() as connection:
            [[order]] = self._run(connection, "insert_order", int(query["customer"]), product)
        return {"id": order}

    def export(self, query: Query) -> dict[str, Any]:
        """A page of orders for the accountants. It never gives its connection back."""
        connection = self.pool.take()
        rows = self._run(connection, "export_page", int(query["page"]) * 100)
        self._log("INFO", f"exported page {query['page']}: {len(rows)} orders")
        return {"orders": len(rows)}

    def _run(self, connection: "psycopg.Connection[Any]", name: str, *values: int) -> list[Any]:
        began = time.perf_counter()
        try:
            rows = connection.execute(self._queries[name], values).fetchall()
        except psycopg.Error as error:
            raise LabRequestError(HTTPStatus.INTERNAL_SERVER_ERROR, f"query {name} failed: {error}") from None
        seconds = time.perf_counter() - began
        if seconds > 0.25:
            self._log("WARNING", f"slow query {name}: {seconds * 1000:.0f} ms")
        return rows

    def _charge(self, order: str) -> None:
        url = urlsplit(self._settings.payments_url)
        connection = http.client.HTTPConnection(
            url.hostname or "", url.port, timeout=self._settings.payments_timeout
        )
        try:
            connection.request("POST", f"/charge?order={order}")
            answer = connection.getresponse()
            answer.read()
        except TimeoutError:
            limit = self._settings.payments_timeout
            raise LabRequestError(
                HTTPStatus.GATEWAY_TIMEOUT, f"call to payments timed out after {limit:g} s"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise LabRequestError(HTTPStatus.BAD_GATEWAY, f"call to payments failed: {error}") from None
        finally:
            connection.close()
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise LabRequestError(HTTPStatus.BAD_GATEWAY, f"payments answered {answer.status}")


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), required=True)
@click.option("--port", type=int, required=True)
@click.option("--log", "path", type=click.Path(path_type=Path), required=True)
@click.option("--version", required=True)
def main(folder: Path, port: int, path: Path, version: str) -> None:
    settings = OrdersApiSettings(**tomllib.loads((folder / "settings.toml").read_text()))
    queries = tomllib.loads((folder / "queries.toml").read_text())
    log, meter = JsonLog(path, "orders-api"), RequestMeter()
    orders = OrdersRoutes(settings, queries, log)
    meter.gauges |= {
        "db_pool_connections_in_use": lambda: orders.pool.in_use,
        "db_pool_connections_limit": lambda: orders.pool.size,
        "db_pool_waiting_requests": lambda: orders.pool.waiting,
    }
    routes = {"GET /orders": orders.recent, "POST /orders": orders.place, "GET /export": orders.export}
    log("INFO", f"orders-api {version} is up")
    serve_until_killed(LabHttpServer(port, routes, meter, log))


if __name__ == "__main__":
    main()
