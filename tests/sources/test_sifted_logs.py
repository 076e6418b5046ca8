"""A search that a source makes itself finds what is found by looking at every line, and fetches less."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest
import servers
from backends import AT
from contract_server import Asked, Reply, contract_server
from hypothesis import example, given, settings
from hypothesis import strategies as st
from live_rig import ask, one
from loki_store import NANO, Entry, LokiStore
from tiers import COSTLY

from opsleuth.analysis.records import LogLine, Recording, TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources.line_prefilter import FOLDED, caseless_pattern
from opsleuth.tools.sources.live_source import LiveSource
from opsleuth.tools.sources.source_protocols import FilteringLogSource, ScanningLogSource, Source
from opsleuth.tools.spec import CallResult

TEXTS = st.sampled_from(["pool", "POOL full", "a.b", "ist", "fi", "ss", '"', "\\", "1", "n_1", "x y", "[db]", "None", "kö", "po\tol", "eu", "cart-", "-1", "*", "?"])  # fmt: skip
WORDS = st.lists(
    st.sampled_from(["pool", "Pool", "full", "Straße", "ﬁle", "İst", "li\u017ft", "STRASSE", '"', "\\", "a.b", "n_1", "[db]", "cart-1", "x" * 254 + "ist", "é", "K", "*", "?", "1"]),
    max_size=4,
).map(" ".join) | st.text(max_size=6)  # fmt: skip
PATIENCE = 60.0
"""Seconds that an answer may take."""
WANTED = st.fixed_dictionaries({}, optional={"text": TEXTS, "service": st.sampled_from(["cart", "web", "unknown"]), "level": st.just("error")})  # fmt: skip


class Scanned:
    """The same source, asked for every line."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.name = source.name
        self.capabilities = source.capabilities
        self.sampling = source.sampling
        self.target = getattr(source, "target", None)

    @property
    def services(self) -> frozenset[str]:
        return self.source.services | {"cart", "web", "unknown"}

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.source.warnings

    async def read(self, capabilities: Any, window: TimeRange) -> Recording:
        return await self.source.read(capabilities, window)

    def scan_logs(self, *, baseline: bool = False, span: TimeRange | None = None) -> Iterator[LogLine]:
        assert isinstance(self.source, ScanningLogSource)
        return self.source.scan_logs(baseline=baseline, span=span)


class Sifting(Scanned):
    """The same, asked as it can."""

    async def filter_logs(self, *asked: Any) -> Any:
        assert isinstance(self.source, FilteringLogSource)
        return await self.source.filter_logs(*asked)


def told(result: CallResult) -> Mapping[str, Any]:
    return {"record": result.record, "status": result.status, "scanned": result.scanned, "matched": result.matched}  # fmt: skip


def patient(**settings: Any) -> LiveSource:
    """A source that no busy machine keeps from its answer."""
    source = one(**settings, timeout=PATIENCE)
    source.fetch_seconds = PATIENCE
    return source


async def same(settings: Mapping[str, Any], wanted: Mapping[str, Any]) -> CallResult:
    """What a search finds by sifting, which is what it finds by looking at every line."""
    plain, sifted = [
        await ask([kind(patient(**settings))], "logs_search", call_seconds=PATIENCE, **wanted)
        for kind in (Scanned, Sifting)
    ]
    assert told(sifted) == told(plain)
    return sifted


def test_what_folds_to_ascii_is_known_whole() -> None:
    every = (chr(code) for code in range(128, 0x110000))
    assert "".join(c for c in every if any(ord(part) < 128 for part in c.casefold())) == FOLDED


# --- Loki ----------------------------------------------------------------------------------------------------

LABELS = st.fixed_dictionaries(
    {"job": st.just("logs")},
    optional={name: st.sampled_from(["cart", "web", "cart-1", "pool|1"]) for name in ("service_name", "app", "pod")},
)  # fmt: skip
VALUES = WORDS | st.integers(0, 99) | st.none() | st.booleans() | st.dictionaries(WORDS, WORDS | st.none(), max_size=1)  # fmt: skip
OBJECTS = st.dictionaries(st.sampled_from(["message", "msg", "log", "pod", "service", "level", "n"]), VALUES, max_size=4)  # fmt: skip
LINES = WORDS | OBJECTS.map(json.dumps) | OBJECTS.map(lambda o: json.dumps(o, ensure_ascii=False))


