"""Options from the configuration files: `[options]` of each layer, the stronger layer wins.

```toml
[options]
max_turns = 40                # as the flag is called, with _ for -
max_cost = 0.5
tz = "Asia/Tokyo"
```
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from opsleuth.configuration.config_file import ConfigFile, load_config_layers
from opsleuth.state.errors import ConfigError

OWN_PLACE = {
    "model": "a profile holds it: [profiles.NAME] model = …",
    "model_mode": "a profile holds it: [profiles.NAME] mode = …",
    "fallback": "a profile holds it: [profiles.NAME] fallback = …",
    "json": "it is for one command: give --json there",
    "record": "it is for one run: give --record there",
    "replay": "it is for one run: give --replay there",
}
"""Options that no file may set, and what to do instead."""

HARMLESS = frozenset({"tz", "color", "plain", "no_input", "quiet", "verbose"})
"""What a project's file may say before it is trusted: how things look. `read_only = true` besides: it only tightens."""


class FileOption(NamedTuple):
    value: Any
    layer: str


def read_file_options(parameters: Sequence[click.Parameter], said: Collection[str]) -> dict[str, FileOption]:
    """The options that the files set and nobody `said` otherwise. Raises ConfigError for an unknown option or a value that it does not take."""
    known = {p.name: p for p in parameters if p.name and isinstance(p, click.Option)}
    found: dict[str, FileOption] = {}
    for file in load_config_layers():
        table = _options_of_file(file)
        left_out = (
            [] if file.trusted else [name for name in table if not _is_harmless_option(name, table[name])]
        )
        if not file.trusted and file.table("services"):
            left_out.append("services")
        for name, value in table.items():
            if name not in left_out and name not in said:
                found[name] = FileOption(_convert_option_value(file, name, value, known), file.layer)
        if left_out and "quiet" not in said:
            click.echo(f"opsleuth: {_format_untrusted_notice(file, left_out)}", err=True)
    return found


def _options_of_file(file: ConfigFile) -> Mapping[str, Any]:
    """`[options]`, and the two that may stand at the top of a file besides."""
    top = {name: file.document[name] for name in ("environment", "profile") if name in file.document}
    return {**top, **file.table("options")}


def _is_harmless_option(name: str, value: object) -> bool:
    return name in HARMLESS or (name == "read_only" and value is True)


def _format_untrusted_notice(file: ConfigFile, names: Sequence[str]) -> str:
    return f"{file.path} is not trusted, so what it says of {', '.join(names)} does not count. Read it, then trust it: opsleuth trust"


def _convert_option_value(
    file: ConfigFile, name: str, value: object, known: Mapping[str, click.Option]
) -> object:
    where = f"{file.path}, [options] {name}"
    if name in OWN_PLACE:
        raise ConfigError(f"{where}: {OWN_PLACE[name]}")
    if name not in known:
        choices = ", ".join(sorted(known.keys() - OWN_PLACE.keys() - {"help", "version"}))
        raise ConfigError(f"{where} is not an option: the options are {choices}")
    option = known[name]
    if option.is_flag != isinstance(value, bool) or isinstance(value, list | dict):
        raise ConfigError(f"{where} is {value!r}: write {'true or false' if option.is_flag else 'one value'}")
    try:
        converted = option.type.convert(value if option.is_flag else str(value), option, None)
    except click.BadParameter as error:
        raise ConfigError(f"{where}: {error.message}") from None
    except ValueError as error:  # a path with a zero byte, which only a file can hold
        raise ConfigError(f"{where}: {error}") from None
    # A connection string is not a path.
    return file.resolve_path(str(converted)) if isinstance(converted, Path) else converted
