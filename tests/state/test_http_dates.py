"""How long a server asks to wait, in each of the forms of the header."""

from datetime import UTC, datetime

import pytest

from opsleuth.state.http_dates import read_http_date, read_retry_after

NOW = datetime(2026, 11, 29, 14, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("99999999", 99_999_999.0),
        ("0.5", 0.5),
        ("Sun, 29 Nov 2026 14:00:30 GMT", 30.0),
        ("Sun, 29 Nov 2026 13:00:00 GMT", 0.0),
        ("Sun, 29 Nov 2026 14:00:30 -0000", 30.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_a_server_asks_to_wait_in_seconds_or_until_a_date(text: str, seconds: float | None) -> None:
    assert read_retry_after(text, NOW) == seconds


def test_a_date_without_a_zone_is_utc() -> None:
    assert read_http_date("Sun, 29 Nov 2026 14:00:00 -0000") == NOW
    assert read_http_date("yesterday") is None
