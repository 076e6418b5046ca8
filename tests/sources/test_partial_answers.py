"""What a backend tells in part is said, and what it refuses costs itself only: by its public API documents, and for real."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import servers
from backends import AT, BACKENDS, TRACE
from contract_server import Asked, Reply, contract_server
from kube_cluster import cluster, kubeconfig
from live_rig import SPAN, one

from opsleuth.analysis.records import Recording
from opsleuth.state.clock import FakeClock
from opsleuth.tools.sources.kube_api import MOST_ITEMS
from opsleuth.tools.spec import UnavailableError

Answering = Callable[[Asked], Reply]
LATER = FakeClock(datetime(2026, 3, 3, 14, 30, tzinfo=UTC))


async def read(kind: str, answering: Answering, **more: Any) -> Recording:
    backend = BACKENDS[kind]
    with contract_server(answering) as server:
        return await one(kind=kind, url=server.url, **backend.more, **more).read([backend.capability], SPAN)


def beside(kind: str, end: str, **more: Any) -> Answering:
    """The backend's usual answers; those of paths that end so have more in them."""

    def answering(asked: Asked) -> Reply:
        usual = BACKENDS[kind].answering(asked)
        return Reply({**usual.body, **more}, usual.status) if asked.path.endswith(end) else usual

    return answering


# --- metrics -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"warnings": ["receive series from Addr: store-2: rpc error: code = Unavailable"]},
            "store-2: rpc error",
        ),
        ({"warnings": ["results truncated due to limit"]}, "results truncated"),
        ({"isPartial": True}, "its answer is partial"),
    ],
)
@pytest.mark.parametrize("end", ["/query_range", "/values"])
async def test_what_prometheus_thanos_and_victoria_metrics_lack(
    end: str, more: Mapping[str, Any], words: str
) -> None:
    found = await read("prometheus", beside("prometheus", end, **more))
    assert [words in text for text in found.missed] == [True]
    assert len(found.metrics or ()) == 1


async def test_infos_are_notes_said_once_wherever_in_the_query_they_apply() -> None:
    infos = [
        "PromQL info: metric might not be a counter (1:5)",
        "PromQL info: metric might not be a counter (1:9)",
    ]
    with contract_server(beside("prometheus", "/query_range", infos=infos)) as server:
        source = one(kind="prometheus", url=server.url)
        found = await source.read(["metrics"], SPAN)
    assert found.missed == ()
    assert source.warnings == ("s: PromQL info: metric might not be a counter",)


def matrix(*rows: Mapping[str, Any]) -> Reply:
    return Reply({"status": "success", "data": {"resultType": "matrix", "result": list(rows)}})


def names(*known: str, types: Mapping[str, str] | None = None) -> Answering:
    """A Prometheus with these metrics of the service cart, each with two samples; it knows nothing else."""

    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/values"):
            return Reply({"status": "success", "data": list(known) if "!=" in str(asked.query) else []})
        if asked.path.endswith("/metadata"):
            return Reply({"status": "success", "data": {n: [{"type": t}] for n, t in (types or {}).items()}})
        wanted = [name for name in known if re.search(rf"\b{name}\b", query_of(asked))]
        return matrix(*({"metric": {"service": "cart", "__name__": name}, "values": [[AT, "1"], [AT + 30, "0"]]} for name in wanted))  # fmt: skip

    return answering


def query_of(asked: Asked) -> str:
    return parse_qs(asked.body.decode()).get("query", [""])[0]


async def test_a_native_histogram_is_asked_as_one() -> None:
    queries: list[str] = []

    def answering(asked: Asked) -> Reply:
        queries.append(query_of(asked))
        if asked.path.endswith("/query_range") and "histogram_" in queries[-1]:
            return matrix({"metric": {"service": "cart"}, "values": [[AT, "0.25"]]})
        return names("latency_seconds", types={"latency_seconds": "histogram"})(asked)

    found = await read("prometheus", answering)
    assert {s.metric for s in found.metrics or ()} >= {
        "latency_seconds_p50",
        "latency_seconds_p95",
        "latency_seconds_mean",
    }
    assert any(
        query.startswith("histogram_quantile(0.95, sum by (service) (rate(latency_seconds{")
        for query in queries
    )


async def test_a_native_histogram_without_metadata_costs_itself_only() -> None:
    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/query_range"):
            plain = {"metric": {"service": "cart", "__name__": "up"}, "values": [[AT, "1"]]}
            return matrix(
                plain,
                {"metric": {"service": "cart", "__name__": "took"}, "histograms": [[AT, {"count": "5"}]]},
            )
        return names("up", "took")(asked)

    found = await read("prometheus", answering)
    assert [s.metric for s in found.metrics or ()] == ["up"]
    assert found.missed == (
        "took: a native histogram is not read as it is; give `queries` with histogram_quantile",
    )


