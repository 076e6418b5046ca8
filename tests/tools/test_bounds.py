"""A record that is cut fits its limit, stays JSON, keeps its ends, and says what is missing."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from opsleuth.tools.bounds import HOLE, bounded, cut_text, size

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
    result = bounded(record, limit)
    assert size(result) <= limit
    assert json.loads(json.dumps(result)) == result
    if size(record) <= limit:
        assert result is record
    else:
        assert result["cut"] == {"bytes": size(record), "limit": limit}


def test_a_long_list_keeps_its_ends_and_counts_the_hole() -> None:
    result = bounded({"n": list(range(100_000))}, 10_000)
    values = result["n"]
    (hole,) = [v for v in values if isinstance(v, str)]
    assert HOLE.fullmatch(hole)
    missing = int(hole.strip("…[]").split()[0].replace(",", ""))
    assert (values[0], values[-1], len(values) - 1 + missing) == (0, 99_999, 100_000)


@given(st.text(max_size=300), st.integers(10, 100))
def test_cut_text_keeps_head_and_tail(text: str, width: int) -> None:
    cut = cut_text(text, width)
    assert cut == text or (cut[:6] == text[:6] and cut[-3:] == text[-3:] and "characters cut" in cut)
    assert len(cut) <= max(width, 0) + 40
