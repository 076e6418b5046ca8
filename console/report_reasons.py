"""Why a report blames what it blames, in at most three sentences, and why it ruled the others out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opsleuth.console.report_headline import name_change
from opsleuth.console.terminal_text import shorten_in_middle
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.conclusion_words import FAILED_FROM_FIRST_LINE, HELD
from opsleuth.state.plurals import format_count

Document = Mapping[str, Any]
Claim = Mapping[str, Any]

_SOURCE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_EXPLAINED = re.compile(r"^(?P<rival>.+) is explained by (?P<cause>\S+?)\.?$")
_SCORE = re.compile(r"^.+ is suspect number \d+: its score is (?P<score>[\d.e-]+), 1 at most\b")
_OLD_SCORE = re.compile(r"^suspect_score of .+?: (?P<score>[\d.e-]+)(?: since \S+)?\.?$")
_WEIGHS = re.compile(
    r"^What was found about .+ weighs (?P<score>\d+(?:\.\d+)?), about (?P<first>.+) (?P<best>\d+(?:\.\d+)?)\.?$"
)
_OWN_FAILURES = re.compile(r"; [\d,.]+ of [\d,.]+ extra failures are its own, [^;]*? begin anywhere")
_SPREADS = re.compile(r", [\d.,]+ times its usual spread")
_SELECT_LIST = re.compile(r"\bSELECT (?P<list>[^\"]{12,}?) FROM\b")
_QUOTED = re.compile(r'"([^"]{61,})"')
_MOST_QUOTED = 160
_FAR = 3.0
"""Times the rival's score from which the first suspect's evidence counts as far stronger."""
_NO_CHANGE = "No recorded change explains it."


def explain_cause(document: Document, times: TimeDisplay) -> list[str]:
    """Change, strongest finding, and how it reaches the users, each a sentence with the evidence behind it.

    Empty where no cause was found, or where a model wrote the answer: then its own words stand.
    """
    causes = document.get("causes") or []
    if document.get("verdict") != "cause_found" or not causes or document.get("planner") != "offline":
        return []
    claims = [claim for claim in document.get("claims") or [] if claim.get("status") in HELD]
    own = _claims_of_cause(causes[0], claims)
    change = _explain_change(causes, claims, document, times)
    listed = {str(row["id"]) for row in document.get("evidence") or [] if row.get("tool") == "changes_list"}
    if change:  # told once: not again as a claim about the list of changes
        own = [claim for claim in own if not listed & set(claim.get("evidence") or [])] or own[:1]
    told = [change] if change else []
    tools = {str(row.get("id")): str(row.get("tool")) for row in document.get("evidence") or []}
    told += [
        _append_evidence(tidy_claim_text(claim, times), claim.get("evidence"))
        for claim in _pick_claims(own, tools)
    ]
    if not change and _NO_CHANGE in str(document.get("answer") or ""):
        told.append(_NO_CHANGE)
    if spread := _describe_spread(document):
        told = [*told[:-1], f"{told[-1]} {spread}" if told else spread]
    if missing := list_missing_grounds(document, causes[0]):
        told.append(f"Not confirmed; still missing: {', '.join(missing)}.")
    return told


GROUNDS = {
    "order": "that it began first",
    "path": "a path from it to what fails",
    "mechanism": "how it does the harm",
    "counter_test": "a check that could have refuted it",
}
_SECOND_KIND = "a second kind of data that agrees"
_SECOND_PIECE = "a second piece of evidence"
_AGAINST = "what explains the evidence against it"
_DERIVED_TOOLS = frozenset({"rank_suspects", "calculate", "evidence_read"})
"""Tools that reckon with the data of others: what they give is not another kind of data."""


def list_shown_grounds(document: Document, cause: Mapping[str, Any], times: TimeDisplay) -> list[str]:
    """What is shown for a cause: no path where nothing else suffers, and an order only with what began later, and when."""
    shown = set(cause.get("shown") or ())
    joined = {str(name) for pair in document.get("propagation") or [] for name in pair}
    if cause.get("service") not in joined:
        shown.discard("path")
    order = _describe_sequence(cause, times)
    if not order or _is_beginning_unknown(document, cause):
        shown.discard("order")
    return [f"{words}{order if name == 'order' else ''}" for name, words in GROUNDS.items() if name in shown]


def _describe_sequence(cause: Mapping[str, Any], times: TimeDisplay) -> str:
    """` (10:20:03Z, orders-api at 10:21:00Z)`; empty where nothing is recorded to have begun later."""
    order = cause.get("sequence")
    if not isinstance(order, Mapping):
        return ""
    return f" ({times.clock(order.get('began'))}, {order.get('later')} at {times.clock(order.get('later_began'))})"


def _is_beginning_unknown(document: Document, cause: Mapping[str, Any]) -> bool:
    """Whether the cause failed before the first line that was read."""
    own = cause.get("claims") or ()
    texts = (str(claim.get("text")) for claim in document.get("claims") or [] if claim.get("id") in own)
    return any(FAILED_FROM_FIRST_LINE in text for text in texts)


def list_missing_grounds(document: Document, cause: Mapping[str, Any]) -> list[str]:
    """What a cause lacks to be confirmed; empty for one that is, and for one of an earlier version, which kept no grounds."""
    shown = cause.get("shown")
    if shown is None or cause.get("confidence") == "confirmed":
        return []
    unknown = {"order"} if _is_beginning_unknown(document, cause) else set()
    missing = [words for name, words in GROUNDS.items() if name not in shown or name in unknown]
    if len(_list_kinds_of_data(document, cause)) < 2:
        missing.append(_SECOND_KIND)
    if missing:
        return missing
    return [_AGAINST if _is_contradicted(document, cause) else _SECOND_PIECE]


def _list_kinds_of_data(document: Document, cause: Mapping[str, Any]) -> set[str]:
    """The kinds of data behind the claims of a cause: `logs`, `metrics`, by the tools that read them."""
    tools = {str(row.get("id")): str(row.get("tool")) for row in document.get("evidence") or []}
    held = [claim for claim in document.get("claims") or [] if claim.get("status") in HELD]
    cited = {e for claim in held if claim.get("id") in (cause.get("claims") or ()) for e in claim.get("evidence") or ()}  # fmt: skip
    return {tools[e].partition("_")[0] for e in cited if tools.get(e, "rank_suspects") not in _DERIVED_TOOLS}


def _is_contradicted(document: Document, cause: Mapping[str, Any]) -> bool:
    return any(
        row.get("contradicting") and row.get("service") == cause.get("service")
        for row in document.get("hypotheses") or []
    )


def explain_ruled_out(row: Mapping[str, Any], claims: Mapping[str, Claim]) -> str:
    """`gateway: added latency (it follows from orders-db) [E8]`."""
    because = [claims[c] for c in row.get("claims") or [] if c in claims]
    why = "; ".join(dict.fromkeys(_explain_rival(str(claim.get("text") or "")) for claim in because))
    cited = dict.fromkeys(e for claim in because for e in claim.get("evidence") or [])
    rival = str(row.get("hypothesis") or "")
    told = f" ({why})" if ": " in rival else f": {why}"  # one colon a sentence
    return _append_evidence(f"{rival}{told if why else ''}", cited)


def shorten_times(text: str, times: TimeDisplay) -> str:
    """`text` with each stored time as a clock time in the reader's zone."""
    return _SOURCE_TIME.sub(lambda found: times.clock(found[0]), text)


