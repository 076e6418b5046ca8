"""How figures, texts and times are written for people."""

from datetime import UTC, datetime

from opsleuth.verification.facts import SHARE, Number

_LONGEST_TEXT = 240


def format_value(value: Number | str | None, unit: str = "", *, longest: int = _LONGEST_TEXT) -> str:
    """A figure with two or three significant digits and its unit; words in quotation marks, times as they are."""
    if value is None:
        return "–"
    if isinstance(value, str):
        flat = " ".join(value.split())
        return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
    if unit == SHARE:
        return f"{format_number(value * 100)} %"
    return f"{format_number(value)} {unit}".strip()


def format_number(value: Number) -> str:
    """Integers in full with separators, other numbers with three significant digits."""
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):.10f}".rstrip("0").rstrip(".") if abs(value) >= 1e-6 else f"{value:.3g}"


def format_clock(time: str | None) -> str:
    """`14:02:00Z` with its date only where the text itself has no time of day."""
    return time or ""


def format_gap(seconds: float) -> str:
    """A duration in the largest units that say it exactly to the second."""
    whole = round(abs(seconds))
    if whole < 1:
        return f"{abs(seconds):.3g} s"
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    return " ".join(f"{n} {unit}" for n, unit in parts if n)


def format_instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
