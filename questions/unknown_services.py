"""Unknown services in a question: named as unknown, never silently replaced by another one."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from opsleuth.state.conclusion import Conclusion, Recommendation
from opsleuth.state.run_status import Verdict
from opsleuth.verification.lexicon import ADJECTIVES, COMPONENTS, GENERIC, split_word_list
from opsleuth.verification.name_extraction import name_occurs_in
from opsleuth.verification.question_demands import is_json_answer

MOST = 3
_NAME = r"(?P<name>[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*)"
_THE = r"(?:the |our |my )?"
_WHAT = r"(?P<what> (?:api|service|app|backend|database|db|pods?|deployment))?"
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
# Words in the place of a service that name none.
_NO_NAME = (
    split_word_list(
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
        " revenue sales turnover conversion income growth profit churn usage demand activity capacity cost spend budget"
        " performance stability uptime health status quality experience mobile web desktop browser phone home landing"
        " login signin signup logon logout registration search upload download export import printing delivery"
        " browsing navigation ordering booking reading writing loading opening sending receiving"
        " today yesterday tomorrow tonight morning afternoon evening night week weekend month monday tuesday wednesday"
        " thursday friday saturday sunday now currently recently lately last first next new old slow fast high low"
        " nobody anyone noone person team boss colleague support sudden suddenly there somewhere part time"
        " data file image picture photo video email mail message notification report invoice receipt account"
        " password session cookie token certificate connection connectivity replication backup restore import job"
        " change update upgrade migration config configuration setting feature flag bug crash spike drop increase"
        " decrease peak jump trend graph chart curve line value figure count sum average percentile volume"
        # Verbs and auxiliaries: they stand between the question word and the service.
        " is are was were be been being am do does did done has have had having can could will would shall should may might must"
        " isn aren wasn weren don doesn didn hasn haven hadn couldn won wouldn shouldn cannot"
        " fail fails failed failing get gets got getting keep keeps kept become becomes became go goes went going stop stops"
        " stopped start starts started begin began return returns returned answer answers answered crash crashes crashed"
        " crashing break breaks broke broken hang hangs hung restart restarts restarted throw throws threw time times timed"
        " refuse refuses refused reject rejects rejected look looks see seems appear appears happen happens happened say says"
        " run runs running work works working respond responds lose loses lost drop drops dropped take takes took"
    )
    | ADJECTIVES
    | GENERIC
)


def find_question_subjects(question: str) -> Iterator[str]:
    """What the question names in the place of a service, each once, in the order of the patterns."""
    seen: set[str] = set()
    for pattern in _ASKED:
        for match in pattern.finditer(question[:20_000]):
            name = match["name"]
            if name.casefold() not in seen and _may_name_service(name, match.groupdict().get("what")):
                seen.add(name.casefold())
                yield name


def _may_name_service(name: str, what: str | None) -> bool:
    """Whether the word can be the name of a service: no word of everyday questions, and no plain plural (`baskets`)."""
    word = name.casefold()
    if word in _NO_NAME:
        return False
    shaped = not name.isalpha() or not (name.islower() or name.istitle())
    return shaped or bool(what) or not _PLURAL.search(word)


_PLURAL = re.compile(r"(?:[^siu]s|ies|sses|shes|ches|xes|men|people)$")


def find_unknown_services(question: str, known: Iterable[str]) -> tuple[str, ...]:
    """The subjects that no `known` name has, nor has as a part: what is merely short for a known one is not unknown."""
    names = {name.casefold() for name in known}
    return tuple(
        name for name in find_question_subjects(question) if not _resembles_known_name(name.casefold(), names)
    )[:MOST]


def _resembles_known_name(name: str, known: Collection[str]) -> bool:
    parts = [part for part in re.split(r"[-_]", name) if part not in COMPONENTS] or [name]
    stems = [part.removesuffix("s") for part in parts if len(part) > 2]
    return any(stem in other for stem in stems for other in known)


def find_names_without_evidence(absent: Iterable[str], texts: Collection[str]) -> tuple[str, ...]:
    """Those of `absent` that no text of the evidence (each from `squeeze`) holds."""
    return tuple(name for name in absent if not name_occurs_in(name, texts))


def label_unknown_services(conclusion: Conclusion, absent: Sequence[str], about: str) -> Conclusion:
    """The conclusion of a run that was asked about `absent`, on what there is: inconclusive, and says so first.

    `about`: what it is about instead, in words. An answer in the form of JSON keeps its form.
    """
    who = " and ".join(absent)
    said = (
        f"There is no data on {who}: no source has a service of that name, and nothing that was read "
        f"names it. What follows is about {about}. "
    )
    answer = conclusion.answer if is_json_answer(conclusion.answer) else f"{said}{conclusion.answer}"[:20_000]
    name_one = Recommendation(text="Ask about a service that has data; NOT CHECKED lists their names.")
    changed = {
        "verdict": Verdict.INCONCLUSIVE,
        "answer": answer,
        "recommendations": [name_one.model_dump(), *conclusion.model_dump()["recommendations"]][:10],
    }
    return Conclusion.model_validate(conclusion.model_dump() | changed)
