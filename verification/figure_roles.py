"""Whether a sentence uses a figure in the role that it has in a fact: as its value, its usual value, or a detail by its name.

A number alone says nothing: the usual value of one row is the value of another, and a share of all failures looks like an
error rate. So the words around a number have to fit what the figure is; where they do not, the sentence is not bound to it.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from opsleuth.verification.derived_numbers import stands_for
from opsleuth.verification.fact_matching import SentenceToken, holds_token
from opsleuth.verification.facts import SHARE, Fact, FactDetail
from opsleuth.verification.grounding import fits_quantity
from opsleuth.verification.quantities import Quantity, find_quantities
from opsleuth.verification.record_facts import RecordFigure
from opsleuth.verification.spoken_measures import states_bare_value

_BEFORE, _AFTER = 48, 44
"""How many characters around a number tell what it is."""

_USUAL = re.compile(
    r"\b(?:usual\w*|normal\w*|typical\w*|ordinar\w*|baseline|before|against|instead|previous\w*|prior|earlier|compared|versus|vs|until|rather|than|from|was|were|had been|used to|üblich\w*|normalerweise|sonst|zuvor|vorher|von|statt)\b|平时|通常|基线|之前|原来|从",
    re.IGNORECASE,
)
_USUAL_NEXT = re.compile(
    r"(?:\b(?:usual(?:ly)?|normal(?:ly)?|typical(?:ly)?|baseline|instead of|compared (?:to|with)|versus|vs\.?|rather than|previously|against|(?:up|down|rose|fell|grew|climbed|dropped|went|jumped) from|üblich|statt|sonst))(?: (?:is|was|of|it|the|a|an|just|only|about|around|under|roughly|level|value)){0,4}[ :(~≈]*$",
    re.IGNORECASE,
)
_USUAL_AFTER = re.compile(
    r"[ ,(]*(?:is |was |being )?(?:the |its )?(?:usual|normal|before|previous|baseline|typical|earlier|at first|üblich|vorher|zuvor|平时|之前)",
    re.IGNORECASE,
)
_LEVEL_WORDS: dict[str, re.Pattern[str]] = {
    level: re.compile(rf"(?:{words})", re.IGNORECASE)
    for level, words in {
        "max": r"max|peak|high|top|most|worst|up to|reach|hit|spik|climb|jump|exceed|surg|explod|rose|ris|never|höchst|最高|峰值|达到",
        "min": r"min|low|bottom|least|fell|fall|drop|down to|best|never|niedrigst|最低",
        "first": r"first|start|began|begin|initial|from|was|were|zuerst|anfang|最初|开始",
        "last": r"last|end|final|still|now|back|current|stood|stand|by |close|again|zuletzt|noch|最后|仍",
        "median": r"median|typical|usual|normal|middle|中位",
        "mean": r"mean|average|avg|mittel|durchschnitt|平均",
    }.items()
}
STEMS_OF_FIGURES: dict[str, str] = {
    "desired": "repl pods cont want wish expe",
    "ready": "repl up runn avai pods cont ",
    "count": "time occu even seen retr",
    "occurrences": "time even seen retr",
    "lines": "line time mess erro logg entr",
    "just": "befo earl prec",
    "requests": "call traf over",
    "calls": "requ over",
    "own": "itse begi star orig",
    "total": "extr all addi more",
    "share": "begi orig all own star part",
    "times": "much fold many",
    "usual": "befo norm rang betw neve exce most maxi mini base lay",
    "score": "spre devi sigm rank susp",
    "mean": "aver call take per",
    "calls_per_sec": "per seco rate time",
    "load": "sess acti",
    "scanned": "line seri sear look read chec rows amon out",
    "scanned_series": "amon look sear chec out metr",
    "seconds": "befo earl prio ahea",
    "minutes": "befo earl prio ahea",
    "restarts": "time",
    "operations": "comp",
    "not_shown": "list omit more left",
    "replicas": "pods",
    "callers": "call",
    "status_code": "http answ retu resp stat",
    "incident": "now",
    "now": "take time need in",
    "samples": "over poin ",
    "findings": "anom",
    "distance": "hop",
}  # fmt: skip
"""Stems of other words that people use for a figure of this name, beside those of the name itself."""
_WHOLE = re.compile(r"(?:^ ?(?:out )?of|\b(?:one|none|all|any|each|most|out) of)(?: (?:the|its|all|their))*[ ~]*$|^/$", re.IGNORECASE)  # fmt: skip
_WHOLES = frozenset(["desired", "scanned", "scanned_series", "total", "requests", "samples"])
"""Figures of which another one is a part: `one of the three replicas`."""
_PART_OF = re.compile(r" (?:out )?of(?: (?:the|its|all|their))? ?")
_COUNTS = frozenset(["own", "total", "requests", "lines", "calls", "count", "scanned", "matched"])
"""Figures that are never written in per cent."""
_STOP = frozenset(["the", "of", "on", "in", "at", "to", "is", "it", "as", "an", "we", "be", "by", "or", "so", "see", "and", "from", "up", "down", "went", "rose", "fell", "into", "now", "only", "just", "that", "this", "with", "for", "are", "was", "were", "has", "had", "its", "ms", "percent", "value", "figures"])  # fmt: skip
_CALLED_BEFORE = re.compile(r"\b(?P<name>[a-z]\w*)\s*(?:=|\s(?:is|was|of|at))\s*$", re.IGNORECASE)
_CALLED_AFTER = re.compile(r"\s(?:for|of)\s(?:the\s)?(?P<name>[a-z]\w*)\b", re.IGNORECASE)
_COUNTING_NOUN = re.compile(
    r" (?!(?:and|but|from|against|since|until|when|while|before|after|with|where|which|now|over|per|than|for|the|instead|rather|usually|normally)\b)[a-z]{3,}"
)


class SentenceContext(NamedTuple):
    """The sentence that a token stands in, with all its tokens."""

    text: str
    tokens: Sequence[SentenceToken]

    def words_before(self, token: SentenceToken) -> str:
        """The words before it, as far as the token before."""
        last = max((t.end for t in self.tokens if t.end <= token.start), default=0)
        return self.text[max(last, token.start - _BEFORE) : token.start]

    def words_after(self, token: SentenceToken) -> str:
        """The words after it, as far as the next token."""
        later = sorted((t for t in self.tokens if t.start >= token.end), key=lambda t: t.start)
        if later and _PART_OF.fullmatch(self.text[token.end : later[0].start]):
            return " of " + self.words_after(later[0])
        following = later[0].start if later else len(self.text)
        return self.text[token.end : min(following, token.end + _AFTER)]

    def words_around(self, token: SentenceToken) -> str:
        return f"{self.words_before(token)} {self.words_after(token)}"


def holds_in_role(fact: Fact, token: SentenceToken, said: SentenceContext) -> bool:
    """Whether the fact has this time or quotation, or this figure in the role that the words around it give it."""
    if token.quantity is None:
        return holds_token(fact, token)
    if not holds_token(fact, token) or _is_called_by_words(fact, token, said):
        return False
    details = [d for d in fact.figures if _stands_for_detail(token, d)]
    if not details:
        return _fits_own_words(fact, token, said)
    return any(_fits_role(fact, d, token, said) for d in details) or _fits_own_words(fact, token, said)


def _is_called_by_words(fact: Fact, token: SentenceToken, said: SentenceContext) -> bool:
    """Whether the sentence gives the number to what the row says in words: `the state is 1` of a row with `state: Running`."""
    called = find_called_name(token, said)
    if not called or fact.measure.casefold() == called:
        return False
    own = [d for d in fact.details if d.name.rpartition(".")[2].casefold() == called and d.seconds is None]
    lowered = said.text.casefold()
    return bool(own) and all(isinstance(d.value, str) and d.value.casefold() not in lowered for d in own)


def find_called_name(token: SentenceToken, said: SentenceContext) -> str:
    """What a number is called by the word beside it: `the state is 1`, `state of 1`, `1 for state`; else empty."""
    found = _CALLED_BEFORE.search(said.words_before(token)) or _CALLED_AFTER.match(said.words_after(token))
    return found["name"].casefold() if found and token.quantity else ""


def _stands_for_detail(token: SentenceToken, detail: FactDetail) -> bool:
    quantity = token.quantity
    if quantity is None or (quantity.units[0].dimension == "share" and detail.name in _COUNTS):
        return False
    if stands_for(quantity, RecordFigure(float(detail.value), detail.units, detail.name, 0)):
        return True
    return detail.unit == SHARE and any(
        fits_quantity(quantity, scale * float(detail.value)) for scale in (1, 100)
    )


def _fits_role(fact: Fact, detail: FactDetail, token: SentenceToken, said: SentenceContext) -> bool:
    if _counts_something_else(fact, detail, token, said):
        return False
    if detail.path == fact.path:
        return _fits_main_value(fact, token, said)
    if detail.path == fact.before_path:
        return _fits_usual_value(fact, token, said)
    return _fits_detail(fact, detail, token, said)


def _counts_something_else(
    fact: Fact, detail: FactDetail, token: SentenceToken, said: SentenceContext
) -> bool:
    """Whether a number counts what follows it, while the figure is a time, a size, or called otherwise than another one of the row."""
    noun = _COUNTING_NOUN.match(said.text[token.end :])
    if noun is None:
        return False
    if (
        token.quantity is not None
        and token.quantity.bare
        and not _knows_word(fact, detail, said.words_after(token))
    ):
        return True
    physical = any(unit.dimension in ("time", "bytes", "money") for unit in detail.units)
    plain = token.quantity is not None and token.quantity.bare and "." not in token.text
    if physical and plain:
        return True
    counted = noun[0].strip()[:4]
    return any(
        d is not detail and d.name.rpartition(".")[2].startswith(counted) and not _stands_for_detail(token, d)
        for d in fact.figures
    )


def _knows_word(fact: Fact, detail: FactDetail, after: str) -> bool:
    """Whether one of the first words after a plain number is a word of the fact, or one that people use for its figure."""
    words = _collect_stems(" ".join(re.findall(r"[^\W\d_]{2,}", after)[:4]))
    own = _collect_stems(f"{fact.measure} {fact.subject} {fact.label_source} {' '.join(d.name for d in fact.details)}".replace("_", " "))  # fmt: skip
    return bool(words & (own | _stems_of_figure(detail)))


def _fits_main_value(fact: Fact, token: SentenceToken, said: SentenceContext) -> bool:
    if fact.before is not None and _USUAL_NEXT.search(said.words_before(token)):
        return token.quantity is not None and fits_quantity(token.quantity, float(fact.before))
    if _names_another_figure(fact, said):
        return False
    if fact.path.startswith("/points/"):
        return _states_time_of(fact, said)
    counted = not fact.subject or fact.searched is not None or fact.path.count("/") == 1
    if counted and fact.measure.isidentifier() and not _names_count(fact, token, said):
        return is_named_with_its_row(fact, token, said)
    if fact.measure == "suspect_score":
        return bool(re.search(r"score|suspect|rank", said.text, re.IGNORECASE))
    level = fact.measure.rpartition(" ")[2]
    words = _LEVEL_WORDS.get(level)
    if words is None or " " not in fact.measure or _names_measure(fact, said):
        return True
    return _states_time_of(fact, said) or bool(words.search(said.words_around(token)))


def is_named_with_its_row(fact: Fact, token: SentenceToken, said: SentenceContext) -> bool:
    """Whether the sentence says no more of the figure than whose it is, by the name in the fact's row, in no unit of its own."""
    unitless = token.quantity is not None and (token.quantity.bare or bool(fact.unit))
    return unitless and states_bare_value(fact, said.words_before(token), said.words_after(token))


