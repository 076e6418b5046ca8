"""Load the operator's declared tools. Nothing in a declaration is guessed: a mistake stops the start."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.configuration.mcp_settings import McpServerSettings
from opsleuth.configuration.secret_references import Vault
from opsleuth.state.base import FrozenModel
from opsleuth.state.errors import ConfigError
from opsleuth.state.json_types import JSON
from opsleuth.tools.declared.commands import DeclaredCommand, build_command_tool
from opsleuth.tools.declared.declaration import tool_name_slug
from opsleuth.tools.declared.http_calls import DeclaredHttpCall, build_http_tool
from opsleuth.tools.spec import ToolSpec

if TYPE_CHECKING:
    from opsleuth.tools.mcp.server_tools import McpTools

D = TypeVar("D", bound=FrozenModel)

PLATFORMS = ("kubernetes", "systemd")
"""Kinds of declarations that make the tools which change services."""
Tables = Mapping[str, Mapping[str, Any]]
"""What the files declare: kind to name to the table as it is written there."""


def build_declared_tools(tables: Tables, vault: Vault | None = None) -> list[ToolSpec]:
    """A tool for each declaration; `vault` reads their secrets when they are called.

    Raises ConfigError for one that cannot be used, and for two of one name.
    """
    tools = list(_build_tools(tables, vault or Vault()))
    _refuse_duplicate_names([tool.name for tool in tools])
    return tools


def _refuse_duplicate_names(names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"two declarations make one tool {', '.join(twice)}: rename one of them")


def load_mcp_servers(tables: Tables) -> list[McpServerSettings]:
    """The MCP servers. Raises ConfigError for one that cannot be used, and for two tools of one name."""
    servers = [
        _validate_declaration("mcp", McpServerSettings, name, row)
        for name, row in tables.get("mcp", {}).items()
    ]
    _refuse_duplicate_names([server.tool_name(tool) for server in servers for tool in server.tools])
    return servers


def build_mcp_tools(servers: Sequence[McpServerSettings], vault: Vault) -> "McpTools | None":
    """The servers as tools, nothing of which is started yet; None without one. Raises ConfigError without the extra."""
    if not servers:
        return None
    try:
        from opsleuth.tools.mcp.server_tools import McpTools  # an extra that takes a second to load
    except ImportError as error:
        raise ConfigError(f"MCP servers need pip install 'opsleuth[mcp]' ({error.name} is missing)") from None
    return McpTools(servers, vault)


def _build_tools(tables: Tables, vault: Vault) -> Iterator[ToolSpec]:
    for name, row in tables.get("command", {}).items():
        yield build_command_tool(_validate_declaration("command", DeclaredCommand, name, row))
    for name, row in tables.get("http", {}).items():
        yield build_http_tool(_validate_declaration("http", DeclaredHttpCall, name, row), vault)
    if any(tables.get(kind) for kind in PLATFORMS):
        yield from _build_platform_tools(tables, vault)


def _build_platform_tools(tables: Tables, vault: Vault) -> Iterator[ToolSpec]:
    """The changes of services; where there are several platforms each tool carries its platform's name."""
    from opsleuth.tools.declared.platforms import (
        DeclaredKubernetesPlatform,
        DeclaredPlatform,
        DeclaredSystemdPlatform,
    )  # loads sources
    from opsleuth.tools.effects.service_changes import build_service_tools

    clusters = [
        _validate_declaration("kubernetes", DeclaredKubernetesPlatform, *row)
        for row in tables.get("kubernetes", {}).items()
    ]
    hosts = [
        _validate_declaration("systemd", DeclaredSystemdPlatform, *row)
        for row in tables.get("systemd", {}).items()
    ]
    declarations: Sequence[DeclaredPlatform] = (*clusters, *hosts)
    platforms = [one.platform(vault) for one in declarations]
    for platform in platforms:
        tail = "" if len(platforms) == 1 else f"_{tool_name_slug(platform.name)}"
        for spec in build_service_tools(platform):
            yield replace(spec, name=f"{spec.name}{tail}", origin="declared by the operator")


def _validate_declaration(kind: str, form: type[D], name: str, row: JSON) -> D:
    if not isinstance(row, Mapping):
        raise ConfigError(f"{kind} {name} is not a table: write it under [{kind}.{name}]")
    known = form.model_fields.keys() - {"name"}
    if unknown := row.keys() - known:
        raise ConfigError(
            f"{kind} {name}: unknown {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}"
        )
    try:
        return form.model_validate({**row, "name": name})
    except ValidationError as error:
        raise ConfigError(f"{kind} {name} cannot be used: {format_validation_errors(error)}") from None
