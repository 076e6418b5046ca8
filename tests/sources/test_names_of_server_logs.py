"""Names of log files that servers make of the date are no services."""

from pathlib import Path

import pytest

from opsleuth.tools.sources.log_formats.names import service_of_file


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("u_ex261118.log", "iis"),
        ("u_ex26111813.log", "iis"),
        ("u_ex261118_x.log", "iis"),
        ("ex261118.log", "iis"),
        ("postgresql-Wed.log", "postgresql"),
        ("mysqld.Sun.log.gz", "mysqld"),
        ("app.ndjson", "app"),
        ("express.log", "express"),
        ("sunny-Sunday.log", "sunny-Sunday"),
    ],
)
def test_service_of_a_dated_file(name: str, service: str) -> None:
    assert service_of_file(Path(name)) == service
