"""The events of a run as a stream (server-sent events), from any number on: what was missed comes first."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from opsleuth.checkpoints.events import Event
from opsleuth.checkpoints.processes import standing
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.tokens import Token
from opsleuth.service.office import MOST_STREAMS, Here, Office, Refused, Viewer, of_team
from opsleuth.service.routes.tasks import REFUSALS, TaskId
from opsleuth.state.outcome import FINISHED

router = APIRouter(prefix="/api/tasks", tags=["events"])
POLL_SECONDS = 0.5
QUIET_SECONDS = 15.0
"""After so long without an event a comment is sent: whoever stands in between must not take the stream for dead."""
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
    here: Here,
    token: Viewer,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    last_event_id: Annotated[str, Header(max_length=100)] = "",
    *,
    follow: bool = True,
) -> StreamingResponse:
    """Events with a number above `after`, or above the `Last-Event-ID` that a client reconnects with.

    With `follow=false` the stream ends with the last stored event, else with the run's end.
    """
    await here.stores(lambda store: of_team(store, task_id, token))
    begin = int(last_event_id) if re.fullmatch(r"[0-9]{1,15}", last_event_id) else after
    if here.streams.get(token.id, 0) >= MOST_STREAMS:
        raise Refused(
            429, "too_many_streams", f"a token may have {MOST_STREAMS} event streams open: close one"
        )
    return StreamingResponse(
        _counted(here, token, _stream(here, task_id, begin, follow=follow)),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _counted(here: Office, token: Token, stream: AsyncIterator[str]) -> AsyncIterator[str]:
    here.streams[token.id] = here.streams.get(token.id, 0) + 1
    try:
        async for part in stream:
            yield part
    finally:
        here.streams[token.id] -= 1


async def _stream(here: Office, run: str, after: int, *, follow: bool) -> AsyncIterator[str]:
    quiet = here.clock.monotonic()
    while True:
        found, over = await here.stores(lambda store, after=after: _look(store, run, after))  # type: ignore[misc]
        for event in found:
            yield _part(event)
        if found:
            after, quiet = found[-1]["seq"], here.clock.monotonic()
        elif over or not follow:
            yield "event: end\ndata: {}\n\n"
            return
        else:
            if here.clock.monotonic() - quiet >= QUIET_SECONDS:
                quiet = here.clock.monotonic()
                yield ": still there\n\n"
            await asyncio.sleep(POLL_SECONDS)


def _look(store: Store, run: str, after: int) -> tuple[list[Event], bool]:
    """What is new, and whether nothing more will come: the status is read first, so that no last event is missed."""
    row = store.runs.get(run)
    over = row is None or standing(row) in FINISHED
    return store.events.read(run, after=after, limit=AT_ONCE), over


def _part(event: Event) -> str:
    return f"id: {event['seq']}\nevent: {event['type']}\ndata: {json.dumps(event, ensure_ascii=True)}\n\n"