def _claims_of_cause(cause: Mapping[str, Any], claims: Sequence[Claim]) -> list[Claim]:
    named = cause.get("claims") or []
    return [claim for claim in claims if claim.get("id") in named] or list(claims)


def _pick_claims(own: Sequence[Claim], tools: Mapping[str, str]) -> Iterable[Claim]:
    """The strongest claim, and one that rests on other evidence: a second kind of signal says more than a repeat.

    A measured one goes before a quotation. `tools` by evidence id.
    """
    if not own:
        return
    yield own[0]
    first = set(own[0].get("evidence") or [])
    rest = [claim for claim in own[1:] if claim.get("text") != own[0].get("text")]
    far = [claim for claim in rest if len(first & set(claim.get("evidence") or [])) <= 1]

    def rank_claim(claim: Claim) -> tuple[bool, bool]:
        kinds = {tools.get(e, "") for e in claim.get("evidence") or []}
        return not any(kind.startswith("metrics") for kind in kinds), '"' in str(claim.get("text"))

    yield from sorted(far or rest, key=rank_claim)[:1]


def _explain_change(
    causes: Sequence[Mapping[str, Any]], claims: Sequence[Claim], document: Document, times: TimeDisplay
) -> str:
    change = next(
        (cause["change"] for cause in causes if isinstance(cause.get("change"), Mapping)),
        None,
    )
    if change is None:
        return ""
    who = f" by {change['author']}" if change.get("author") else ""
    place = f", {change['place']}" if change.get("place") else ""
    name = name_change(change)
    evidence = _evidence_of_change(change, document, claims)
    if change.get("grade") != "cause":
        return _append_evidence(
            f"{_capitalize_word(name)}{who} at {times.clock(change.get('at'))} fits in place and time, which proves nothing: {change.get('why')}.",
            evidence,
        )
    return _append_evidence(
        f"{_capitalize_word(name)}{who} came first, at {times.clock(change.get('at'))}{place}: {change.get('why')}.",
        evidence,
    )


