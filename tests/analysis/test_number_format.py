"""Numbers as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.number_format import format_number, scale_to_readable_unit, to_percent


@pytest.mark.parametrize(
    ("value", "written"),
    [(23314.2, "23,314"), (0.0, "0"), (0.06679, "0.06679"), (17.8321, "17.83"), (0.00000123, "0.00000123"), (999.96, "1000")],
)  # fmt: skip
def test_a_number_is_written_without_exponent(value: float, written: str) -> None:
    assert format_number(value) == written


@given(st.floats(min_value=1e-8, max_value=1e12))
def test_what_is_written_is_the_number_to_four_digits(value: float) -> None:
    assert float(format_number(value).replace(",", "")) == pytest.approx(value, rel=1e-3, abs=1e-10)


def test_shares_and_bytes() -> None:
    assert to_percent(0.178321) == 17.83
    assert scale_to_readable_unit((1.5 * 2**30, 2**29), "Bytes") == ([1.5, 0.5], "GiB")
    assert scale_to_readable_unit((12.0,), "ms") == ([12.0], "ms")
    assert scale_to_readable_unit((0.0,), "bytes") == ([0.0], "bytes")
