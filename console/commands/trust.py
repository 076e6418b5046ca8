"""`opsleuth trust`: trust this project's configuration and policy with their present content."""

import json
from collections.abc import Iterator

import click

from opsleuth.configuration.config_file import (
    CONFIG,
    POLICY,
    PROJECT_FILE,
    ConfigFile,
    load_config_layers,
)
from opsleuth.configuration.project_trust import trust_file
from opsleuth.console.options import CliCommand, typed_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.state.errors import ConfigError

DESCRIBED_TABLES = {"environments", "services", "prices"}
"""Tables that `reaches` describes, and those that reach nothing."""


@click.command(
    "trust",
    cls=CliCommand,
    help="Trust this project's .opsleuth/config.toml and policy.toml as they are now: what they configure may then be contacted, run and allowed.",
)
def trust_project() -> int:
    """Print what the files would reach, run and allow, then remember their digests. Raises ConfigError."""
    files = [
        file for name in (CONFIG, POLICY) for file in load_config_layers(name) if file.layer == "project"
    ]
    if not files:
        raise ConfigError(f"there is no {PROJECT_FILE} here or in a folder above: opsleuth init writes one")
    screen = screen_for_options(typed_options())  # no file may have a say in how it is shown
    for file in files:
        for line in describe_consequences(file):
            screen.whole(line)
    for file in files:
        trust_file(file.path, file.digest)
        write_note(f"trusted {file.path} as it is now; after a change it is asked again")
    return 0


def describe_consequences(file: ConfigFile) -> Iterator[str]:
    """What a person should know before trusting the file. Raises ConfigError."""
    from opsleuth.configuration.sources import describe_reach
    from opsleuth.tools.policy_file import describe_permissions

    if file.path.name == POLICY:
        yield from describe_permissions(file)
        return
    yield from describe_reach(file)
    for name, table in file.document.items():
        if name not in DESCRIBED_TABLES:
            yield f"{name}: {json.dumps(table, ensure_ascii=False, default=str)}"
