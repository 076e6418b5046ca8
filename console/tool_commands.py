"""`tools` and `tools test`: what can be asked, and one call of it, as a run would make it."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opsleuth.checkpoints.redact import Redactor
from opsleuth.console import events
from opsleuth.console.configured_sources import look, sources
from opsleuth.console.options import Options
from opsleuth.console.output import moment, note, screen_of
from opsleuth.console.screen import Column, Part, table
from opsleuth.graph.decisions import call_of
from opsleuth.graph.prepare import Opened, Settings, StartRequest, first_state, open_sources
from opsleuth.state.calls import CallRequest, Risk
from opsleuth.state.canonical import from_json
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
from opsleuth.state.outcome import ExitCode
from opsleuth.state.words import counted
from opsleuth.tools.added import Added, added_tools
from opsleuth.tools.breaker import Breaker
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.executor import Executor
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.base import Sources
from opsleuth.tools.sources.opening import open_live
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.spec import CallResult, InvalidArguments, ToolContext, ToolSpec

START_SECONDS = 15.0
"""So long may a server of tools take before the one call that it was started for."""


def tools(options: Options) -> int:
    """`tools`: every tool that is built in or declared, and which configured source is behind it; nothing is asked of any."""
    configured = look(options).sources
    added = added_tools(_policy(options), Vault())
    behind = Sources(open_live(configured, Vault())) if configured else Sources()
    rows = [
        (spec, [s.name for s in behind.serving(spec.capability)] if spec.capability else [])
        for spec in (*BUILTIN, *added.specs)
    ]
    if options.json:
        events.write_json(sys.stdout, {"tools": [_tool(spec, names) for spec, names in rows]})
        return 0
    screen = screen_of(options)
    columns = (Column("TOOL"), Column("RISK", drop=2), Column("SOURCES", drop=1), Column("WHAT IT IS FOR"))
    for line in table(screen, columns, [_row(spec, names) for spec, names in rows]):
        screen.line(*line)
    for problem in added.problems:
        note(problem)
    return 0


def _row(spec: ToolSpec, names: Sequence[str]) -> list[Part]:
    behind = ", ".join(names) if names else "no source" if spec.capability else "-"
    return [
        Part(spec.name, "id"),
        Part(str(spec.risk)),
        Part(behind, "" if names else "dim"),
        Part(spec.purpose),
    ]


def _tool(spec: ToolSpec, names: Sequence[str]) -> dict[str, Any]:
    return {
        "name": spec.name,
        "risk": spec.risk,
        "origin": spec.origin,
        "capability": spec.capability,
        "sources": list(names),
        "purpose": spec.purpose,
        "not_for": spec.not_for,
        "arguments": spec.arguments.model_json_schema(),
        "example": dict(spec.example),
    }


def test(
    options: Options, name: str, arguments: str, case: Path | None, since: str | None, until: str | None
) -> int:
    """`tools test`: one read call. Raises UsageError for what is no such call; 7 where a source does not answer."""
    settings = settings_for(options, case)
    opened = open_sources(settings) if settings.case or settings.sources else Opened(Sources())
    added = added_tools(_policy(options), opened.vault)
    toolbox = Toolbox((*BUILTIN, *added.specs), opened.sources, read_only=True)
    clock = SystemClock()
    context = context_for(settings, opened, clock, since, until)
    request = call_of(name, _parsed(arguments))
    result = asyncio.run(_called(request, toolbox, context, opened.vault, added))
    _show(options, result)
    return ExitCode.UNREACHABLE if result.status.is_error else ExitCode.OK


async def _called(
    request: CallRequest, toolbox: Toolbox, context: ToolContext, vault: Vault, added: Added
) -> CallResult:
    """The result of one read call. Raises UsageError for what is no such call."""
    redactor = Redactor()
    vault.listen(redactor.learn)
    executor = Executor(toolbox, context.clock, redactor, Breaker(context.clock))
    try:
        if (spec := toolbox.known(request.tool)) is not None and not spec.described:
            await added.settle(toolbox, START_SECONDS)
        call = toolbox.check(request).call(request, call_id="test/t1c1", number=1)
        assert call.risk is Risk.READ  # noqa: S101 - the toolbox holds nothing else
        return await executor.run(call, context)
    except InvalidArguments as error:
        raise UsageError(str(error)) from None
    finally:
        await added.aclose()


def _policy(options: Options) -> str | None:
    return str(options.policy) if options.policy else None


def settings_for(options: Options, case: Path | None) -> Settings:
    if case is not None:
        return Settings(case=str(case))
    found = sources(options)
    return Settings(sources=found.sources, environment=found.environment, aliases=found.aliases)


def _parsed(text: str) -> dict[str, Any]:
    try:
        document = from_json(text)
    except ValueError as error:
        raise UsageError(f'--args is no JSON ({error}): write an object such as {{"limit": 5}}') from None
    if not isinstance(document, dict):
        raise UsageError(
            f'--args holds a JSON {type(document).__name__}: write an object such as {{"limit": 5}}'
        )
    return document


def context_for(
    settings: Settings, opened: Opened, clock: SystemClock, since: str | None, until: str | None
) -> ToolContext:
    request = StartRequest(
        run="test",
        question="test",
        settings=settings,
        since=moment(since, "--since"),
        until=moment(until, "--until"),
    )
    state = first_state(request, opened, clock)
    return ToolContext(
        window=state.window, clock=clock, sources=opened.sources, evidence=lambda _: None, subject=state.alert
    )


def _show(options: Options, result: CallResult) -> None:
    if options.json:
        document = {"status": result.status, "headline": result.headline, "source": result.source, "query": result.query,
                    "scanned": result.scanned, "matched": result.matched, "ms": result.ms, "tries": result.tries,
                    "record": result.record}  # fmt: skip
        events.write_json(sys.stdout, document)
        return
    screen = screen_of(options)
    screen.line(Part(str(result.status), "bad" if result.status.is_error else "good"), f"  {result.headline}")
    for line in json.dumps(result.record, ensure_ascii=False, indent=1).splitlines():
        screen.line(line)
    note(f"{result.source or 'no source'}   {result.ms} ms   {counted(result.tries, 'try', 'tries')}")
    if options.verbose and result.query:
        note(result.query)
