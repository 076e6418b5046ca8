"""What the control plane really did: an append-only file that outlives the process.

One JSON document a line; the first says when this world was born, each further one is one real application
of an operation. The state of the world is what follows from replaying them.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class AppliedOperation:
    """One operation as it was really carried out: `n` counts from 1, `at` is seconds since the epoch."""

    n: int
    operation: str
    target: str
    arguments: Mapping[str, Any]
    key: str | None
    at: float


class PlaneLedger:
    """The file; `born` is when it was begun, `applications` everything in it, in order."""

    def __init__(self, path: Path, now: float) -> None:
        """Read `path`, or begin it with `now`. A last line cut by a crash is dropped: it was never answered."""
        self._path = path
        self.born = now
        self.applications: list[AppliedOperation] = []
        whole = 0
        for document, end in _read_whole_lines(path):
            whole = end
            if "born" in document:
                self.born = document["born"]
            else:
                self.applications.append(AppliedOperation(**document))
        if whole:
            os.truncate(path, whole)
        else:
            path.write_bytes(b"")
            self._write({"born": now})

    def append(
        self, operation: str, target: str, arguments: Mapping[str, Any], key: str | None, at: float
    ) -> AppliedOperation:
        """Write one application down, on the disk before this returns."""
        application = AppliedOperation(len(self.applications) + 1, operation, target, arguments, key, at)
        self._write(asdict(application))
        self.applications.append(application)
        return application

    def _write(self, document: Mapping[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps(document).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _read_whole_lines(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """The whole lines of the file, each with the offset of its end."""
    if not path.exists():
        return
    end = 0
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            end += len(line)
            yield json.loads(line), end
