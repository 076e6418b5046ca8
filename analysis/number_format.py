"""Numbers as people read them: no exponents, shares in percent, bytes in the unit that fits."""

from collections.abc import Sequence

# From here on every digit before the point is written, with separators.
THOUSAND = 1000.0
_BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def format_number(value: float) -> str:
    """Four significant digits (`0.0478`, `17.83`), whole numbers with separators from a thousand on (`23,314`)."""
    if abs(value) >= THOUSAND:
        return f"{value:,.0f}"
    written = f"{value:.4g}"
    return f"{value:.10f}".rstrip("0").rstrip(".") if "e" in written else written


def to_percent(share: float) -> float:
    """A share as percent, to four significant digits."""
    return float(f"{100 * share:.4g}")


def scale_to_readable_unit(values: Sequence[float], unit: str) -> tuple[list[float], str]:
    """Values in bytes brought to the largest binary unit that leaves the largest of them at 1 or more."""
    if unit.strip().lower() not in ("bytes", "byte", "b"):
        return list(values), unit
    power, largest = 0, max((abs(value) for value in values), default=0.0)
    while largest >= 1024 and power + 1 < len(_BINARY):
        largest /= 1024
        power += 1
    return [value / 1024**power for value in values], _BINARY[power]
