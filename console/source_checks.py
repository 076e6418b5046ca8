"""Checks of every configured source, side by side and bounded in time: what works, what does not, what to do."""

import asyncio
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from opsleuth.configuration.mcp_settings import McpServerSettings
from opsleuth.configuration.secret_references import Secret, Vault
from opsleuth.configuration.sources import ConfiguredSources
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError
from opsleuth.state.json_types import JSON
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.declared.load_declarations import (
    Tables,
    build_declared_tools,
    build_mcp_tools,
    load_mcp_servers,
)
from opsleuth.tools.effects.control_plane import ControlPlane
from opsleuth.tools.sources.live_source import LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.open_sources import open_source
from opsleuth.tools.spec import ToolError

DEADLINE = 4.0
"""Seconds that a source may take for all of its checks."""
NETWORK_REMEDY = "check address, network and firewall"


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """One source and what was found; `secrets` are the places of its secrets, never their values."""

    name: str
    kind: str
    seconds: float
    checks: Sequence[SourceCheck]
    secrets: Sequence[str] = ()


async def check_sources(
    found: ConfiguredSources, tables: Tables = MappingProxyType({})
) -> Sequence[CheckedSource]:
    """Every source of the environment, its platform, and what the operator declared, all at the same time.

    Raises ConfigError for a declaration that cannot be used.
    """
    surroundings = SourceRuntime(Vault(), SystemClock())
    build_declared_tools(tables)
    sources = [check_source(name, raw, surroundings) for name, raw in found.sources.items()]
    plane = [check_platform(found.platform, tuple(found.aliases))] if found.platform else []
    servers = [check_mcp_server(server, surroundings.vault) for server in load_mcp_servers(tables)]
    return [*await gather_or_cancel([*sources, *plane, *servers]), *check_programs(tables)]


async def check_platform(settings: Mapping[str, Any], services: Sequence[str]) -> CheckedSource:
    """The platform that changes are made through: whether it answers, and knows the services that are configured."""
    began, plane = monotonic(), ControlPlane(**settings)
    try:
        async with asyncio.timeout(DEADLINE):
            known = {
                name: await plane.read(f"services/{quote(name, safe='')}") for name in services or ("any",)
            }
    except TimeoutError:
        checks = [SourceCheck("reached", "failed", f"no answer within {DEADLINE:g} s", NETWORK_REMEDY)]
    except ToolError as error:
        checks = [SourceCheck("reached", "failed", str(error), NETWORK_REMEDY)]
    else:
        unknown = [name for name in services if known[name] is None]
        checks = [SourceCheck("reached", "ok", plane.url)]
        if unknown:
            text, remedy = (
                f"it knows no {', '.join(unknown[:8])}",
                "call services as it does, and the others aliases",
            )
            checks.append(SourceCheck("services", "warning", text, remedy))
    return CheckedSource(plane.name, "platform", monotonic() - began, checks)


def check_programs(tables: Tables) -> Iterable[CheckedSource]:
    """Declared commands: whether their programs are there. Nothing is run."""
    for name, row in tables.get("command", {}).items():
        program = str(row["argv"][0])
        where = shutil.which(program)
        check = SourceCheck("program", "ok", where) if where else SourceCheck("program", "failed", f"{program} is not found", "install it, or give its path")  # fmt: skip
        yield CheckedSource(name, "command", 0.0, [check])


async def check_mcp_server(server: McpServerSettings, vault: Vault) -> CheckedSource:
    """An MCP server: whether it starts, and what it offers besides what is allowed."""
    began = monotonic()
    tools = build_mcp_tools([server], vault)
    assert tools is not None  # noqa: S101 - one server was given
    try:
        await tools.start_servers(DEADLINE)
        return CheckedSource(
            server.name,
            "mcp",
            monotonic() - began,
            tools.checks(),
            tuple(find_secret_places(server.model_dump())),
        )
    finally:
        await tools.aclose()


async def check_source(name: str, raw: Mapping[str, Any], surroundings: SourceRuntime) -> CheckedSource:
    began = monotonic()
    try:
        source: LiveSource = open_source(name, raw, surroundings)
        async with asyncio.timeout(DEADLINE):
            checks = await source.check()
    except TimeoutError as error:
        text = str(error) or f"no answer within {DEADLINE:g} s"
        checks = [SourceCheck("reached", "failed", text, NETWORK_REMEDY)]
    except (ToolError, ConfigError) as error:
        checks = [SourceCheck("reached", "failed", str(error))]
    return CheckedSource(name, str(raw["kind"]), monotonic() - began, checks, tuple(find_secret_places(raw)))


def find_secret_places(raw: JSON) -> Iterable[str]:
    if not isinstance(raw, Mapping):
        return
    for key, value in raw.items():
        if isinstance(value, Mapping) and value.keys() & {"env", "file", "command", "keyring"}:
            yield f"{key} from {Secret.model_validate(value).place}"
        else:
            yield from find_secret_places(value)
