"""The options that every command takes, before or after its name; the last one wins."""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from opsleuth.checkpoints.database_urls import Place, PostgresServer, is_server
from opsleuth.configuration.folders import xdg_folder
from opsleuth.console.identifier_types import add_completion
from opsleuth.console.time_formats import find_time_zone, parse_duration
from opsleuth.state.errors import UsageError
from opsleuth.state.run_status import ExitCode


class DurationType(click.ParamType[timedelta]):
    """`90s`, `15m`, `1h30m`, `2d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class UsdAmountType(click.ParamType[Decimal]):
    """US dollars, above zero."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        try:
            amount = Decimal(value)
        except InvalidOperation:
            self.fail(f"{value!r} is not an amount: write US dollars such as 0.50", param, ctx)
        if not (amount.is_finite() and 0 < amount < 10**9):
            self.fail(f"{value} is out of range: above 0 and below 1,000,000,000", param, ctx)
        return amount


class DatabaseType(click.Path):
    """The path of a database file, or the connection string of a PostgreSQL server."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and is_server(value):
            return PostgresServer(value, xdg_folder("XDG_DATA_HOME", ".local/share"))
        if "://" in str(value):  # not repeated: it may hold a password
            text = "it is a URL, but not of PostgreSQL: write a path, or postgresql://USER@HOST:PORT/DATABASE"
            self.fail(text, param, ctx)
        return super().convert(value, param, ctx)


class CheckpointServerType(click.ParamType[PostgresServer]):
    """The connection string of a PostgreSQL server."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> PostgresServer:
        if not is_server(str(value)):
            self.fail("write postgresql://USER@HOST:PORT/DATABASE", param, ctx)
        return PostgresServer(str(value), xdg_folder("XDG_DATA_HOME", ".local/share"))


