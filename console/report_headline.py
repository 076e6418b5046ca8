"""The two lines that a report begins and ends with: what happened since when, how sure that is, and what to do."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from opsleuth.console.event_lines import format_arguments
from opsleuth.console.significant_digits import shorten_figure, shorten_figures
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.conclusion_words import FAILED_FROM_FIRST_LINE
from opsleuth.state.fault_words import FAULT_WORDS
from opsleuth.state.production_changes import find_production_change
from opsleuth.state.run_status import StopReason

Document = Mapping[str, Any]

_FIRST_SENTENCE = re.compile(r"(.+?[.!?])(?:\s+[A-Z\"`(]|$)", re.DOTALL)
_RUN_PLACE = re.compile(r"(\bopsleuth [a-z]+ )(?:RUN|-)(?=\s|$|[`);,.])")
_SINCE = re.compile(r"\(since (\d{4}-\d{2}-\d{2}T[\d:.]+Z)\)")
_MOST_CAUSES = 2
_MORE_TURNS = 10
_CENT = Decimal("0.01")
_BLAMED = "cause_found"


@dataclass(frozen=True, slots=True)
class Headline:
    """`facts` in reading order; `names` may be shortened in them and `harm` left out, nothing in `action` may."""

    facts: tuple[str, ...]
    action: str
    names: tuple[str, ...] = ()
    harm: str = ""
    closing: tuple[str, ...] = ()
    """The facts that stand again at the end where all of them would need more than a line."""


def compose_headline(document: Document, times: TimeDisplay) -> Headline:
    """What a reader must know first: what, since when, from what to what, how sure; and the next step."""
    replay = "REPLAY: nothing was executed" if document.get("replay") else ""
    told, effect = [*_list_facts(document, times)], _describe_effects(document)
    facts = (replay, *told, effect)
    causes = document.get("causes") or []
    names = dict.fromkeys(str(cause.get("service")) for cause in causes)
    return Headline(
        tuple(fact for fact in facts if fact),
        _choose_action(document),
        tuple(sorted(names, key=len)[::-1]),
        _format_harm(document, times),
        tuple(filter(None, (replay, *_list_closing_facts(document, told[0], effect)))),
    )


def _list_closing_facts(document: Document, first: str, effect: str) -> Iterable[str]:
    """The first fact; where something was changed, what is at fault without what set it off, and the change."""
    causes = document.get("causes") or []
    if not effect:
        return (first,)
    what = [describe_cause({**cause, "change": None}) for cause in causes[:_MOST_CAUSES]]
    return (" and ".join(what) or first, effect.partition(":")[0])


def fill_in_run(text: str, document: Document) -> str:
    """`text` with this run's id, and new totals, in the commands that leave a place for them, so that they can be copied."""
    run = document.get("run")
    text = _RUN_PLACE.sub(rf"\g<1>{run}", text) if run else text
    for place, total in _propose_totals(document):
        text = text.replace(place, total)
    return text


def _propose_totals(document: Document) -> Iterable[tuple[str, str]]:
    """A new total in place of each placeholder: twice what the run has used, so that the command can be copied."""
    usage = document.get("usage") or {}
    turns, seconds = int(usage.get("turns") or 0), float(usage.get("seconds") or 0)
    tokens = int(usage.get("tokens_in") or 0) + int(usage.get("tokens_out") or 0)
    yield "--max-turns N", f"--max-turns {max(2 * turns, turns + _MORE_TURNS)}"
    yield "--max-time D", f"--max-time {max(math.ceil(2 * seconds / 60), 5)}m"
    if tokens:
        yield "--max-tokens N", f"--max-tokens {2 * tokens}"
    if cost := Decimal(str(usage.get("cost") or 0)):
        yield "--max-cost USD", f"--max-cost {max((2 * cost).quantize(_CENT, ROUND_UP), _CENT)}"


def sort_recommendations(document: Document) -> list[Mapping[str, Any]]:
    """The recommendations, those last whose call a person or a policy refused, with the reason as `denied`."""
    rows = [
        {**row, "denied": _find_denial(row, document.get("denied") or ())}
        for row in document.get("recommendations") or []
    ]
    return sorted(rows, key=lambda row: row["denied"] is not None)


def _find_denial(row: Mapping[str, Any], denied: Iterable[Mapping[str, Any]]) -> str | None:
    """Why the call of a recommendation was refused; None where it was not. Arguments that it leaves open may be any."""
    action = row.get("action") or {}
    wanted = (action.get("arguments") or {}).items()
    for call in denied:
        if action.get("tool") == call.get("tool") and wanted <= (call.get("arguments") or {}).items():
            return str(call.get("reason") or "denied")
    return None


