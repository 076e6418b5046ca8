"""What kind of statement a sentence makes: absence, "not available", an action of ours, an only candidate."""

import re
from collections.abc import Iterator

from opsleuth.verification.quantities import find_quantities

_ABSENCE = re.compile(
    r"\b(?:no|none|zero|never|without|nothing|neither|absent|flat|unchanged|not (?:any|a single|one))\b(?! (?:longer|doubt|matter|else|more than|later than|less than|fewer than|earlier than))"
    r"|没有|未(?:发现|出现|见|观察到)|无(?!法|论)|持平|不存在",
    re.IGNORECASE,
)
_ABSENT_THING = re.compile(rf"(?:{_ABSENCE.pattern})(?: ?[\w-]+){{1,2}}", re.IGNORECASE)
_AUXILIARY = re.compile(r" (?:is|are|was|were|has been|have been|had been|being|yet)\b", re.IGNORECASE)
"""What a sentence adds to the words of its evidence: "no node is assigned" for "no node assigned"."""
_WORD = re.compile(r"[^\W\d_]{4,}")
_FRAME_WORDS = frozenset(
    ["occurred", "happened", "seen", "found", "exist", "exists", "there", "recorded", "shown", "listed", "during", "this", "that",
     "window", "incident", "before", "after", "since", "until", "with", "from", "were", "been", "have", "other", "when"]
)  # fmt: skip
_LEVEL = re.compile(r"\b(?:flat|unchanged)\b|持平", re.IGNORECASE)
_UNAVAILABLE = re.compile(
    r"\b(?:not available|unavailable to us|not recorded|no data|no such series|not covered|could not be (?:queried|read|reached|checked|retrieved|obtained)|"
    r"was not (?:looked at|available|recorded|reachable)|were not (?:looked at|available|recorded|reachable)|cannot be (?:checked|verified|determined)|"
    r"no (?:[\w-]+ ){0,3}(?:history|records?|recordings?|metrics|logs|traces|events|topology|samples|series) (?:exists?|is|are|was|were|has been|have been)(?: \w+)? ?(?:available|recorded|kept|exported|collected|there|on record)?(?= (?:for|of|in|here|from)\b|[.,;]|$)|"
    r"no (?:[\w-]+ ){1,3}(?:history|records?) (?:was|were|is|are)?(?: ?(?:available|recorded|kept|on record))?|"
    r"(?:nothing|no [\w-]+) (?:could|can) be (?:compared|queried|read|checked|searched|verified)|"
    r"(?:query|call|tool|source|lookup) (?:failed|timed out))\b"
    r"|不可用|无法(?:获取|查询|读取|确认|判断|核实)|没有(?:数据|记录)|无数据|未(?:记录|采集)|查询失败",
    re.IGNORECASE,
)
# English words need a border on both sides, Chinese ones have none.
_ACTS = {
    "restart": r"\brestarted\b|重启",
    "roll": r"\b(?:rolled back|reverted)\b|回滚",
    "scale": r"\bscal(?:ed|ing) (?:up|down|out|in|to)\b|扩容|缩容",
    "delete": r"\bdeleted\b|删除",
    "disable": r"\b(?:disabled|switched off|turned off)\b|关闭",
    "enable": r"\b(?:enabled|switched on|turned on)\b|开启",
    "drain": r"\b(?:drained|cordoned)\b",
    "fail over": r"\bfailed over\b",
    "patch": r"\b(?:patched|reconfigured|applied (?:the|a) (?:fix|patch|change))\b",
    "fix": r"\b(?:has|have|was|were|been|is|are|we|i) (?:\w+ )?(?:fixed|mitigated|remediated)\b|修复",
}
_ACT = {stem: re.compile(words, re.IGNORECASE) for stem, words in _ACTS.items()}
_NOUN = re.compile(r"\b(restart|rollback|scale-up|scale-down|failover)\b", re.IGNORECASE)
_AGENT = re.compile(
    r"\b(?:we|i|opsleuth|this run|this investigation)\b|我们|本次(?:调查|排查)|已(?=回滚|重启|修复|扩容|缩容|删除|关闭|开启)",
    re.IGNORECASE,
)
_MODAL = re.compile(
    r"\b(?:should|could|would|can|must|may|might|recommend\w*|suggest\w*|consider|propose\w*|if|to be|needs?|not)\b|建议|应该|可以|需要|如果|未",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:executed|completed|succeeded|successful(?:ly)?|carried out|took effect|done)\b|成功|完成",
    re.IGNORECASE,
)
_EARLIER = re.compile(
    r"\b(?:before|earlier|prior|previous(?:ly)?|baseline|preced\w+|since|ago|after(?:wards)?|later|deploy\w*|yesterday|until)\b|之前|此前|以前|基线|早于|之后|以来|部署|发布",
    re.IGNORECASE,
)
_WELL = re.compile(
    r"\b(?:(?:is|are|has|have|looks?|seems?|feels?|runs?|been|now|stays?|remains?)(?: \w+)? (?:well|healthy|fine|ok(?:ay)?|normal|good|stable|resolved|solved|recovered|restored|cured)"
    r"|recover(?:s|ed)|(?:is|are) recovering|back (?:to|within|in|at) (?:normal|its? |their |the usual|baseline|health)|(?:works?|serves?|answers?|responds?) (?:normally|again|now)"
    r"|(?:well|healthy|fine|normal|up|working|running|stable|fast) again|no longer (?:slow|failing|degraded|down|broken|unavailable|affected)"
    r"|(?:incident|problem|issue|outage|fault) (?:is |has been |was )?(?:over|resolved|closed|ended|gone)|all clear|resolved)\b"
    r"|恢复|好转|正常(?:了|运行|工作|服务)|一切正常|已(?:经)?(?:解决|修好|消除)",
    re.IGNORECASE,
)
_NOT_YET = re.compile(
    r"\b(?:not|never|nor|no sign|cannot|fail(?:s|ed)? to|until|before|should|would|could|may|might|if|once|when|whether|expect\w*|hop\w+)\b|n't\b"
    r"|未|没有?|尚|不|是否|如果|应|预计|等待|之前",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:，；：]|\b(?:but|and|although|though|while)\b|但")
