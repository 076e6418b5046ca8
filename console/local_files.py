"""Files near the working folder that hold logs, metrics or traces: where they were looked for and what they are."""

import glob
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsleuth.console.detected_source import DetectedSource
from opsleuth.state.plurals import format_count
from opsleuth.state.real_paths import resolve_path
from opsleuth.tools.sources.file_kinds import FileKind, is_package_log, looks_like_key, recognize_file
from opsleuth.tools.sources.file_patterns import find_matching_paths
from opsleuth.tools.sources.logtables import why_unreadable

MOST_FILES = 30
"""Files of one folder that are opened to say what they are."""
MOST_SHOWN = 6
MOST_PATTERNS = 50
SYSTEM_LOGS = Path("/var/log")
_PLACES = ("log", "logs", "var/log")
_PATTERNS = ("*.log", "*.log[.-]*", "*.jsonl", "*.ndjson", "*.out", "*.err", "*.csv", "*.json")
_SYSTEM_PATTERNS = ("*.log", "*.log[.-]*", "syslog", "messages", "*/*.log", "*/*.log[.-]*", "pods/*/*/*.log")
_KINDS = {"logs": "logfiles", "metrics": "metricfiles", "traces": "tracefiles"}


@dataclass(frozen=True, slots=True)
class SearchedFolder:
    """A folder that was investigated; `kinds` are the files in it that can be sources."""

    path: Path
    kinds: tuple[FileKind, ...]
    note: str = ""


def find_local_files(here: Path, system: Path = SYSTEM_LOGS) -> list[SearchedFolder]:
    """What lies in the working folder, in its folders of logs, and in the system's."""
    places = [(here, _PATTERNS), *((here / name, _PATTERNS) for name in _PLACES), (system, _SYSTEM_PATTERNS)]
    return [_search_folder(folder, patterns) for folder, patterns in places]


def _search_folder(folder: Path, patterns: Sequence[str]) -> SearchedFolder:
    if not folder.is_dir():
        return SearchedFolder(folder, (), "no such folder")
    if not os.access(folder, os.R_OK | os.X_OK):
        return SearchedFolder(folder, (), "may not be read")
    found = dict.fromkeys(path for pattern in patterns for path in sorted(folder.glob(pattern)))
    files = [path for path in found if _is_own_file(path, folder)]
    kinds = [recognize_file(path) for path in files[:MOST_FILES]]
    note = f"{format_count(len(files), 'file')}, the first {MOST_FILES} opened" if len(files) > MOST_FILES else ""  # fmt: skip
    return SearchedFolder(folder, tuple(kind for kind in kinds if kind.holds in _KINDS), note)


def _is_own_file(path: Path, folder: Path) -> bool:
    return (
        path.is_file()
        and not looks_like_key(path)
        and not is_package_log(path)
        and resolve_path(path).is_relative_to(resolve_path(folder))
    )


def describe_local_files(searched: Sequence[SearchedFolder]) -> Iterator[str]:
    """Where files were looked for, and what each is."""
    for folder in searched:
        note = f" ({folder.note})" if folder.note else ""
        if not folder.kinds:
            yield f"tried {folder.path}: no logs, metrics or traces{note}"
            continue
        yield f"tried {folder.path}: {format_count(len(folder.kinds), 'file')} to look at{note}"
        yield from (f"  {kind.sentence}" for kind in folder.kinds[:MOST_SHOWN])
        if len(folder.kinds) > MOST_SHOWN:
            yield f"  and {len(folder.kinds) - MOST_SHOWN} more"


def sources_from_files(searched: Sequence[SearchedFolder]) -> Iterator[DetectedSource]:
    """One source for each kind of file; its files are counted as the source itself counts them."""
    for holds, source in _KINDS.items():
        kinds = [kind for folder in searched for kind in folder.kinds if kind.holds == holds]
        if kinds:
            patterns = list(dict.fromkeys(_patterns_for(kinds)))[:MOST_PATTERNS]
            lines = (f'kind = "{source}"', f"files = {json.dumps(patterns, ensure_ascii=False)}")
            yield DetectedSource(holds, lines, format_count(_count_files(patterns), "file"))


def _count_files(patterns: Sequence[str]) -> int:
    return sum(path.is_file() and why_unreadable(path) is None for path in find_matching_paths(patterns))


def _patterns_for(kinds: Sequence[FileKind]) -> Iterator[str]:
    """All logs of a folder that holds nothing else of such a name, later ones too; else each file, with what rotation adds."""
    paths = [kind.path for kind in kinds]
    for path in paths:
        name = glob.escape(str(path))
        if any(
            other != path and str(path).startswith(f"{other}") for other in paths if other.suffix == ".log"
        ):
            continue  # an older part of that file
        if path.suffix != ".log":
            yield name
        elif _holds_nothing_else(path.parent, paths):
            yield f"{glob.escape(str(path.parent))}/*.log*"
        else:
            yield f"{name}*"


def _holds_nothing_else(folder: Path, paths: Sequence[Path]) -> bool:
    """Whether each file of the folder that is named like a log is one of these, or an older part of one."""
    known = [path.name for path in paths if path.parent == folder]
    return all(any(found.name.startswith(name) for name in known) for found in folder.glob("*.log*"))


def ready_run_command(searched: Sequence[SearchedFolder]) -> str:
    """A command that investigates what was found nearest; empty where nothing was."""
    for folder in searched:
        if len(folder.kinds) == 1:
            return f"opsleuth run {shlex.quote(str(folder.kinds[0].path))}"
        if folder.kinds:
            return f"opsleuth run {shlex.quote(str(folder.path))}"
    return ""