def _names_count(fact: Fact, token: SentenceToken, said: SentenceContext) -> bool:
    """Whether the words around the figure name what a search or a tally counts."""
    measure = _collect_stems(fact.measure.replace("_", " ")) | set(
        STEMS_OF_FIGURES.get(fact.measure, "").split()
    )
    return bool(measure & _collect_stems(said.words_around(token)))


def _names_measure(fact: Fact, said: SentenceContext) -> bool:
    lowered = said.text.casefold()
    return any(form in lowered for form in (fact.measure.casefold(), fact.measure.casefold().replace("_", " ")))  # fmt: skip


def _names_another_figure(fact: Fact, said: SentenceContext) -> bool:
    """Whether the sentence calls another figure of the row by its whole name without giving it, and not the measure."""
    if _names_measure(fact, said):
        return False
    lowered = said.text.casefold().replace("_", " ")
    return any(
        d.name.rpartition(".")[2].replace("_", " ").casefold() in lowered
        and not any(_stands_for_detail(token, d) for token in said.tokens)
        for d in fact.figures
        if d.path not in (fact.path, fact.before_path) and "_" in d.name
    )


def _states_time_of(fact: Fact, said: SentenceContext) -> bool:
    return fact.at is not None and any(
        holds_token(fact, token) for token in said.tokens if token.moment is not None
    )


