"""The store in one SQLite file: one machine, no server."""
