"""How a fact is worded by code: in English, Chinese and German; any other language has the neutral form."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeGuard

from opsleuth.verification.facts import SHARE, Fact, FactDetail, Number
from opsleuth.verification.lexicon import split_word_list

NEUTRAL = "neutral"
_MOST_DETAILS = 4
_LONGEST_TEXT = 240
_HAN = re.compile(r"[\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_OTHER_SCRIPT = re.compile(r"[\u0400-\u04ff\u0590-\u06ff\u0900-\u0dff\u0e00-\u0e7f]")
_WORD = re.compile(r"[a-zA-ZäöüßÄÖÜéèêñçãõ]+")
_GERMAN = split_word_list(
    "der die das und ist sind warum wieso seit ein eine nicht mit bei wird werden wurde auf für im dem den was "
    "langsam fehler ausgefallen antwortet geht läuft unser unsere bitte wie kann"
)
_ENGLISH = split_word_list(
    "the is are why what since of in on and to a an not with for slow down errors was were how when which who "
    "has have did does check please show find our it there at failing"
)
_ROMANCE = split_word_list(
    "le la les des est pourquoi depuis et une un el los las por qué desde es una y il lo che perché dal o os as "
    "está são desde não com para lent lento errores erreurs"
)

WORDING: dict[str, dict[str, str]] = {
    "en": {
        "rose": "{measure} of {subject} rose from {before} to {value}",
        "fell": "{measure} of {subject} fell from {before} to {value}",
        "level": "{measure} of {subject} stayed at {value}",
        "value": "{measure} of {subject}: {value}",
        "bare": "{measure}: {value}",
        "from": " since {at}",
        "at": " at {at}",
        "earlier": "{first}, {gap} before {second}",
        "simultaneous": "{first}, at the same time as {second}",
        "ratio": "{first} is {number} times {second}",
        "own_ratio": "{fact}: {number} times as much as usual",
        "difference": "{first} minus {second}: {number}",
        "own_difference": "{fact}: a difference of {number}",
        "duration": "{gap} lie between {first} and {second}",
        "own_duration": "{fact}: over {gap}",
        "count": "{number}: {list}",
        "absent": "none found: {measure}{where}, {rows} searched",
        "all_of": "all {number}: {list}",
        "same_as_usual": "{fact}: as usual",
        "where": " for {criteria}",
    },
    "zh": {
        "rose": "{subject} 的 {measure} 从 {before} 升至 {value}",
        "fell": "{subject} 的 {measure} 从 {before} 降至 {value}",
        "level": "{subject} 的 {measure} 保持在 {value}",
        "value": "{subject} 的 {measure}：{value}",
        "bare": "{measure}：{value}",
        "from": "（自 {at} 起）",
        "at": "（{at}）",
        "earlier": "{first}，早于{second} {gap}",
        "simultaneous": "{first}，与{second}同时",
        "ratio": "{first} 是 {second} 的 {number} 倍",
        "own_ratio": "{fact}：为平时的 {number} 倍",
        "difference": "{first} 减 {second}：{number}",
        "own_difference": "{fact}：相差 {number}",
        "duration": "{first} 与 {second} 相隔 {gap}",
        "own_duration": "{fact}：历时 {gap}",
        "count": "{number} 项：{list}",
        "absent": "未发现 {measure}{where}，共查 {rows} 行",
        "all_of": "全部 {number} 项：{list}",
        "same_as_usual": "{fact}：与平时一致",
        "where": "（{criteria}）",
    },
    "de": {
        "rose": "{measure} von {subject} stieg von {before} auf {value}",
        "fell": "{measure} von {subject} fiel von {before} auf {value}",
        "level": "{measure} von {subject} blieb bei {value}",
        "value": "{measure} von {subject}: {value}",
        "bare": "{measure}: {value}",
        "from": " ab {at}",
        "at": " um {at}",
        "earlier": "{first}, {gap} vor {second}",
        "simultaneous": "{first}, zur selben Zeit wie {second}",
        "ratio": "{first} ist das {number}-Fache von {second}",
        "own_ratio": "{fact}: das {number}-Fache des Üblichen",
        "difference": "{first} minus {second}: {number}",
        "own_difference": "{fact}: ein Unterschied von {number}",
        "duration": "zwischen {first} und {second} liegen {gap}",
        "own_duration": "{fact}: über {gap}",
        "count": "{number}: {list}",
        "absent": "nichts gefunden: {measure}{where}, {rows} durchsucht",
        "all_of": "alle {number}: {list}",
        "same_as_usual": "{fact}: wie üblich",
        "where": " für {criteria}",
    },
    NEUTRAL: {
        "rose": "{subject} · {measure} · {before} → {value}",
        "fell": "{subject} · {measure} · {before} → {value}",
        "level": "{subject} · {measure} · = {value}",
        "value": "{subject} · {measure} · {value}",
        "bare": "{measure} · {value}",
        "from": " · ≥ {at}",
        "at": " · {at}",
        "earlier": "[{first}] −{gap} < [{second}]",
        "simultaneous": "[{first}] = [{second}]",
        "ratio": "[{first}] / [{second}] = {number}",
        "own_ratio": "{fact} · × {number}",
        "difference": "[{first}] − [{second}] = {number}",
        "own_difference": "{fact} · Δ {number}",
        "duration": "[{first}] ↔ [{second}] = {gap}",
        "own_duration": "{fact} · {gap}",
        "count": "n = {number}: {list}",
        "absent": "{measure}{where} · 0 / {rows}",
        "all_of": "{number}/{number}: {list}",
        "same_as_usual": "{fact} · ≈",
        "where": " · {criteria}",
    },
}


def detect_language(text: str) -> str:
    """`en`, `zh`, `de`, or the neutral form for any other; a text that tells nothing is taken as English."""
    if _KANA_OR_HANGUL.search(text) or _OTHER_SCRIPT.search(text):
        return NEUTRAL
    if _HAN.search(text):
        return "zh"
    words = [word.lower() for word in _WORD.findall(text)]
    scores = {
        "en": sum(word in _ENGLISH for word in words),
        "de": sum(word in _GERMAN for word in words),
        NEUTRAL: sum(word in _ROMANCE for word in words),
    }
    best = max(scores, key=lambda language: scores[language])
    return best if scores[best] > scores["en"] else "en"


def render_fact(fact: Fact, language: str = "en") -> str:
    """One fact as a sentence without its full stop. In English a detector's own sentence stands for its finding."""
    if fact.text and language == "en":
        said = " ".join(fact.text.split()).rstrip(".")
        onset = fact.at if _has_onset(fact) else None
        return f"{said} (since {onset})" if onset and onset not in said else said
    if language == "en" and fact.measure in _ENGLISH_SENTENCES:
        return _ENGLISH_SENTENCES[fact.measure](fact)
    return _render_core(fact, language) + _render_details_in_sentence(fact)


