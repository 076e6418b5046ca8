"""The lab as seen from the command line: started as a process of its own, spoken to over loopback."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from opsleuth.state.errors import ConfigError, UsageError

# What stands in a lab's folder: nothing else is ever removed from it.
_FOLDERS = ("db", "prometheus", "alertmanager", "repository", "running", "logs", "output")
_FILES = ("alert.json", "alert.part", "lab.json", "done.jsonl", "keeper.txt")
_MARK = ".opsleuth-lab"
"""Written into a lab's folder by `start`: only where it stands is anything ever removed."""
USUAL = Path("opsleuth-lab")
_WAIT = 0.2
_DOWN_SECONDS = 60.0


class Lab:
    """A lab that runs in `folder`."""

    def __init__(self, folder: Path, url: str, pid: int) -> None:
        self.folder, self._url, self.pid = folder, url, pid

    @classmethod
    def found(cls, folder: Path | None) -> "Lab | None":
        """The lab of this folder; without one of the usual folder, or of the one we are in. None where none answers."""
        for place in (USUAL, Path()) if folder is None else (folder,):
            try:
                told = json.loads((place / "lab.json").read_text(encoding="utf-8"))
                lab = cls(place.resolve(), told["url"], told["pid"])
                lab.state()
            except (OSError, ValueError, KeyError, HTTPException, UsageError):
                continue
            return lab
        return None

    @classmethod
    def running(cls, folder: Path | None) -> "Lab":
        """Raises UsageError where there is none."""
        lab = cls.found(folder)
        if lab is None:
            raise UsageError(
                f"no lab runs in {(folder or USUAL).resolve()}: opsleuth lab up starts one, --dir names another folder"
            )
        return lab

    def state(self) -> dict[str, Any]:
        """What runs, since when all is well, and the fault if there is one."""
        return self._asked("GET", "/lab")

    def fault(self, name: str) -> dict[str, Any]:
        """Raises UsageError for a fault that there is not."""
        return self._asked("POST", f"/faults/{name}")

    def heal(self) -> dict[str, Any]:
        return self._asked("POST", "/heal")

    def down(self) -> bool:
        """Whether every process has ended within a minute."""
        self._asked("POST", "/down")
        until = time.monotonic() + _DOWN_SECONDS
        while (self.folder / "lab.json").exists() and time.monotonic() < until:
            time.sleep(_WAIT)
        return not (self.folder / "lab.json").exists()

    def until(self, seen: Callable[[dict[str, Any]], bool], seconds: float) -> dict[str, Any] | None:
        """The first state of which that holds, None if none does within the seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            state = self.state()
            if seen(state):
                return state
            time.sleep(_WAIT)
        return None

    def _asked(self, method: str, path: str) -> dict[str, Any]:
        parts = urlsplit(self._url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            document: dict[str, Any] = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status >= 400:
            raise UsageError(str(document.get("error", answer.status)))
        return document


def start_lab_process(
    folder: Path, orders: int, seconds: float, parent: int | None, tell: Callable[[str], None]
) -> Lab:
    """Start a lab in `folder`, each thing that is done told in words. Raises ConfigError."""
    _clear_lab_folder(folder)
    command = [
        *(sys.executable, "-m", "opsleuth.scenarios.lab.keeper", str(folder.resolve())),
        *("--orders", str(orders), "--seconds", str(seconds)),
        *(("--parent", str(parent)) if parent else ()),
    ]
    with (folder / "keeper.txt").open("ab") as log:
        process = subprocess.Popen(  # our own module
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    with ExitStack() as undoing:
        undoing.callback(process.wait)
        undoing.callback(process.terminate)
        last = _relay_progress(process, tell)
        undoing.pop_all()
    lab = Lab.found(folder)
    if lab is None:
        process.wait()
        why = last.removeprefix("failed: ") if last.startswith("failed: ") else f"see {folder / 'keeper.txt'}"
        raise ConfigError(f"the lab did not come up: {why}")
    process.returncode = 0  # it is left running on purpose
    return lab


def _relay_progress(process: "subprocess.Popen[str]", tell: Callable[[str], None]) -> str:
    """The last line, up to the one that says that all is up."""
    line = ""
    if process.stdout is None:
        return line
    with process.stdout:
        for text in process.stdout:
            line = text.strip()
            if line == "ready" or line.startswith("failed: "):
                break
            tell(line)
    return line


def _clear_lab_folder(folder: Path) -> None:
    """An empty folder, or one that held a lab, without what that left. Raises ConfigError for any other."""
    folder.mkdir(parents=True, exist_ok=True)
    there = {path.name for path in folder.iterdir()}
    if others := sorted(there - {*_FOLDERS, *_FILES, _MARK, ".opsleuth"} if _MARK in there else there):
        raise ConfigError(
            f"{folder} holds other things ({', '.join(others[:3])}): choose another folder with --dir"
        )
    (folder / _MARK).write_text("What a lab leaves in this folder is removed at its next start.\n")
    for name in _FOLDERS:
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    if os.geteuid() == 0:
        folder.chmod(0o755)  # PostgreSQL does not run as root, and must get to its own folder in here
