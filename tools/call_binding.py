"""What a call really runs, and on which system: shown to whoever approves it, and bound by the approval.

A declaration is a file that somebody may change between the question and the answer; so is a program, and so is the
cluster that a context names. What was approved is therefore described in full, and another description asks again.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from opsleuth.tools.kubectl_target import describe_kube_target
from opsleuth.tools.program_files import find_program_files, find_shebang_programs
from opsleuth.tools.registry import parse_arguments
from opsleuth.tools.spec import InvalidArgumentsError, ToolSpec

_CHUNK = 1 << 20
_LONGEST_PATH = 1_000


def describe_binding(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Declaration and target system of a call with these arguments, as JSON values by name."""
    described: dict[str, Any] = {"origin": spec.origin} if spec.origin else {}
    if spec.binding is None:
        return described
    try:
        return described | dict(spec.binding(parse_arguments(spec, arguments)))
    except InvalidArgumentsError as error:  # the call is refused for that, with the same words
        return described | {"problem": str(error)}


def describe_program(argv: Sequence[str], environment: Sequence[str]) -> dict[str, Any]:
    """What `argv` starts here: its program and every file that it carries out, each with its SHA-256, and what it sees."""
    path = os.environ.get("PATH", os.defpath) if "PATH" in environment else os.defpath
    found = shutil.which(argv[0], path=path)
    resolved = os.path.realpath(found) if found else None
    seen = {name: os.environ[name] for name in environment if name in os.environ}
    described: dict[str, Any] = {
        "program": resolved or f"{argv[0]} (not found)",
        "program_sha256": file_sha256(resolved) if resolved else None,
        "folder": _current_folder(),
        "environment": sorted(environment),
    }
    files = find_program_files(argv, path) + (find_shebang_programs(resolved, path) if resolved else [])
    if files:
        described["files"] = {file: file_sha256(file) for file in sorted(set(files))}
    if values := {name: _describe_value(seen[name]) for name in sorted(seen) if name != "PATH"}:
        described["values"] = values
    return described | describe_kube_target(argv, seen)


def _describe_value(value: str) -> str:
    """A path as it is; of everything else, which may be a secret, a mark that tells it from another value."""
    return value if value.startswith("/") and len(value) <= _LONGEST_PATH else _mark_value(value)


@lru_cache(maxsize=128)
def _mark_value(value: str) -> str:
    """Slow on purpose, and short: the value cannot be guessed back from it."""
    mark = hashlib.scrypt(value.encode("utf-8", "surrogateescape"), salt=b"opsleuth", n=1 << 13, r=8, p=1)
    return f"set, mark {mark.hex()[:8]}"


def file_sha256(path: str) -> str | None:
    """SHA-256 of a file's bytes, None where it cannot be read. Read once for each state of the file."""
    try:
        seen = Path(path).stat()
        return _hash_file(path, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    except OSError:
        return None


@lru_cache(maxsize=128)
def _hash_file(path: str, *_state: int) -> str:
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _current_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "a folder that was removed"
