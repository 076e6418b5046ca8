"""Tools that are not built in: those that the operator declared, those of MCP servers and of installed packages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.plugins import installed
from opsleuth.tools.policy_file import declared, policy_files
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.spec import ToolSpec

if TYPE_CHECKING:
    from opsleuth.tools.mcp.tools import McpTools


@dataclass(slots=True)
class Added:
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

    async def settle(self, toolbox: Toolbox, seconds: float | None = None) -> None:
        """Start the servers; what they say of their tools goes into `toolbox`. The late ones are not waited for."""
        if self.servers is not None:
            self.servers.described = toolbox.describe
            await self.servers.settle(*([] if seconds is None else [seconds]))

    async def aclose(self) -> None:
        """Leave the servers."""
        if self.servers is not None:
            await self.servers.aclose()


def added_tools(policy: str | None, vault: Vault, *, platforms: bool = True) -> Added:
    """The tools that this machine's files of rules declare, the file that was named, and installed packages.

    `vault` reads the secrets of servers. Without `platforms` the changes of services are left out: the run has a platform
    of its own. Nothing is started. Raises ConfigError for a declaration that is wrong.
    """
    tables = declared(policy_files(policy))
    own = _declared(tables, vault, platforms=platforms) if any(tables.values()) else Added()
    plugins = installed(spec.name for spec in (*BUILTIN, *own.specs))
    return Added((*own.fixed, *plugins.specs), own.servers, plugins.problems)


def _declared(tables: Mapping[str, Mapping[str, Any]], vault: Vault, *, platforms: bool) -> Added:
    from opsleuth.tools.declared.reading import (  # noqa: PLC0415 - HTTP client and schemas: only for who declares something
        PLATFORMS,
        declared_servers,
        declared_tools,
        open_servers,
    )

    if not platforms:
        tables = {kind: rows for kind, rows in tables.items() if kind not in PLATFORMS}
    return Added(tuple(declared_tools(tables, vault)), open_servers(declared_servers(tables), vault))
