"""Loki, as its HTTP API document describes it: streams, pages, and the limits that a server sets."""

from collections.abc import Callable

import pytest
from backends import AT, NANO
from contract_server import Asked, Reply, contract_server
from hypothesis import given, settings
from hypothesis import strategies as st
from live_rig import SPAN, ask, one
from loki_store import Entry, LokiStore
from tiers import COSTLY

from opsleuth.analysis.records import TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.spec import UnavailableError

Line = tuple[int, str, str]


def store(entries: list[Line], *, most: int = 5_000, longest: float | None = None) -> LokiStore:
    """A Loki with these entries (nanoseconds, app, line), forward within the limits of the server."""
    made = [Entry(time, {"app": app, "level": "warn"}, text) for time, app, text in entries]
    return LokiStore(made, most, longest)


async def lines_of(answering: Callable[[Asked], Reply], span: TimeRange = SPAN) -> list[tuple[str, str]]:
    with contract_server(answering) as server:
        found = await one(kind="loki", url=server.url, before=0).read(["logs"], span)
    assert found.missed == ()
    return sorted((line.service, line.message) for line in found.logs or ())


async def test_labels_name_service_and_level() -> None:
    with contract_server(store([(AT * NANO + 5, "cart", "cache is full")])) as server:
        [line] = (await one(kind="loki", url=server.url).read(["logs"], SPAN)).logs or ()
    assert (line.service, line.level, line.message) == ("cart", "warn", "cache is full")
    assert line.time == pytest.approx(AT, abs=1e-6)


@pytest.mark.slow
@settings(COSTLY, max_examples=15)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["cart", "web"])), max_size=30),
    st.integers(4, 12),
    st.sampled_from([None, 600.0, 3_000.0]),
)
async def test_no_line_is_lost_or_told_twice_whatever_the_limits(
    moments: list[tuple[int, str]], most: int, longest: float | None
) -> None:
    """Several lines of one nanosecond lie across the end of a page; `most` may hold them all."""
    counted: dict[int, int] = {}
    entries = []
    for number, (place, app) in enumerate(moments):
        counted[place] = counted.get(place, 0) + 1
        if counted[place] < most:
            entries.append(((AT + place * 60) * NANO, app, f"line {number}"))
    assert await lines_of(store(entries, most=most, longest=longest)) == sorted((a, t) for _, a, t in entries)


async def test_more_lines_of_one_moment_than_fit_are_not_passed_over_in_silence() -> None:
    entries = [(AT * NANO, "cart", f"line {i}") for i in range(9)] + [((AT + 1) * NANO, "cart", "the next")]
    with contract_server(store(entries, most=4)) as server:
        result = await ask([one(kind="loki", url=server.url)], "logs_search", level="error")
    assert result.status is ResultStatus.NOT_RECORDED
    assert "more than 4 lines of one moment" in result.record["not_read"]["s (logs)"]


async def test_a_query_that_counts_gives_no_lines() -> None:
    def answering(asked: Asked) -> Reply:
        return Reply({"status": "success", "data": {"resultType": "matrix", "result": []}})

    with (
        contract_server(answering) as server,
        pytest.raises(UnavailableError, match="gives matrix, no lines"),
    ):
        await one(kind="loki", url=server.url, match='rate({app="cart"}[1m])').read(["logs"], SPAN)


async def test_a_wrong_query_is_told_in_the_server_s_words() -> None:
    with (
        contract_server(lambda _: Reply("parse error at line 1, col 5: syntax error", 400)) as server,
        pytest.raises(UnavailableError, match="parse error at line 1"),
    ):
        await one(kind="loki", url=server.url, match="{app=}").read(["logs"], SPAN)


async def test_no_stream_names_a_service() -> None:
    with (
        contract_server(lambda _: Reply({"status": "success", "data": ["filename"]})) as server,
        pytest.raises(
            UnavailableError, match=r"no stream has a label of .* \(there are: filename\): set service_labels"
        ),
    ):
        await one(kind="loki", url=server.url).read(["logs"], SPAN)