@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_metric_that_is_refused_costs_itself_only(status: int) -> None:
    known = [f"gauge_{letter}" for letter in "abcdefg"]

    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/query_range") and "gauge_e" in query_of(asked):
            return Reply(
                {"status": "error", "errorType": "execution", "error": "found duplicate series"}, status
            )
        return names(*known)(asked)

    found = await read("prometheus", answering)
    assert sorted({s.metric for s in found.metrics or ()}) == [name for name in known if name != "gauge_e"]
    assert len(found.missed) == 1


async def test_a_rate_over_less_than_the_scrape_interval_is_taken_over_the_interval(tmp_path: Path) -> None:
    """Of a real Prometheus that scrapes every five minutes."""
    begin, scrapes = int(SPAN.start), range(0, int(SPAN.end - SPAN.start), 300)
    counters = [
        f'{name}{{service="cart"{more}}} {factor * second} {begin + second}'
        for name, more, factor in (
            ("http_requests_total", ',code="200"', 10),
            ("took_seconds_bucket", ',le="0.5"', 9), ("took_seconds_bucket", ',le="+Inf"', 10), ("took_seconds_count", "", 10), ("took_seconds_sum", "", 3),
        )
        for second in scrapes
    ]  # fmt: skip
    text = "# TYPE http_requests counter\n" + "\n".join(counters[: len(scrapes)])
    text += "\n# TYPE took_seconds histogram\n" + "\n".join(counters[len(scrapes) :]) + "\n# EOF\n"
    with servers.prometheus(tmp_path, text) as url:
        found = await one(kind="prometheus", url=url).read(["metrics"], SPAN)
    values = {s.metric: s.values for s in found.metrics or ()}
    assert values["http_requests"][-5] == pytest.approx(10, rel=0.05)
    assert values["took_seconds_p50"][-5] == pytest.approx(0.277, abs=0.01)
    assert values["took_seconds_mean"][-5] == pytest.approx(0.3, rel=0.05)


async def test_alerts_of_prometheus_belong_to_the_workload(tmp_path: Path) -> None:
    labels = 'alertstate="firing",service="kube-state-metrics",deployment="cart"'
    text = f"""# TYPE ALERTS gauge
ALERTS{{alertname="Restarts",{labels}}} 1 {AT}
ALERTS{{alertname="Watchdog",alertstate="firing"}} 1 {AT}
# EOF
"""
    with servers.prometheus(tmp_path, text) as url:
        found = await one(kind="prometheus", url=url).read(["events"], SPAN)
    assert [(event.object, event.reason) for event in found.events or ()] == [("Alert/cart", "Restarts")]


# --- traces --------------------------------------------------------------------------------------------------

OTHER = "1af7651916cd43dd8448eb211c80319d"


def tempo(refusal: Reply | None, both: Reply | None = None) -> Answering:
    """Two traces are found, the second of which is refused."""

    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/search"):
            return Reply({"traces": [{"traceID": TRACE}, {"traceID": OTHER}], "metrics": {}})
        if asked.path.endswith(OTHER) and refusal:
            return refusal
        return both or BACKENDS["tempo"].answering(asked)

    return answering


@pytest.mark.parametrize(
    "refusal",
    [Reply("max size of trace exceeded", status) for status in (413, 422, 429, 500, 503)]
    + [Reply({"strange": 1}), Reply("not JSON")],
)
async def test_a_trace_that_is_refused_costs_itself_only(refusal: Reply) -> None:
    found = await read("tempo", tempo(refusal))
    assert {span.trace_id for span in found.spans or ()} == {TRACE}
    [missed] = found.missed
    assert missed.startswith("1 of 2 traces could not be read: ")


async def test_a_store_that_refuses_every_trace_is_an_error() -> None:
    with pytest.raises(UnavailableError, match="max size"):
        await read("tempo", tempo(Reply("max size", 422), Reply("max size", 422)))


async def test_a_trace_of_which_tempo_gives_a_part() -> None:
    usual = BACKENDS["tempo"].answering(Asked("GET", "/api/traces/x", {}, {}))
    part = Reply({"trace": usual.body, "status": "PARTIAL", "message": "trace exceeds max size"})
    found = await read("tempo", tempo(part))
    assert found.missed == (f"trace {OTHER} is only a part: trace exceeds max size",)


async def test_what_jaeger_gives_beside_errors_is_a_part() -> None:
    errors = [{"code": 500, "msg": "shard 3 is gone", "traceID": OTHER}]
    found = await read("jaeger", beside("jaeger", "/traces", errors=errors))
    assert len(found.spans or ()) == 1
    assert "shard 3 is gone" in found.missed[0]


@pytest.mark.parametrize(
    "refusal", [Reply({"data": [{"traceID": "x"}]}), Reply("busy", 503), Reply("no", 403)]
)
async def test_a_service_that_jaeger_refuses_costs_itself_only(refusal: Reply) -> None:
    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/services"):
            return Reply({"data": ["cart", "web"]})
        return refusal if asked.query.get("service") == "web" else BACKENDS["jaeger"].answering(asked)

    found = await read("jaeger", answering)
    assert len(found.spans or ()) == 1
    assert len(found.missed) == 1


# --- logs ----------------------------------------------------------------------------------------------------


