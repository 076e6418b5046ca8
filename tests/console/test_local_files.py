"""What `init` finds near the working folder: counted as the source it writes counts, without package managers' logs."""

import gzip
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_rig import one
from nonempty import nonempty

from opsleuth.console.input_sources import recognize_listing
from opsleuth.console.local_files import find_local_files, sources_from_files
from opsleuth.console.reading_flags import ReadingFlags
from opsleuth.tools.sources.file_kinds import is_package_log
from opsleuth.tools.sources.input_files import InputListing

LINES = b"".join(b"2026-11-29T14:%02d:00Z INFO order %d sent\n" % (n, n) for n in range(60))
PACKAGE_LOGS = ("dpkg.log", "dpkg.log.1", "alternatives.log.2.gz", "yum.log", "dnf.rpm.log", "zypper.log", "pacman.log", "bootstrap.log")  # fmt: skip
APPLICATION_LOGS = ("cart.log", "cart.log.1", "cart.log.2.gz", "web.log", "web.log-20261128", "dpkg-service.log", "history.log")  # fmt: skip


def write_files(folder: Path, names: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(gzip.compress(LINES) if name.endswith(".gz") else LINES)


@pytest.mark.parametrize("name", [*PACKAGE_LOGS, "apt/history.log", "apt/term.log.1.gz", "unattended-upgrades/unattended-upgrades.log", "zypp/history"])  # fmt: skip
def test_logs_of_package_managers(name: str) -> None:
    assert is_package_log(Path("/var/log") / name)


@pytest.mark.parametrize("name", [*APPLICATION_LOGS, "apt.log", "syslog", "shop/history.log"])
def test_logs_of_applications(name: str) -> None:
    assert not is_package_log(Path("/var/log") / name)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(APPLICATION_LOGS), min_size=1), st.sets(st.sampled_from(PACKAGE_LOGS)))
async def test_init_counts_as_the_source_does(
    tmp_path_factory: pytest.TempPathFactory, ours: set[str], others: set[str]
) -> None:
    here = tmp_path_factory.mktemp("here")
    write_files(here / "log", [*ours, *others])
    searched = find_local_files(here, here / "none")
    [source] = sources_from_files(searched)
    settings_of_source: Mapping[str, list[str]] = tomllib.loads(source.lines[1])
    [check] = [
        check
        for check in await one(kind="logfiles", files=settings_of_source["files"]).check()
        if check.what == "files" and check.state == "ok"
    ]
    assert check.text.startswith(f"{source.how}, ")
    assert source.how.split()[0] == str(len(ours)) == str(sum(len(folder.kinds) for folder in searched))


def test_a_folder_skips_them_and_a_name_does_not(tmp_path: Path) -> None:
    write_files(tmp_path, ["cart.log", "dpkg.log"])
    listing = InputListing([tmp_path / "cart.log", tmp_path / "dpkg.log"])
    found = recognize_listing(listing, {tmp_path}, ReadingFlags())
    assert [kind.path.name for kind in nonempty(found.kinds)] == ["cart.log"]
    assert found.skipped == (("dpkg.log", "a package manager's log: name it to read it"),)
    named = recognize_listing(listing, {tmp_path / "dpkg.log"}, ReadingFlags())
    assert len(named.kinds) == 2
