"""The framework's checkpoints, through a connection of their own to the same file."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

# Read by the framework when it is imported: stored bytes may become plain values only, never classes by name.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

import aiosqlite
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from opsleuth.checkpoints.db import BUSY_TIMEOUT, plain_errors


@asynccontextmanager
async def open_saver(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    """A checkpoint saver over the database that the store has opened; its tables are made on first use.

    Raises the store's errors for a database that cannot be used when it is opened.
    """
    with plain_errors(path):
        connection = await aiosqlite.connect(path, timeout=BUSY_TIMEOUT)
    try:
        with plain_errors(path):
            await connection.execute("PRAGMA synchronous = FULL")
            saver = AsyncSqliteSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
            await saver.setup()
        yield saver
    finally:
        await connection.close()