@pytest.mark.slow
@settings(COSTLY, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(-5, 5_500), LABELS, LINES), max_size=12),
    WANTED,
    st.sampled_from(
        [{}, {"match": '{job="logs"}'}, {"services": {"web": "cart"}}, {"service_labels": ["app"]}]
    ),
    st.sampled_from([("job", "app"), ("service_name", "app", "job")]),
)
@example([(0, {"job": "logs", "pod": "pool|1"}, "up")], {"text": "pool"}, {"match": '{job="logs"}'}, ("job",))
@example([(0, {"job": "logs"}, '{"msg": "a\\u002eb"}')], {"text": "a.b"}, {"match": '{job="logs"}'}, ("job",))
async def test_loki(
    entries: list[tuple[int, Mapping[str, str], str]],
    wanted: Mapping[str, Any],
    more: Mapping[str, Any],
    known: Sequence[str],
) -> None:
    made = [Entry((AT + 60 * place) * NANO + number, labels, text) for number, (place, labels, text) in enumerate(entries)]  # fmt: skip
    with contract_server(LokiStore(made, known=known)) as server:
        await same({"kind": "loki", "url": server.url, **more}, wanted)


async def test_loki_sends_what_is_wanted_alone_and_the_query_is_evidence() -> None:
    many = [Entry((AT + i) * NANO, {"service_name": ["cart", "web"][i % 2]}, "up") for i in range(600)]
    store = LokiStore([*many, Entry(AT * NANO, {"service_name": "cart"}, 'pool "a\\b" is full')], known=["service_name"])  # fmt: skip
    with contract_server(store) as server:
        result = await ask([one(kind="loki", url=server.url)], "logs_search", service="cart", text='Pool "A')
    assert (result.matched, result.scanned, store.sent) == (1, 601, 1)
    assert "count_over_time" in result.query
    assert "service_name" in result.query


async def test_loki_that_refuses_to_count_is_gone_through() -> None:
    store = LokiStore([Entry(AT * NANO, {"app": "cart"}, "pool is full")])

    def answering(asked: Asked) -> Reply:
        return Reply("no", 403) if asked.path.endswith("/query") else store(asked)

    with contract_server(answering) as server:
        result = await ask([one(kind="loki", url=server.url)], "logs_search", text="pool")
    assert (result.status, result.scanned, result.matched) == (ResultStatus.OK, 1, 1)


# --- OpenSearch ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An empty store; each search has an index of its own."""
    nothing = '{"index": {"_index": "none"}}\n{"n": 1}\n'
    with servers.opensearch(tmp_path_factory.mktemp("search"), nothing) as url:
        yield url


def stored(
    url: str, documents: Sequence[Mapping[str, Any]], mappings: Mapping[str, Any] | None = None
) -> str:
    """A new index with these documents, as far as it takes them; its name."""
    name = f"logs-{uuid4().hex}"
    servers.send("PUT", f"{url}/{name}", {"mappings": mappings or {}})
    for document in documents:
        servers.bulk(url, "".join(f"{json.dumps(part)}\n" for part in ({"index": {"_index": name}}, document)))  # fmt: skip
    return name


TEXT_VALUES = WORDS | st.lists(WORDS, max_size=2) | st.none()
DOCUMENTS = st.fixed_dictionaries(
    {"@timestamp": st.integers(-60, 5_500).map(lambda s: (AT + s) * 1000)},
    optional={
        "message": TEXT_VALUES,
        "log": TEXT_VALUES,
        "service": st.sampled_from(["cart", "web", "", "Cart"]),
        "app": st.sampled_from(["cart", "web-1"]),
        "pod": st.sampled_from(["cart-1", "pool-7", "web"]),
        "level": st.sampled_from(["error", "info"]),
    },
)
WHOLE = {
    "properties": {"@timestamp": {"type": "date"}, "message": {"type": "keyword"}, "log": {"type": "keyword"}}
}
UNSEEN = {"dynamic": False, "properties": {"@timestamp": {"type": "date"}, "message": {"type": "text"}}}


