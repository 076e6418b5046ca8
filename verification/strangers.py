"""Services that a question asks about and that nobody knows: said so, never answered with another one unlabelled."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from opsleuth.state.conclusion import Conclusion
from opsleuth.state.outcome import Verdict
from opsleuth.verification.lexicon import ADJECTIVES, COMPONENTS, GENERIC, words
from opsleuth.verification.names import occurs

MOST = 3
_NAME = r"(?P<name>[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*)"
_THE = r"(?:the |our |my )?"
_WHAT = r"(?: (?:api|service|app|backend|database|db|pods?))?"
_ASKED = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:why|how come) (?:is|are|was|were|does|do|did|has|have) {_THE}{_NAME}{_WHAT} \w",
        rf"\bwhy {_THE}{_NAME}{_WHAT} (?:is|are|was|were|has|fails?|gets?|got|keeps?|became)\b",
        rf"(?:^|[.!?:;] ){_THE}{_NAME}{_WHAT} (?:is|are|was|were|has|became|gets|got|keeps|went|fails|returns|answers|crashes|crashed)\b",
        rf"\bwhat(?: i|')s wrong with {_THE}{_NAME}\b",
        rf"\b(?:what happened to|look (?:at|into)|investigate|diagnose) {_THE}{_NAME}\b",
        rf"\b(?:the|a) {_NAME} (?:service|deployment|app|api|backend)\b",
        rf"\b(?:service|deployment|app)s? (?:named|called) [\"'`]?{_NAME}",
    )
]
# What stands in the place of a service and names none.
_NO_NAME = (
    words(
        "please always why how when where it they we you he she i this that these those there what who which everything something nothing anything"
        " everyone somebody nobody users user customers customer people clients client requests request traffic"
        " latency errors error failures failure load response responses time times throughput availability"
        " site website page pages system systems platform shop store production prod staging cluster clusters"
        " app apps application applications service services api apis backend frontend database databases db cpu"
        " memory disk storage network queue queues cache pods pod nodes node hosts host machine machines server"
        " servers deployment deployments deploy deploys release releases rollout logs log metrics metric alert"
        " alerts dashboard monitoring incident problem issue outage calls call connections sessions jobs job"
        " queries query statements statement all one some many most my our the a an no not only of in on"
        " half several both each another other others things thing world internet number rate rates percent"
    )
    | ADJECTIVES
    | GENERIC
)


def subjects(question: str) -> Iterator[str]:
    """What the question speaks of in the place of a service, each once, in the order of the patterns."""
    seen: set[str] = set()
    for pattern in _ASKED:
        for match in pattern.finditer(question[:20_000]):
            name = match["name"]
            if name.casefold() not in seen and name.casefold() not in _NO_NAME:
                seen.add(name.casefold())
                yield name


def strangers(question: str, known: Iterable[str]) -> tuple[str, ...]:
    """The subjects that no `known` name has, nor has as a part: what is merely short for a known one is no stranger."""
    names = {name.casefold() for name in known}
    return tuple(name for name in subjects(question) if not _kin(name.casefold(), names))[:MOST]


def _kin(name: str, known: Collection[str]) -> bool:
    parts = [part for part in re.split(r"[-_]", name) if part not in COMPONENTS] or [name]
    stems = [part.removesuffix("s") for part in parts if len(part) > 2]
    return any(stem in other for stem in stems for other in known)


def unseen(absent: Iterable[str], texts: Collection[str]) -> tuple[str, ...]:
    """Those of `absent` that no text of the evidence (each from `squeeze`) holds."""
    return tuple(name for name in absent if not occurs(name, texts))


def labelled(conclusion: Conclusion, absent: Sequence[str], about: str) -> Conclusion:
    """The conclusion of a run that was asked about `absent`, on what there is: inconclusive, and says so first.

    `about`: what it is about instead, in words. An answer in the form of a JSON object keeps its form.
    """
    who = " and ".join(absent)
    said = (
        f"There is no data on {who}: no source knows a service of that name, and nothing that was looked at "
        f"names it. What follows is about {about}. "
    )
    answer = conclusion.answer if _is_object(conclusion.answer) else f"{said}{conclusion.answer}"[:20_000]
    changed = {"verdict": Verdict.INCONCLUSIVE, "answer": answer}
    return Conclusion.model_validate(conclusion.model_dump() | changed)


def _is_object(answer: str) -> bool:
    try:
        return isinstance(json.loads(answer), dict)
    except ValueError:
        return False
