"""Messages to people: one that is sent after approval, and a draft that is only stored."""

import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import Field

from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.state.canonical_json import canonical_sha256
from opsleuth.tools.effects.platform import Platform, PlatformOperation, describe_location
from opsleuth.tools.effects.service_changes import probe_request
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec, UnavailableError

Body = Annotated[str, Field(min_length=1, max_length=8_000)]


class MessageArguments(Arguments):
    channel: Annotated[str, Field(min_length=1, max_length=200, description="channel, address or page")]
    text: Body


class DraftArguments(Arguments):
    title: Annotated[str, Field(min_length=1, max_length=200)]
    text: Body


def build_message_tool(platform: Platform) -> ToolSpec:
    """Send through `platform`. A message that was sent stays sent: the check asks the platform for it."""

    def operation(arguments: MessageArguments) -> PlatformOperation:
        return PlatformOperation("message", arguments.channel, {"text": arguments.text})

    async def run(arguments: MessageArguments, context: ToolContext) -> ToolResult:
        answer = await platform.submit(operation(arguments), context.idempotency_key or "")
        return ToolResult(
            record={"answer": dict(answer)},
            headline=f"message to {arguments.channel}: {answer.get('status', 'answered')}",
            source=platform.name,
        )

    async def found(arguments: MessageArguments, context: ToolContext) -> ToolResult:
        return await probe_request(platform, operation(arguments), context)

    return ToolSpec(
        name="message_send",
        purpose="Send a message to people: a channel, an address, a status page.",
        not_for="Preparing a text that somebody else sends: use draft_write.",
        arguments=MessageArguments,
        example={"channel": "#incidents", "text": "Rolling checkout back to 2.4.1."},
        run=run,
        risk=Risk.HIGH,
        target=lambda arguments: f"{platform.name}/{arguments.channel}",
        probe=found,
        postcondition=found,
        binding=lambda _: describe_location(platform),
        undo="cannot be taken back; send a correction",
        takes_key=platform.keys,
        environment=platform.environment,
        settles=10.0,
    )


async def draft_write(arguments: DraftArguments, context: ToolContext) -> ToolResult:
    path = _draft_path(arguments, context)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with os.fdopen(
        os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(_draft_text(arguments))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return ToolResult(record={"file": path.name}, headline=f"draft {path.name}", source="drafts")


async def check_draft_written(arguments: DraftArguments, context: ToolContext) -> ToolResult:
    path = _draft_path(arguments, context)
    there = path.is_file() and path.read_text(encoding="utf-8") == _draft_text(arguments)
    return ToolResult(
        record={"file": path.name, "exists": there},
        headline=f"draft {path.name} is {'there' if there else 'not there'}",
        status=ResultStatus.OK if there else ResultStatus.NONE_MATCHED,
        source="drafts",
    )


def _draft_text(arguments: DraftArguments) -> str:
    return f"# {arguments.title}\n\n{arguments.text}\n"


def _draft_path(arguments: DraftArguments, context: ToolContext) -> Path:
    """A name of its own for each text, so that no draft overwrites another one."""
    if context.folder is None:
        raise UnavailableError("this run has no folder to write drafts to")
    slug = re.sub(r"[^a-z0-9]+", "-", arguments.title.casefold()).strip("-")[:60] or "draft"
    return Path(context.folder) / "drafts" / f"{slug}-{canonical_sha256(arguments.model_dump())[:8]}.md"


DRAFT = ToolSpec(
    name="draft_write",
    purpose="Write a draft (a status message, a ticket) into the run's own folder; it is not sent to anybody.",
    not_for="Telling people: use message_send.",
    arguments=DraftArguments,
    example={"title": "Status: checkout slow", "text": "We are rolling back to 2.4.1."},
    run=draft_write,
    risk=Risk.LOW,
    target=lambda arguments: f"drafts/{arguments.title}",
    probe=check_draft_written,
    postcondition=check_draft_written,
    undo="delete the file",
    takes_key=True,
    settles=5.0,
)