def describe_recommendation(row: Mapping[str, Any], document: Document) -> str:
    """What to do, with the tool call that would do it; what changes production says so."""
    action = row.get("action") or {}
    called = f"tool {action.get('tool')} {format_arguments(action.get('arguments') or {})}".rstrip()
    notes = (
        called if action else "",
        _RISK_WORDS.get(str(row.get("risk")))
        or (_CHANGES if find_production_change(str(row.get("text"))) else ""),
        str(row.get("denied") or ""),
    )
    text = fill_in_run(str(row.get("text", "")), document)
    said = "; ".join(filter(None, notes))
    if not said:
        return text
    return f"{text if text.endswith('`') or not action else text.rstrip('.')} ({said})"


_CHANGES = "changes production"
_RISK_WORDS = {"high": _CHANGES, "irreversible": f"{_CHANGES}, cannot be undone"}


def describe_fault(kind: object) -> str:
    """A kind of fault in words: `a slow database statement`."""
    return FAULT_WORDS.get(str(kind)) or str(kind).replace("_", " ")


def describe_cause(cause: Mapping[str, Any]) -> str:
    """`orders-db: a slow database statement, set off by deploy 2.14.0 of orders-api`."""
    what = f"{cause.get('service')}: {describe_fault(cause.get('kind'))}"
    change = cause.get("change")
    if not isinstance(change, Mapping) or change.get("grade") != "cause":
        return what
    own = change.get("service") == cause.get("service")
    return f"{what}, set off by {name_change(change, with_service=not own)}"


def name_change(change: Mapping[str, Any], *, with_service: bool = True) -> str:
    """`deploy 2.14.0 of orders-api`; a commit's id in 12 digits."""
    name = str(change.get("id") or "")
    short = name[:12] if re.fullmatch(r"[0-9a-f]{13,}", name) else name
    of = f" of {change.get('service')}" if with_service else ""
    return f"{change.get('kind')} {short}{of}".replace("  ", " ")


def describe_stop(document: Document) -> str:
    """`turn limit` or similar; empty for a run that drew its conclusion."""
    reason = document.get("stop_reason")
    return "" if not reason or reason == StopReason.CONCLUDED else str(reason).replace("_", " ")


def _list_facts(document: Document, times: TimeDisplay) -> Iterable[str]:
    verdict, causes = document.get("verdict"), document.get("causes") or []
    if verdict == _BLAMED and causes:
        yield " and ".join(describe_cause(cause) for cause in causes[:_MOST_CAUSES])
        yield _format_onset(document, times)
        yield _format_harm(document, times)
        yield f"cause {causes[0]['confidence']}" if causes[0].get("confidence") else ""
    elif verdict == "healthy":
        yield "Healthy, as far as it was measured"
        yield _format_window(document, times)
    elif verdict == "answered":
        yield _first_sentence(document)
    else:
        yield from _list_open_facts(document, times)


def _list_open_facts(document: Document, times: TimeDisplay) -> Iterable[str]:
    stop = describe_stop(document)
    yield f"Stopped before a conclusion ({stop})" if stop else "Cause not found"
    if suspect := _strongest_suspect(document):
        yield f"strongest suspect so far, not proven: {suspect}"
    yield _format_onset(document, times)
    yield _format_harm(document, times)


def _strongest_suspect(document: Document) -> str:
    causes = document.get("causes") or []
    if causes:
        return describe_cause(causes[0])
    known = [h for h in document.get("hypotheses") or [] if h.get("status") in ("supported", "open")]
    known.sort(key=lambda h: h.get("status") != "supported")
    return str(known[0].get("text") or "") if known else ""


def _first_sentence(document: Document) -> str:
    answer = " ".join(str(document.get("answer") or "").strip().partition("\n")[0].split())
    found = _FIRST_SENTENCE.match(answer)
    return shorten_figures((found[1] if found else answer).rstrip("."))


def _format_onset(document: Document, times: TimeDisplay) -> str:
    """`since 14:02Z`: the first moment that was measured, else the onset that an alert states; empty where neither is known."""
    measured = [*_list_measured_onsets(document)]
    if measured:
        before = "before " if _failed_from_first_line(document) else ""
        return f"since {before}{times.clock(min(measured), seconds=False)}"
    if _is_harm_elsewhere(document):  # the harm tells its own time
        return ""
    alert = document.get("alert")
    if not isinstance(alert, Mapping):
        return ""
    stated = alert.get("onset")
    # An alert that says only when it was sent does not say when the trouble began.
    if not stated or stated == alert.get("fired_at"):
        return ""
    return f"since {times.clock(stated, seconds=False)}, as the alert says"


