"""The server that an access log or an error log belongs to: both logs of one server are one service."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from opsleuth.tools.sources.compressed_files import (
    DamagedFileError,
    open_decompressed,
    why_not_decompressible,
)
from opsleuth.tools.sources.log_formats.compiled_formats import BY_NAME
from opsleuth.tools.sources.log_formats.encodings import decode_line
from opsleuth.tools.sources.log_formats.names import service_of_file

_KIND = r"(?P<kind>access|error|request)(?:[-_.]?log)?"
_BARE = re.compile(rf"(?:(?:ssl|other_vhosts|default|default[-_]ssl)[-_.])?{_KIND}(?:[-_.]ssl)?")
_AFTER_NAME = re.compile(rf"(?P<server>.+?)[-_.]{_KIND}")
_BEFORE_NAME = re.compile(r"(?P<kind>access|error)[-_.](?P<server>[a-zA-Z].*)")
_SERVERS = frozenset(
    [
        "nginx",
        "apache2",
        "apache",
        "httpd",
        "haproxy",
        "openresty",
        "tengine",
        "angie",
        "lighttpd",
        "caddy",
        "traefik",
        "envoy",
        "squid",
        "varnish",
        "litespeed",
    ]
)
"""Folders of `/var/log` that are called after the server that writes to them."""
_SERVER_OF_FORMAT = {"nginx-error": "nginx", "apache-error": "apache"}
_WEB_FORMATS = frozenset([*_SERVER_OF_FORMAT, "access", "haproxy", "envoy-access"])
_SAMPLED = 20
_MOST_FILES = 2000


def server_of_file(path: Path, formats: Iterable[str]) -> str:
    """`nginx` for `error.log` of nginx and the `access.log` beside it, `shop` for `shop-access.log` and `shop-error.log`.

    Empty for other files, and for an access log of which nothing tells the server. `formats` are those of the file's lines.
    """
    stem = service_of_file(path)
    if found := _BARE.fullmatch(stem):
        return _name_server_of_folder(path, found["kind"], formats)
    found = _AFTER_NAME.fullmatch(stem) or _BEFORE_NAME.fullmatch(stem)
    if found is None:
        return ""
    paired = not _WEB_FORMATS.isdisjoint(formats) or any(
        (other := _AFTER_NAME.fullmatch(name) or _BEFORE_NAME.fullmatch(name))
        and other["server"] == found["server"]
        and other["kind"] != found["kind"]
        for name, _ in _list_siblings(path)
    )
    return found["server"] if paired else ""


def _name_server_of_folder(path: Path, kind: str, formats: Iterable[str]) -> str:
    if path.parent.name.lower() in _SERVERS:
        return path.parent.name.lower()
    if kind == "error":
        return next((_SERVER_OF_FORMAT[name] for name in formats if name in _SERVER_OF_FORMAT), "")
    error_logs = (
        other
        for name, other in _list_siblings(path)
        if (found := _BARE.fullmatch(name)) and found["kind"] == "error"
    )
    return next(filter(None, map(_recognize_server, error_logs)), "")


def _list_siblings(path: Path) -> Iterator[tuple[str, Path]]:
    """The access and error logs in the folder of the file, each with what it is called without rotation."""
    for count, other in enumerate(sorted(path.parent.iterdir())):
        if count >= _MOST_FILES:
            return
        if other != path and not why_not_decompressible(other) and other.is_file():
            yield service_of_file(other), other


def _recognize_server(error_log: Path) -> str:
    """The server whose form of errors the file's first lines have; empty for another form, and for a file that cannot be read."""
    try:
        with open_decompressed(error_log) as file:
            lines = [decode_line(raw) for raw, _ in zip(file, range(_SAMPLED), strict=False)]
    except (OSError, EOFError, DamagedFileError):
        return ""
    return next(
        (
            server
            for name, server in _SERVER_OF_FORMAT.items()
            if any(BY_NAME[name].pattern.match(line) for line in lines)
        ),
        "",
    )
