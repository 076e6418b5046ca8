"""The files behind a path that a person names: a file, a folder, an archive.

Nothing outside the path is read: links that lead out of a folder, pipes and devices are listed and left alone, as are
files whose name is that of a key. Archives are unpacked into a folder of the run, within limits.
"""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from opsleuth.state.real_paths import resolve_path
from opsleuth.tools.sources.file_kinds import looks_like_key
from opsleuth.tools.sources.input_archives import ArchiveLimits, is_archive, unpack_archive

MOST_FILES = 5_000
MOST_DEPTH = 16
_TOOL_FOLDERS = frozenset((".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"))
_KEY_FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".kube", ".docker"))


@dataclass(slots=True)
class InputListing:
    """Files that may be opened, and the names of what is left alone with the reason."""

    files: list[Path] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def skip(self, name: str, why: str) -> None:
        self.skipped.append((_show_name(name), why))


class InputCollector:
    """Lists the files of paths; archives are unpacked below `scratch`."""

    def __init__(self, scratch: Path, limits: ArchiveLimits | None = None) -> None:
        self.found = InputListing()
        self._scratch = scratch
        self._limits = limits or ArchiveLimits()
        self._archives = self._links = 0

    def add(self, path: Path) -> None:
        """Everything behind a path that was named; a link that was named is followed. Raises OSError."""
        root = resolve_path(path)
        if root.is_dir():
            self._add_folder(root, root, MOST_DEPTH, self._limits.depth)
        else:
            self._add_file(root, root.name, self._limits.depth)

    def _add_folder(self, folder: Path, root: Path, depth: int, nested: int) -> None:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            path = Path(entry.path)
            name = str(path.relative_to(root))
            if len(self.found.files) >= MOST_FILES:
                self.found.skip(name, f"more than {MOST_FILES:,} files: name a smaller folder")
                return
            if entry.is_symlink():
                self._add_link(path, name, root)
            elif not entry.is_dir():
                self._add_file(path, name, nested)
            elif entry.name in _KEY_FOLDERS:
                self.found.skip(name, "not opened: a folder of keys")
            elif entry.name in _TOOL_FOLDERS:
                continue
            elif depth == 0:
                self.found.skip(name, f"deeper than {MOST_DEPTH} folders")
            else:
                self._add_readable_folder(path, name, root, depth - 1, nested)

    def _add_readable_folder(self, path: Path, name: str, root: Path, depth: int, nested: int) -> None:
        try:
            self._add_folder(path, root, depth, nested)
        except OSError as error:
            self.found.skip(name, error.strerror or str(error))

    def _add_link(self, path: Path, name: str, root: Path) -> None:
        """A link adds nothing: what it leads to inside the folder is met there under its own name."""
        target = resolve_path(path)
        if not target.is_relative_to(root):
            self.found.skip(name, "a link that leads out of the folder")
        elif not target.exists():
            self.found.skip(name, "a link that leads nowhere")

    def _add_file(self, path: Path, name: str, nested: int) -> None:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            self.found.skip(name, _describe_irregular(mode))
        elif looks_like_key(path):
            self.found.skip(name, "not opened: its name is that of a key or a secret")
        elif not is_archive(path):
            self.found.files.append(self._link_odd_name(path))
        elif nested == 0:
            self.found.skip(name, f"an archive inside {self._limits.depth} archives")
        else:
            self._add_archive(path, name, nested - 1)

    def _link_odd_name(self, path: Path) -> Path:
        """The path; where its name is not UTF-8, a link to it whose name can be stored and shown."""
        if _show_name(str(path)) == str(path):
            return path
        self._links += 1
        link = self._scratch / f"named-{self._links}" / _show_name(path.name).replace("\ufffd", "_")
        link.parent.mkdir(parents=True, mode=0o700)
        link.symlink_to(path)
        return link

    def _add_archive(self, path: Path, name: str, nested: int) -> None:
        self._archives += 1
        into = self._scratch / f"{self._archives}-{_show_name(path.name)}"
        into.mkdir(parents=True, mode=0o700)
        for inside, why in unpack_archive(path, into, self._limits):
            self.found.skip(f"{name}:{inside}" if inside else name, why)
        self._add_folder(into, into, MOST_DEPTH, nested)


def _show_name(name: str) -> str:
    """The name as text that can be stored: bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def collect_input_files(paths: list[Path], scratch: Path) -> InputListing:
    """The files of all paths, each once. Raises OSError for a path that cannot be listed."""
    collector = InputCollector(scratch)
    for path in paths:
        collector.add(path)
    collector.found.files[:] = dict.fromkeys(collector.found.files)
    return collector.found


def _describe_irregular(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link that leads nowhere"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