_SOLE = re.compile(
    r"\b(?:only (?:one )?(?:plausible )?candidate|no (?:other|rival|further) (?:candidate|hypothesis|suspect|explanation)s?|only hypothesis)\b|唯一(?:的)?(?:候选|可能|嫌疑|原因)|没有其他(?:候选|可能)",
    re.IGNORECASE,
)


def claims_absence(text: str) -> bool:
    """Whether the sentence claims that something is not there ("no errors", "none", "flat")."""
    return bool(_ABSENCE.search(text))


def quotes_absence(text: str, evidence: str) -> bool:
    """Whether the evidence (casefolded) itself has the words in which the sentence claims an absence."""
    said = [_AUXILIARY.sub("", match[0].casefold()).strip() for match in _ABSENT_THING.finditer(text)]
    short = _AUXILIARY.sub("", evidence)
    return all(words in short for words in said)


def list_absent_words(text: str) -> list[str]:
    """The words, in the singular, of the clauses that claim an absence: what may not stand in a complete listing."""
    clauses = [clause for clause in _CLAUSE.split(text) if _ABSENCE.search(clause)]
    words = (word for clause in clauses for word in _WORD.findall(_ABSENCE.split(clause.casefold())[-1]))
    return [word.rstrip("s") for word in words if word not in _FRAME_WORDS]


def claims_unchanged(text: str) -> bool:
    """Whether the sentence claims that a figure did not move."""
    return bool(_LEVEL.search(text))


def claims_unavailable(text: str) -> bool:
    """Whether the sentence says only that something could not be looked at."""
    return bool(_UNAVAILABLE.search(text))


def places_time_outside_window(text: str) -> bool:
    """Whether the sentence itself places its time outside the window (before, since, baseline, deployed…)."""
    return bool(_EARLIER.search(text))


def find_recovery_claim(text: str) -> str | None:
    """The words in which the sentence says that something is well (again), and not that it is not yet."""
    for clause in _CLAUSE.split(text):
        if (said := _WELL.search(clause)) and not _NOT_YET.search(clause):
            return said[0]
    return None


def claims_sole_candidate(text: str) -> bool:
    """Whether the text states that there was only one candidate."""
    return bool(_SOLE.search(text))


def find_claimed_actions(text: str, evidence: str) -> list[str]:
    """The actions that the sentence claims as done by us.

    An act that the cited evidence itself reports (`evidence`, casefolded: a pod that restarted) is an
    observation, unless the sentence names us as the one who acted.
    """
    said = [stem for stem, pattern in _ACT.items() if pattern.search(text)]
    ours = bool(_AGENT.search(text))
    if ours or _DONE.search(text):
        said += [noun.lower() for noun in _NOUN.findall(text)]
    if not said or _is_only_advice(text):
        return []
    return said if ours else [act for act in said if not _is_action_reported(act, evidence)]


def _is_only_advice(text: str) -> bool:
    return bool(_MODAL.search(text)) and not _AGENT.search(text)


# An act is reported in the words of the platform too.
_REPORTED_AS = {
    "roll": ("roll", "revert"),
    "rollback": ("roll", "revert"),
    "scale-up": ("scal",),
    "scale-down": ("scal",),
    "fail over": ("failover", "failed over", "switch"),
    "failover": ("failover", "failed over", "switch"),
    "fix": ("fix", "recover", "resolv"),
}


def _is_action_reported(act: str, evidence: str) -> bool:
    pattern = _ACT.get(act)
    return any(word in evidence for word in _REPORTED_AS.get(act, (act,))) or bool(
        pattern and pattern.search(evidence)
    )


_MOVED = re.compile(
    r"\b(?:(?P<up>rose|risen|increased|grew|grown|went up|jumped|climbed)|fell|fallen|dropped|decreased|declined|shrank|went down)\b",
    re.IGNORECASE,
)
_FROM = re.compile(r"\s*from\s")
_TO = re.compile(r"\s*(?:to|→|->)\s*(?:about |~|over |under )?")


def find_direction_contradictions(text: str) -> Iterator[str]:
    """The parts of the text that say "rose from A to B" where B is less, or "fell" where it is more."""
    for match in _MOVED.finditer(text):
        tail = text[match.end() : match.end() + 60]
        pair = find_quantities(tail)[:2]
        if len(pair) < 2 or not _FROM.match(tail) or not _TO.fullmatch(tail[pair[0].end : pair[1].start]):
            continue
        first, second = (q.value * q.units[0].factors[0] for q in pair)
        alike = pair[0].units[0].dimension == pair[1].units[0].dimension
        rising = bool(match["up"])
        if alike and first != second and rising != (second > first):
            yield match[0] + tail[: pair[1].end]
