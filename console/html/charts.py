"""Series of metrics as SVG: the course in the incident window, its usual level, and where it turned."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import floor, isfinite, log10
from typing import Any, NamedTuple

from opsleuth.console.html.markup import Html, make_element
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.plurals import format_count

WIDTH, HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 26, 34


class TimeMark(NamedTuple):
    """A moment on the time axis and what happened then."""

    time: float
    text: str


class ChartSeries(NamedTuple):
    """One series of a piece of evidence: times in seconds, the usual range if it is known, where it turned."""

    evidence: str
    title: str
    unit: str
    points: Sequence[tuple[float, float]]
    usual: tuple[float, float] | None
    turn: float | None


def series_from_record(evidence: str, record: Mapping[str, Any]) -> ChartSeries | None:
    """The series in a record of `metrics_query`, None if it holds none."""
    points = [
        (seconds, float(p["value"]))
        for p in record.get("points") or []
        if isinstance(p, Mapping)
        and (seconds := seconds_from_timestamp(p.get("time"))) is not None
        and isinstance(p.get("value"), int | float)
        and isfinite(p["value"])
    ]
    if len(points) < 2:
        return None
    levels = record.get("baseline") or record.get("before_window") or {}
    usual = (levels.get("min"), levels.get("p95"))
    return ChartSeries(
        evidence,
        f"{record.get('metric')} of {record.get('service')}",
        str(record.get("unit") or ""),
        points,
        (float(usual[0]), float(usual[1])) if all(isinstance(v, int | float) for v in usual) else None,  # type: ignore[arg-type]
        seconds_from_timestamp(record.get("change_point")),
    )


def seconds_from_timestamp(text: object) -> float | None:
    """RFC 3339 text as seconds, a time without a zone as UTC; None for anything else."""
    try:
        moment = datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def draw_series_chart(
    drawn: ChartSeries, window: tuple[float, float], marks: Sequence[TimeMark], times: TimeDisplay
) -> Html:
    """A figure with the series as a line, readable without its colours."""
    start = min(drawn.points[0][0], window[0])
    end = max(drawn.points[-1][0], window[1])
    margin = (end - start) * 0.04 or 1.0
    values = [value for _, value in drawn.points] + list(drawn.usual or ())
    frame = _ChartFrame(start - margin, end + margin, min(0.0, *values), max(values))
    at = f"{drawn.title} from {_format_clock_time(start, times)} to {_format_clock_time(end, times)}"
    low, high = min(v for _, v in drawn.points), max(v for _, v in drawn.points)
    said = f"{at}: from {_format_figure(low)} to {_format_figure(high)} {drawn.unit}".rstrip()
    turned = f"; it turns at {_format_clock_time(drawn.turn, times)}" if drawn.turn else ""
    return make_element(
        "figure",
        make_element(
            "figcaption",
            make_element("strong", drawn.title),
            f" {drawn.unit} ",
            _link_to_evidence(drawn.evidence),
        ),
        make_element(
            "div",
            make_element(
                "svg",
                make_element("title", said + turned),
                make_element("desc", _describe_series(drawn, marks, times)),
                _draw_incident_window(frame, window),
                _draw_usual_band(frame, drawn.usual),
                _draw_axes(frame, times),
                make_element(
                    "polyline", class_="line", points=" ".join(frame.at(t, v) for t, v in drawn.points)
                ),
                _draw_turning_point(frame, drawn.turn, times),
                _draw_time_marks(frame, marks),
                viewBox=f"0 0 {WIDTH} {HEIGHT}",
                role="img",
            ),
            class_="chart",
        ),
        _build_values_table(drawn, times),
    )


class _ChartFrame:
    """Seconds and values as places in the drawing."""

    def __init__(self, start: float, end: float, low: float, high: float) -> None:
        self.start, self.end, self.low = start, end, low
        self.high = high if high > low else low + 1.0
        self.ticks = _choose_value_ticks(self.low, self.high)
        self.high = max(self.high, self.ticks[-1])

    def x(self, time: float) -> float:
        share = (time - self.start) / (self.end - self.start)
        return round(_LEFT + min(max(share, 0.0), 1.0) * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    def at(self, time: float, value: float) -> str:
        return f"{self.x(time)},{self.y(value)}"


def _choose_value_ticks(low: float, high: float) -> list[float]:
    """Round values from `low` to the first at or above `high`, four or five of them."""
    raw = (high - low) / 4
    size = 10.0 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw)
    first = floor(low / step) * step
    return [first + step * i for i in range(round((high - first) / step + 1.4999))]


_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


def choose_time_ticks(start: float, end: float, most: int = 7) -> list[float]:
    """Round moments from `start` to `end`, in seconds, at most this many."""
    step = next((s for s in _STEPS if (end - start) / s <= most), (end - start) / most)
    first = -(-start // step) * step
    return [first + step * i for i in range(int((end - first) // step) + 1)]


def _draw_incident_window(frame: _ChartFrame, window: tuple[float, float]) -> Html:
    left, right = frame.x(window[0]), frame.x(window[1])
    return make_element(
        "rect", class_="window", x=left, y=_TOP, width=right - left, height=HEIGHT - _TOP - _BOTTOM
    )


def _draw_usual_band(frame: _ChartFrame, usual: tuple[float, float] | None) -> Html | None:
    if usual is None:
        return None
    top, bottom = frame.y(usual[1]), frame.y(usual[0])
    band = make_element(
        "rect", class_="band", x=_LEFT, y=top, width=WIDTH - _LEFT - _RIGHT, height=max(bottom - top, 2.0)
    )
    return make_element(
        "g", band, make_element("text", "usual", class_="soft", x=_LEFT + 4, y=max(top - 3, _TOP + 10))
    )


def _draw_axes(frame: _ChartFrame, times: TimeDisplay) -> Iterable[Html]:
    for value in frame.ticks:
        y = frame.y(value)
        yield make_element("line", class_="grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y)
        yield make_element(
            "text", _format_figure(value), class_="soft", x=_LEFT - 6, y=y + 4, text_anchor="end"
        )
    for time in choose_time_ticks(frame.start, frame.end):
        yield make_element(
            "text",
            _format_clock_time(time, times),
            class_="soft",
            x=frame.x(time),
            y=HEIGHT - 12,
            text_anchor="middle",
        )


def _draw_turning_point(frame: _ChartFrame, turn: float | None, times: TimeDisplay) -> Html | None:
    if turn is None:
        return None
    x = frame.x(turn)
    side = "end" if x > WIDTH / 2 else "start"
    text = make_element(
        "text",
        f"turns {_format_clock_time(turn, times)}",
        class_="turned",
        x=x - 5 if side == "end" else x + 5,
        y=_TOP - 8,
        text_anchor=side,
    )
    return make_element(
        "g", make_element("line", class_="turn", x1=x, x2=x, y1=_TOP - 16, y2=HEIGHT - _BOTTOM), text
    )


def _draw_time_marks(frame: _ChartFrame, marks: Sequence[TimeMark]) -> Iterable[Html]:
    """A triangle on the axis for each moment; its text is in its title and in the timeline."""
    base = HEIGHT - _BOTTOM
    for mark in marks:
        if frame.start <= mark.time <= frame.end:
            x = frame.x(mark.time)
            yield make_element(
                "g",
                make_element("title", mark.text),
                make_element(
                    "polygon", class_="dot", points=f"{x - 5},{base + 9} {x + 5},{base + 9} {x},{base}"
                ),
            )


def _describe_series(drawn: ChartSeries, marks: Sequence[TimeMark], times: TimeDisplay) -> str:
    usual = (
        f"usual from {_format_figure(drawn.usual[0])} to {_format_figure(drawn.usual[1])}. "
        if drawn.usual
        else ""
    )
    return usual + "; ".join(f"{_format_clock_time(mark.time, times)} {mark.text}" for mark in marks)


def _build_values_table(drawn: ChartSeries, times: TimeDisplay) -> Html:
    """The same as figures, for whoever does not see the drawing."""
    rows = [
        make_element(
            "tr",
            make_element("td", times.clock(timestamp_from_seconds(time))),
            make_element("td", _format_figure(value), class_="number"),
        )
        for time, value in drawn.points
    ]
    unit = make_element("th", drawn.unit or "value", scope="col", class_="number")
    head = make_element("tr", make_element("th", f"time ({times.name})", scope="col"), unit)
    return make_element(
        "details",
        make_element("summary", format_count(len(rows), "value")),
        make_element("table", make_element("thead", head), make_element("tbody", rows)),
    )


def _format_clock_time(seconds: float, times: TimeDisplay) -> str:
    return times.clock(timestamp_from_seconds(seconds), seconds=False)


def timestamp_from_seconds(seconds: float) -> str:
    """Seconds as RFC 3339 text in UTC."""
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat()


def draw_timeline_strip(
    marks: Sequence[TimeMark], window: tuple[float, float], times: TimeDisplay
) -> Html | None:
    """The moments of the timeline on one axis, numbered as in the list below it."""
    if not marks:
        return None
    start = min(window[0], *(m.time for m in marks))
    end = max(window[1], *(m.time for m in marks))
    margin = (end - start) * 0.04 or 1.0
    frame = _ChartFrame(start - margin, end + margin, 0.0, 1.0)
    rows = _assign_dot_rows([frame.x(mark.time) for mark in marks])
    base = _DOT * (max(rows) + 1) + 12
    left, right = frame.x(window[0]), frame.x(window[1])
    ticks = [
        make_element(
            "text",
            _format_clock_time(t, times),
            class_="soft",
            x=frame.x(t),
            y=base + 16,
            text_anchor="middle",
        )
        for t in choose_time_ticks(frame.start, frame.end)
    ]
    dots = [
        _draw_numbered_dot(n, mark, frame.x(mark.time), base - 10 - _DOT * row)
        for n, (mark, row) in enumerate(zip(marks, rows, strict=True), 1)
    ]
    said = f"{format_count(len(marks), 'event')} from {_format_clock_time(start, times)} to {_format_clock_time(end, times)}; the incident window is shaded"
    drawn = make_element(
        "svg",
        make_element("title", said),
        make_element("rect", class_="window", x=left, y=6, width=right - left, height=base - 6),
        make_element("line", class_="grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=base, y2=base),
        ticks,
        dots,
        viewBox=f"0 0 {WIDTH} {base + 24}",
        role="img",
    )
    return make_element("div", drawn, class_="chart")


_DOT = 17


def _assign_dot_rows(places: Sequence[float]) -> list[int]:
    """A row for each dot, so that none covers another."""
    taken: list[float] = []
    rows = []
    for x in places:
        row = next((i for i, last in enumerate(taken) if x - last >= _DOT), len(taken))
        taken[row : row + 1] = [x]
        rows.append(row)
    return rows


def _draw_numbered_dot(number: int, mark: TimeMark, x: float, y: float) -> Html:
    text = make_element("text", str(number), class_="number", x=x, y=y + 4, text_anchor="middle")
    return make_element(
        "g", make_element("title", mark.text), make_element("circle", class_="dot", cx=x, cy=y, r=8), text
    )


def _format_figure(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _link_to_evidence(evidence: str) -> Html:
    return make_element("span", make_element("a", evidence, href=f"#{evidence}"), class_="cite")
