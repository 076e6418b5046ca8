"""Tools over a file of tickets, `TICKETS_FILE`: one that reads, one that changes something and can be asked about it.

The file is a JSON object: id to `{"title": …, "open": true, "closed_by": null}`.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.tools.spec import (
    Arguments,
    InvalidArgumentsError,
    NotPermittedError,
    ToolContext,
    ToolResult,
    ToolSpec,
    UnavailableError,
)

SOURCE = "tickets"
Tickets = dict[str, dict[str, Any]]


class Find(Arguments):
    text: Annotated[str, Field(max_length=200, description="part of the title, any case")] = ""
    limit: Annotated[int, Field(ge=1, le=50, description="tickets, 1 to 50")] = 10


class Close(Arguments):
    ticket: Annotated[
        str, Field(pattern=r"^[A-Z]+-[0-9]+$", max_length=40, description="its id, such as OPS-7")
    ]


async def find(arguments: Find, _: ToolContext) -> ToolResult:
    """Nothing found is `none_matched`, with what was looked through: then it is a finding, not a failure."""
    tickets = _read()
    wanted = arguments.text.casefold()
    found = {key: t for key, t in tickets.items() if t["open"] and wanted in t["title"].casefold()}
    return ToolResult(
        record={
            "tickets": [{"id": key, "title": t["title"]} for key, t in sorted(found.items())][
                : arguments.limit
            ]
        },
        headline=f"{len(found)} of {len(tickets)} tickets",
        status=ResultStatus.OK if found else ResultStatus.NONE_MATCHED,
        source=SOURCE,
        scanned=len(tickets),
        matched=len(found),
    )


async def may_close(arguments: Close, _: ToolContext) -> ToolResult:
    """Asked before a person is, and again right before the change."""
    ticket = _ticket(arguments.ticket)
    if not ticket["open"]:
        raise NotPermittedError(f"{arguments.ticket} is closed already")
    return ToolResult(record=ticket, headline=f"{arguments.ticket} is open: {ticket['title']}", source=SOURCE)


async def close(arguments: Close, context: ToolContext) -> ToolResult:
    """The key of this very change is kept in the ticket, so that it can be told later whether it happened."""
    tickets = _read()
    tickets[arguments.ticket] |= {"open": False, "closed_by": context.idempotency_key}
    part = _file().with_suffix(".part")
    part.write_text(json.dumps(tickets), encoding="utf-8")
    part.replace(_file())
    return ToolResult(
        record={"ticket": arguments.ticket}, headline=f"closed {arguments.ticket}", source=SOURCE
    )


async def happened(arguments: Close, context: ToolContext) -> ToolResult:
    """Whether the try with this key was made: `ok` or `none_matched`."""
    made = _ticket(arguments.ticket)["closed_by"] == context.idempotency_key
    return _answer(
        arguments.ticket, made, "was closed by this call" if made else "was not closed by this call"
    )


async def is_closed(arguments: Close, _: ToolContext) -> ToolResult:
    """Read from the target, never from the reply."""
    closed = not _ticket(arguments.ticket)["open"]
    return _answer(arguments.ticket, closed, "is closed" if closed else "is open")


def tools() -> Sequence[ToolSpec]:
    """What the entry point names; called once by every process that needs the tools."""
    return (
        ToolSpec(
            name="tickets_find",
            purpose="Open tickets by their title.",
            not_for="Alerts and incidents: those are in the question.",
            arguments=Find,
            example={"text": "checkout"},
            run=find,
        ),
        ToolSpec(
            name="ticket_close",
            purpose="Close a ticket.",
            not_for="Answering it.",
            arguments=Close,
            example={"ticket": "OPS-7"},
            run=close,
            risk=Risk.HIGH,
            target=lambda arguments: f"{SOURCE}/{arguments.ticket}",
            precheck=may_close,
            probe=happened,
            postcondition=is_closed,
            undo="open it again by hand",
            takes_key=True,
            settles=5.0,
        ),
    )


def _answer(ticket: str, yes: bool, text: str) -> ToolResult:
    status = ResultStatus.OK if yes else ResultStatus.NONE_MATCHED
    return ToolResult(record={"ticket": ticket}, headline=f"{ticket} {text}", status=status, source=SOURCE)


def _file() -> Path:
    path = os.environ.get("TICKETS_FILE")
    if not path:
        raise UnavailableError("the variable TICKETS_FILE is not set: it names the file of tickets")
    return Path(path)


def _read() -> Tickets:
    try:
        tickets: Tickets = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnavailableError(f"the file of tickets cannot be read: {error}") from None
    return tickets


def _ticket(key: str) -> dict[str, Any]:
    tickets = _read()
    if key not in tickets:
        raise InvalidArgumentsError(f"there is no ticket {key}; there are {', '.join(sorted(tickets)[:20])}")
    return tickets[key]
