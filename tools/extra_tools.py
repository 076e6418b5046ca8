"""Tools that are not built in: those that the operator declared, those of MCP servers and of installed packages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opsleuth.configuration.secret_references import Vault
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.plugins import load_plugins
from opsleuth.tools.policy_file import collect_declared_tables, find_policy_files
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.spec import ToolSpec

if TYPE_CHECKING:
    from opsleuth.tools.mcp.server_tools import McpTools


@dataclass(slots=True)
class ExtraTools:
    """The added tools of one attempt; their servers are started by `settle` and left by `aclose`."""

    fixed: tuple[ToolSpec, ...] = ()
    servers: "McpTools | None" = None
    problems: tuple[str, ...] = field(default=())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return (*self.fixed, *(self.servers.specs if self.servers else ()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with packages and servers, in words."""
        return (*self.problems, *(self.servers.warnings if self.servers else ()))

    async def start_servers(self, toolbox: Toolbox, seconds: float | None = None) -> None:
        """Start the servers; what they say of their tools goes into `toolbox`. The late ones are not waited for."""
        if self.servers is not None:
            self.servers.described = toolbox.describe
            await self.servers.start_servers(*([] if seconds is None else [seconds]))

    async def aclose(self) -> None:
        """Leave the servers."""
        if self.servers is not None:
            await self.servers.aclose()


def load_extra_tools(policy: str | None, vault: Vault, *, platforms: bool = True) -> ExtraTools:
    """The tools that this machine's files of rules declare, the file that was named, and installed packages.

    `vault` reads the secrets of servers. Without `platforms` the changes of services are left out: the run has a platform
    of its own. Nothing is started. Raises ConfigError for a declaration that is wrong.
    """
    tables = collect_declared_tables(find_policy_files(policy))
    own = _load_declared_tools(tables, vault, platforms=platforms) if any(tables.values()) else ExtraTools()
    plugins = load_plugins(spec.name for spec in (*BUILTIN, *own.specs))
    return ExtraTools((*own.fixed, *plugins.specs), own.servers, plugins.problems)


def _load_declared_tools(
    tables: Mapping[str, Mapping[str, Any]], vault: Vault, *, platforms: bool
) -> ExtraTools:
    from opsleuth.tools.declared.load_declarations import (  # HTTP client and schemas: only for who declares something
        PLATFORMS,
        build_declared_tools,
        build_mcp_tools,
        load_mcp_servers,
    )

    if not platforms:
        tables = {kind: rows for kind, rows in tables.items() if kind not in PLATFORMS}
    return ExtraTools(
        tuple(build_declared_tools(tables, vault)), build_mcp_tools(load_mcp_servers(tables), vault)
    )
