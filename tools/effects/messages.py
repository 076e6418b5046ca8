"""Words to people outside: a message that is sent once a person said yes, and a draft that nobody is sent."""

import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import Field

from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.state.canonical import digest
from opsleuth.tools.effects.platform import Operation, Platform
from opsleuth.tools.effects.services import probed
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec, Unavailable

Body = Annotated[str, Field(min_length=1, max_length=8_000)]


class Message(Arguments):
    channel: Annotated[str, Field(min_length=1, max_length=200, description="channel, address or page")]
    text: Body


class Draft(Arguments):
    title: Annotated[str, Field(min_length=1, max_length=200)]
    text: Body


def message_tool(platform: Platform) -> ToolSpec:
    """Send through `platform`. A message that was sent stays sent: the check asks the platform for it."""

    def operation(arguments: Message) -> Operation:
        return Operation("message", arguments.channel, {"text": arguments.text})

    async def run(arguments: Message, context: ToolContext) -> ToolResult:
        answer = await platform.submit(operation(arguments), context.idempotency_key or "")
        return ToolResult(
            record={"answer": dict(answer)},
            headline=f"message to {arguments.channel}: {answer.get('status', 'answered')}",
            source=platform.name,
        )

    async def found(arguments: Message, context: ToolContext) -> ToolResult:
        return await probed(platform, operation(arguments), context)

    return ToolSpec(
        name="message_send",
        purpose="Send a message to people: a channel, an address, a status page.",
        not_for="Preparing a text that somebody else sends: use draft_write.",
        arguments=Message,
        example={"channel": "#incidents", "text": "Rolling checkout back to 2.4.1."},
        run=run,
        risk=Risk.HIGH,
        target=lambda arguments: f"{platform.name}/{arguments.channel}",
        probe=found,
        postcondition=found,
        undo="cannot be taken back; send a correction",
        takes_key=platform.keys,
        environment=platform.environment,
        settles=10.0,
    )


async def draft_write(arguments: Draft, context: ToolContext) -> ToolResult:
    path = _path(arguments, context)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with os.fdopen(
        os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(_content(arguments))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return ToolResult(record={"file": path.name}, headline=f"draft {path.name}", source="drafts")


async def draft_found(arguments: Draft, context: ToolContext) -> ToolResult:
    path = _path(arguments, context)
    there = path.is_file() and path.read_text(encoding="utf-8") == _content(arguments)
    return ToolResult(
        record={"file": path.name, "exists": there},
        headline=f"draft {path.name} is {'there' if there else 'not there'}",
        status=ResultStatus.OK if there else ResultStatus.NONE_MATCHED,
        source="drafts",
    )


def _content(arguments: Draft) -> str:
    return f"# {arguments.title}\n\n{arguments.text}\n"


def _path(arguments: Draft, context: ToolContext) -> Path:
    """A name of its own for each text, so that no draft overwrites another one."""
    if context.folder is None:
        raise Unavailable("this run has no folder to write drafts to")
    slug = re.sub(r"[^a-z0-9]+", "-", arguments.title.casefold()).strip("-")[:60] or "draft"
    return Path(context.folder) / "drafts" / f"{slug}-{digest(arguments.model_dump())[:8]}.md"


DRAFT = ToolSpec(
    name="draft_write",
    purpose="Write a draft (a status message, a ticket) into the run's own folder; nobody is sent it.",
    not_for="Telling people: use message_send.",
    arguments=Draft,
    example={"title": "Status: checkout slow", "text": "We are rolling back to 2.4.1."},
    run=draft_write,
    risk=Risk.LOW,
    target=lambda arguments: f"drafts/{arguments.title}",
    probe=draft_found,
    postcondition=draft_found,
    undo="delete the file",
    takes_key=True,
    settles=5.0,
)
