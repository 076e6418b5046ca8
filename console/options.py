"""The options that every command takes, before its name or after it; what is nearer to the end wins."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource

from opsleuth.checkpoints.places import Place, Server, is_server
from opsleuth.console.times import parse_duration, zone
from opsleuth.state.errors import UsageError
from opsleuth.state.folders import folder


class Duration(click.ParamType[timedelta]):
    """`90s`, `15m`, `1h30m`, `2d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:  # noqa: ANN401 - as click declares it
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Money(click.ParamType[Decimal]):
    """US dollars, above zero."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:  # noqa: ANN401 - as click declares it
        try:
            amount = Decimal(value)
        except InvalidOperation:
            self.fail(f"{value!r} is no amount: write US dollars such as 0.50", param, ctx)
        if not (amount.is_finite() and 0 < amount < 10**9):
            self.fail(f"{value} is out of range: above 0 and below 1,000,000,000", param, ctx)
        return amount


class Database(click.Path):
    """The path of a database file, or the connection string of a PostgreSQL server."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - as click declares it
        if isinstance(value, str) and is_server(value):
            return Server(value, folder("XDG_DATA_HOME", ".local/share"))
        if "://" in str(value):  # not repeated: it may hold a password
            text = (
                "it is a URL, but none of PostgreSQL: write a path, or postgresql://USER@HOST:PORT/DATABASE"
            )
            self.fail(text, param, ctx)
        return super().convert(value, param, ctx)


class Checkpoints(click.ParamType[Server]):
    """The connection string of a PostgreSQL server."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Server:  # noqa: ANN401 - as click declares it
        if not is_server(str(value)):
            self.fail("write postgresql://USER@HOST:PORT/DATABASE", param, ctx)
        return Server(str(value), folder("XDG_DATA_HOME", ".local/share"))


class Zone(click.ParamType[tzinfo]):
    """A time zone by its name."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:  # noqa: ANN401 - as click declares it
        if isinstance(value, tzinfo):
            return value
        try:
            return zone(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


Color = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one invocation. None: not given."""

    json: bool = False
    plain: bool = False
    color: Color = "auto"
    no_input: bool = False
    quiet: bool = False
    verbose: int = 0
    tz: tzinfo | None = None
    db: Place | None = None
    db_checkpoints: Server | None = None
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
        place = self.db or folder("XDG_DATA_HOME", ".local/share") / "opsleuth.db"
        if self.db_checkpoints is None:
            return place
        if isinstance(place, Server):
            return replace(place, checkpoints=self.db_checkpoints.url)
        raise UsageError(
            f"--db-checkpoints goes with runs on a server, and these lie in {place}: give --db too"
        )

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


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:  # noqa: ANN401 - any option
    if (source := ctx.get_parameter_source(param.name or "")) in _TYPED:
        ctx.ensure_object(dict)[param.name] = value
        by_variable = source is ParameterSource.ENVIRONMENT
        ctx.meta.setdefault(_ORIGINS, {})[param.name] = str(param.envvar) if by_variable else "flag"


def origins() -> dict[str, str]:
    """Where each option comes from that is no default: `flag`, the name of a variable, or the layer of a file."""
    found: dict[str, str] = click.get_current_context().meta.setdefault(_ORIGINS, {})
    return found


def _option(*names: str, **attributes: Any) -> Callable[[bool], click.Option]:  # noqa: ANN401 - click's own
    def make(top: bool) -> click.Option:
        variable = "OPSLEUTH_" + names[0].removeprefix("--").replace("-", "_").upper()
        return click.Option(
            names,
            expose_value=False,
            callback=_remember,
            hidden=not top,
            envvar=variable if top and names[0].startswith("--") else None,
            **attributes,
        )

    return make


_GLOBAL = (
    _option("--json", is_flag=True, help="One JSON document on stdout; for run and resume one event a line."),
    _option("--plain", is_flag=True, help="Lines to be read aloud or by simple tools: no columns, no colour."),
    _option("--color", type=click.Choice(["auto", "always", "never"]), help="Colour (default: auto)."),
    _option("--no-input", is_flag=True, help="Never ask; what needs a person stays pending."),
    _option("-q", "quiet", is_flag=True, help="The answer only."),
    _option("-v", "verbose", count=True, help="More detail."),
    _option("--tz", type=Zone(), help="Time zone for display, such as Asia/Tokyo (default: UTC)."),
    _option("--db", type=Database(dir_okay=False, path_type=Path), metavar="PLACE", help="Database: a file, or postgresql://USER@HOST/NAME."),
    _option("--db-checkpoints", type=Checkpoints(), metavar="URL", help="PostgreSQL for the checkpoints (default: --db)."),
    _option("--max-turns", "--max-steps", "max_turns", type=click.IntRange(1, 100_000), metavar="N", help="Turns that a run may take."),
    _option("--max-tokens", type=click.IntRange(1, 2**53 - 1), metavar="N", help="Model tokens that a run may use."),
    _option("--max-cost", type=Money(), help="US dollars that a run may cost."),
    _option("--max-time", type=Duration(), help="Active time that a run may take, such as 15m."),
    _option("--read-only", is_flag=True, help="Offer the planner no tool that changes anything."),
    _option("--policy", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Rules of what may run, on top of the machine's and your own."),
    _option("--environment", metavar="NAME", help="Environment of the configuration whose sources are used."),
    _option("--planner", type=click.Choice(["auto", "offline", "model"]), help="Who decides (default: auto)."),
    _option("--profile", metavar="NAME", help="Profile of the configuration file to take the model from."),
    _option("--model", metavar="NAME", help="Model to ask; its server is OPSLEUTH_BASE_URL or the profile's."),
    _option("--model-mode", type=click.Choice(["auto", "tools", "json"]), help="How to ask it (default: auto finds out)."),
    _option("--fallback", type=click.Choice(["none", "offline"]), help="Who goes on when the model cannot (default: none)."),
    _option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Record what models and tools say."),
    _option("--replay", type=click.Path(exists=True, path_type=Path), metavar="FILE", help="Hear a recording instead of models and tools."),
)  # fmt: skip


_UNCUT = 1000
"""Characters of a line about a command: more than any has."""

EPILOG = "Options of all commands: opsleuth --help"


class Command(click.Command):
    """A command that takes the global options too, without listing them in its help."""

    def __init__(self, *args: Any, **attributes: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **attributes)
        self.params.extend(make(False) for make in _GLOBAL)
        self.epilog = EPILOG


class Group(click.Group):
    """Commands about one thing. It takes the global options too, without listing them in its help."""

    command_class = Command

    def __init__(self, *args: Any, **attributes: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **attributes)
        self.params.extend(make(False) for make in _GLOBAL)
        self.epilog = EPILOG

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click declares it
        """In the order in which a reader meets them, not by the alphabet."""
        return list(self.commands)


class Top(Group):
    """The top of the command line: its commands by what they are about, then the global options."""

    def __init__(self, *args: Any, **attributes: Any) -> None:  # noqa: ANN401 - click's own
        click.Group.__init__(self, *args, **attributes)
        self.params.extend(make(True) for make in _GLOBAL)
        self.sections: dict[str, list[click.Command]] = {}

    def add_section(self, title: str, commands: Iterable[click.Command]) -> None:
        """Commands that the help lists under `title`."""
        self.sections[title] = list(commands)
        for command in self.sections[title]:
            self.add_command(command)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands first: who reads this looks for one of them."""
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(str(one.name), one.get_short_help_str(_UNCUT)) for one in commands])
        click.Command.format_options(self, ctx, formatter)


def typed() -> Options:
    """The options that were typed or stand in variables, for commands that no configuration file may disturb."""
    return Options(**click.get_current_context().ensure_object(dict))


def given() -> Options:
    """The options of the command that runs now: flags, then variables, then the files, then the defaults.

    Raises ConfigError for a file that cannot be used.
    """
    from opsleuth.console.option_files import from_files  # noqa: PLC0415 - `--help` and `version` read no file

    context = click.get_current_context()
    said: dict[str, Any] = context.ensure_object(dict)
    for name, (value, layer) in from_files(context.find_root().command.params, said).items():
        said[name] = value
        origins()[name] = layer
    return Options(**said)
