"""Counts by statement and minute: exact whatever comes, with sampled text, in bounded memory."""

import string
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsleuth.analysis import template_counts
from opsleuth.analysis.log_templates import Masker, find_code_location, mask_log_line
from opsleuth.analysis.records import LogLine
from opsleuth.analysis.template_counts import SAMPLES, TemplateCounter

PARTS = st.sampled_from([
    "7f3ad4d1-9d0c-4b8f-8a55-6c1a9b3f2e10", "deadbeef", "0a1b2c3d4e", "12345678", "4113.252ms", "10.0.0.7:5432", "a", "B", "-", "_", ".", ":", "/", " ",
    "=", "(", ")", '"', "'", "2026-11-29", "14:00:02,149", "c.s.Cart#12", "app.py:7", "1024K->0K(2048K)", "99%", "1,234.5", "µs", "0x1F", "1e5", "-7", "[",
    "]", "é", "٣", "fe80::1:2", "me@x.org", "checkout-7d9f8b6c54-x2x8p",
])  # fmt: skip
TEXTS = st.lists(PARTS | st.integers(0, 10**12).map(str), max_size=12).map("".join)
WORDS = st.sampled_from(
    ["cart paid", "cart failed", "order 7 of user 9 sent", "order 81 of user 5 sent", "x"]
)
LINES = st.lists(
    st.builds(LogLine, st.none() | st.floats(0, 10_000), st.sampled_from(["cart", "web"]), WORDS, st.sampled_from([None, "ERROR"])),
    max_size=60,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, max_size=4))
def test_a_mask_that_is_remembered_is_the_mask(messages: list[str]) -> None:
    masker = Masker()
    for message in [*messages, *messages]:
        assert masker.mask(message) == mask_log_line(message)
        assert masker.location(message) == find_code_location(message)


def test_lines_that_differ_in_numbers_and_ids_have_one_form() -> None:
    masker = Masker()
    one = masker.form("order 8a533bf9-bd12-4608-a8eb-606890982448 paid in 3 ms by deadbee7f")
    assert one == masker.form("order 00000000-aaaa-bbbb-cccc-1234567890ab paid in 4113.25 ms by 0123abcde")
    assert one != masker.form("order 8a533bf9-bd12-4608-a8eb-606890982448 paid in 3 s by deadbee7f")


@given(LINES)
def test_every_line_is_counted_once_in_its_minute(lines: list[LogLine]) -> None:
    counter = TemplateCounter().add_all(lines)
    rows = counter.rows()
    assert sum(row.count for row in rows) == counter.lines == len(lines)
    assert sum(row.without_time for row in rows) == sum(line.time is None for line in lines)
    minutes = Counter(
        (line.service, line.level, line.time // 60 * 60) for line in lines if line.time is not None
    )
    counted: Counter[tuple[str, str | None, float]] = Counter()
    for row in rows:
        for start, count in counter.bucket_starts(row).items():
            counted[row.service, row.level, start] += count
    assert counted == minutes


def test_a_statement_has_its_times_and_samples() -> None:
    counter = TemplateCounter().add_all(LogLine(60.0 * i, "cart", f"order {i} sent") for i in range(10))
    [row] = counter.rows()
    assert (row.text, row.count, row.first, row.last) == ("order <n> sent", 10, 0.0, 540.0)
    assert row.samples == ["order 0 sent"]
    assert len(row.samples) <= SAMPLES


def test_lines_of_two_places_in_the_code_stay_apart() -> None:
    counter = TemplateCounter().add_all(LogLine(1.0, "cart", f"a.B#{34 + i % 2} done {i}") for i in range(10))
    assert [row.count for row in counter.rows()] == [5, 5]


def test_buckets_widen_before_they_become_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_counts, "MOST_CELLS", 100)
    counter = TemplateCounter().add_all(LogLine(60.0 * i, "cart", "x") for i in range(1_000))
    [row] = counter.rows()
    assert counter.width > 60
    assert len(row.by_bucket) <= 101
    assert sum(row.by_bucket.values()) == row.count == 1_000


def test_memory_is_bounded_whatever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_counts, "MOST_FORMS", 50)
    letters = string.ascii_lowercase
    lines = [
        LogLine(1.0, "cart", f"{letters[i % 26]}{letters[i // 26 % 26]} went {letters[i % 7]}")
        for i in range(3_000)
    ]
    counter = TemplateCounter().add_all(lines)
    assert counter.forms_held <= 50
    assert sum(row.count for row in counter.rows()) == 3_000
