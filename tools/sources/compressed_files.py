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
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from opsleuth.state.errors import OpsleuthError
from opsleuth.state.run_status import ExitCode

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ZSTD_REMEDY = "reading .zst needs the extra 'zstd': pip install 'opsleuth[zstd]'"
UNSUPPORTED_SUFFIXES = (".zip", ".7z", ".lz4", ".rar")
"""Compression formats that are not read; naming such a file is an error."""

_OPENERS: Mapping[str, Callable[[Path, Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_ZSTD = ".zst"


class DamagedFileError(OpsleuthError):
    """A packed file ends too early or is not packed; what came before was read."""

    exit_code = ExitCode.CONFIG


def is_compressed(path: Path) -> bool:
    return path.suffix in _OPENERS or path.suffix == _ZSTD


def why_not_decompressible(path: Path) -> str | None:
    """Why a file of this name cannot be read, with the remedy; None where it can."""
    if path.suffix in UNSUPPORTED_SUFFIXES:
        return "unpack it, or take it out of files"
    return ZSTD_REMEDY if path.suffix == _ZSTD and _find_zstd_module() is None else None


def open_decompressed(path: Path) -> BinaryIO:
    """The file's bytes, unpacked. Raises OSError; reading raises DamagedFileError."""
    broken: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError)
    opener = _OPENERS.get(path.suffix)
    if path.suffix == _ZSTD:
        module = import_module(_find_zstd_module() or "")
        opener, broken = module.open, (EOFError, module.ZstdError)
    if opener is None:
        return path.open("rb")
    return cast(BinaryIO, io.BufferedReader(_DecompressedStream(opener(path, "rb"), broken)))


class _DecompressedStream(io.RawIOBase):
    """A packed stream with one error for all that packers say of broken files; `broken` are their own."""

    def __init__(self, inner: BinaryIO, broken: tuple[type[Exception], ...]) -> None:
        self._inner = inner
        self._broken = broken

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = self._inner.read(len(view))
        except self._broken as error:
            raise DamagedFileError(str(error)) from None
        except OSError as error:
            if error.errno is not None:  # a disk's own failure, not the file's
                raise
            raise DamagedFileError(str(error)) from None
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._inner.close()
        super().close()


def _find_zstd_module() -> str | None:
    """The module that reads zstd: Python's own from 3.14 on, else the extra's."""
    if sys.version_info >= (3, 14):
        return "compression.zstd"
    try:
        return "backports.zstd" if find_spec("backports.zstd") else None
    except ModuleNotFoundError:  # not even the package around it
        return None
