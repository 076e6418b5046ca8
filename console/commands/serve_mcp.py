"""`opsleuth mcp`: offer the read-only tools to other programs. Nothing can be changed through it."""

from pathlib import Path

import click

from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import write_note
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.plurals import format_count

NEEDS_A_RUN = frozenset({"evidence_read", "calculate"})
"""Tools that work on the evidence of a run, which does not exist here."""


@click.command(
    "mcp",
    cls=CliCommand,
    help="Offer the read-only tools to other programs, as an MCP server over stdin and stdout.",
)
@click.option(
    "--case", type=click.Path(path_type=Path), metavar="DIR", help="Offer a recorded incident instead."
)
@click.option("--since", metavar="T", help="Start of the window (default: an hour before each call).")
@click.option("--until", metavar="T", help="End of the window.")
def serve_mcp(case: Path | None, since: str | None, until: str | None) -> int:
    """Serve until stdin ends. Raises ConfigError without the extra `mcp` and without a source."""
    import asyncio

    from opsleuth.console.mcp_server import make_mcp_server, serve_over_stdio
    from opsleuth.console.single_call import make_call_context, read_call_settings
    from opsleuth.graph.lifecycle.first_state import open_sources
    from opsleuth.tools.builtin import BUILTIN
    from opsleuth.tools.circuit_breaker import CircuitBreaker
    from opsleuth.tools.executor import Executor
    from opsleuth.tools.registry import Toolbox

    settings = read_call_settings(current_options(), case)
    opened = open_sources(settings)
    clock, redactor = SystemClock(), Redactor()
    opened.vault.listen(redactor.learn)
    offered = (spec for spec in BUILTIN if spec.name not in NEEDS_A_RUN)
    toolbox = Toolbox(offered, opened.sources, read_only=True)
    executor = Executor(toolbox, clock, redactor, CircuitBreaker(clock))
    # Without a window of its own each call looks at the hour before it, so the context is made for every call.
    server = make_mcp_server(toolbox, executor, lambda: make_call_context(settings, opened, since, until))
    write_note(
        f"serving {format_count(len(toolbox.specs), 'tool')} over stdin and stdout; end of stdin ends it"
    )
    asyncio.run(serve_over_stdio(server))
    return 0
