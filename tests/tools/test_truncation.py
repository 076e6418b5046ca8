"""A record that is cut fits its limit, stays JSON, keeps its ends, and says what is missing."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsleuth.tools.truncation import CUT_ITEMS_MARK, bound_record, canonical_json_size, cut_text

LEAVES = (
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=60).map(lambda text: text * 5)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=9), inner, max_size=6),
)
RECORDS = st.dictionaries(st.text(max_size=9), VALUES, max_size=6)


@settings(max_examples=40)
@given(RECORDS, st.integers(100, 2_000))
def test_a_bounded_record_fits_and_a_small_one_is_untouched(record: dict[str, Any], limit: int) -> None:
    result = bound_record(record, limit)
    assert canonical_json_size(result) <= limit
    assert json.loads(json.dumps(result)) == result
    if canonical_json_size(record) <= limit:
        assert result is record
    else:
        cut = result["cut"]
        assert (cut["bytes"], cut["limit"]) == (canonical_json_size(record), limit)
        assert cut.get("left_out", len({*record} - {*result})) == len({*record} - {*result})


@pytest.mark.parametrize("limit", range(250, 700, 50))
def test_where_little_fits_a_row_comes_before_what_describes_the_search(limit: int) -> None:
    """Each part is small, so that shortening lists and texts alone would not do."""
    about = {f"counted_{i}": {"metrics": i, "logs": i, "traces": i} for i in range(20)}
    rows = [{"service": f"checkout-{i}", "kind": "errors", "score": 0.91} for i in range(3)]
    result = bound_record({**about, "suspects": rows, "verdict": "cause_found"}, limit)
    assert canonical_json_size(result) <= limit
    assert result["suspects"][0] == rows[0]
    assert result["verdict"] == "cause_found"
    assert "counted_19" not in result
    assert result["cut"]["left_out"] == 22 - (len(result) - 1)


def test_a_long_list_keeps_its_ends_and_counts_the_hole() -> None:
    result = bound_record({"n": list(range(100_000))}, 10_000)
    values = result["n"]
    (hole,) = [v for v in values if isinstance(v, str)]
    assert CUT_ITEMS_MARK.fullmatch(hole)
    missing = int(hole.strip("…[]").split()[0].replace(",", ""))
    assert (values[0], values[-1], len(values) - 1 + missing) == (0, 99_999, 100_000)


@given(st.text(max_size=300), st.integers(10, 100))
def test_cut_text_keeps_head_and_tail(text: str, width: int) -> None:
    cut = cut_text(text, width)
    if len(text) <= width:
        assert cut == text
    elif len(text) - width < 50:
        assert cut == f"{text[: width - 1]}…"  # a mark in the middle would take more than it saves
    elif cut != text:
        assert (cut[:6], cut[-3:]) == (text[:6], text[-3:])
        assert "characters cut" in cut
    assert len(cut) <= max(width, 0) + 40
