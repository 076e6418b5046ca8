"""Refuse to build from a checkout whose package links were lost; everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import setup

PACKAGE = Path(__file__).parent / "src" / "opsleuth"
LOST = sorted(p.name for p in PACKAGE.iterdir() if p.is_file() and p.suffix == "" and p.stat().st_size < 200)

if LOST:
    raise SystemExit(
        f"src/opsleuth: {', '.join(LOST)} should be links to the folders at the top, but are plain files. "
        "This happens in a zip download and on Windows without symbolic links. "
        "Clone with git, with symbolic links enabled (git config --global core.symlinks true)."
    )

setup()
