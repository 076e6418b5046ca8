"""Objects of loggers that no list knows: time, level, message and service are found by words in the fields' names."""

import json
from typing import Any

import pytest

from opsleuth.tools.sources.logformat import LogLineReader

AT = 1_795_960_802.0


@pytest.mark.parametrize(
    "row",
    [
        {"evt_time": 1_795_960_802_000, "sev": "ERR", "svc": "orders", "txt": "charge failed", "dur_ms": 4},
        {"LogDate": "2026-11-29T14:00:02Z", "LogLvl": "ERR", "AppComponent": "orders", "logText": "charge failed"},
        {"occurred_at": "2026-11-29 15:00:02+01:00", "prio": "ERR", "app-id": "orders", "event_desc": "charge failed"},
        {"record.stamp": 1_795_960_802, "record.level": "ERR", "record.svc": "orders", "record.msg": "charge failed", "elapsed_time": 0.2},
        {"request_time": 0.004, "whenUtc": "1795960802.000", "sev_name": "ERR", "svc.id": "orders", "errorText": "charge failed"},
    ],
)  # fmt: skip
def test_fields_of_unknown_names(row: dict[str, Any]) -> None:
    line = LogLineReader().read(json.dumps(row), AT)
    assert (line.time, line.level, line.service, line.message) == (AT, "ERR", "orders", "charge failed")


@pytest.mark.parametrize(
    "row",
    [
        {"request_time": 0.004, "status": 502, "uri": "/"},
        {"time_ms": 1_795, "bytes": 7},
        {"format": "a b c", "attempt": 1_795_960_802_000_123_456_789},
        {"created_time": None, "at": True},
    ],
)
def test_what_only_sounds_like_a_time_is_none(row: dict[str, Any]) -> None:
    text = json.dumps(row)
    line = LogLineReader().read(text, AT)
    assert (line.time, line.message) == (None, text)


def test_names_that_loggers_use_come_first() -> None:
    row = {"time": "2026-11-29T14:00:02Z", "msg": "charge failed", "sent_time": "2020-01-01T00:00:00Z", "user_text": "hello there"}  # fmt: skip
    line = LogLineReader().read(json.dumps(row), AT)
    assert (line.time, line.message) == (AT, "charge failed")
    assert line.extra == {"sent_time": "2020-01-01T00:00:00Z", "user_text": "hello there"}
