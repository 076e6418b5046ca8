"""`opsleuth handover`: a shift in one page, and the draft of a postmortem."""

import json
from pathlib import Path

import pytest
from stored_runs import DONE, STOPPED, Program

from opsleuth.console.draft_output import escape_markdown, format_draft_markdown, render_draft_page
from opsleuth.console.handover_content import DraftDocument
from opsleuth.console.report_content import ReportSection


def test_a_handover_lists_what_is_open_found_and_to_do(program: Program) -> None:
    assert program("verdict", DONE, "right").returncode == 0
    shown = program("handover", "--since", "2026-11-29T00:00Z")
    assert shown.returncode == 0, shown.stderr
    told = json.loads(program("handover", "--since", "2026-11-29T00:00Z", "--json").stdout)
    assert any(f"opsleuth resume {STOPPED}" in line for line in told["open"])
    [found] = [line for line in told["found"] if DONE in line]
    assert "judged right" in found
    [step] = [line for line in told["to_do"] if DONE in line]
    assert step.startswith("Roll orders-api back to 2.13.4")
    assert step.endswith("owner: ____  due: ____")
    for title in ("## Open", "## Found", "## To do", "## Notes"):
        assert title in shown.stdout.splitlines()


def test_a_shift_without_runs_says_that_nothing_is_open(program: Program) -> None:
    told = json.loads(program("handover", "--since", "1s", "--json").stdout)
    assert told["open"] == ["nothing is open"]
    assert "found" not in told


def test_a_postmortem_has_timeline_impact_and_actions_to_fill_in(program: Program, tmp_path: Path) -> None:
    text = program("handover", DONE).stdout
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert titles[0] == "Summary"
    assert titles[-3:] == ["What went well", "What went badly", "Actions"]
    assert "Timeline" in titles
    assert "- Add an index on lower(customer_email) owner: ____ due: ____" in text
    page = tmp_path / "postmortem.html"
    assert program("handover", DONE, "-o", str(page)).returncode == 0
    assert "<h2>Timeline</h2>" in page.read_text()
    assert "<script" not in page.read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((STOPPED,), 9, f"{STOPPED} has no report yet"),
        (("inv-20200101-zzzz",), 9, "no run 'inv-20200101-zzzz'"),
        (("-o", "x.pdf"), 2, "choose a name that ends in .md or .html"),
        (("-o", "draft"), 2, "choose a name that ends in .md or .html"),
        (("--since", "yesterday"), 2, "'yesterday' is not a time"),
    ],
)
def test_what_cannot_be_handed_over_is_refused(
    program: Program, words: tuple[str, ...], code: int, said: str
) -> None:
    refused = program("handover", *words)
    assert refused.returncode == code
    assert said in refused.stderr


def test_text_of_a_run_is_only_text_in_both_forms() -> None:
    draft = DraftDocument("a <b> *c*", [ReportSection("FOUND", ("<script>x</script> [y](z) `ls *`",), None)])
    page, text = render_draft_page(draft), format_draft_markdown(draft)
    assert "<script>" not in page
    assert "<code>ls *</code>" in page
    assert "\\<script\\>x\\</script\\> \\[y\\](z) `ls *`" in text
    assert escape_markdown("one ` tick *") == "one ' tick \\*"
