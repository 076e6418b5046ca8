"""Archives of files (tar, zip), unpacked within limits: no member lands outside, no bomb fills the disk."""

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from opsleuth.state.errors import UsageError
from opsleuth.tools.sources.file_kinds import looks_like_key

_CHUNK = 1 << 20
_SUFFIXES = (".zip", ".tar", ".tgz", ".tbz2", ".txz", ".tar.gz", ".tar.bz2", ".tar.xz")
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """What one archive may unpack to. `ratio` counts from `free_bytes` on: small logs pack very well."""

    files: int = 5_000
    total_bytes: int = 4_000_000_000
    ratio: int = 200
    free_bytes: int = 100_000_000
    depth: int = 2


@dataclass(frozen=True, slots=True)
class _ArchiveMember:
    """`refused` says why a member is not unpacked; empty where it may be."""

    name: str
    refused: str
    source: tarfile.TarInfo | zipfile.ZipInfo


class _ArchiveTooLargeError(UsageError):
    """The archive unpacks to more than its limits; the text says to which."""


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith(_SUFFIXES)


def unpack_archive(path: Path, into: Path, limits: ArchiveLimits) -> Iterator[tuple[str, str]]:
    """Unpack the regular files; yields the names of members that were left out, with the reason.

    An empty name stands for the archive itself, where all of it or its rest was left out.
    """
    most = min(limits.total_bytes, max(limits.free_bytes, limits.ratio * path.stat().st_size))
    try:
        if path.suffix.lower() == ".zip":
            with zipfile.ZipFile(path) as archive:
                yield from _unpack_zip(archive, into, limits, most)
        else:
            with tarfile.open(path) as archive_file:
                yield from _unpack_tar(archive_file, into, limits, most)
    except _ArchiveTooLargeError as error:
        yield "", str(error)
    except _BROKEN as error:
        yield "", f"a damaged or encrypted archive ({error}); what came before was read"
    except OSError as error:
        yield "", f"cannot be unpacked ({error.strerror or error})"


def _unpack_zip(
    archive: zipfile.ZipFile, into: Path, limits: ArchiveLimits, most: int
) -> Iterator[tuple[str, str]]:
    budget = most
    members = [info for info in archive.infolist() if not info.is_dir()]
    for count, info in enumerate(members):
        mode = info.external_attr >> 16
        kind = "a link or device in an archive" if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG) else ""
        if why := kind or _why_refused(info.filename):
            yield info.filename, why
            continue
        _check_count(count, limits)
        with archive.open(info) as content:
            budget -= _write_member(content, into / info.filename, budget, most)


def _unpack_tar(
    archive: tarfile.TarFile, into: Path, limits: ArchiveLimits, most: int
) -> Iterator[tuple[str, str]]:
    budget = most
    for count, info in enumerate(archive):
        if info.isdir():
            continue
        if why := ("" if info.isreg() else "a link or device in an archive") or _why_refused(info.name):
            yield info.name, why
            continue
        _check_count(count, limits)
        content = archive.extractfile(info)
        if content is not None:
            with closing(content):
                budget -= _write_member(content, into / info.name, budget, most)


def _check_count(count: int, limits: ArchiveLimits) -> None:
    if count >= limits.files:
        raise _ArchiveTooLargeError(f"only its first {limits.files:,} members were unpacked: it has more")


def _why_refused(name: str) -> str:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[:1] or "\0" in name:
        return "its name leads out of the archive"
    if any(looks_like_key(Path(*path.parts[: i + 1])) for i in range(len(path.parts))):
        return "not opened: its name is that of a key or a secret"
    return ""


def _write_member(content: IO[bytes], target: Path, budget: int, most: int) -> int:
    """The bytes written. Raises _ArchiveTooLargeError, and removes what it wrote, above the budget."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    written = 0
    with target.open("xb") as file:
        target.chmod(0o600)
        while chunk := content.read(_CHUNK):
            written += len(chunk)
            if written > budget:
                break
            file.write(chunk)
    if written > budget:
        target.unlink()
        raise _ArchiveTooLargeError(
            f"unpacks to more than {most:,} bytes: unpack it yourself and name the folder"
        )
    return written
