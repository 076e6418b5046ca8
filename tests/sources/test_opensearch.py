"""Log lines from the HTTP API of OpenSearch, as an independent re-implementation speaks it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import servers
from contract_server import Asked, Reply, contract_server
from hypothesis import given
from hypothesis import strategies as st
from live_rig import SPAN, ask, one
from stored_elsewhere import rows, seconds

from opsleuth.analysis.records import TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.tools.sources import opensearch as module
from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.sources.opensearch import field_value
from opsleuth.tools.spec import UnavailableError


async def test_the_lines_are_those_of_the_folder(opensearch: str, case: Path) -> None:
    source = one(kind="opensearch", url=opensearch, index="logs-*", before=0)
    found = (await source.read(["logs"], SPAN)).logs or ()
    recorded = CaseSource.open(case).recording(["logs"]).logs or ()
    inside = [line for line in recorded if line.time is not None and SPAN.start <= line.time < SPAN.end]
    assert sorted(found, key=repr) == sorted(inside, key=repr)
    assert source.warnings == ()


async def test_pages_follow_each_other(opensearch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = one(kind="opensearch", url=opensearch, index="logs-*", before=0)
    at_once = (await source.read(["logs"], SPAN)).logs
    monkeypatch.setattr(module, "PAGE", 37)
    in_pages = await one(kind="elasticsearch", url=opensearch, index="logs-*", before=0).read(["logs"], SPAN)
    assert in_pages.logs == at_once
    assert sum("_search/scroll" in line for line in in_pages.asked) > 2


async def test_a_search_scans_every_line_and_says_so(opensearch: str, case: Path) -> None:
    """A line is absent only where every line was looked at."""
    source = one(kind="opensearch", url=opensearch, index="logs-*")
    inside = sum(SPAN.start <= seconds(row["timestamp"]) < SPAN.end for row in rows(case / "logs.jsonl"))
    found = await ask([source], "logs_search", text="no such words")
    assert (found.status, found.scanned) == (ResultStatus.NONE_MATCHED, inside)
    bounded = one(kind="opensearch", url=opensearch, index="logs-*", max_lines=100)
    assert len((await bounded.read(["logs"], TimeRange(SPAN.start, SPAN.end))).logs or ()) <= 150
    assert "detectors see the first" in " ".join(bounded.warnings)
    assert (await ask([bounded], "logs_search", text="no such words")).scanned == inside


async def test_a_narrower_match(opensearch: str) -> None:
    source = one(kind="opensearch", url=opensearch, index="logs-*", match='service.name:"orders-api"')
    services = {line.service for line in (await source.read(["logs"], SPAN)).logs or ()}
    assert services == {"orders-api"}
    broken = one(kind="opensearch", url=opensearch, match="message:((")
    with pytest.raises(UnavailableError, match="answered 400"):
        await broken.read(["logs"], SPAN)


async def test_an_index_that_is_not_there_and_a_pattern_that_fits_none(opensearch: str) -> None:
    with pytest.raises(UnavailableError, match="no such index"):
        await one(kind="opensearch", url=opensearch, index="nope").read(["logs"], SPAN)
    result = await ask([one(kind="opensearch", url=opensearch, index="nope-*")], "logs_search")
    assert result.status is ResultStatus.NOT_RECORDED


async def test_doctor_says_what_is_there(opensearch: str) -> None:
    checks = {c.what: c for c in await one(kind="opensearch", url=opensearch, index="logs-*").check()}
    assert checks["version"].text.startswith("opensearch 3.")
    assert checks["documents"].state == "ok"
    [found] = [
        c
        for c in await one(kind="opensearch", url=opensearch, index="nope-*").check()
        if c.what == "documents"
    ]
    assert (found.state, "set index" in found.remedy) == ("warning", True)


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[str]:
    """Documents of other shippers: dots in names, times without a zone or as numbers, nothing but a message."""
    documents = [
        {"@timestamp": "2026-03-03T14:00:00", "message": "no zone is UTC", "service.name": "cart"},
        {"@timestamp": 1_772_546_401_000, "log": "milliseconds", "kubernetes": {"labels": {"app": "cart"}}},
        {"@timestamp": "2026-03-03T22:00:02+08:00", "body": "another zone", "resource": {"attributes": {"service.name": "cart"}}},
        {"@timestamp": "2026-03-03T14:00:03Z", "text": "no known field"},
    ]  # fmt: skip
    lines = [json.dumps(part) for d in documents for part in ({"index": {"_index": "odd"}}, d)]
    with servers.opensearch(tmp_path, "\n".join([*lines, ""])) as url:
        yield url


async def test_times_of_any_zone_and_fields_of_any_name(odd: str) -> None:
    """All lines stand on one time line, whatever zone wrote them."""
    found = (await one(kind="opensearch", url=odd).read(["logs"], SPAN)).logs or ()
    assert [line.time for line in found] == [1_772_546_400.0 + i for i in range(4)]
    assert [line.service for line in found] == ["cart", "cart", "cart", "unknown"]
    assert [line.message for line in found][:3] == ["no zone is UTC", "milliseconds", "another zone"]
    assert "no known field" in found[3].message


async def test_shards_that_failed_take_the_word_of_absence_away() -> None:
    """A search of which a part failed is answered with 200: see `_shards` of the search API."""
    hit = {"_source": {"@timestamp": "2026-03-03T14:00:00Z", "message": "up", "service": "cart"}, "sort": [1]}

    def answering(asked: Asked) -> Reply:
        return Reply({"_shards": {"total": 5, "failed": 2}, "timed_out": False, "hits": {"hits": [hit]}})

    with contract_server(answering) as server:
        source = one(kind="elasticsearch", url=server.url)
        present = await ask([source], "logs_search", text="up")
        absent = await ask([source], "logs_search", text="no such words")
    assert present.status is ResultStatus.OK
    assert "2 of 5 shards failed" in present.record["not_read"]["s (logs)"]
    assert absent.status is ResultStatus.NOT_RECORDED


async def test_a_store_that_is_slow_and_large_gives_what_there_is_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    clock = FakeClock(datetime.now(UTC))
    hit = {"_source": {"@timestamp": "2026-03-03T14:00:00Z", "message": "up", "service": "cart"}, "sort": [1]}

    def answering(asked: Asked) -> Reply:
        clock.advance(1.0)
        return Reply({"_scroll_id": "s", "_shards": {"total": 1, "failed": 0}, "hits": {"hits": [hit, hit]}})

    with contract_server(answering) as server:
        source = one(clock, kind="opensearch", url=server.url)
        lines = (await source.read(["logs"], SPAN)).logs or ()
    assert len(lines) == 2 * 7  # a page each second, the last begun in the sixth
    assert "more log lines than the 14 that were read" in " ".join(source.warnings)


NAMES = st.text(st.sampled_from("ab"), min_size=1, max_size=2)


@given(st.lists(NAMES, min_size=1, max_size=4), st.data())
def test_a_field_is_found_however_its_name_is_cut(parts: list[str], data: st.DataObject) -> None:
    document: Any = 7
    rest = list(parts)
    while rest:
        taken = data.draw(st.integers(1, len(rest)))
        document = {".".join(rest[-taken:]): document}
        del rest[-taken:]
    assert field_value(document, ".".join(parts)) == 7
    assert field_value(document, ".".join([*parts, "c"])) is None