def _evidence_of_change(
    change: Mapping[str, Any], document: Document, claims: Sequence[Claim]
) -> Iterable[str]:
    """The evidence of the claim that reports the change; failing that the list of changes that was read."""
    at = str(change.get("at") or "")
    of = next(
        (
            c
            for c in claims
            if at and at in str(c.get("text")) and str(change.get("service")) in str(c["text"])
        ),
        None,
    )
    if of is not None:
        return list(of.get("evidence") or [])[:1]
    return [str(row["id"]) for row in document.get("evidence") or [] if row.get("tool") == "changes_list"][:1]


def _describe_spread(document: Document) -> str:
    """`It passes on to orders-api.`, or how many services lie between; a chain that branches has its first branch."""
    pairs = [(str(a), str(b)) for a, b in document.get("propagation") or []]
    if not pairs:
        return ""
    start = str((document.get("causes") or [{}])[0].get("service"))
    following: dict[str, str] = {}
    for a, b in pairs:
        following.setdefault(a, b)
    chain = [start if start in following else pairs[0][0]]
    while (after := following.get(chain[-1])) and after not in chain:
        chain.append(after)
    between = len(chain) - 2
    through = f" through {format_count(between, 'service')}" if between > 0 else ""
    return f"The fault passes on from {chain[0]} to {chain[-1]}{through}."


def tidy_claim_text(claim: Claim, times: TimeDisplay, most_quoted: int = _MOST_QUOTED) -> str:
    """The claim as a sentence: clock times, quotations of at most so many characters, and no figures for statisticians."""
    text = shorten_times(str(claim.get("text") or ""), times).strip()
    text = _OWN_FAILURES.sub("; what it calls does not explain them", text)
    text = _SELECT_LIST.sub("SELECT … FROM", text)
    text = _QUOTED.sub(
        lambda found: (
            found[0] if len(found[1]) <= most_quoted else f'"{shorten_in_middle(found[1], most_quoted)}"'
        ),
        text,
    )
    text = _SPREADS.sub("", text)
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _explain_rival(text: str) -> str:
    if found := _EXPLAINED.match(text):
        return f"it follows from {found['cause']}"
    if found := _WEIGHS.match(text):
        return f"the evidence for {found['first']} is {_compare_scores(found)}"
    if found := _SCORE.match(text) or _OLD_SCORE.match(text):
        return "there is little evidence for it"
    return text.rstrip(".")


def _compare_scores(found: re.Match[str]) -> str:
    """How much more speaks for the first suspect than for the rival, in a word."""
    return "far stronger" if float(found["best"]) >= _FAR * float(found["score"]) else "stronger"


def _capitalize_word(text: str) -> str:
    """`text` with a capital where it begins with a plain word, not with a name such as `orders-db`."""
    word = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text


def _append_evidence(text: str, evidence: Iterable[str] | None) -> str:
    cited = " ".join(map(str, evidence or ()))
    return f"{text} [{cited}]" if cited else text
