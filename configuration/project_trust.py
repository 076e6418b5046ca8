"""Which files of projects the operator trusts: each by its path and the SHA-256 of its bytes as they were read then."""

import json
import os
from pathlib import Path

from opsleuth.configuration.folders import xdg_folder


def is_trusted(path: Path, digest: str) -> bool:
    return _read_trusted_digests().get(str(path)) == digest


def trust_file(path: Path, digest: str) -> None:
    """Remember that the operator trusts exactly these bytes of the file."""
    kept = _trusted_files_path()
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = kept.with_suffix(f".{os.getpid()}")
    part.write_text(
        json.dumps({**_read_trusted_digests(), str(path): digest}, indent=1) + "\n", encoding="utf-8"
    )
    part.replace(kept)


def _trusted_files_path() -> Path:
    return xdg_folder("XDG_STATE_HOME", ".local/state") / "trusted.json"


def _read_trusted_digests() -> dict[str, str]:
    try:
        book = json.loads(_trusted_files_path().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(path): str(digest) for path, digest in book.items()} if isinstance(book, dict) else {}