def name_fact(fact: Fact, language: str = "en") -> str:
    """The fact in a few words, for sentences that hold two of them."""
    return _render_core(fact, language)


def render_slot(fact: Fact) -> str:
    """What stands where a planner wrote `{E1.1}`: subject, measure, figures and time, the same in every language."""
    at = f" {format_clock(fact.at)}" if fact.at else ""
    return f"{fact.subject} {fact.measure} {format_change(fact)}{at}".strip()


def format_fact_line(fact: Fact) -> str:
    """The line of about 50 tokens in which a planner sees the fact."""
    since = "since" if _has_onset(fact) else "at"
    at = f" {since} {format_clock(fact.at)}" if fact.at else ""
    return f"{fact.id} {fact.subject} {fact.measure} {format_change(fact)}{at}{_render_details(fact)}"


def format_change(fact: Fact) -> str:
    """`0.043 → 0.93 s`, `12`, or the words of the fact."""
    value = format_value(fact.value, fact.unit)
    if fact.before is None:
        return value
    return f"{format_value(fact.before, '' if fact.unit != SHARE else fact.unit)} → {value}"


def _render_core(fact: Fact, language: str) -> str:
    words = WORDING.get(language, WORDING[NEUTRAL])
    form = {1: "rose", -1: "fell", 0: "value" if fact.before is None else "level"}[fact.change]
    if form == "value" and not fact.subject:
        form = "bare"
    said = words[form].format(
        subject=fact.subject or "?",
        measure=fact.measure,
        value=format_value(fact.value, fact.unit),
        before=format_value(fact.before, fact.unit),
    )
    if fact.at is None:
        return said
    return said + words["from" if _has_onset(fact) else "at"].format(at=format_clock(fact.at))


