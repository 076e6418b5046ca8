"""No source is loaded before one of its kind is opened, and nothing heavy with it."""

import os
import subprocess
import sys

import pytest

from opsleuth.tools.sources.opening import KINDS

MODULES = sorted({module for module, _ in KINDS.values()})
HEAVY = ("httpx", "yaml", "psycopg", "duckdb")


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after this code."""
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import opsleuth.cli",
        "import opsleuth.tools.sources.opening, opsleuth.tools.sources.config, opsleuth.tools.builtin",
    ],
)
def test_no_source_is_loaded_at_start(code: str) -> None:
    assert loaded(code) & {*MODULES, *HEAVY} == set()


def test_a_source_loads_its_own_kind_alone() -> None:
    code = """
from opsleuth.tools.sources.opening import open_live
from opsleuth.tools.sources.secrets import Vault
open_live({"logs": {"kind": "loki", "url": "http://127.0.0.1:9"}}, Vault())
"""
    assert loaded(code) & set(MODULES) == {"opsleuth.tools.sources.loki"}