def _fits_usual_value(fact: Fact, token: SentenceToken, said: SentenceContext) -> bool:
    if _is_said_to_be_usual(token, said) and _names_measure(fact, said):
        return True
    others = [t for t in said.tokens if t is not token and t.quantity is not None]
    value = next((d for d in fact.figures if d.path == fact.path), None)
    return value is not None and any(_stands_for_detail(other, value) for other in others)


def _is_said_to_be_usual(token: SentenceToken, said: SentenceContext) -> bool:
    return bool(_USUAL.search(said.words_before(token)) or _USUAL_AFTER.match(said.words_after(token)))


def _fits_detail(fact: Fact, detail: FactDetail, token: SentenceToken, said: SentenceContext) -> bool:
    near = _collect_stems(said.words_around(token))
    name = detail.name.rpartition(".")[2]
    if name in _WHOLES and _WHOLE.search(said.words_before(token)):
        return True
    return bool(near & _stems_of_figure(detail)) or _fits_own_words(fact, token, said)


def _stems_of_figure(detail: FactDetail) -> frozenset[str]:
    """The stems of a figure's name, and of what people call it."""
    name = detail.name.rpartition(".")[2]
    aliases = " ".join(STEMS_OF_FIGURES.get(part, "") for part in (name, *name.split("_")))
    return _collect_stems(detail.name.replace("_", " ").replace(".", " ")) | frozenset(aliases.split())