def _has_onset(fact: Fact) -> bool:
    return any(detail.name == "onset" for detail in fact.details)


def _render_details(fact: Fact) -> str:
    """The other figures and words of the row, few of them."""
    shown = [d for d in fact.details if _adds_something(d, fact)][:_MOST_DETAILS]
    return (
        f" ({', '.join(f'{d.name} {format_value(d.value, d.unit, longest=100)}' for d in shown)})"
        if shown
        else ""
    )


def _render_details_in_sentence(fact: Fact) -> str:
    """As `_render_details`, for people: without diffs and a source's own extra columns, and with words for names."""
    told = [d for d in fact.details if _adds_something(d, fact) and _reads_as_words(d)][:_MOST_DETAILS]
    shown = [f"{d.name.replace('_', ' ')} {format_value(d.value, d.unit, longest=100)}" for d in told]
    return f" ({', '.join(shown)})" if shown else ""


def _reads_as_words(detail: FactDetail) -> bool:
    return detail.name != "diff" and not detail.name.startswith("extra.")


def _render_change(fact: Fact) -> str:
    """`orders-api was changed at 13:58:20Z by r.tanaka, 3.7 min before the onset: its summary (version 2.14.0)`."""
    known = {d.name: d.value for d in fact.details}
    summary = format_value(fact.value)
    who = f" by {known['author']}" if known.get("author") else ""
    before = known.get("minutes_before_onset")
    gap = f", {format_number(before)} min before the onset" if _is_positive(before) else ""
    at = f" at {format_clock(fact.at)}" if fact.at else ""
    version = str(known.get("version") or "")
    named = f" (version {version})" if version and version not in summary else ""
    why = f"; {_explain_grade(known)}" if known.get("why") else ""
    return f"{fact.subject or 'something'} was changed{at}{who}{gap}: {summary}{named}{why}"


def _explain_grade(known: Mapping[str, Number | str]) -> str:
    """What a ranking holds a change for, in its own words."""
    return str(known["why"]) if known.get("grade") == "cause" else f"it coincides, {known['why']}"


def _render_suspect_score(fact: Fact) -> str:
    place = next((d.value for d in fact.details if d.name == "place"), None)
    rank = "the strongest suspect" if place == 1 else f"suspect number {place}" if place else "a suspect"
    return f"{fact.subject} is {rank}: its score is {format_value(fact.value)}, 1 at most"


def _is_positive(value: object) -> TypeGuard[Number]:
    return isinstance(value, int | float) and value > 0


_ENGLISH_SENTENCES: Mapping[str, Callable[[Fact], str]] = {
    "change": _render_change,
    "suspect_score": _render_suspect_score,
}
"""Facts whose columns make a sentence of their own."""


def _adds_something(detail: FactDetail, fact: Fact) -> bool:
    if (
        not detail.path
        or detail.path in (fact.path, fact.before_path)
        or detail.value in (fact.at, fact.text)
    ):
        return False
    return detail.name not in ("service", "kind", "name", "direction", "metric", "share", "incident_percent", "usual_percent", "text", "note")  # fmt: skip


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


def join_facts(facts: Sequence[Fact], language: str, say: Callable[[Fact, str], str] = render_fact) -> str:
    """Several facts as one sentence; the same words once."""
    return "; ".join(dict.fromkeys(say(fact, language) for fact in facts))
