"""What the words of a follow-up question are about: services, topics with the tools that show them, and words to look for."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from opsleuth.state.conclusion import Kind
from opsleuth.verification.lexicon import split_word_list


class QuestionTopic(NamedTuple):
    """A subject that questions name: its words, the kinds of fault that it covers, and the tool that shows it."""

    name: str
    words: frozenset[str]
    kinds: tuple[Kind, ...]
    tool: str = ""


def _make_topic(name: str, words: str, kinds: Sequence[Kind], tool: str = "") -> QuestionTopic:
    return QuestionTopic(name, frozenset(words.split()), tuple(kinds), tool)


TOPICS: tuple[QuestionTopic, ...] = (
    _make_topic("a change", "release released releases deploy deploys deployed deployment deployments rollout rollouts version change changes "
           "changed commit commits merge upgrade upgraded migration flag flags rollback revert", ("deploy",), "changes_list"),
    _make_topic("configuration", "config configuration setting settings env environment configmap secret", ("config",), "changes_list"),
    _make_topic("traffic", "traffic load surge spike demand requests users visitors rps qps ddos", ("traffic",)),
    _make_topic("the CPU", "cpu processor cores throttling throttled", ("cpu",)),
    _make_topic("memory", "memory heap oom oomkilled leak leaks gc swap", ("memory", "out_of_memory")),
    _make_topic("the disk", "disk disks storage volume volumes filesystem inode iops io", ("disk", "storage_full")),
    _make_topic("the network", "network networks packet packets bandwidth firewall connectivity", ("network_delay", "network_loss")),
    _make_topic("name resolution", "dns resolver resolution nxdomain", ("dns",)),
    _make_topic("the database", "database databases db sql query queries statement statements index indexes", ("slow_query",), "database_statements"),
    _make_topic("locks", "lock locks locked deadlock deadlocks blocking", ("locks",), "database_statements"),
    _make_topic("connections", "connection connections pool pools", ("connections",)),
    _make_topic("replication", "replication replica replicas lag", ("replication_lag",)),
    _make_topic("a failover", "failover primary election", ("failover",)),
    _make_topic("certificates", "certificate certificates tls ssl expired", ("certificate",)),
    _make_topic("permissions", "permission permissions rbac forbidden denied unauthorized", ("permission",)),
    _make_topic("the platform", "pod pods node nodes container containers cluster kubernetes k8s restart restarts restarted evicted image "
           "scheduler probe probes", ("crash", "image_pull", "scheduling", "probe", "quota"), "events_list"),
    _make_topic("latency", "latency slow slower slowness delay delays", ("latency", "network_delay")),
    _make_topic("errors", "error errors exception exceptions failure failures failing failed fail fails crash crashed 5xx 500 503", ("errors", "exception", "crash")),
)  # fmt: skip

_WORD = re.compile(r"[a-z0-9][a-z0-9_.\-]*[a-z0-9]|[a-z0-9]", re.IGNORECASE)
_QUOTED = re.compile("['\"`\u201c\u2018]([^'\"`\u201d\u2019]{2,120})['\"`\u201d\u2019]")
_YES_OR_NO = re.compile(
    r"\s*(?:so\s+|and\s+|but\s+|then\s+)?(?:was|were|is|are|did|do|does|could|can|might|may|has|have|had|should|would|wasn't|isn't|didn't)\b",
    re.IGNORECASE,
)
_CAUSAL = re.compile(
    r"\b(?:was|is|were|are|could|can|might|may|did|does|has|wasn't|isn't)\s+(?:it|this|that|they)\b|\bcaus\w*|\bdue\b|\bbecause\b|\bresponsible\b"
    r"|\bblame\w*|\bfault\b|\broot\b|\bculprit\b|\btrigger\w*|\bbehind\b|\breason\b",
    re.IGNORECASE,
)
_STOP = split_word_list(
    "a about actually after again all also am an and any anything are as at be because been before behind being between both but by "
    "can cause caused causes could did do does doing down due during each else even ever every few first for from get go gone got had "
    "happen happened happening has have having he her here him his how i if in instead into involved is isn it its just know last less "
    "likely look make many maybe me mean more most much my need no not now of off on once one only or other our out over problem "
    "really reason related responsible right root same say see seem seems should show since so some something still such sure than "
    "that the their them then there these they thing things think this those through time to too under until up us very want was we "
    "well were what when where whether which while who whole whom whose why will with without would wrong yes yet you your service "
    "services system incident issue affected affect affects tell please explain give"
)
_SHORTEST = 3
MOST_WORDS = 3


class QuestionSubjects(NamedTuple):
    """What a question is about. `words` name neither a service nor a topic; `asks_for_blame`: whether these are the cause."""

    services: tuple[str, ...]
    topics: tuple[QuestionTopic, ...]
    words: tuple[str, ...]
    asks_for_blame: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What the question is about, in a few words for people."""
        return (*self.services, *(topic.name for topic in self.topics), *(f'"{word}"' for word in self.words))


def find_question_subjects(question: str, services: Iterable[str]) -> QuestionSubjects:
    """The subjects of a question; `services` are those that it names."""
    named = tuple(dict.fromkeys(services))
    parts = {part for name in named for part in re.split(r"[^a-z0-9]+", name.casefold())} | {
        n.casefold() for n in named
    }
    quoted = [text.strip() for text in _QUOTED.findall(question) if text.strip().casefold() not in parts]
    words = [
        word
        for word in _WORD.findall(_QUOTED.sub(" ", question).casefold())
        if word not in _STOP and word not in parts
    ]
    topics = tuple(topic for topic in TOPICS if topic.words.intersection(words))
    of_topics = {word for topic in topics for word in topic.words}
    rest = [word for word in words if word not in of_topics and len(word) >= _SHORTEST]
    asks_for_blame = bool(_YES_OR_NO.match(question) and _CAUSAL.search(question))
    return QuestionSubjects(
        named, topics, tuple(dict.fromkeys((*quoted, *rest)))[:MOST_WORDS], asks_for_blame
    )


def match_stem(word: str) -> str:
    """The part of a word that its other forms begin with: `caches` and `cached` begin as `cache` does."""
    folded = word.casefold()
    for ending in ("ing", "es", "ed", "s"):
        if folded.endswith(ending) and len(folded) - len(ending) >= _SHORTEST:
            return folded[: -len(ending)]
    return folded
