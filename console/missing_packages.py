"""How to add an extra to this very installation: pipx, uv, a clone, or pip."""

import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

EXTRA_BY_PACKAGE = {
    "fastapi": "server",
    "starlette": "server",
    "uvicorn": "server",
    "procrastinate": "server",
    "psycopg_pool": "server",
    "psycopg": "postgres",
    "pymysql": "mysql",
    "redis": "redis",
    "mcp": "mcp",
    "opentelemetry": "otel",
    "duckdb": "parquet",
    "keyring": "keyring",
    "socksio": "socks",
}
"""The extra that brings each package which the program imports only where it is used."""


def explain_missing_package(name: str) -> str | None:
    """What is missing and the line that installs it; None for a package that no extra brings."""
    package = name.partition(".")[0]
    extra = EXTRA_BY_PACKAGE.get(package)
    if extra is None:
        return None
    return f"this needs the extra {extra!r}, which is not installed ({package} is missing): {describe_install(extra)}"


def describe_install(extra: str, prefix: str = sys.prefix, folder: str | None = None) -> str:
    """The command that adds `extra`. `prefix` is that of the interpreter, `folder` the clone that it was installed from."""
    wanted = f"opsleuth[{extra}]"
    folder = folder if folder is not None else _find_clone_folder()
    source = f"{folder}[{extra}]" if folder else wanted
    parts = Path(prefix).parts
    if "pipx" in parts:
        return f"pipx install --force '{source}'"
    if "uv" in parts and "tools" in parts:
        return f"uv tool install --force '{source}'"
    editable = "-e " if folder else ""
    return f"{_shorten_interpreter(prefix)} -m pip install {editable}'{source}'"


def _shorten_interpreter(prefix: str) -> str:
    python = Path(prefix) / "bin" / "python"
    return str(python) if python.exists() else "python3"


def _find_clone_folder() -> str:
    """The folder of the clone that this program was installed from; empty for one from an index."""
    try:
        found: Distribution = distribution("opsleuth")
        origin = json.loads(found.read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    url = urlsplit(str(origin.get("url") or ""))
    return unquote(url.path) if url.scheme == "file" else ""
