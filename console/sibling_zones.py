"""The time zone of files without one, where another file beside them shows the offset of the same machine."""

from collections.abc import Sequence
from datetime import timedelta

from opsleuth.tools.sources.file_kinds import FileKind

_SLACK = 900.0
_Span = tuple[float, float]


def infer_sibling_offset(kinds: Sequence[FileKind]) -> float | None:
    """The offset in seconds that files without a zone seem to be written in; None where there is none or UTC fits.

    All files that carry an offset carry the same one, and each file without lies inside their time when it is read
    with it, and outside when it is read as UTC.
    """
    carrying = [kind for kind in kinds if kind.offset is not None and _span_of(kind)]
    offsets = {kind.offset for kind in carrying if kind.offset}
    others = [span for kind in kinds if kind.zoneless and (span := _span_of(kind))]
    if len(offsets) != 1 or len(offsets) < len({kind.offset for kind in carrying}) or not others:
        return None
    [offset] = offsets
    spans = [span for kind in carrying if (span := _span_of(kind))]
    whole = min(first for first, _ in spans) - _SLACK, max(last for _, last in spans) + _SLACK
    fits = all(_lies_in((first - offset, last - offset), whole) for first, last in others)
    return offset if fits and not any(_lies_in(span, whole) for span in others) else None


def describe_offset(offset: float) -> str:
    """`+05:30`."""
    minutes = int(abs(timedelta(seconds=offset)).total_seconds() // 60)
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _span_of(kind: FileKind) -> _Span | None:
    if kind.holds != "logs" or kind.first is None or kind.last is None:
        return None
    return kind.first, kind.last


def _lies_in(span: _Span, whole: _Span) -> bool:
    return whole[0] <= span[0] and span[1] <= whole[1]