async def test_warnings_of_loki() -> None:
    found = await read("loki", beside("loki", "/query_range", warnings=["1 of 3 ingesters did not answer"]))
    assert found.missed == ("1 of 3 ingesters did not answer",)
    assert found.logs


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"_shards": {"total": 5, "failed": 2, "failures": [{"index": "logs-1", "reason": {"type": "x", "reason": "too_many_buckets"}}]}},
         "2 of 5 shards failed (logs-1: too_many_buckets)"),
        ({"timed_out": True}, "ran out of the cluster's own time"),
        ({"terminated_early": True}, "ended the search early"),
        ({"_clusters": {"total": 3, "successful": 1, "skipped": 1, "partial": 1}}, "2 of 3 clusters did not answer in full"),
    ],
)  # fmt: skip
async def test_what_a_search_cluster_lacks(more: Mapping[str, Any], words: str) -> None:
    found = await read("opensearch", beside("opensearch", "/_search", **more))
    assert any(words in text for text in found.missed)
    assert found.logs


def with_log(lines: list[str]) -> Answering:
    """The cluster, whose pod `payments` has this log, told as a kubelet tells it."""

    def answering(asked: Asked) -> Reply:
        if not asked.path.endswith("/log") or "payments" not in asked.path:
            return cluster(asked)
        kept = lines[-int(asked.query["tailLines"]) :] if "tailLines" in asked.query else lines
        return Reply(
            "".join(f"{line}\n" for line in kept).encode()[: int(asked.query["limitBytes"])].decode()
        )

    return answering


def moment(milliseconds: int) -> str:
    seconds = milliseconds // 1_000
    return f"2026-03-03T14:{seconds // 60:02}:{seconds % 60:02}.{milliseconds % 1_000:03}Z"


@pytest.mark.parametrize(
    ("beginning", "end"),
    [(3_000, 20), (3_000, 2_000), (20, 3_000)],
    ids=["short end", "both long", "long lines last"],
)
async def test_a_long_log_of_a_pod_is_read_from_its_end_too(tmp_path: Path, beginning: int, end: int) -> None:
    lines = [f"{moment(n)} INFO {'x' * (beginning if n < 600 else end)} {n}" for n in range(1_200)]
    lines.append(f"{moment(1_200)} ERROR out of coffee")
    with contract_server(with_log(lines)) as server:
        source = one(LATER, kind="kubernetes", kubeconfig=str(kubeconfig(tmp_path, server.url)))
        found = await source.read(["logs"], SPAN)
    messages = [line.message for line in found.logs or () if line.service == "payments"]
    assert any("out of coffee" in message for message in messages)
    assert messages[0].endswith(" 0")
    assert len(messages) == len(set(messages))
    assert len(messages) == len(lines) or any("its middle was not read" in text for text in found.missed)


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_kind_of_objects_that_the_cluster_cannot_list_costs_itself_only(
    tmp_path: Path, status: int
) -> None:
    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/nodes"):
            return Reply({"kind": "Status", "message": "etcdserver: request timed out"}, status)
        return cluster(asked)

    with contract_server(answering) as server:
        source = one(LATER, kind="kubernetes", kubeconfig=str(kubeconfig(tmp_path, server.url)))
        found = await source.read(["objects"], SPAN)
    assert {state.kind for state in found.objects or ()} == {"Pod", "Deployment"}
    assert "nodes could not be listed" in found.missed[0]
    assert "etcdserver" in found.missed[0]


@pytest.mark.slow
async def test_a_list_of_kubernetes_that_is_cut_keeps_what_was_read(tmp_path: Path) -> None:
    def answering(asked: Asked) -> Reply:
        usual = cluster(asked)
        if asked.path.endswith("/events"):
            assert usual.body["items"]
            return Reply(
                {**usual.body, "items": usual.body["items"] * MOST_ITEMS, "metadata": {"continue": "more"}}
            )
        return usual

    with contract_server(answering) as server:
        source = one(LATER, kind="kubernetes", kubeconfig=str(kubeconfig(tmp_path, server.url)))
        found = await source.read(["events"], SPAN)
    assert len(found.events or ()) >= MOST_ITEMS
    assert f"events holds more than {MOST_ITEMS:,} items: the rest was not read" in found.missed[0]


# --- changes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "list_name"), [("github", "pulls"), ("gitlab", "merge_requests")])
@pytest.mark.parametrize("pages", [3, 9])
async def test_a_server_that_gives_fewer_on_a_page(kind: str, list_name: str, pages: int) -> None:
    """It says itself that there is a next page; of too many the rest is said to be missing."""

    def answering(asked: Asked) -> Reply:
        usual = BACKENDS[kind].answering(asked)
        if not asked.path.endswith(list_name):
            return usual
        page = int(asked.query["page"])
        link = {"link": f'<http://x/?page={page + 1}>; rel="next"'} if page < pages else {}
        return Reply([row | {"title": f"page {page}"} for row in usual.body], headers=link)

    found = await read(kind, answering)
    assert sum("page" in change.summary for change in found.changes or ()) == min(pages, 5)
    assert ["the older ones were not read" in text for text in found.missed] == ([] if pages == 3 else [True])
