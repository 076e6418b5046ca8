"""Whether a question states that something is wrong, or only asks whether anything is."""

import re

_TROUBLE = re.compile(
    r"\b(?:fail\w*|errors?|erroring|slow\w*|down|broken?|broke|unavailable|unreachable|tim(?:e|es|ed|ing)[ -]?outs?"
    r"|cannot|can[’']?t|can not|could not|couldn[’']?t|unable|nobody|no one|(?:do|does|did|is|are)(?:n[’']t| not)"
    r"|reject\w*|refus\w*|den(?:y|ies|ied)|crash\w*|hang(?:s|ing)?|hung|stuck|stall\w*|missing|lost|losing"
    r"|stopp?ed|stops|time out|late|lagging|throttl\w*|leak\w*|5\d\ds?)\b"
    r"|失败|报错|错误|异常|很慢|变慢|缓慢|超时|宕机|不可用|打不开|无法|不能|崩溃|卡住|拒绝"
    r"|\b(?:fehler\w*|schl[aä]gt|schlagen|langsam\w*|kaputt|ausgefallen|nicht)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:what (?:happened|changed|is new|went on)|anything|any (?:errors?|failures?|anomal\w+|problems?)|something wrong"
    r"|how many|list|show|which (?:lines|errors))\b|发生了什么|有没有|是否有",
    re.IGNORECASE,
)


def states_trouble(question: str) -> bool:
    """Whether the question says that something fails, is slow or is gone; an open one ("any errors?") does not."""
    return _TROUBLE.search(question) is not None and _OPEN.search(question) is None
