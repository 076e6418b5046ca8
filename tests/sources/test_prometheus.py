"""A real Prometheus with the built-in incident in it."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import servers
from certificates import certificates
from hypothesis import given
from hypothesis import strategies as st
from live_rig import SPAN, ask, one
from stored_elsewhere import rows, units

from opsleuth.analysis.records import MetricSeries, TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.sources.prometheus_queries import QueryRange, classify_metric, rate_if_counter
from opsleuth.tools.spec import NotPermittedError, UnavailableError

HASH_OF_RIGHT = "$2b$04$2iEPT3z5WxNZ9lKMDoD43e9KX6f1TewZEuYgiTjhhu686Awwd4EOa"


async def test_the_samples_are_those_of_the_folder(prometheus: str, case: Path) -> None:
    source = one(kind="prometheus", url=prometheus, step=60, units=units(rows(case / "metrics.csv")))
    found = await source.read(["metrics"], SPAN)
    recorded = CaseSource.open(case).recording(["metrics"])
    key = lambda s: (s.service, s.metric)  # noqa: E731
    assert sorted(found.metrics or (), key=key) == sorted(recorded.metrics or (), key=key)
    assert source.services == {s.service for s in recorded.metrics or ()}
    assert source.warnings == ()


async def test_the_requests_are_kept_with_the_evidence(prometheus: str) -> None:
    result = await ask([one(kind="prometheus", url=prometheus, step=60)], "metrics_query",
                       service="orders-api", metric="latency_p95")  # fmt: skip
    assert result.status is ResultStatus.OK
    assert "POST http://127.0.0.1" in result.query
    assert "-> 200" in result.query


async def test_names_of_services_are_learned_with_one_request(prometheus: str) -> None:
    source = one(kind="prometheus", url=prometheus)
    await source.discover()
    assert {"orders-api", "orders-db", "web"} <= source.services


async def test_a_service_label_of_another_name(prometheus: str) -> None:
    source = one(kind="prometheus", url=prometheus, service_labels=["app"])
    assert (await source.read(["metrics"], SPAN)).metrics == []
    checks = {check.what: check for check in await source.check()}
    assert checks["services"].state == "warning"
    assert "service_labels" in checks["services"].remedy


async def test_names_are_mapped_to_services(prometheus: str) -> None:
    source = one(kind="prometheus", url=prometheus, services={"orders-api": "orders"})
    services = {s.service for s in (await source.read(["metrics"], SPAN)).metrics or ()}
    assert "orders" in services
    assert "orders-api" not in services


async def test_own_queries_are_all_that_is_asked(prometheus: str) -> None:
    queries = [
        {"metric": "p95", "query": "max by (service) (latency_p95)", "unit": "ms"},
        {"metric": "all_requests", "query": "sum(requests)", "unit": "req/s", "service": "shop"},
        {"metric": "wrong", "query": "sum(("},
    ]
    source = one(kind="prometheus", url=prometheus, step=60, queries=queries)
    metrics = (await source.read(["metrics"], SPAN)).metrics or ()
    assert {(s.metric, s.unit) for s in metrics} == {("p95", "ms"), ("all_requests", "req/s")}
    assert [s.service for s in metrics if s.metric == "all_requests"] == ["shop"]
    [note] = source.warnings
    assert "parse error" in note


async def test_a_wrong_query_alone_is_an_error_with_the_server_s_words(prometheus: str) -> None:
    source = one(kind="prometheus", url=prometheus, queries=[{"metric": "wrong", "query": "sum(("}])
    with pytest.raises(UnavailableError, match="parse error"):
        await source.read(["metrics"], SPAN)


async def test_what_is_too_much_is_left_out_and_said(prometheus: str) -> None:
    source = one(kind="prometheus", url=prometheus, max_metrics=3)
    await source.read(["metrics"], SPAN)
    assert "metrics were not looked at" in " ".join(source.warnings)
    absent = await ask([source], "metrics_list", contains="no_such_metric")
    assert absent.status is ResultStatus.NOT_RECORDED  # it may be among those
    source = one(kind="prometheus", url=prometheus, max_series=5)
    assert len((await source.read(["metrics"], SPAN)).metrics or ()) == 5
    assert "the first 5 were taken" in " ".join(source.warnings)


async def test_a_window_before_all_samples_is_not_recorded(prometheus: str) -> None:
    result = await ask(
        [one(kind="prometheus", url=prometheus, before=0)],
        "metrics_query",
        service="orders-api",
        metric="latency_p95",
        since="2020-01-01T00:00:00Z",
        until="2020-01-01T01:00:00Z",
    )
    assert result.status is ResultStatus.NOT_RECORDED


async def test_a_clock_five_minutes_off_is_said(prometheus: str) -> None:
    ours = FakeClock(datetime.now(UTC) + timedelta(minutes=5))
    source = one(ours, kind="prometheus", url=prometheus)
    await source.read(["metrics"], SPAN)
    assert "behind ours" in " ".join(source.warnings)
    clock = next(check for check in await source.check() if check.what == "clock")
    assert (clock.state, clock.remedy) == ("warning", "let NTP set both clocks")


async def test_one_of_two_targets_does_not_speak_for_the_other(prometheus: str) -> None:
    """The same service in two clusters: no series, record or ranking holds both."""
    both = [
        one(kind="prometheus", url=prometheus, step=60, target="eu"),
        one(kind="prometheus", url=prometheus, step=60, target="us", match='service!="orders-db"'),
    ]
    for source, name in zip(both, ("prom-eu", "prom-us"), strict=True):
        source.name = name
    listed = await ask(both, "metrics_list", contains="latency_p95")
    services = {name for group in listed.record["groups"] for name in group["services"]}
    assert {"eu:orders-api", "us:orders-api"} <= services
    assert listed.source == "eu:prom-eu+us:prom-us"
    assert not any(":" not in name for name in services)
    one_of_them = await ask(both, "metrics_query", service="eu:orders-api", metric="latency_p95")
    assert one_of_them.record["samples"] == 90
    neither = await ask(both, "metrics_query", service="orders-api", metric="latency_p95")
    assert neither.status is ResultStatus.INVALID_ARGUMENTS
    assert "eu:orders-api" in neither.headline


async def test_a_missed_source_takes_the_word_of_absence_away(prometheus: str) -> None:
    up = one(kind="prometheus", url=prometheus, step=60)
    down = one(kind="prometheus", url=f"http://127.0.0.1:{servers.free_port()}")
    down.name = "other"
    present = await ask([up, down], "metrics_list", contains="latency_p95")
    assert present.status is ResultStatus.OK
    assert "nothing answers" in present.record["not_read"]["other (metrics)"]
    absent = await ask([up, down], "metrics_list", contains="no_such_metric")
    assert absent.status is ResultStatus.NOT_RECORDED
    assert (await ask([up], "metrics_list", contains="no_such_metric")).status is ResultStatus.NONE_MATCHED


# --- authentication ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A Prometheus over TLS that wants a client certificate and a password; its address and the folder of keys."""
    folder = tmp_path_factory.mktemp("guarded")
    certificates(folder)
    web = f"""
basic_auth_users: {{oncall: {HASH_OF_RIGHT}}}
tls_server_config:
  {{cert_file: server.pem, key_file: server.key, client_ca_file: ca.pem, client_auth_type: RequireAndVerifyClientCert}}
"""
    samples = '# TYPE up gauge\nup{service="cart"} 1 1772542800\n# EOF\n'
    with servers.prometheus(folder, samples, web_config=web) as url:
        yield url.replace("http://127.0.0.1", "https://localhost"), folder


