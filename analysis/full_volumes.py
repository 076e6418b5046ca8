"""Where storage is full, as log lines name it: a folder, a device, a volume."""

import re
from collections import Counter
from collections.abc import Iterable
from os.path import commonpath
from pathlib import PurePosixPath

_SOURCE_FILES = re.compile(r"\.(?:py|java|kt|scala|go|js|ts|rb|php|cs|c|cc|cpp|rs|ex|swift|so|jar)$")
_PATH = re.compile(r"(?<![\w/.:@-])/(?:[\w.@+=-]+/)*[\w.@+=-]+")
_WINDOWS_PATH = re.compile(r"(?<!\w)[A-Z]:\\(?:[^\s\\:*?\"'<>|]+\\)*")
_RELATION = re.compile(r"could not (?:extend|write to|write|create|open) file \"(?P<file>[\w./-]+)\"")
_VOLUME = re.compile(
    r"\b(?:volume|filesystem|file system|mount ?point|mount|device|partition|pvc|persistentvolumeclaim|tablespace|disk)s?"
    r"(?: (?:on|of|at))?[ =:]+[\"'`]?(?P<name>[\w./-]*[\w/])[\"'`]?",
    re.IGNORECASE,
)
_NO_NAMES = frozenset(
    ["is", "was", "has", "full", "usage", "space", "quota", "error", "for", "in", "to", "and", "left", "on", "at", "of", "with", "limit", "the", "running", "out", "failure", "low", "pressure", "exceeded", "write", "writes"]
)  # fmt: skip
_LINES = 4
_MOST_NAMED = 3


def find_full_volume(message: str) -> str:
    """The folder, device or volume that the line is about; empty where it names none."""
    for text in message.splitlines()[:_LINES]:
        for path in _PATH.findall(text):
            if not _SOURCE_FILES.search(path) and "/" in path[1:]:
                return path if path.startswith("/dev/") else str(PurePosixPath(path).parent)
        if found := _WINDOWS_PATH.search(text):
            return found.group().rstrip("\\") if len(found.group()) > 3 else found.group()
        if found := _RELATION.search(text):
            return str(PurePosixPath(found["file"]).parent)
        if (found := _VOLUME.search(text)) and found["name"].lower() not in _NO_NAMES:
            return found["name"]
    return ""


def describe_full_volumes(places: Counter[str]) -> str:
    """`in /srv/media`: the folder that holds all of them, or the most frequent; empty where none is named."""
    folders = [place for place in places if place.startswith("/")]
    if len(folders) > 1 and len(folders) == len(places) and (shared := _shared_folder(folders)):
        return f"in {shared}"
    ordered = sorted(places, key=lambda place: (-places[place], place))[:_MOST_NAMED]
    return f"in {', '.join(ordered)}" if ordered else ""


def _shared_folder(folders: Iterable[str]) -> str:
    """The folder above all of them, unless that is one of the system's first two levels: there may be several volumes."""
    shared = commonpath(folders)
    return shared if shared.count("/") > 1 else ""
