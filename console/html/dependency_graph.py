"""Who calls whom, as SVG: the causes, the victims, and the way on which the harm spread."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.console import terminal_text as texts
from opsleuth.console.html.markup import Html, harmless_line, make_element

MOST = 28
"""The most services in a drawing; those nearest to the harm are kept."""
_COLUMN, _ROW, _WIDE, _HIGH = 190, 58, 150, 34

Pair = tuple[str, str]


class ServiceGraph(NamedTuple):
    """`calls` from caller to callee, `spread` from cause to victim, both by name."""

    calls: frozenset[Pair]
    spread: tuple[Pair, ...]
    causes: tuple[str, ...]
    alerting: str | None

    @property
    def harmed(self) -> set[str]:
        return (
            {name for pair in self.spread for name in pair} | set(self.causes) | {self.alerting or ""} - {""}
        )


def build_service_graph(document: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> ServiceGraph:
    """What the report and the evidence of `topology` say about it."""
    pairs: set[Pair] = set()
    for record in records:
        pairs |= {(str(p[0]), str(p[1])) for p in record.get("caller_callee") or [] if len(p) == 2}
        service = record.get("service")
        if service:
            pairs |= {
                (str(service), str(c["service"])) for c in record.get("calls") or [] if c["distance"] == 1
            }
            pairs |= {
                (str(c["service"]), str(service)) for c in record.get("called_by") or [] if c["distance"] == 1
            }
    alert = document.get("alert") or {}
    return ServiceGraph(
        frozenset(pairs),
        tuple((str(a), str(b)) for a, b in document.get("propagation") or []),
        tuple(dict.fromkeys(str(c.get("service")) for c in document.get("causes") or [])),
        alert.get("service") if isinstance(alert, Mapping) else None,
    )


def draw_service_graph(found: ServiceGraph) -> Html | None:
    """A figure, or None where there is nothing to connect."""
    kept = _select_drawn_services(found)
    edges = sorted(_select_edges(found, kept))
    if not edges:
        return None
    columns = _assign_columns(kept, edges)
    places = _place_boxes(columns)
    width = max(x for x, _ in places.values()) + _WIDE + 16
    height = max(y for _, y in places.values()) + _HIGH + 16
    return make_element(
        "figure",
        make_element("figcaption", "Callers on the left, what they call on the right. ", _build_legend()),
        make_element(
            "div",
            make_element(
                "svg",
                make_element("title", "Dependencies of the services concerned"),
                make_element("desc", _describe_graph(found, edges)),
                _define_arrowheads(),
                [_draw_edge(places[a], places[b], found, (a, b)) for a, b in edges],
                [_draw_service_box(name, place, found) for name, place in places.items()],
                viewBox=f"0 0 {width} {height}",
                role="img",
                style=f"max-width:{max(width, 320)}px",
            ),
            class_="chart",
        ),
    )


def _select_drawn_services(found: ServiceGraph) -> set[str]:
    """The harmed services, then their neighbours, as many as fit."""
    kept = set(sorted(found.harmed)[:MOST])
    near = sorted({n for pair in found.calls if kept & set(pair) for n in pair} - kept)
    kept |= set(near[: MOST - len(kept)])
    return kept


def _select_edges(found: ServiceGraph, kept: set[str]) -> set[Pair]:
    """Calls between kept services, and the spread where no call is known between the two."""
    calls = {pair for pair in found.calls if set(pair) <= kept and pair[0] != pair[1]}
    return calls | {(b, a) for a, b in found.spread if a != b and (a, b) not in calls}


def _assign_columns(names: Iterable[str], edges: Sequence[Pair]) -> list[list[str]]:
    """Each service right of all its callers, as far as there is no circle."""
    level = dict.fromkeys(sorted(names), 0)
    for _ in range(len(level)):
        moved = False
        for caller, callee in edges:
            if level[callee] <= level[caller] < len(level) - 1 and level[caller] < 6:
                level[callee], moved = level[caller] + 1, True
        if not moved:
            break
    used = sorted(set(level.values()))
    return [[name for name, at in level.items() if at == column] for column in used]


def _place_boxes(columns: Sequence[Sequence[str]]) -> dict[str, tuple[int, int]]:
    tallest = max(map(len, columns))
    return {
        name: (16 + x * _COLUMN, 16 + int((y + (tallest - len(column)) / 2) * _ROW))
        for x, column in enumerate(columns)
        for y, name in enumerate(column)
    }


def _draw_service_box(name: str, place: tuple[int, int], found: ServiceGraph) -> Html:
    x, y = place
    role = "cause" if name in found.causes else "victim" if name in found.harmed else ""
    word = {"cause": "cause", "victim": "harmed", "": ""}[role]
    return make_element(
        "g",
        make_element("title", f"{name}{f', {word}' if word else ''}"),
        make_element("rect", class_=f"box {role}".strip(), x=x, y=y, width=_WIDE, height=_HIGH, rx=6),
        make_element(
            "text",
            texts.cut_to_width(harmless_line(name), 20),
            x=x + _WIDE / 2,
            y=y + (16 if word else 22),
            text_anchor="middle",
        ),
        make_element("text", word, class_="soft", x=x + _WIDE / 2, y=y + 29, text_anchor="middle")
        if word
        else None,
    )


def _draw_edge(a: tuple[int, int], b: tuple[int, int], found: ServiceGraph, pair: Pair) -> Html:
    forth, back = pair in found.spread, (pair[1], pair[0]) in found.spread
    x1, y1 = a[0] + _WIDE, a[1] + _HIGH / 2
    x2, y2 = b[0], b[1] + _HIGH / 2
    if b[0] <= a[0]:  # a call within a column, or back: around the outside
        x1, x2 = a[0] + _WIDE, b[0] + _WIDE
        curve = f"M{x1},{y1} C{x1 + 40},{y1} {x2 + 40},{y2} {x2},{y2}"
    else:
        bend = (x2 - x1) / 2
        curve = f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"
    if forth or back:
        ends = {"marker_end": "url(#spread)"} if forth else {"marker_start": "url(#spread)"}
        return make_element("path", class_="spread", d=curve, **ends)
    return make_element("path", class_="edge", d=curve, marker_end="url(#calls)")


def _define_arrowheads() -> Html:
    def head(name: str, style: str) -> Html:
        arrow = make_element("path", class_=style, d="M0,0 L9,4 L0,8 z")
        return make_element(
            "marker", arrow, id=name, markerWidth=9, markerHeight=8, refX=8, refY=4, markerUnits="userSpaceOnUse",
            orient="auto-start-reverse",
        )  # fmt: skip

    return make_element("defs", head("calls", "head"), head("spread", "spreadhead"))


def _build_legend() -> Html:
    return make_element(
        "span",
        make_element("span", "thick frame: cause", class_="bad"),
        ", ",
        make_element("span", "broken frame: harmed", class_="warn"),
        ", thick arrow: how the harm spread.",
        class_="soft",
    )


def _describe_graph(found: ServiceGraph, edges: Sequence[Pair]) -> str:
    spread = "; ".join(f"{a} harms {b}" for a, b in found.spread)
    calls = "; ".join(f"{a} calls {b}" for a, b in edges)
    causes = f"Causes: {', '.join(found.causes)}. " if found.causes else ""
    return f"{causes}{f'{spread}. ' if spread else ''}{calls}."
