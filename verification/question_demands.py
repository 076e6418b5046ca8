"""What a question demands of its answer in its own words, in English and Chinese, and whether a draft meets it."""

import json
import re
from collections.abc import Iterator, Sequence

from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.conclusion import Conclusion, Recommendation
from opsleuth.state.investigation import Demand
from opsleuth.state.plurals import format_count
from opsleuth.verification.lexicon import split_word_list
from opsleuth.verification.name_extraction import find_mentions, name_occurs_in
from opsleuth.verification.record_facts import normalize_for_matching

_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
_HAN = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_NUMBER = r"(?P<n>\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)"
_GERMAN_WORDS = {"ein": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8}
_GERMAN_NUMBER = r"(?P<n>\d{1,2}|zwei|drei|vier|fünf|sechs|sieben|acht)"
_OPTIONS = (
    re.compile(
        rf"\b(?:give|show|offer|propose|suggest|list|provide|recommend|want|need|output|return|produce|present|exactly)\b[^.!?\n]{{0,20}}?\b{_NUMBER} "
        r"(?:\w+ ){0,2}?(?:options?|alternatives?|solutions?|fixes|remedies|recommendations?|suggestions?|proposals?|ways|next steps|actions?|measures|mitigations?)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:给|提供|列|提|推荐|要|输出|返回|生成)[^，。！？\n]{0,8}?(?P<n>\d{1,2}|[一二两三四五六七八九十])(?:个|种|条|套|项)(?:[^，。！？\n]{0,6}?)(?:方案|选项|建议|办法|方法|措施|选择)"
    ),
    re.compile(
        rf"\b(?:nenne|gib|liste|zeige|liefere|schlage)\b[^.!?\n]{{0,20}}?\b{_GERMAN_NUMBER} (?:\w+ ){{0,3}}?(?:Optionen|Möglichkeiten|Vorschläge|Lösungen|Maßnahmen|Wege)",
        re.IGNORECASE,
    ),
)
_CANDIDATES = (
    re.compile(
        rf"\b(?:give|show|list|provide|want|need|output|return|name|produce|identify|report|rank|top)\b[^.!?\n]{{0,20}}?\b{_NUMBER} "
        r"(?:\w+ ){0,3}?(?:candidates?|causes?|suspects?|hypotheses|culprits?|explanations?)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:给|提供|列|提|推荐|要|输出|返回|找出)[^，。！？\n]{0,8}?(?P<n>\d{1,2}|[一二两三四五六七八九十])(?:个|种|条|项)(?:[^，。！？\n]{0,6}?)(?:候选|原因|嫌疑|根因|假设)"
    ),
    re.compile(
        rf"\b(?:nenne|gib|liste|zeige|liefere)\b[^.!?\n]{{0,20}}?\b{_GERMAN_NUMBER} (?:\w+ ){{0,3}}?(?:Kandidaten|Ursachen|Verdächtige|Hypothesen)",
        re.IGNORECASE,
    ),
)
_JSON = re.compile(
    r"\b(?:in|as|return|reply with|respond with|output|valid) (?:a |an )?json\b|(?:以|用|返回|输出|按)[^，。！？\n]{0,6}json",
    re.IGNORECASE,
)
_FIELDS = re.compile(
    r"\b(?:fields?|keys?)(?: (?:named|called))? (?P<names>[`\"'“]?[A-Za-z_][\w.-]{0,60}[`\"'”]?(?:(?:, ?(?:and )?| and )[`\"'“]?[A-Za-z_][\w.-]{0,60}[`\"'”]?){0,12})"
    r"|字段(?:名)?(?:为|是|有|包括|包含|：|:)?\s*(?P<han>[`\"“]?[A-Za-z_][\w.-]{0,60}[`\"”]?(?:[、，,和]\s?[`\"“]?[A-Za-z_][\w.-]{0,60}[`\"”]?){0,12})",
    re.IGNORECASE | re.ASCII,
)
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_NOT_FIELDS = split_word_list("and in of for with the a to from is are that which as only please")
_LANGUAGES = {
    "english": "en", "chinese": "zh", "japanese": "ja", "korean": "ko", "german": "de", "french": "fr",
    "spanish": "es", "russian": "ru", "portuguese": "pt", "italian": "it",
    "英文": "en", "英语": "en", "中文": "zh", "汉语": "zh", "日语": "ja", "日文": "ja", "韩语": "ko", "德语": "de",
    "法语": "fr", "俄语": "ru", "西班牙语": "es",
}  # fmt: skip
_LANGUAGE = re.compile(
    r"\b(?:answer|reply|respond|write|report|explain)\b[^.!?\n]{0,30}?\bin (?P<en>english|chinese|japanese|korean|german|french|spanish|russian|portuguese|italian)\b"
    r"|(?:用|以)(?P<zh>英文|英语|中文|汉语|日语|日文|韩语|德语|法语|俄语|西班牙语)",
    re.IGNORECASE,
)
_UNTOUCHABLE = re.compile(
    r"\b(?:do not|don't|don’t|never|must not|without) (?:touch|touching|restart|restarting|change|changing|modify|modifying|scale|scaling|stop|stopping|roll back|rolling back)(?:ing)? (?:the |any |anything (?:in|on|of) )?(?P<en>[`\"“]?[A-Za-z][\w./:@-]{0,80}[`\"”]?)"
    r"|(?:不要|不能|别|禁止|不得|请勿)(?:动|碰|触碰|重启|修改|改动|变更|操作|更改)(?P<zh>[^，。！？,.!?\n]{1,40})",
    re.IGNORECASE | re.ASCII,
)
_ACT = re.compile(
    r"\b(?:restart|scale|roll ?back|delete|drain|stop|disable|patch|redeploy|fail ?over|kill|reboot|change|modify)\w*\b|重启|回滚|扩容|缩容|删除|停止|修改",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|don't|never|without|avoid)\b|不|勿|别", re.IGNORECASE)


def parse_question_demands(question: str, known_names: Sequence[str] = ()) -> tuple[Demand, ...]:
    """The countable demands that `question` makes; an untouchable thing takes its known name where it has one."""
    text = question[:20_000]
    found = [
        *_find_option_demand(text),
        *_find_form_demands(text),
        *_find_untouchable_demands(text, known_names),
    ]
    return tuple(found[:20])


def _find_option_demand(text: str) -> Iterator[Demand]:
    if found := _find_counted(text, _OPTIONS):
        yield Demand(kind="options", text=found[0], count=found[1])
    if found := _find_counted(text, _CANDIDATES):
        yield Demand(kind="candidates", text=found[0], count=found[1])


def _find_counted(text: str, patterns: Sequence[re.Pattern[str]]) -> tuple[str, int] | None:
    """The words of the first demand for a number of things, and the number."""
    for match in filter(None, (pattern.search(text) for pattern in patterns)):
        word = match["n"].lower()
        count = _WORDS.get(word) or _HAN.get(word) or _GERMAN_WORDS.get(word) or int(word)
        if 1 <= count <= 50:
            return match[0][:1000], count
    return None


def _find_form_demands(text: str) -> Iterator[Demand]:
    if match := _JSON.search(text):
        yield Demand(kind="format", text=match[0], name="json")
    for match in _FIELDS.finditer(text):
        for name in _NAME.findall(match["names"] or match["han"]):
            if name.lower() not in _NOT_FIELDS:
                yield Demand(kind="field", text=match[0][:1000], name=name)
    if match := _LANGUAGE.search(text):
        word = (match["en"] or match["zh"]).lower()
        yield Demand(kind="language", text=match[0][:1000], name=_LANGUAGES[word])


def _find_untouchable_demands(text: str, known: Sequence[str]) -> Iterator[Demand]:
    for match in _UNTOUCHABLE.finditer(text):
        phrase = (match["en"] or match["zh"]).strip('`"“” ')
        spans = find_mentions(phrase, known)
        for name in [phrase[a:b] for a, b in spans] or [phrase]:
            if name.lower() not in ("anything", "it", "that", "this", "the", "任何东西"):
                yield Demand(kind="untouchable", text=match[0][:1000], name=name)


def find_unmet_demands(conclusion: Conclusion, checklist: Sequence[Demand]) -> Iterator[tuple[int, str]]:
    """Which demands (by index) the draft does not meet, and what would meet them."""
    for i, demand in enumerate(checklist):
        text = _describe_unmet_demand(conclusion, demand)
        if text:
            yield i, text


def _describe_unmet_demand(conclusion: Conclusion, demand: Demand) -> str | None:
    if demand.kind == "options":
        return _options_unmet(conclusion, demand)
    if demand.kind == "candidates":
        return _candidates_unmet(conclusion, demand)
    if demand.kind == "field":
        return _field_unmet(conclusion, demand)
    if demand.kind == "format":
        return _format_unmet(conclusion, demand)
    if demand.kind == "language":
        return _language_unmet(conclusion.answer, demand.name or "")
    return _untouchable_unmet(conclusion, demand.name or "")


def _options_unmet(conclusion: Conclusion, demand: Demand) -> str | None:
    have = len({normalize_for_matching(item.text).strip() for item in conclusion.recommendations})
    if have == demand.count:
        return None
    return f'the question asks for {demand.count} options ("{demand.text}"): the draft has ' + format_count(
        have, "distinct recommendation"
    )


def _candidates_unmet(conclusion: Conclusion, demand: Demand) -> str | None:
    causes = len({cause.service for cause in conclusion.causes})
    if demand.count in (causes, causes + len(conclusion.ruled_out)):
        return None
    have = f"{format_count(causes, 'cause')} and {len(conclusion.ruled_out)} ruled out"
    return f'the question asks for {demand.count} candidates ("{demand.text}"): the draft has {have}'


def _field_unmet(conclusion: Conclusion, demand: Demand) -> str | None:
    if conclusion.fields.get(demand.name or "") is not None:
        return None
    have = ", ".join(conclusion.fields) or "none"
    return f'the question asks for the field "{demand.name}": fields holds {have}; give it a value'


def _format_unmet(conclusion: Conclusion, demand: Demand) -> str | None:
    if demand.name != "json":
        return None
    try:
        json.loads(strip_code_fence(conclusion.answer))
    except ValueError as error:
        return f"the question asks for JSON: the answer is not JSON ({error}); send one JSON document as the answer"
    return None


def is_json_answer(text: str) -> bool:
    """Whether the answer is a JSON document with keys or entries, in a code fence or not: no sentence fits before it."""
    try:
        return isinstance(json.loads(strip_code_fence(text)), dict | list)
    except ValueError:
        return False


def strip_code_fence(text: str) -> str:
    """A JSON answer without the code fence that models often put around it."""
    fence = re.fullmatch(r"\s*```(?:json)?\n([\s\S]*?)\n?```\s*", text)
    return fence[1] if fence else text


_SCRIPTS = {
    "zh": r"[\u4e00-\u9fff]",
    "ja": r"[\u3040-\u30ff]",
    "ko": r"[\uac00-\ud7af]",
    "ru": r"[\u0400-\u04ff]",
}
_ANY_SCRIPT = re.compile("|".join(_SCRIPTS.values()))
# Names in Latin letters appear in every answer: a tenth of the letters is enough to tell the language.
_SHARE = 0.1


def _language_unmet(answer: str, language: str) -> str | None:
    letters = sum(c.isalpha() for c in answer) or 1
    own = _SCRIPTS.get(language)
    share = len(re.findall(own or _ANY_SCRIPT, answer)) / letters
    if (share >= _SHARE) == (own is not None):
        return None
    return f"the question asks for an answer in the language {language}: write the answer in it (names stay as they are)"


def _untouchable_unmet(conclusion: Conclusion, name: str) -> str | None:
    for i, item in enumerate(conclusion.recommendations):
        if _recommendation_touches(item, name):
            return f'the question says not to touch "{name}": recommendation {i} does; leave it out or aim it elsewhere'
    return None


def _recommendation_touches(item: Recommendation, name: str) -> bool:
    if item.action is not None and name_occurs_in(
        name, [normalize_for_matching(to_canonical_json(dict(item.action.arguments)))]
    ):
        return True
    text = normalize_for_matching(item.text)
    return name_occurs_in(name, [text]) and bool(_ACT.search(text)) and not _NEGATED.search(text)