def _keys(folder: Path, **changed: Any) -> dict[str, Any]:
    (folder / "password").write_text("right\n")
    settings = {
        "ca_file": str(folder / "ca.pem"),
        "client_cert": str(folder / "client.pem"),
        "client_key": str(folder / "client.key"),
        "user": "oncall",
        "password": {"file": str(folder / "password")},
    }
    return {name: value for name, value in (settings | changed).items() if value is not None}


async def test_client_certificate_and_password(guarded: tuple[str, Path]) -> None:
    url, folder = guarded
    source = one(kind="prometheus", url=url, **_keys(folder))
    assert {check.state for check in await source.check()} == {"ok"}


async def test_a_wrong_password(guarded: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    url, folder = guarded
    monkeypatch.setenv("WRONG", "guess-4711")
    source = one(kind="prometheus", url=url, **_keys(folder, password={"env": "WRONG"}))
    with pytest.raises(NotPermittedError, match="does not accept the credentials") as told:
        await source.read(["metrics"], SPAN)
    assert "guess-4711" not in str(told.value)


async def test_a_certificate_that_nobody_vouches_for(guarded: tuple[str, Path]) -> None:
    url, folder = guarded
    source = one(kind="prometheus", url=url, **_keys(folder, ca_file=None))
    with pytest.raises(UnavailableError, match=r"cannot be trusted.*set ca_file"):
        await source.read(["metrics"], SPAN)


async def test_a_secret_that_is_not_where_it_should_be(guarded: tuple[str, Path]) -> None:
    url, folder = guarded
    source = one(kind="prometheus", url=url, **_keys(folder, password={"env": "NO_SUCH_VARIABLE"}))
    with pytest.raises(UnavailableError, match="variable NO_SUCH_VARIABLE is not set"):
        await source.read(["metrics"], SPAN)


# --- what kind of metric -------------------------------------------------------------------------------------


async def test_counters_histograms_and_gauges(tmp_path: Path) -> None:
    lines = ["# TYPE http_requests counter"]
    times = [1_772_542_800 + 15 * i for i in range(240)]
    lines += [f'http_requests_total{{service="cart",code="200"}} {150 * i} {t}' for i, t in enumerate(times)]
    lines += [f'http_requests_total{{service="cart",code="503"}} {15 * i} {t}' for i, t in enumerate(times)]
    lines += ["# TYPE request_seconds histogram"]
    for bound, share in (("0.1", 5), ("1", 10), ("+Inf", 10)):
        lines += [
            f'request_seconds_bucket{{service="cart",le="{bound}"}} {share * i} {t}'
            for i, t in enumerate(times)
        ]
    lines += [f'request_seconds_count{{service="cart"}} {10 * i} {t}' for i, t in enumerate(times)]
    lines += [f'request_seconds_sum{{service="cart"}} {3 * i} {t}' for i, t in enumerate(times)]
    lines += ["# TYPE jobs_done unknown"]
    lines += [f'jobs_done{{service="cart"}} {30 * i} {t}' for i, t in enumerate(times)]
    lines += ["# TYPE heap_bytes gauge"]
    lines += [f'heap_bytes{{service="cart",pod="a"}} {1000 + i % 7} {t}' for i, t in enumerate(times)]
    with servers.prometheus(tmp_path, "\n".join([*lines, "# EOF", ""])) as url:
        source = one(kind="prometheus", url=url, before=0, step=30)
        found = (await source.read(["metrics"], TimeRange(times[0] + 600, times[-1]))).metrics or ()
    level = {(s.metric, s.unit): s.values[len(s.values) // 2] for s in found}
    assert level["http_requests", "/s"] == pytest.approx(11)
    assert level["http_requests_errors", "/s"] == pytest.approx(1)
    assert level["request_seconds_p50", "s"] == pytest.approx(0.1)
    assert level["request_seconds_p95", "s"] == pytest.approx(0.91)
    assert level["request_seconds_mean", "s"] == pytest.approx(0.3)
    assert level["requests", "/s"] == pytest.approx(10 / 15)
    assert not any(metric.startswith("request_seconds_count") for metric, _ in level)
    assert level["jobs_done_rate", "/s"] == pytest.approx(2)
    assert level["heap_bytes", "bytes"] == pytest.approx(1003, abs=4)


async def test_seconds_where_a_server_scrapes_every_second(tmp_path: Path) -> None:
    """Failures that begin with their first have none before; rates follow within seconds."""
    times = [1_772_542_800 + i for i in range(60)]
    lines = ["# TYPE http_requests counter"]
    lines += [f'http_requests_total{{service="cart",status="200"}} {30 * i} {t}' for i, t in enumerate(times)]
    lines += [
        f'http_requests_total{{service="cart",status="500"}} {12 * i} {t}' for i, t in enumerate(times[40:])
    ]
    with servers.prometheus(tmp_path, "\n".join([*lines, "# EOF", ""])) as url:
        source = one(kind="prometheus", url=url, before=0, step=1, rate=5)
        found = (await source.read(["metrics"], TimeRange(times[10], times[-1]))).metrics or ()
    [failed] = [s for s in found if s.metric == "http_requests_errors"]
    by_time = dict(zip(failed.times, failed.values, strict=True))
    assert by_time[times[30]] == 0.0
    assert by_time[times[50]] == pytest.approx(12)


@pytest.mark.parametrize(
    ("name", "told", "kind"),
    [
        ("requests_total", "gauge", "counter"),
        ("requests_total", "", "counter"),
        ("latency_bucket", "", "histogram"),
        ("queue_depth", "gauge", "gauge"),
        ("queue_depth", "", "unknown"),
        ("page_count", "gauge", "gauge"),
    ],
)  # fmt: skip
def test_the_kind_of_a_metric(name: str, told: str, kind: str) -> None:
    assert classify_metric(name, {name: told} if told else {}) == kind


@given(st.floats(1, 1e7), st.floats(0, 1e6), st.floats(1, 3600))
def test_a_range_has_few_points_on_its_grid_and_covers_the_window(
    length: float, before: float, least: float
) -> None:
    window = TimeRange(1_772_542_800.0, 1_772_542_800.0 + length)
    span = QueryRange.over(window, before, least)
    assert span.step >= least
    assert (span.end - span.start) / span.step <= 402
    assert span.start <= window.start - before
    assert window.end - span.step < span.end <= window.end
    assert math.isclose(math.remainder(span.start, span.step), 0, abs_tol=1e-3)


@given(st.lists(st.integers(-5, 5), min_size=25, max_size=60))
def test_a_gauge_is_never_taken_for_a_counter(steps: list[int]) -> None:
    values = [float(sum(steps[: i + 1])) for i in range(len(steps))]
    series = MetricSeries("cart", "m", "", tuple(float(i) for i in range(len(values))), tuple(values))
    grows = sum(step > 0 for step in steps[1:]) >= 0.9 * (len(steps) - 1) and min(steps[1:]) >= 0
    assert (rate_if_counter(series) is series) is not grows
