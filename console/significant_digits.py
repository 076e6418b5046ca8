"""Figures in sentences for people: three significant digits, names and code left as they are."""

import re

_CODE = re.compile(r"(`[^`]*`|\"[^\"]*\")")
_FIGURE = re.compile(
    r"(?<![\w.,:/+#-])(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?P<part>\.\d+)?(?![\w:/-]|[.,]\d)(?P<percent> %)?"
)
_NAME_BEFORE = re.compile(r"(?:\b[A-Z][A-Za-z]+|\b(?:version|release|deploy|image|v)|\bback to) $")
"""Words before a number that belongs to a name: `Ubuntu 22.04`, `release 3.1415`."""

_DIGITS = 3
_MILLION = 1_000_000


def shorten_figures(text: str) -> str:
    """`text` with 0.04327 as 0.0433 and 16,446,000 as 16.4 million; quotations, code, times and versions stay."""
    parts = _CODE.split(text)
    return "".join(part if i % 2 else _FIGURE.sub(_shorten_match, part) for i, part in enumerate(parts))


def shorten_figure(value: float) -> str:
    """Three significant digits without an exponent; from a thousand on whole numbers with separators."""
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < _MILLION else f"{value / _MILLION:.3g} million"
    return f"{float(f'{value:.{_DIGITS}g}'):.10f}".rstrip("0").rstrip(".")


def _shorten_match(found: re.Match[str]) -> str:
    written = found["whole"] + (found["part"] or "")
    percent = found["percent"] or ""
    if _NAME_BEFORE.search(found.string, max(0, found.start() - 40), found.start()):
        return found[0]
    value = float(written.replace(",", ""))
    if not found["part"]:
        return (shorten_figure(value) if "," in written and value >= _MILLION else written) + percent
    if len(written.replace(",", "").replace(".", "").lstrip("0")) <= _DIGITS:
        return found[0]
    rounded = shorten_figure(value)
    if percent and rounded == "100":
        rounded = "99.9"  # almost all is not all
    return rounded + percent
