"""The report as an HTML file: what it says, that data cannot break out of it, and how a real browser shows it."""

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import Page, browser
from hypothesis import given
from hypothesis import strategies as st
from nonempty import nonempty
from stored_runs import HOSTILE, Program

from opsleuth.console.html.charts import (
    ChartSeries,
    TimeMark,
    choose_time_ticks,
    draw_series_chart,
    draw_timeline_strip,
    seconds_from_timestamp,
    series_from_record,
)
from opsleuth.console.html.dependency_graph import ServiceGraph, build_service_graph, draw_service_graph
from opsleuth.console.html.markup import make_element
from opsleuth.console.html.page import ReportMaterial, render_report_page
from opsleuth.console.time_formats import IN_UTC
from opsleuth.scenarios.orders_incident import write_case

WINDOW = (1_700_000_000.0, 1_700_003_600.0)


class Reader(HTMLParser):
    """Element names, ids, links, and whether what was opened is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.faults: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name == "href" and value]
        if tag not in ("meta", "br", "hr", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def check(text: str) -> Reader:
    """A page must be well formed, hold no script and no address, and lead to no missing place."""
    reader = Reader(text)
    assert not reader.faults
    assert not reader.open
    assert "script" not in reader.names
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name == "src"]
    assert all(link.startswith("#") for link in reader.links)
    assert {link[1:] for link in reader.links} <= set(reader.ids)
    assert len(reader.ids) == len(set(reader.ids))
    return reader


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the built-in incident, as the command writes it."""
    folder = tmp_path_factory.mktemp("html")
    program = Program(folder / "opsleuth.db", folder)
    program("run", "--case", str(write_case(folder / "case")), "-q")
    done = program("report", "-o", str(folder / "report.html"))
    assert done.returncode == 0, done.stderr
    shown = program("report", "--format", "html")
    assert shown.stdout == (folder / "report.html").read_text("utf-8")
    return folder / "report.html"


def test_the_file_stands_alone_and_links_every_claim_to_its_evidence(written: Path) -> None:
    text = written.read_text("utf-8")
    reader = check(text)
    assert "http" not in re.sub(r"http-equiv|http_\w+", "", text)
    assert {
        "conclusion",
        "timeline",
        "metrics",
        "dependencies",
        "next",
        "hypotheses",
        "claims",
        "evidence",
    } <= set(reader.ids)
    assert {"C1", "E1"} <= set(reader.ids)
    assert text.count("<svg") >= 3
    assert text.count("turns ") >= 1


def test_hostile_data_stays_text(document: dict[str, Any]) -> None:
    evil = f"</style><script>alert(1)</script><img src=x onerror=a()> ' \" & {HOSTILE}"
    hostile = {
        **document,
        "question": evil,
        "answer": evil,
        "causes": [{"service": evil, "kind": evil, "confidence": evil, "claims": ["C1"]}],
        "claims": [{"id": "C1", "text": evil, "status": evil, "evidence": [], "problems": [evil]}],
        "hypotheses": [{"id": "H1", "text": evil, "status": evil}],
        "propagation": [[evil, "b"]],
        "ruled_out": [],
        "timeline": [
            {"time": "2026-03-03T14:00:00Z", "text": evil, "evidence": None},
            {"time": evil, "text": evil},
        ],
        "recommendations": [{"text": evil, "risk": "high"}],
        "not_available": [evil],
        "warnings": [evil],
        "denied": [{"tool": evil, "arguments": {evil: evil}, "reason": evil}],
        "fields": {evil: {evil: evil}},
    }
    text = render_report_page(ReportMaterial(hostile), IN_UTC)
    reader = Reader(text)
    assert not reader.faults
    assert {"script", "img"}.isdisjoint(reader.names)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "订单服务" in text
    assert "[/db] [prod]" in text


@pytest.mark.parametrize(
    "name", ["timeline", "causes", "claims", "evidence", "window", "usage", "alert", "answer"]
)
def test_every_field_may_be_missing(document: dict[str, Any], name: str) -> None:
    document.pop(name, None)
    assert not Reader(render_report_page(ReportMaterial(document), IN_UTC)).faults
    assert not Reader(render_report_page(ReportMaterial({}), IN_UTC)).faults


@given(st.text())
def test_no_text_becomes_markup(text: str) -> None:
    made = make_element("p", text, title=text)
    reader = Reader(made)
    assert reader.names == ["p"]
    assert not reader.faults


POINTS = st.lists(
    st.tuples(
        st.floats(WINDOW[0] - 9_999, WINDOW[1] + 9_999), st.floats(-1e12, 1e12) | st.sampled_from([0.0, 1e-9])
    ),
    min_size=2,
    max_size=40,
)


@given(POINTS, st.none() | st.tuples(st.floats(0, 9), st.floats(9, 99)), st.none() | st.floats(*WINDOW))
def test_any_series_stays_inside_its_frame(
    points: list[tuple[float, float]], usual: tuple[float, float] | None, turn: float | None
) -> None:
    drawn = draw_series_chart(
        ChartSeries("E1", "x of y", "ms", sorted(points), usual, turn),
        WINDOW,
        [TimeMark(WINDOW[0], "m")],
        IN_UTC,
    )
    assert "nan" not in drawn
    line = re.search(r'<polyline [^>]*points="([^"]+)"', drawn)
    assert line
    for place in line[1].split():
        x, y = map(float, place.split(","))
        assert 0 <= x <= 720
        assert 0 <= y <= 220