class TimeZoneType(click.ParamType[tzinfo]):
    """A time zone by its name."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        if isinstance(value, tzinfo):
            return value
        try:
            return find_time_zone(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


Color = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """The options of one invocation. None: not given."""

    json: bool = False
    plain: bool = False
    color: Color = "auto"
    no_input: bool = False
    quiet: bool = False
    verbose: int = 0
    tz: tzinfo | None = None
    db: Place | None = None
    db_checkpoints: PostgresServer | None = None
    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: Decimal | None = None
    max_time: timedelta | None = None
    read_only: bool = False
    policy: Path | None = None
    planner: str | None = None
    profile: str | None = None
    model: str | None = None
    model_mode: str | None = None
    fallback: str | None = None
    record: Path | None = None
    replay: Path | None = None
    environment: str | None = None

    @property
    def database(self) -> Place:
        """Where the runs are kept: `--db`, else `opsleuth/opsleuth.db` in the user's XDG data folder.

        Raises UsageError where checkpoints shall lie on another server than runs that lie in a file.
        """
        place = self.db or xdg_folder("XDG_DATA_HOME", ".local/share") / "opsleuth.db"
        if self.db_checkpoints is None:
            return place
        if isinstance(place, PostgresServer):
            return replace(place, checkpoints=self.db_checkpoints.url)
        raise UsageError(f"--db-checkpoints needs runs on a server, but these are in {place}: give --db too")

    @property
    def limits(self) -> Mapping[str, Any]:
        """The limits that were given, as JSON values by their names in the state."""
        given = {
            "turns": self.max_turns,
            "tokens": self.max_tokens,
            "cost": str(self.max_cost) if self.max_cost is not None else None,
            "seconds": self.max_time.total_seconds() if self.max_time else None,
        }
        return {name: value for name, value in given.items() if value is not None}


_ORIGINS = "opsleuth.origins"
_TYPED = {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}


def _remember_option(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if (source := ctx.get_parameter_source(param.name or "")) in _TYPED:
        ctx.ensure_object(dict)[param.name] = value
        by_variable = source is ParameterSource.ENVIRONMENT
        ctx.meta.setdefault(_ORIGINS, {})[param.name] = str(param.envvar) if by_variable else "flag"


def option_origins() -> dict[str, str]:
    """Where each option comes from that is not a default: `flag`, the name of a variable, or the layer of a file."""
    found: dict[str, str] = click.get_current_context().meta.setdefault(_ORIGINS, {})
    return found


def _define_option(*names: str, **attributes: Any) -> Callable[[bool], click.Option]:
    def make(top: bool) -> click.Option:
        variable = "OPSLEUTH_" + names[0].removeprefix("--").replace("-", "_").upper()
        return click.Option(
            names,
            expose_value=False,
            callback=_remember_option,
            hidden=not top,
            envvar=variable if top and names[0].startswith("--") else None,
            **attributes,
        )

    return make


_GLOBAL = (
    _define_option("--json", is_flag=True, help="One JSON document on stdout; for run and resume one event a line."),
    _define_option("--plain", is_flag=True, help="Plain lines for screen readers and simple tools: no columns, no colour."),
    _define_option("--color", type=click.Choice(["auto", "always", "never"]), help="Colour (default: auto)."),
    _define_option("--no-input", is_flag=True, help="Never ask; calls that need a person stay pending."),
    _define_option("-q", "quiet", is_flag=True, help="The answer only, and no questions."),
    _define_option("-v", "verbose", count=True, help="More detail."),
    _define_option("--tz", type=TimeZoneType(), help="Time zone for display, and of times that you give without one, such as Asia/Tokyo (default: UTC to display, local time to read)."),
    _define_option("--db", type=DatabaseType(dir_okay=False, path_type=Path), metavar="PLACE", help="Database: a file, or postgresql://USER@HOST/NAME."),
    _define_option("--db-checkpoints", type=CheckpointServerType(), metavar="URL", help="PostgreSQL for the checkpoints (default: --db)."),
    _define_option("--max-turns", "--max-steps", "max_turns", type=click.IntRange(1, 100_000), metavar="N", help="Turns that a run may take."),
    _define_option("--max-tokens", type=click.IntRange(1, 2**53 - 1), metavar="N", help="Model tokens that a run may use."),
    _define_option("--max-cost", type=UsdAmountType(), help="US dollars that a run may cost."),
    _define_option("--max-time", type=DurationType(), help="Active time that a run may take, such as 15m."),
    _define_option("--read-only", is_flag=True, help="Offer the planner no tool that changes anything."),
    _define_option("--policy", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Rules for what may run, added to the machine's and your own."),
    _define_option("--environment", metavar="NAME", help="Environment of the configuration whose sources are used."),
    _define_option("--planner", type=click.Choice(["auto", "offline", "model"]), help="Who decides (default: auto)."),
    _define_option("--profile", metavar="NAME", help="Profile of the configuration file to take the model from."),
    _define_option("--model", metavar="NAME", help="Model to ask; its server is OPSLEUTH_BASE_URL or the profile's."),
    _define_option("--model-mode", type=click.Choice(["auto", "tools", "json"]), help="How to ask it (default: auto finds out)."),
    _define_option("--fallback", type=click.Choice(["none", "offline"]), help="Planner that takes over when the model fails (default: none)."),
    _define_option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Record the replies of models and tools."),
    _define_option("--replay", type=click.Path(exists=True, path_type=Path), metavar="FILE", help="Replay a recording instead of asking models and calling tools."),
)  # fmt: skip


COMPLETION_VARIABLE = "_OPSLEUTH_COMPLETE"
"""The variable by which a shell asks for completions."""

_SCREEN_WIDTH = 80
_OVERVIEW = """\
Usage: opsleuth COMMAND [OPTIONS]      what broke, why, and what to do

  opsleuth demo                               try it on the built-in incident
  opsleuth init                               find your own systems, then:
  opsleuth run "orders are slow since 14:00Z"
  opsleuth run app.log                        files, folders, archives
