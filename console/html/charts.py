"""Series of metrics as SVG: the course in the incident window, its usual level, and where it turned."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import floor, isfinite, log10
from typing import Any, NamedTuple

from opsleuth.console.html.markup import Html, el
from opsleuth.console.times import Display
from opsleuth.state.words import counted

WIDTH, HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 26, 34


class Mark(NamedTuple):
    """A moment on the time axis and what happened then."""

    time: float
    text: str


class Course(NamedTuple):
    """One series of a piece of evidence: times in seconds, the usual range if it is known, where it turned."""

    evidence: str
    title: str
    unit: str
    points: Sequence[tuple[float, float]]
    usual: tuple[float, float] | None
    turn: float | None


def course(evidence: str, record: Mapping[str, Any]) -> Course | None:
    """The series in a record of `metrics_query`, None if it holds none."""
    points = [
        (seconds, float(p["value"]))
        for p in record.get("points") or []
        if isinstance(p, Mapping)
        and (seconds := when(p.get("time"))) is not None
        and isinstance(p.get("value"), int | float)
        and isfinite(p["value"])
    ]
    if len(points) < 2:
        return None
    levels = record.get("baseline") or record.get("before_window") or {}
    usual = (levels.get("min"), levels.get("p95"))
    return Course(
        evidence,
        f"{record.get('metric')} of {record.get('service')}",
        str(record.get("unit") or ""),
        points,
        (float(usual[0]), float(usual[1])) if all(isinstance(v, int | float) for v in usual) else None,  # type: ignore[arg-type]
        when(record.get("change_point")),
    )


def when(text: object) -> float | None:
    """RFC 3339 text as seconds, None for anything else."""
    try:
        return datetime.fromisoformat(str(text)).timestamp() if text else None
    except ValueError:
        return None


def chart(drawn: Course, window: tuple[float, float], marks: Sequence[Mark], times: Display) -> Html:
    """A figure with the series as a line, readable without its colours."""
    start = min(drawn.points[0][0], window[0])
    end = max(drawn.points[-1][0], window[1])
    margin = (end - start) * 0.04 or 1.0
    values = [value for _, value in drawn.points] + list(drawn.usual or ())
    frame = _Frame(start - margin, end + margin, min(0.0, *values), max(values))
    at = f"{drawn.title} from {_clock(start, times)} to {_clock(end, times)}"
    low, high = min(v for _, v in drawn.points), max(v for _, v in drawn.points)
    said = f"{at}: from {_figure(low)} to {_figure(high)} {drawn.unit}".rstrip()
    turned = f"; it turns at {_clock(drawn.turn, times)}" if drawn.turn else ""
    return el(
        "figure",
        el("figcaption", el("strong", drawn.title), f" {drawn.unit} ", _link(drawn.evidence)),
        el(
            "div",
            el(
                "svg",
                el("title", said + turned),
                el("desc", _described(drawn, marks, times)),
                _window(frame, window),
                _usual(frame, drawn.usual),
                _axes(frame, times),
                el("polyline", class_="line", points=" ".join(frame.at(t, v) for t, v in drawn.points)),
                _turn(frame, drawn.turn, times),
                _marks(frame, marks),
                viewBox=f"0 0 {WIDTH} {HEIGHT}",
                role="img",
            ),
            class_="chart",
        ),
        _table(drawn, times),
    )


class _Frame:
    """Seconds and values as places in the drawing."""

    def __init__(self, start: float, end: float, low: float, high: float) -> None:
        self.start, self.end, self.low = start, end, low
        self.high = high if high > low else low + 1.0
        self.ticks = _ticks(self.low, self.high)
        self.high = max(self.high, self.ticks[-1])

    def x(self, time: float) -> float:
        share = (time - self.start) / (self.end - self.start)
        return round(_LEFT + min(max(share, 0.0), 1.0) * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    def at(self, time: float, value: float) -> str:
        return f"{self.x(time)},{self.y(value)}"


def _ticks(low: float, high: float) -> list[float]:
    """Round values from `low` to the first at or above `high`, four or five of them."""
    raw = (high - low) / 4
    size = 10.0 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw)
    first = floor(low / step) * step
    return [first + step * i for i in range(round((high - first) / step + 1.4999))]


_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


def moments(start: float, end: float, most: int = 7) -> list[float]:
    """Round moments from `start` to `end`, in seconds, at most so many."""
    step = next((s for s in _STEPS if (end - start) / s <= most), (end - start) / most)
    first = -(-start // step) * step
    return [first + step * i for i in range(int((end - first) // step) + 1)]


def _window(frame: _Frame, window: tuple[float, float]) -> Html:
    left, right = frame.x(window[0]), frame.x(window[1])
    return el("rect", class_="window", x=left, y=_TOP, width=right - left, height=HEIGHT - _TOP - _BOTTOM)


def _usual(frame: _Frame, usual: tuple[float, float] | None) -> Html | None:
    if usual is None:
        return None
    top, bottom = frame.y(usual[1]), frame.y(usual[0])
    band = el(
        "rect", class_="band", x=_LEFT, y=top, width=WIDTH - _LEFT - _RIGHT, height=max(bottom - top, 2.0)
    )
    return el("g", band, el("text", "usual", class_="soft", x=_LEFT + 4, y=max(top - 3, _TOP + 10)))


def _axes(frame: _Frame, times: Display) -> Iterable[Html]:
    for value in frame.ticks:
        y = frame.y(value)
        yield el("line", class_="grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y)
        yield el("text", _figure(value), class_="soft", x=_LEFT - 6, y=y + 4, text_anchor="end")
    for time in moments(frame.start, frame.end):
        yield el(
            "text", _clock(time, times), class_="soft", x=frame.x(time), y=HEIGHT - 12, text_anchor="middle"
        )


def _turn(frame: _Frame, turn: float | None, times: Display) -> Html | None:
    if turn is None:
        return None
    x = frame.x(turn)
    side = "end" if x > WIDTH / 2 else "start"
    text = el(
        "text",
        f"turns {_clock(turn, times)}",
        class_="turned",
        x=x - 5 if side == "end" else x + 5,
        y=_TOP - 8,
        text_anchor=side,
    )
    return el("g", el("line", class_="turn", x1=x, x2=x, y1=_TOP - 16, y2=HEIGHT - _BOTTOM), text)


def _marks(frame: _Frame, marks: Sequence[Mark]) -> Iterable[Html]:
    """A triangle on the axis for each moment; its text is in its title and in the timeline."""
    base = HEIGHT - _BOTTOM
    for mark in marks:
        if frame.start <= mark.time <= frame.end:
            x = frame.x(mark.time)
            yield el(
                "g",
                el("title", mark.text),
                el("polygon", class_="dot", points=f"{x - 5},{base + 9} {x + 5},{base + 9} {x},{base}"),
            )


def _described(drawn: Course, marks: Sequence[Mark], times: Display) -> str:
    usual = f"usual from {_figure(drawn.usual[0])} to {_figure(drawn.usual[1])}. " if drawn.usual else ""
    return usual + "; ".join(f"{_clock(mark.time, times)} {mark.text}" for mark in marks)


def _table(drawn: Course, times: Display) -> Html:
    """The same as figures, for whoever does not see the drawing."""
    rows = [
        el("tr", el("td", times.clock(stamp(time))), el("td", _figure(value), class_="number"))
        for time, value in drawn.points
    ]
    unit = el("th", drawn.unit or "value", scope="col", class_="number")
    head = el("tr", el("th", f"time ({times.name})", scope="col"), unit)
    return el(
        "details",
        el("summary", counted(len(rows), "value")),
        el("table", el("thead", head), el("tbody", rows)),
    )


def _clock(seconds: float, times: Display) -> str:
    return times.clock(stamp(seconds), seconds=False)


def stamp(seconds: float) -> str:
    """Seconds as RFC 3339 text in UTC."""
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat()


def strip(marks: Sequence[Mark], window: tuple[float, float], times: Display) -> Html | None:
    """The moments of the timeline on one axis, numbered as in the list below it."""
    if not marks:
        return None
    start = min(window[0], *(m.time for m in marks))
    end = max(window[1], *(m.time for m in marks))
    margin = (end - start) * 0.04 or 1.0
    frame = _Frame(start - margin, end + margin, 0.0, 1.0)
    rows = _rows([frame.x(mark.time) for mark in marks])
    base = _DOT * (max(rows) + 1) + 12
    left, right = frame.x(window[0]), frame.x(window[1])
    ticks = [
        el("text", _clock(t, times), class_="soft", x=frame.x(t), y=base + 16, text_anchor="middle")
        for t in moments(frame.start, frame.end)
    ]
    dots = [
        _dot(n, mark, frame.x(mark.time), base - 10 - _DOT * row)
        for n, (mark, row) in enumerate(zip(marks, rows, strict=True), 1)
    ]
    said = f"{len(marks)} moments from {_clock(start, times)} to {_clock(end, times)}; the incident window is shaded"
    drawn = el(
        "svg",
        el("title", said),
        el("rect", class_="window", x=left, y=6, width=right - left, height=base - 6),
        el("line", class_="grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=base, y2=base),
        ticks,
        dots,
        viewBox=f"0 0 {WIDTH} {base + 24}",
        role="img",
    )
    return el("div", drawn, class_="chart")


_DOT = 17


def _rows(places: Sequence[float]) -> list[int]:
    """A row for each dot, so that none covers another."""
    taken: list[float] = []
    rows = []
    for x in places:
        row = next((i for i, last in enumerate(taken) if x - last >= _DOT), len(taken))
        taken[row : row + 1] = [x]
        rows.append(row)
    return rows


def _dot(number: int, mark: Mark, x: float, y: float) -> Html:
    text = el("text", str(number), class_="number", x=x, y=y + 4, text_anchor="middle")
    return el("g", el("title", mark.text), el("circle", class_="dot", cx=x, cy=y, r=8), text)


def _figure(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _link(evidence: str) -> Html:
    return el("span", el("a", evidence, href=f"#{evidence}"), class_="cite")
