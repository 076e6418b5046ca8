"""No source is loaded before one of its kind is opened, and nothing heavy with it."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from opsleuth.tools.sources.open_sources import KINDS

MODULES = sorted({module for module, _ in KINDS.values()})
ROOT = Path(__file__).parents[2]
INNER = {"declared"}
"""Kinds that no configuration names: made from other tables."""
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
        "import opsleuth.tools.sources.open_sources, opsleuth.configuration.sources, opsleuth.tools.builtin",
    ],
)
def test_no_source_is_loaded_at_start(code: str) -> None:
    assert loaded(code) & {*MODULES, *HEAVY} == set()


def test_a_run_on_a_case_with_a_model_loads_only_what_its_first_request_needs() -> None:
    code = "import opsleuth.console.run_settings, opsleuth.graph.lifecycle.session, opsleuth.models.planner_factory"
    later = {
        "opsleuth.analysis.ranking",
        "opsleuth.models.offline_planner",
        "opsleuth.tools.declared.load_declarations",
        "opsleuth.tools.effects.control_plane",
        "opsleuth.configuration.source_settings",
    }
    assert loaded(code) & {*MODULES, *later} == set()


def test_a_source_loads_its_own_kind_alone() -> None:
    code = """
from opsleuth.tools.sources.open_sources import open_live_sources
from opsleuth.configuration.secret_references import Vault
open_live_sources({"logs": {"kind": "loki", "url": "http://127.0.0.1:9"}}, Vault())
"""
    assert loaded(code) & set(MODULES) == {"opsleuth.tools.sources.loki"}


def test_every_kind_is_independent_of_the_others_by_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [independent] = [set(c["modules"]) for c in contracts if c["type"] == "independence"]
    assert independent == set(MODULES)


def test_every_kind_is_in_the_documentation() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    assert {kind for kind in KINDS if not re.search(rf'["`]{kind}["`]', pages)} == INNER
