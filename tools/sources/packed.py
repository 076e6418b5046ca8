"""Files that rotation has packed, read as a stream: gzip, bzip2 and xz by themselves, zstd with its extra."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, cast

ZSTD_REMEDY = "reading .zst needs the extra 'zstd': pip install 'opsleuth[zstd]'"
UNREADABLE = (".zip", ".7z", ".lz4", ".rar")
"""Packed in ways that are not read: whoever names such a file is told."""

_OPENERS: Mapping[str, Callable[[Path, Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_ZSTD = ".zst"


class Damaged(Exception):
    """A packed file ends too early, or is none; what came before was read."""


def is_packed(path: Path) -> bool:
    return path.suffix in _OPENERS or path.suffix == _ZSTD


def why_not(path: Path) -> str | None:
    """Why a file of this name cannot be read, with the remedy; None where it can."""
    if path.suffix in UNREADABLE:
        return "unpack it, or take it out of files"
    return ZSTD_REMEDY if path.suffix == _ZSTD and _zstd() is None else None


def open_bytes(path: Path) -> BinaryIO:
    """The file's bytes, unpacked. Raises OSError; reading raises Damaged."""
    broken: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError)
    opener = _OPENERS.get(path.suffix)
    if path.suffix == _ZSTD:
        module = import_module(_zstd() or "")
        opener, broken = module.open, (EOFError, module.ZstdError)
    if opener is None:
        return path.open("rb")
    return cast(BinaryIO, io.BufferedReader(_Unpacked(opener(path, "rb"), broken)))


class _Unpacked(io.RawIOBase):
    """A packed stream with one error for all that packers say of broken files; `broken` are their own."""

    def __init__(self, inner: BinaryIO, broken: tuple[type[Exception], ...]) -> None:
        self._inner = inner
        self._broken = broken

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - as io names it
        try:
            data = self._inner.read(len(buffer))
        except self._broken as error:
            raise Damaged(str(error)) from None
        except OSError as error:
            if error.errno is not None:  # a disk's own failure, not the file's
                raise
            raise Damaged(str(error)) from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._inner.close()
        super().close()


def _zstd() -> str | None:
    """The module that reads zstd: of the language from 3.14 on, else that of the extra."""
    if sys.version_info >= (3, 14):
        return "compression.zstd"
    try:
        return "backports.zstd" if find_spec("backports.zstd") else None
    except ModuleNotFoundError:  # not even the package around it
        return None