def _fits_own_words(fact: Fact, token: SentenceToken, said: SentenceContext) -> bool:
    """Whether the figure appears in the fact's own sentence, message or statement beside words that the sentence has too."""
    quantity = token.quantity
    if quantity is None:
        return False
    near = _collect_stems(said.words_around(token)) - _collect_stems(fact.subject)
    counted = _collect_stems(" ".join(re.findall(r"[^\W\d_]{2,}", said.words_after(token))[:4]))
    physical = any(u.dimension in ("time", "bytes", "money") for u in quantity.units)
    usual = _is_said_to_be_usual(token, said)
    for other, beside, noun, is_usual in _figures_with_words(fact.label_source):
        fits = stands_for(quantity, RecordFigure(other.value, () if other.bare else other.units, "", 0))
        if (
            not fits
            or (is_usual and not usual)
            or (physical and other.bare)
            or (quantity.bare and noun and not noun & counted)
        ):
            continue
        if near & beside:
            return True
    return False


@lru_cache(maxsize=2048)
def _figures_with_words(text: str) -> tuple[tuple[Quantity, frozenset[str], frozenset[str], bool], ...]:
    """The figures of a text, each with the words beside it, with what it counts if that follows, and whether it is called usual."""
    cut = text[:4000]
    found = []
    for q in find_quantities(cut):
        after = cut[q.end : q.end + 34]
        beside = _collect_stems(f"{cut[max(0, q.start - 30) : q.start]} {after}")
        noun = _COUNTING_NOUN.match(after) if q.bare else None
        counted = _collect_stems(" ".join(after.split()[:3])) if noun else frozenset()
        found.append((q, beside, counted, bool(_USUAL_NEXT.search(cut[max(0, q.start - 30) : q.start]))))
    return tuple(found)


@lru_cache(maxsize=4096)
def _collect_stems(text: str) -> frozenset[str]:
    """The first four letters of each word, without the words that stand anywhere."""
    words = re.findall(r"[a-zäöüß]{2,}", text.casefold())
    return frozenset(word[:4] for word in words if word not in _STOP)


def belongs_to_clause(fact: Fact, token: SentenceToken, said: SentenceContext) -> bool:
    """Whether a further fact of a clause is meant by a figure: by its time, its own words, its measure or its component."""
    if _states_time_of(fact, said):
        return True
    named = _collect_stems(f"{fact.measure} {fact.subject}".replace("_", " "))
    return bool(named & _collect_stems(said.words_around(token))) or _fits_own_words(fact, token, said)


def count_level_words(fact: Fact, token: SentenceToken, said: SentenceContext) -> int:
    """1 if the words around the figure name the level of a series (`peaked`) that the fact is, else 0."""
    words = _LEVEL_WORDS.get(fact.measure.rpartition(" ")[2]) if " " in fact.measure else None
    return int(words is not None and bool(words.search(said.words_around(token))))


def is_main_or_named(fact: Fact, token: SentenceToken, said: SentenceContext) -> bool:
    """Whether the figure is the fact's value, or one of its details while the sentence names its measure."""
    main = next((d for d in fact.figures if d.path == fact.path), None)
    if not fact.subject:
        return main is not None and _stands_for_detail(token, main)
    return (main is not None and _stands_for_detail(token, main)) or _names_measure(fact, said)