@pytest.mark.slow
@settings(COSTLY, max_examples=30)
@given(st.lists(DOCUMENTS, max_size=8), WANTED, st.sampled_from([None, WHOLE, UNSEEN]))
@example([{"@timestamp": AT * 1000, "message": "", "n": "pool"}], {"text": "pool"}, None)
@example([{"@timestamp": AT * 1000, "message": "Straße"}], {"text": "ss"}, None)
@example([{"@timestamp": AT * 1000, "message": "x" * 254 + "ist"}], {"text": "ist"}, None)
@example([{"@timestamp": AT * 1000, "service": "cart", "message": "up"}], {"service": "cart"}, UNSEEN)
async def test_opensearch(
    search: str, documents: list[dict[str, Any]], wanted: Mapping[str, Any], mappings: Mapping[str, Any] | None
) -> None:  # fmt: skip
    index = stored(search, documents, mappings)
    await same({"kind": "opensearch", "url": search, "index": index}, wanted)


async def test_opensearch_sends_what_is_wanted_alone_and_the_query_is_evidence(search: str) -> None:
    documents = [{"@timestamp": (AT + i) * 1000, "service": "cart", "message": f"up {i}"} for i in range(20)]
    index = stored(search, [*documents, {"@timestamp": AT * 1000, "service": "cart", "message": "pool_1 is full"}])  # fmt: skip
    source = one(kind="opensearch", url=search, index=index)
    result = await ask([source], "logs_search", service="cart", text="POOL_1")
    assert (result.matched, result.scanned) == (1, 21)
    assert '"wildcard":{"message":{"value":"*pool_1*"' in result.query
    assert "_count" in result.query


@pytest.mark.parametrize(
    "mappings",
    [
        {"properties": {"message": {"type": "text", "analyzer": "english"}}},
        {"properties": {"message": {"type": "keyword", "ignore_above": 8}}},
        {"properties": {"message": {"type": "text", "index": False}}},
        {"properties": {"message": {"type": "object", "enabled": False}}},
        {"dynamic": "false", "properties": {}},
    ],
)
async def test_an_index_that_may_not_find_it_is_not_asked_for_a_text(
    search: str, mappings: Mapping[str, Any]
) -> None:
    index = stored(search, [{"@timestamp": "2026-03-03T14:00:00Z", "message": "the pools were exhausted"}], {**mappings})  # fmt: skip
    source = one(kind="opensearch", url=search, index=index)
    result = await ask([source], "logs_search", text="exhausted")
    assert "wildcard" not in result.query


# --- several targets -----------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(COSTLY, max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 50), LABELS, WORDS), max_size=6), WANTED, st.booleans())
@example([(0, {"job": "logs", "app": "cart", "pod": "x"}, "up")], {"text": "eu"}, True)
@example([(0, {"job": "logs", "app": "cart", "pod": "cart-1"}, "up")], {"text": ":cart-"}, True)
async def test_a_target_in_front_of_names(
    entries: list[tuple[int, Mapping[str, str], str]], wanted: dict[str, Any], prefixed: bool
) -> None:
    made = [Entry((AT + place) * NANO + number, labels, text) for number, (place, labels, text) in enumerate(entries)]  # fmt: skip
    if prefixed and "service" in wanted:
        wanted = {**wanted, "service": f"eu:{wanted['service']}"}
    other = {"kind": "loki", "match": '{job="logs"}', "target": "us"}
    with contract_server(LokiStore(made)) as server, contract_server(LokiStore([])) as empty:
        eu = {**other, "url": server.url, "target": "eu"}
        plain, sifted = [
            await ask(
                [kind(patient(**eu)), kind(patient(**other, url=empty.url))],
                "logs_search",
                call_seconds=PATIENCE,
                **wanted,
            )
            for kind in (Scanned, Sifting)
        ]
    assert told(sifted) == told(plain)


def test_the_pattern_of_a_text_is_one_of_go_and_rust() -> None:
    assert caseless_pattern("a.b [x] -#") == rf"(?i:a\.b \[x\] -#)|[{FOLDED}]"
