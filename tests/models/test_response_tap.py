"""The copy of a stream costs what the stream is long, however long one of its lines is."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import httpx2

from opsleuth.models.response_tap import ResponseTap

EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'


class Parts(httpx2.AsyncByteStream):
    """A body that arrives in these parts."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


def read_through_tap(parts: Sequence[bytes]) -> tuple[bytes, str, float]:
    """What the client gets, what the tap kept, and the seconds of CPU."""

    async def read() -> bytes:
        response = httpx2.Response(
            200,
            headers={"content-type": "text/event-stream"},
            stream=Parts(parts),
            request=httpx2.Request("POST", "http://model"),
        )
        await tap.on_response(response)
        return b"".join([part async for part in response.aiter_bytes()])

    tap, began = ResponseTap(), time.process_time()
    body = asyncio.run(read())
    return body, tap.body, time.process_time() - began


def test_a_stream_passes_alike_however_it_is_cut_into_parts() -> None:
    whole = EVENT * 3
    for size in (1, 7, len(EVENT), len(whole)):
        body, kept, _ = read_through_tap([whole[at : at + size] for at in range(0, len(whole), size)])
        assert body == read_through_tap([whole])[0]
        assert kept.encode() == whole


def test_a_line_without_an_end_costs_no_more_than_its_length() -> None:
    def seconds(parts: int) -> float:
        return min(read_through_tap([b"x" * 1_000] * parts)[2] for _ in range(3))

    assert seconds(6_000) < 3 * seconds(3_000) + 0.1
