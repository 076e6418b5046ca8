"""Read calls outside a run: what `opsleuth tools test` and `opsleuth mcp` make them with."""

from pathlib import Path

from opsleuth.configuration.secret_references import Vault
from opsleuth.console.configured_sources import read_allowed_sources
from opsleuth.console.options import GlobalOptions
from opsleuth.console.output import parse_time_option
from opsleuth.graph.lifecycle.first_state import OpenedSources, RunSettings, StartRequest, first_state
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.calls import CallRequest, Risk
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
from opsleuth.tools.circuit_breaker import CircuitBreaker
from opsleuth.tools.executor import Executor
from opsleuth.tools.extra_tools import ExtraTools
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.spec import CallResult, InvalidArgumentsError, ToolContext

START_SECONDS = 15.0
"""How long a server of tools may take to start before the one call that it was started for."""


def read_call_settings(options: GlobalOptions, case: Path | None) -> RunSettings:
    """The recorded incident, or the configured sources. Raises ConfigError for what may not be reached."""
    if case is not None:
        return RunSettings(case=str(case))
    found = read_allowed_sources(options)
    return RunSettings(sources=found.sources, environment=found.environment, aliases=found.aliases)


def make_call_context(
    settings: RunSettings, opened: OpenedSources, since: str | None, until: str | None
) -> ToolContext:
    """What a call is made in: the window that was given, else the case's own, else the last hour."""
    clock = SystemClock()
    request = StartRequest(
        run="test",
        question="test",
        settings=settings,
        since=parse_time_option(since, "--since"),
        until=parse_time_option(until, "--until"),
    )
    state = first_state(request, opened, clock)
    return ToolContext(
        window=state.window, clock=clock, sources=opened.sources, evidence=lambda _: None, subject=state.alert
    )


async def make_single_call(
    request: CallRequest, toolbox: Toolbox, context: ToolContext, vault: Vault, added: ExtraTools
) -> CallResult:
    """The result of one read call, made as a run makes it. Raises UsageError for a call that no tool takes."""
    redactor = Redactor()
    vault.listen(redactor.learn)
    executor = Executor(toolbox, context.clock, redactor, CircuitBreaker(context.clock))
    try:
        if (spec := toolbox.known(request.tool)) is not None and not spec.described:
            await added.start_servers(toolbox, START_SECONDS)
        call = toolbox.check(request).call(request, call_id="test/t1c1", number=1)
        assert call.risk is Risk.READ  # noqa: S101 - the toolbox holds nothing else
        return await executor.run(call, context)
    except InvalidArgumentsError as error:
        raise UsageError(str(error)) from None
    finally:
        await added.aclose()
