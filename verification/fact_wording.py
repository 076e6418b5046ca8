"""How a fact is worded by code: in English, Chinese and German; any other language has the neutral form."""

import re
from collections.abc import Callable, Sequence

from opsleuth.verification.fact_sentences import write_english_sentence
from opsleuth.verification.facts import SHARE, Fact, FactDetail
from opsleuth.verification.lexicon import split_word_list
from opsleuth.verification.value_format import format_clock, format_value

NEUTRAL = "neutral"
_MOST_DETAILS = 4
_LONGEST_DETAIL = 100
_NOTES = frozenset(["diff", "incomplete", "not_read", "not_shown", "without_time", "sampling", "cut", "skipped", "truncated"])  # fmt: skip
"""What a result says of its own reading: a report lists it elsewhere."""
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
    if language == "en" and (sentence := write_english_sentence(fact)):
        return sentence
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
    """As `_render_details`, for people: without diffs, notes, long texts and a source's own extra columns."""
    told = [d for d in fact.details if _adds_something(d, fact) and _reads_as_words(d)][:_MOST_DETAILS]
    shown = [f"{d.name.replace('_', ' ')} {format_value(d.value, d.unit, longest=100)}" for d in told]
    return f" ({', '.join(shown)})" if shown else ""


def _reads_as_words(detail: FactDetail) -> bool:
    if detail.name in _NOTES or detail.name.startswith("extra."):
        return False
    return not isinstance(detail.value, str) or len(detail.value) <= _LONGEST_DETAIL


def _adds_something(detail: FactDetail, fact: Fact) -> bool:
    if (
        not detail.path
        or detail.path in (fact.path, fact.before_path)
        or detail.value in (fact.at, fact.text)
    ):
        return False
    return detail.name not in ("service", "kind", "name", "direction", "metric", "share", "incident_percent", "usual_percent", "text", "note")  # fmt: skip


def join_facts(facts: Sequence[Fact], language: str, say: Callable[[Fact, str], str] = render_fact) -> str:
    """Several facts as one sentence; the same words once."""
    return "; ".join(dict.fromkeys(say(fact, language) for fact in facts))
