"""Declarations out of the operator's files, as tools. Nothing of a declaration is guessed: a mistake stops the start."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from opsleuth.state.base import Frozen
from opsleuth.state.configfile import problems
from opsleuth.state.errors import ConfigError
from opsleuth.tools.declared.commands import Command, command_tool
from opsleuth.tools.declared.declaration import slug
from opsleuth.tools.declared.http_calls import HttpCall, http_tool
from opsleuth.tools.mcp.settings import McpServer
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.spec import ToolSpec

if TYPE_CHECKING:
    from opsleuth.tools.mcp.tools import McpTools

D = TypeVar("D", bound=Frozen)

PLATFORMS = ("kubernetes", "systemd")
"""Kinds of declarations that make the tools which change services."""
Tables = Mapping[str, Mapping[str, Any]]
"""What the files declare: kind to name to the table as it is written there."""


def declared_tools(tables: Tables, vault: Vault | None = None) -> list[ToolSpec]:
    """A tool for each declaration; `vault` reads their secrets when they are called.

    Raises ConfigError for one that cannot be used, and for two of one name.
    """
    tools = list(_tools(tables, vault or Vault()))
    _refuse_twins([tool.name for tool in tools])
    return tools


def _refuse_twins(names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"two declarations make one tool {', '.join(twice)}: rename one of them")


def declared_servers(tables: Tables) -> list[McpServer]:
    """The MCP servers. Raises ConfigError for one that cannot be used, and for two tools of one name."""
    servers = [_read("mcp", McpServer, name, row) for name, row in tables.get("mcp", {}).items()]
    _refuse_twins([server.tool_name(tool) for server in servers for tool in server.tools])
    return servers


def open_servers(servers: Sequence[McpServer], vault: Vault) -> "McpTools | None":
    """The servers as tools, nothing of which is started yet; None without any. Raises ConfigError without the extra."""
    if not servers:
        return None
    try:
        from opsleuth.tools.mcp.tools import McpTools  # noqa: PLC0415 - an extra that takes a second to load
    except ImportError as error:
        raise ConfigError(f"MCP servers need pip install 'opsleuth[mcp]' ({error.name} is missing)") from None
    return McpTools(servers, vault)


def _tools(tables: Tables, vault: Vault) -> Iterator[ToolSpec]:
    for name, row in tables.get("command", {}).items():
        yield command_tool(_read("command", Command, name, row))
    for name, row in tables.get("http", {}).items():
        yield http_tool(_read("http", HttpCall, name, row), vault)
    if any(tables.get(kind) for kind in PLATFORMS):
        yield from _platform_tools(tables, vault)


def _platform_tools(tables: Tables, vault: Vault) -> Iterator[ToolSpec]:
    """The changes of services; where there are several platforms each tool carries its platform's name."""
    from opsleuth.tools.declared.platforms import Declared, KubernetesChanges, SystemdUnits  # noqa: PLC0415 - loads sources
    from opsleuth.tools.effects.services import service_tools  # noqa: PLC0415

    clusters = [_read("kubernetes", KubernetesChanges, *row) for row in tables.get("kubernetes", {}).items()]
    hosts = [_read("systemd", SystemdUnits, *row) for row in tables.get("systemd", {}).items()]
    declarations: Sequence[Declared] = (*clusters, *hosts)
    platforms = [one.platform(vault) for one in declarations]
    for platform in platforms:
        tail = "" if len(platforms) == 1 else f"_{slug(platform.name)}"
        for spec in service_tools(platform):
            yield replace(spec, name=f"{spec.name}{tail}", origin="declared by the operator")


def _read(kind: str, form: type[D], name: str, row: Any) -> D:  # noqa: ANN401 - as it stands in the file
    if not isinstance(row, Mapping):
        raise ConfigError(f"{kind} {name} is no table: write it under [{kind}.{name}]")
    known = form.model_fields.keys() - {"name"}
    if unknown := row.keys() - known:
        raise ConfigError(
            f"{kind} {name}: unknown {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}"
        )
    try:
        return form.model_validate({**row, "name": name})
    except ValidationError as error:
        raise ConfigError(f"{kind} {name} cannot be used: {problems(error)}") from None
