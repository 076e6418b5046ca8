"""The commands about what can be looked at: `init`, `doctor`, `tools`, `tools test`, `mcp`, `trust`."""

from pathlib import Path

import click

from opsleuth.console.options import Command, Group, given, typed


@click.command(
    cls=Command, help="Find what there is to look at from here, and write .opsleuth/config.toml for it."
)
def init() -> int:
    from opsleuth.console import init

    return init.init(given())


@click.command(
    cls=Command, help="Try every configured source: what works, what does not, and how to mend it."
)
def doctor() -> int:
    from opsleuth.console import doctor as examining

    return examining.doctor(given())


@click.group(
    cls=Group,
    invoke_without_command=True,
    help="What can be asked, and which configured source is behind it.",
)
@click.pass_context
def tools(context: click.Context) -> int:
    if context.invoked_subcommand is not None:
        return 0
    from opsleuth.console import tool_commands

    return tool_commands.tools(given())


@tools.command("test", help="Make one read call, as a run would.")
@click.argument("name", metavar="NAME")
@click.option("--args", "arguments", default="{}", metavar="JSON", help="The arguments, a JSON object.")
@click.option(
    "--case", type=click.Path(path_type=Path), metavar="DIR", help="Ask a recorded incident instead."
)
@click.option("--since", metavar="T", help="Start of the window (default: an hour ago, or the case's own).")
@click.option("--until", metavar="T", help="End of the window.")
def tools_test(name: str, arguments: str, case: Path | None, since: str | None, until: str | None) -> int:
    from opsleuth.console import tool_commands

    return tool_commands.test(given(), name, arguments, case, since, until)


@click.command(
    cls=Command,
    help="Offer what can be looked at here to other programs, as an MCP server over stdin and stdout.",
)
@click.option(
    "--case", type=click.Path(path_type=Path), metavar="DIR", help="Offer a recorded incident instead."
)
@click.option("--since", metavar="T", help="Start of the window (default: an hour before each call).")
@click.option("--until", metavar="T", help="End of the window.")
def mcp(case: Path | None, since: str | None, until: str | None) -> int:
    from opsleuth.console import mcp_server

    return mcp_server.serve(given(), case, since, until)


@click.command(
    cls=Command,
    help="Trust this project's .opsleuth/config.toml and policy.toml as they are now: what they name may be reached, run and allowed.",
)
def trust() -> int:
    from opsleuth.console import configured_sources

    return configured_sources.trust_project(typed())


COMMANDS: tuple[click.Command, ...] = (init, doctor, tools, mcp, trust)