def test_a_record_without_points_is_no_chart() -> None:
    assert (
        series_from_record(
            "E1", {"points": [{"time": "x", "value": 1}, {"time": "2026-03-03T14:00:00Z", "value": "y"}]}
        )
        is None
    )
    assert series_from_record("E1", {}) is None


def test_moments_are_round_and_few() -> None:
    for length in (1, 60, 599, 3_600, 90_000, 10_000_000):
        assert 1 <= len(choose_time_ticks(1_700_000_001.0, 1_700_000_001.0 + length)) <= 8


def test_the_strip_covers_no_dot_with_another() -> None:
    drawn = draw_timeline_strip(
        [TimeMark(WINDOW[0], "a"), TimeMark(WINDOW[0], "b"), TimeMark(WINDOW[0] + 1, "c")], WINDOW, IN_UTC
    )
    places = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn or "")
    assert len(set(places)) == 3
    assert draw_timeline_strip([], WINDOW, IN_UTC) is None


@given(st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), min_size=1))
def test_circles_of_calls_are_drawn_too(calls: set[tuple[str, str]]) -> None:
    drawn = draw_service_graph(ServiceGraph(frozenset(calls), (("a", "b"), ("b", "a")), ("a",), "c"))
    assert drawn is not None
    assert drawn.count("<rect") <= 6


def test_topology_becomes_calls(document: dict[str, Any]) -> None:
    around = {
        "service": "b",
        "calls": [{"service": "c", "distance": 1}, {"service": "d", "distance": 2}],
        "called_by": [],
    }
    found = build_service_graph(document, [around, {"caller_callee": [["x", "y"]]}])
    assert found.calls == {("b", "c"), ("x", "y")}
    assert found.spread[0] == ("orders-api", "gateway")


# In a real browser


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


CONTRAST = """
(() => {
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b; };
  const rgba = (s) => { const m = s.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const back = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > .5) return c; }
    return [255, 255, 255, 1]; };
  const low = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (e.closest("svg")) continue;
    const a = light(rgba(getComputedStyle(e).color).slice(0, 3)), b = light(back(e).slice(0, 3));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) low.push([e.tagName, e.className, ratio]);
  }
  return low;
})()
"""


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
def test_it_reads_on_a_phone_and_on_a_desk_by_day_and_by_night(
    tab: Page, written: Path, width: int, scheme: str
) -> None:
    tab.requests.clear()
    tab.size(width, scheme=scheme)
    tab.go(written.as_uri())
    assert tab.requests == [written.as_uri()], "no request leaves"
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value(CONTRAST) == []
    assert tab.value("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)"
    )


HIDDEN_ENDS = """
[...document.querySelectorAll(".chart")].filter(chart => {
  const [shown, drawn] = [chart.getBoundingClientRect(), chart.firstElementChild.getBoundingClientRect()];
  return drawn.right > shown.right + 1;
}).length
"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 390, 1100])
def test_a_chart_shows_its_end_first(tab: Page, written: Path, width: int) -> None:
    """The incident lies at the end of a chart, and a phone shows only a part of it at once."""
    tab.size(width)
    tab.go(written.as_uri())
    assert tab.value("document.querySelectorAll('.chart').length") > 1
    assert tab.value(HIDDEN_ENDS) == 0


@pytest.mark.browser
def test_every_link_leads_to_what_it_names(tab: Page, written: Path) -> None:
    tab.size(1100)
    tab.go(written.as_uri())
    for link in nonempty(tab.value("[...new Set([...document.links].map((a) => a.getAttribute('href')))]")):
        tab.value(f"document.querySelector('a[href=\"{link}\"]').click()")
        assert tab.value("location.hash") == link
        box = tab.value(
            f"(() => {{ const r = document.querySelector('{link}').getBoundingClientRect(); return [r.top, r.height] }})()"
        )
        assert -1 <= box[0] <= 900
        assert box[1] > 0


@pytest.mark.browser
def test_it_needs_no_script_and_allows_none(tab: Page, written: Path) -> None:
    tab.go(written.as_uri())
    refused = "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); return window.ran ?? 0 })()"
    assert tab.value(refused) == 0
    assert tab.value("document.querySelector('details').open") is False
    assert "CONCLUSION" in tab.value("document.querySelector('main').innerText.toUpperCase()")


@pytest.mark.browser
def test_a_screen_reader_finds_its_way(tab: Page, written: Path) -> None:
    tab.go(written.as_uri())
    nodes = tab("Accessibility.getFullAXTree")["nodes"]
    roles = [n["role"]["value"] for n in nodes if not n.get("ignored")]
    assert {"main", "navigation", "banner", "contentinfo", "region"} <= set(roles)
    assert roles.count("heading") >= 8
    images = [n for n in nodes if n["role"]["value"] in ("image", "img") and not n.get("ignored")]
    assert len(images) >= 3
    assert all(n.get("name", {}).get("value") for n in images)
    assert tab.value("document.documentElement.lang") == "en"


@pytest.mark.browser
def test_on_paper_the_evidence_is_open(tab: Page, written: Path) -> None:
    tab.size(800, media="print")
    tab.go(written.as_uri())
    assert tab.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert (
        tab.value("document.querySelector('details pre').checkVisibility({contentVisibilityAuto: true})")
        is True
    )
    tab.size(1100)


def test_a_time_without_a_zone_is_read_as_utc_wherever_the_chart_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert seconds_from_timestamp("2026-05-12T09:00:00") == seconds_from_timestamp("2026-05-12T09:00:00Z")
    finally:
        monkeypatch.undo()
        time.tzset()
