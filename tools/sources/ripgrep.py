"""Search a large text file for a text with ripgrep, where it is installed.

It only says at which bytes to look: what stands there is read and judged by the caller, as if it had read everything.
"""

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO

from opsleuth.tools.sources.long_lines import is_cut, skip_rest_of_line, without_half_character
from opsleuth.tools.spec import UnavailableError

SECONDS = 6.0
"""After this long a search of all files is ended: a call has ten."""
_NEAR = 1_024
_BLOCK = 1 << 20
# Bytes as they are, lines as they end on "\n", nothing of the user's own settings; of each line no more than where it is.
_OPTIONS = ("--no-config", "--byte-offset", "--no-line-number", "--no-filename", "--text", "--encoding=none",
            "--max-columns=1", "--color=never")  # fmt: skip


def find_ripgrep() -> str | None:
    return shutil.which("rg")


def find_line_offsets(
    path: Path, begin: int, end: int, pattern: str, seconds: float = SECONDS
) -> Generator[int]:
    """Where lines begin that fit the pattern, from byte `begin`, which is the beginning of a line, to byte `end`.

    The programs are ended with the iterator, and after `seconds`. Raises UnavailableError, TimeoutError, OSError.
    """
    with path.open("rb", buffering=0) as file, tempfile.TemporaryFile() as errors:
        file.seek(begin)  # what is handed over begins there
        part = _start_program(("head", "-c", str(end - begin)), file, errors)
        process = _start_program((find_ripgrep() or "rg", *_OPTIONS, "-e", pattern, "-"), part.stdout, errors)
        late = threading.Timer(seconds, process.kill)
        late.start()
        with part, process:
            _close_output(part)
            try:
                for line in process.stdout or ():
                    yield begin + int(line.partition(b":")[0])
                code = process.wait()
            finally:
                late.cancel()
                process.kill()
                part.kill()
        _check_exit_code(path, code, errors)


def _start_program(
    argv: Sequence[str], read: IO[bytes] | None, errors: IO[bytes]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # argv of our own, no shell
        argv, stdin=read, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
    )


def _close_output(part: "subprocess.Popen[bytes]") -> None:
    """Its output belongs to the program that reads it: that one's end is to be felt."""
    if part.stdout:
        part.stdout.close()


def _check_exit_code(path: Path, code: int, errors: IO[bytes]) -> None:
    """0 and 1 are lines found and none."""
    if code < 0:
        raise TimeoutError(f"ripgrep had no time left to get through {path.name}: ask about less at once")
    if code > 1:
        errors.seek(0)
        raise UnavailableError(
            f"ripgrep cannot read {path.name}: {errors.read(300).decode('utf-8', 'replace')}"
        )


def read_records_around(
    file: BinaryIO, begin: int, found: Iterable[int], longest: int, is_head: Callable[[bytes], bool]
) -> Iterator[bytes]:
    """The raw lines of all records that hold a line of `found`, each up to the head of the next one.

    A record begins with a head; `begin` is where reading would begin. Lines are cut at `longest` bytes, as if the file
    were read from `begin`.
    """
    at, head = begin, -1
    for offset in found:
        if offset < head:
            continue
        if offset >= at:
            at = _find_record_head(file, at, offset, longest, is_head)
        file.seek(at)
        while raw := file.readline(longest):
            here, at = at, at + len(raw)
            if is_cut(raw, longest):
                yield without_half_character(raw)
                at += skip_rest_of_line(file)
            else:
                yield raw
            if here > offset and is_head(raw):
                head = here
                break
        else:
            return


def _find_record_head(
    file: BinaryIO, begin: int, offset: int, longest: int, is_head: Callable[[bytes], bool]
) -> int:
    """Where the last record begins that begins at `offset` or before it, but not before `begin`; else `begin`."""
    room = 0
    while True:
        start = max(begin, offset - room)
        file.seek(start)
        if begin < start < offset:
            skip_rest_of_line(file)  # cut
        head = None
        while (here := file.tell()) <= offset and (raw := file.readline(longest)):
            head = here if is_head(raw) else head
            if not raw.endswith(b"\n"):
                skip_rest_of_line(file)
        if head is not None or start == begin:
            return begin if head is None else head
        room = room * 4 or _NEAR


def count_lines_between(path: Path, begin: int, end: int) -> int:
    """How many lines end between two bytes of a file."""
    count = 0
    with path.open("rb", buffering=0) as file:
        file.seek(begin)
        while begin < end and (block := file.read(min(_BLOCK, end - begin))):
            count += block.count(b"\n")
            begin += len(block)
    return count
