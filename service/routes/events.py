"""The events of a run as a stream (server-sent events), from any number on: what was missed comes first."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from opsleuth.checkpoints.processes import status_to_show
from opsleuth.checkpoints.service.tokens import ApiToken
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.trace.events import TraceEvent
from opsleuth.service.api_context import MOST_STREAMS, ApiContext, Context, RequestRefusedError
from opsleuth.service.authorization import ViewToken, find_team_run
from opsleuth.service.routes.tasks import REFUSALS, TaskId
from opsleuth.state.run_status import FINISHED_STATUSES

router = APIRouter(prefix="/api/tasks", tags=["events"])
POLL_SECONDS = 0.5
QUIET_SECONDS = 15.0
"""After this long without an event a comment is sent, so that no proxy takes the stream for dead.

As often it is looked whether the token is still valid.
"""
AT_ONCE = 500
_TEXT = {"type": "string"}
_PART = {
    "type": "object",
    "properties": {"id": _TEXT, "event": _TEXT, "data": _TEXT},
    "required": ["event", "data"],
}
_STREAM = {"content": {"text/event-stream": {"schema": _PART}}, "description": "Events, as they come."}


@router.get(
    "/{task_id}/events",
    responses={**REFUSALS, 200: _STREAM},
    response_class=StreamingResponse,
)
async def events(
    task_id: TaskId,
    context: Context,
    token: ViewToken,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    last_event_id: Annotated[str, Header(max_length=100)] = "",
    *,
    follow: bool = True,
) -> StreamingResponse:
    """Events with a number above `after`, or above the `Last-Event-ID` that a client reconnects with.

    With `follow=false` the stream ends with the last stored event, else with the run's end.
    """
    await context.stores(lambda store: find_team_run(store, task_id, token))
    begin = int(last_event_id) if re.fullmatch(r"[0-9]{1,15}", last_event_id) else after
    return _CountedStream(context, token, _stream_events(context, token, task_id, begin, follow=follow))


class _CountedStream(StreamingResponse):
    """One of the streams of a token, counted from now on: many that are asked for at once are not more than may be open."""

    def __init__(self, context: ApiContext, token: ApiToken, stream: AsyncIterator[str]) -> None:
        if context.streams.get(token.id, 0) >= MOST_STREAMS:
            raise RequestRefusedError(
                429, "too_many_streams", f"a token may have {MOST_STREAMS} event streams open: close one"
            )
        super().__init__(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        context.streams[token.id] = context.streams.get(token.id, 0) + 1
        self._streams, self._token = context.streams, token.id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams[self._token] -= 1


async def _stream_events(
    context: ApiContext, token: ApiToken, run: str, after: int, *, follow: bool
) -> AsyncIterator[str]:
    """It breaks off, without the mark of the end, once the token is no longer valid: who comes again is refused."""
    quiet = checked = context.clock.monotonic()
    while True:
        if context.clock.monotonic() - checked >= QUIET_SECONDS:
            checked = context.clock.monotonic()
            if not await context.stores(lambda store: store.tokens.is_valid(token.id)):
                return
        found, over = await context.stores(lambda store, after=after: _read_new_events(store, run, after))  # type: ignore[misc]
        for event in found:
            yield _format_sse_event(event)
        if found:
            after, quiet = found[-1]["seq"], context.clock.monotonic()
        elif over or not follow:
            yield "event: end\ndata: {}\n\n"
            return
        else:
            if context.clock.monotonic() - quiet >= QUIET_SECONDS:
                quiet = context.clock.monotonic()
                yield ": still there\n\n"
            await asyncio.sleep(POLL_SECONDS)


def _read_new_events(store: Store, run: str, after: int) -> tuple[list[TraceEvent], bool]:
    """What is new, and whether nothing more will come: the status is read first, so that no last event is missed."""
    row = store.runs.get(run)
    over = row is None or status_to_show(row) in FINISHED_STATUSES
    return store.events.read(run, after=after, limit=AT_ONCE), over


def _format_sse_event(event: TraceEvent) -> str:
    return f"id: {event['seq']}\nevent: {event['type']}\ndata: {json.dumps(event, ensure_ascii=True)}\n\n"
