"""Every command in the words for people is executed on the files that they show, and a transcript is what is printed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nonempty import nonempty
from package_path import PACKAGE_PATH

TOP = Path(__file__).resolve().parent.parent
PAGES = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
TRANSCRIPT = re.compile(r"<!-- transcript: opsleuth (.*?) -->\n```text\n(.*?)```", re.DOTALL)
FILE = re.compile(r"<!-- file: (.*?) -->\n```\w+\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#]+)(?:#[^)]*)?\)")


def commands(page: Path) -> list[str]:
    """The opsleuth commands of a page, in order, and the files that `printf` makes for them; `make` is what runs these tests."""
    blocks = BLOCK.findall(page.read_text())
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in lines if line.startswith(("opsleuth ", "printf "))]


def opsleuth(home: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run one line of a page by a shell, with its own data folder and the built-in case as DIR."""
    environment = os.environ | {
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(PACKAGE_PATH),
        "COLUMNS": "100",
    }
    line = line.replace("DIR", str(home / "case")).replace("SCRIPT", str(home / "script"))
    return subprocess.run(
        ["sh", "-c", line],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=home,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    script = folder / "bin" / "opsleuth"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m opsleuth "$@"\n')
    script.chmod(0o755)
    from opsleuth.scenarios.orders_incident import write_case  # noqa: PLC0415 - product code, beside its one use

    write_case(folder / "case")
    (folder / "script").write_text("where\nhistory\nquit\n")
    for page in PAGES:
        for name, text in FILE.findall(page.read_text()):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda p: p.name)
@pytest.mark.slow
def test_every_command_runs(home: Path, page: Path) -> None:
    shutil.rmtree(home / "data", ignore_errors=True)
    for line in nonempty(commands(page)):
        done = opsleuth(home, line)
        assert done.returncode == 0, f"{page.name}: {line}\n{done.stdout}{done.stderr}"


def masked(text: str) -> list[str]:
    """The lines without what differs from run to run: ids and seconds."""
    text = re.sub(r"inv-\d{8}-\w{4}", "inv-00000000-0000", text)
    return [re.sub(r"\b\d+\.\ds\b", "0.0s", line).rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("page", [p for p in PAGES if TRANSCRIPT.search(p.read_text())], ids=lambda p: p.name)
def test_transcripts_are_what_is_printed(home: Path, page: Path) -> None:
    """`OPSLEUTH_WRITE_TRANSCRIPTS=1` writes what is printed into the page instead."""
    for found in nonempty(TRANSCRIPT.finditer(page.read_text())):
        shutil.rmtree(home / "data", ignore_errors=True)  # a page shows the first run: none was seen before
        printed = opsleuth(home, f"opsleuth {found[1]}").stdout.strip()
        if os.environ.get("OPSLEUTH_WRITE_TRANSCRIPTS"):
            page.write_text(page.read_text().replace(f"```text\n{found[2]}```", f"```text\n{printed}\n```"))
        else:
            assert masked(printed) == masked(found[2]), f"{page.name}: opsleuth {found[1]}"


@pytest.mark.parametrize("page", [*PAGES, TOP / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert broken == []