def describe_unmeasured(document: Document) -> str:
    """`not measured: its start, the harm to users`: what of both no fact tells of a cause that was found; else empty."""
    if document.get("verdict") != _BLAMED or not document.get("causes"):
        return ""
    impact = document.get("impact")
    began = _format_onset(document, TimeDisplay()) or (isinstance(impact, Mapping) and impact.get("since"))
    unknown = [words for words, known in (("its start", began), ("the harm to users", impact)) if not known]
    return f"not measured: {', '.join(unknown)}" if unknown else ""


def _list_measured_onsets(document: Document) -> Iterable[str]:
    """When the harm began, and what stands behind the first cause: only what facts hold, as times in ISO form."""
    impact = document.get("impact")
    if isinstance(impact, Mapping) and impact.get("since") and not _is_harm_elsewhere(document):
        yield str(impact["since"])
    for text in _list_texts_behind_first_cause(document):
        yield from _SINCE.findall(text)


def _list_texts_behind_first_cause(document: Document) -> Iterable[str]:
    behind = {name for cause in (document.get("causes") or [])[:1] for name in cause.get("claims") or []}
    for claim in document.get("claims") or []:
        if claim.get("id") in behind and claim.get("basis") in ("measured", "computed"):
            yield str(claim.get("text"))


def _failed_from_first_line(document: Document) -> bool:
    """Whether the first cause failed before the first line that was read: then that line's time is not a beginning."""
    return any(FAILED_FROM_FIRST_LINE in text for text in _list_texts_behind_first_cause(document))


def _is_harm_elsewhere(document: Document) -> bool:
    """Whether the harm is of a service that no shown path joins with the first cause: it has a time of its own."""
    impact = document.get("impact")
    rows = impact.get("figures") if isinstance(impact, Mapping) else None
    causes = document.get("causes") or []
    if not rows or not causes:
        return False
    hurt, blamed = rows[0].get("service"), causes[0].get("service")
    passed_on = {name for pair in document.get("propagation") or [] for name in pair}
    return hurt != blamed and not {hurt, blamed} <= passed_on


def _format_window(document: Document, times: TimeDisplay) -> str:
    window = document.get("window") or {}
    return times.span(window.get("start"), window.get("end")) if window else ""


def _format_harm(document: Document, times: TimeDisplay) -> str:
    """`latency_p50 of orders-api 0.0433 → 0.931 s`; empty where no metric shows the harm.

    That of a service apart from the cause says since when by itself.
    """
    impact = document.get("impact")
    rows = impact.get("figures") if isinstance(impact, Mapping) else None
    if not rows:
        return ""
    row = rows[0]
    if not all(_is_figure(row.get(name)) for name in ("usual", "now")):
        return ""
    unit = f" {row['unit']}" if row.get("unit") else ""
    apart = impact.get("since") if isinstance(impact, Mapping) and _is_harm_elsewhere(document) else None
    since = f" since {times.clock(apart, seconds=False)}" if apart else ""
    return f"{row['measure']} of {row['service']} {shorten_figure(row['usual'])} → {shorten_figure(row['now'])}{unit}{since}"


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _describe_effects(document: Document) -> str:
    """The outcome of the changes that the run made: only what was seen afterwards counts as success."""
    rows = document.get("effects") or []
    if not rows or document.get("replay"):
        return ""
    last = rows[-1]
    if last.get("status") in ("started", "unknown"):
        return f"{last.get('tool')}: OUTCOME UNKNOWN"
    if last.get("status") == "failed_clean" or last.get("outcome") == "absent":
        return f"{last.get('tool')} did not happen"
    word = {True: "check passed", False: "CHECK FAILED"}.get(last.get("verified"), "not checked")
    moved = str(last.get("checked") or "").rpartition("; ")[2]
    return shorten_figures(f"{last.get('tool')} done, {word}{f': {moved}' if '→' in moved else ''}")


def _choose_action(document: Document) -> str:
    run = document.get("run", "-")
    for row in document.get("effects") or []:
        if row.get("status") in ("started", "unknown") and not document.get("replay"):
            return (
                f"Look whether {row.get('tool')} of {row.get('target')} happened, then: "
                f"opsleuth resolve {run} {row.get('approval')} --happened|--absent --reason TEXT"
            )
    advice = sort_recommendations(document)
    stopped = describe_stop(document)
    if advice:
        return shorten_figures(describe_recommendation(advice[0], document))
    if stopped and document.get("stop_reason") != StopReason.TERMINATED:
        return f"opsleuth resume {run}"
    return f"Read it in full: opsleuth report {run} --full"
