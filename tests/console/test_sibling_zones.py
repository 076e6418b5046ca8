"""Files whose times carry no zone are read with the offset of the files beside them, where only that one fits."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from nonempty import nonempty

from opsleuth.console.input_sources import RecognizedInput, describe_input, recognize_listing
from opsleuth.console.reading_flags import ReadingFlags
from opsleuth.console.sibling_zones import describe_offset
from opsleuth.tools.sources.input_files import InputListing

START = datetime(2026, 11, 18, 4, 0, tzinfo=UTC)


def write_pair(folder: Path, hours: float, *, minutes: int = 40, errors_from: datetime = START) -> None:
    """An access log with an offset, and an error log in the same local time without one."""
    zone = timezone(timedelta(hours=hours))
    moments = [START + timedelta(seconds=20 * number) for number in range(3 * minutes)]
    (folder / "access.log").write_text(
        "".join(f'10.0.0.1 - - [{at.astimezone(zone):%d/%b/%Y:%H:%M:%S %z}] "GET / HTTP/1.1" 200 31 "-" "curl"\n' for at in moments)
    )  # fmt: skip
    errors = [errors_from + timedelta(seconds=60 * number) for number in range(20)]
    (folder / "error.log").write_text(
        "".join(f"{at.astimezone(zone):%Y/%m/%d %H:%M:%S} [error] 31#31: *9 upstream timed out (110: Connection timed out)\n" for at in errors)
    )  # fmt: skip


def recognize(folder: Path, zone: float | None = None) -> RecognizedInput:
    return recognize_listing(InputListing(sorted(folder.iterdir())), {folder}, ReadingFlags(zone=zone))


@pytest.mark.parametrize("hours", [5.5, -3.5, 1, -8, 12.75])
def test_the_offset_of_the_file_beside_is_used_and_said(tmp_path: Path, hours: float) -> None:
    write_pair(tmp_path, hours)
    found = recognize(tmp_path)
    assert found.log_zone == hours
    assert found.sources["log"]["zone"] == hours
    assert [kind.first for kind in nonempty(found.kinds)] == [START.timestamp()] * 2
    assert f"times without a zone read as {describe_offset(hours * 3_600)}" in "\n".join(
        describe_input(found)
    )


@pytest.mark.parametrize("hours", [5.5, -8])
def test_a_zone_that_was_given_stays(tmp_path: Path, hours: float) -> None:
    write_pair(tmp_path, hours)
    found = recognize(tmp_path, zone=2.0)
    assert found.log_zone is None
    assert found.sources["log"]["zone"] == 2.0


def test_utc_needs_nothing(tmp_path: Path) -> None:
    write_pair(tmp_path, 0)
    assert recognize(tmp_path).log_zone is None


def test_two_offsets_tell_nothing(tmp_path: Path) -> None:
    write_pair(tmp_path, 5.5)
    (tmp_path / "cart.log").write_text("2026-11-18T05:00:00+01:00 INFO order sent\n" * 20)
    assert recognize(tmp_path).log_zone is None


def test_files_of_another_time_tell_nothing(tmp_path: Path) -> None:
    write_pair(tmp_path, 5.5, errors_from=START - timedelta(days=3))
    assert recognize(tmp_path).log_zone is None


def test_a_long_log_that_fits_as_utc_stays_utc(tmp_path: Path) -> None:
    write_pair(tmp_path, 1, minutes=600, errors_from=START + timedelta(hours=4))
    assert recognize(tmp_path).log_zone is None
