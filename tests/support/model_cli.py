"""The command line in folders of its own, with what the environment says of models left out."""

import os
import subprocess
import sys
from pathlib import Path

from forked import run_python


def environment(folder: Path, **more: str) -> dict[str, str]:
    paths = {name: str(folder / name) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPSLEUTH_", "OPENAI_"))}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), **paths, **more}


def opsleuth(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run_python(["-m", "opsleuth", *arguments], env=environment(folder, **more), timeout=120)