"""
_MORE_HELP = "opsleuth help run: one command   opsleuth --help: all commands and options"

EPILOG = "Options of all commands: opsleuth --help"


def count_option(flag: str, usual: int, help_text: str, *, least: int = 1, most: int) -> Callable[[Any], Any]:
    """A command's option for a number of items, with a default."""
    kind = click.IntRange(least, most)
    return click.option(flag, type=kind, default=usual, show_default=True, metavar="N", help=help_text)


class CliCommand(click.Command):
    """A command that takes the global options too, without listing them in its help."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        add_completion(self.params)
        self.params.extend(make(False) for make in _GLOBAL)
        self.epilog = EPILOG


class CliGroup(click.Group):
    """Commands about one thing. It takes the global options too, without listing them in its help."""

    command_class = CliCommand

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params.extend(make(False) for make in _GLOBAL)
        self.epilog = EPILOG

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click declares it
        """In reading order, not alphabetical."""
        return list(self.commands)


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command as `opsleuth --help` lists it. `location` is `module:attribute`, imported when the command is used."""

    name: str
    location: str
    summary: str

    def load(self) -> click.Command:
        """The command itself. Raises ImportError, AttributeError."""
        module, _, attribute = self.location.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


class LazyCommandTable(MutableMapping[str, click.Command]):
    """The commands by their names, in the order of the entries; each is imported when it is looked up."""

    def __init__(self, entries: Iterable[CommandEntry]) -> None:
        self._commands: dict[str, CommandEntry | click.Command] = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> click.Command:
        found = self._commands[name]
        return found.load() if isinstance(found, CommandEntry) else found

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._commands[name] = command

    def __delitem__(self, name: str) -> None:
        del self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)

    def __contains__(self, name: object) -> bool:
        """Without importing the command, as the mapping's own test would."""
        return name in self._commands


class LazyCommandGroup(CliGroup):
    """The top of the command line. Its help and its completions come from the entries: no command is imported for them."""

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[CommandEntry]], **attributes: Any) -> None:
        entries = [entry for section in sections.values() for entry in section]
        click.Group.__init__(self, *args, **attributes)
        self.commands = LazyCommandTable(entries)
        self.params.extend(make(True) for make in _GLOBAL)
        self.sections, self.entries = sections, entries

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands first: who reads this looks for one of them. Then the global options."""
        for title, entries in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(entry.name, entry.summary) for entry in entries])
        click.Command.format_options(self, ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a word, what there is on one screen: the whole help is three of them."""
        if not args and not ctx.resilient_parsing:
            click.echo(self.format_overview(), err=True)
            ctx.exit(ExitCode.USAGE)
        return super().parse_args(ctx, args)

    def format_overview(self) -> str:
        """The commands by their sections, on a screen of 80x24 with the prompt under it."""
        formatter = click.HelpFormatter(width=_SCREEN_WIDTH)
        rows = [(title, ", ".join(entry.name for entry in found)) for title, found in self.sections.items()]
        formatter.write_dl(rows)
        return f"{_OVERVIEW}\n{formatter.getvalue()}\n{_MORE_HELP}"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of commands that begin so, else options."""
        names = [e for e in self.entries if e.name.startswith(incomplete)]
        found = [CompletionItem(e.name, help=shorten(e.summary, 45, placeholder="...")) for e in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


def typed_options() -> GlobalOptions:
    """The options that were typed or appear in variables, for commands that no configuration file may disturb."""
    return GlobalOptions(**click.get_current_context().ensure_object(dict))


def current_options() -> GlobalOptions:
    """The options of the command that runs now: flags, then variables, then the files, then the defaults.

    Raises ConfigError for a file that cannot be used.
    """
    from opsleuth.configuration.option_files import read_file_options

    context = click.get_current_context()
    said: dict[str, Any] = context.ensure_object(dict)
    for name, (value, layer) in read_file_options(context.find_root().command.params, said).items():
        said[name] = value
        option_origins()[name] = layer
    return GlobalOptions(**said)
