"""What is missing in a stored report, or named as only code names it, is said in words on every screen."""

import copy
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from nonempty import nonempty
from stored_runs import DOCUMENT

from opsleuth.console.follow_up_text import render_follow_up
from opsleuth.console.handover_content import compose_postmortem
from opsleuth.console.html.page import ReportMaterial, render_report_page
from opsleuth.console.report_chain import explain_document
from opsleuth.console.report_text import format_report_lines, format_report_markdown, format_section_lines
from opsleuth.console.screen import Line, Screen
from opsleuth.console.seen_before import format_seen_before
from opsleuth.console.shown_report import prepare_for_reading
from opsleuth.console.time_formats import IN_UTC

NOTHING = re.compile(r"\b(?:None|null|NaN|nan)\b")
MORE: dict[str, Any] = {
    "impact": {"text": "p95 was 2,210 ms", "since": "2026-03-03T14:01:00Z", "evidence": ["E1"], "figures": [{"measure": "latency_p95", "service": "orders-api", "unit": "ms", "usual": 96, "now": 2210}]},
    "seen_before": [{"run": "inv-20260101-aaaa", "began": "2026-01-01T10:00:00Z", "cause": "orders-db: locks", "times": 2, "helped": "a restart", "advised": "restart", "judged": "wrong", "found": "web: errors"}],
    "effects": [{"approval": "A1", "tool": "service_rollback", "arguments": {"service": "orders-api"}, "target": "orders-api", "status": "done", "outcome": None, "verified": True, "checked": "2.14.0 → 2.13.4", "evidence": "E6"}],
    "denied": [{"tool": "service_restart", "arguments": {"service": "web"}, "reason": "not now"}],
    "runbooks": [{"title": "slow orders", "name": "orders.md", "fits_by": "title", "evidence": "E4"}],
    "degraded": [{"turn": 2, "why": "no answer"}],
    "alert": {"text": "slow", "service": "orders-api", "onset": "2026-03-03T14:01:00Z", "fired_at": "2026-03-03T14:10:00Z"},
}  # fmt: skip
CHANGE = {"at": "2026-03-03T13:58:20Z", "author": "r.tanaka", "grade": "cause", "id": "2.14.0", "kind": "deploy", "place": "orders.py", "service": "orders-api", "why": "it alters a statement"}  # fmt: skip


def whole_document() -> dict[str, Any]:
    document = json.loads(json.dumps({**DOCUMENT, **MORE}))
    document["causes"][0]["change"] = dict(CHANGE)
    return dict(document)


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*path, name)
        yield from list_paths(item, (*path, name))


def without_value(document: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    place = changed
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = None
    return changed


def draw(lines: list[Line]) -> str:
    stream = io.StringIO()
    Screen(stream, width=80).lines(lines)
    return stream.getvalue()


def draw_every_screen(document: dict[str, Any]) -> str:
    screen = Screen(io.StringIO(), width=80)
    page = render_report_page(ReportMaterial(document), IN_UTC)
    return "\n".join(
        (
            draw(format_report_lines(document, screen)),
            draw(format_report_lines(document, screen, full=True)),
            format_report_markdown(document, IN_UTC),
            draw(format_section_lines(explain_document(document, 0, IN_UTC), screen)),
            draw(format_section_lines(compose_postmortem(document, IN_UTC).sections, screen)),
            draw(list(render_follow_up(document, screen))),
            re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL),
        )
    )


@pytest.mark.slow
def test_no_missing_value_is_ever_shown_as_none() -> None:
    document = whole_document()
    assert not NOTHING.search(draw_every_screen(document))
    named = [path for path in list_paths(document) if not isinstance(path[-1], int)]
    paths = list({tuple(n for n in path if isinstance(n, str)): path for path in named}.values())
    shown = {
        path: NOTHING.search(draw_every_screen(without_value(document, path))) for path in nonempty(paths)
    }
    assert [path for path, found in shown.items() if found] == []


@pytest.mark.parametrize("cause", [None, "", "None"])
def test_an_earlier_run_without_a_cause_says_so(cause: str | None) -> None:
    entry = {"run": "inv-20260101-aaaa", "began": "2026-01-01T10:00:00Z", "cause": cause, "judged": None}
    assert format_seen_before(entry) == (
        "2026-01-01: no cause found; not judged (opsleuth report inv-20260101-aaaa)"
    )


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (
            'web writes "a failed" 70 times, usually 6 times (1 line of failure became frequent)',
            'web writes "a failed" 70 times in the incident, 6 times in the baseline before it',
        ),
        (
            'web writes "a failed" once, usually 0 times (3 lines of failure became frequent)',
            'web writes "a failed" once in the incident, 0 times in the baseline before it; 2 other failure messages became frequent too',
        ),
        ('76 log lines of web say "a failed" or similar.', '76 log lines of web in the whole window say "a failed" or similar.'),
        ("lines_matching of web rose from 3 to 41", "matching log lines of web rose from 3 to 41"),
        ('web says "lines_matching" and lines_matching.total', 'web says "lines_matching" and lines_matching.total'),
    ],
)  # fmt: skip
def test_counts_say_what_they_count_and_measures_have_words(stored: str, shown: str) -> None:
    assert prepare_for_reading({"claims": [{"text": stored}]}) == {"claims": [{"text": shown}]}
