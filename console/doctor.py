"""`doctor`: tries every configured source, side by side and not for long; says what is wrong and how to mend it."""

import asyncio
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from time import monotonic
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from opsleuth.console import events
from opsleuth.console.configured_sources import look, no_source
from opsleuth.console.options import Options
from opsleuth.console.output import screen_of
from opsleuth.console.screen import Part, Style
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError
from opsleuth.state.outcome import ExitCode
from opsleuth.tools.declared.reading import Tables, declared_servers, declared_tools, open_servers
from opsleuth.tools.effects.plane import ControlPlane
from opsleuth.tools.mcp.settings import McpServer
from opsleuth.tools.policy_file import declared, policy_files
from opsleuth.tools.sources.config import Configured
from opsleuth.tools.sources.live import Check, LiveSource, Surroundings
from opsleuth.tools.sources.opening import open_one
from opsleuth.tools.sources.secrets import Secret, Vault
from opsleuth.tools.spec import ToolError
from opsleuth.tools.together import together

DEADLINE = 4.0
"""Seconds that a source may take for all of its checks."""
_WAY = "check address, network and firewall"
_STYLES: Mapping[str, Style] = {"ok": "good", "warning": "warn", "failed": "bad"}


@dataclass(frozen=True, slots=True)
class Examined:
    """One source and what was found; `secrets` are the places of its secrets, never their values."""

    name: str
    kind: str
    seconds: float
    checks: Sequence[Check]
    secrets: Sequence[str] = ()


def doctor(options: Options) -> int:
    """`doctor`: 0 where everything works, 8 where something does not. Raises ConfigError for a file that cannot be read."""
    found = look(options)
    tables = declared(policy_files(str(options.policy) if options.policy else None))
    if not found.sources and not found.platform and not any(tables.values()):
        raise no_source()
    if found.untrusted:
        raise ConfigError(
            f"{found.untrusted} is not trusted, so nothing was tried. Read it, then: opsleuth trust"
        )
    examined = asyncio.run(examine(found, tables))
    if options.json:
        events.write_json(sys.stdout, _document(found, examined))
    else:
        _show(options, found, examined)
    failed = any(check.state == "failed" for source in examined for check in source.checks)
    return ExitCode.CONFIG if failed else ExitCode.OK


async def examine(found: Configured, tables: Tables = MappingProxyType({})) -> Sequence[Examined]:
    """Every source of the environment, its platform, and what the operator declared, all at the same time.

    Raises ConfigError for a declaration that cannot be used.
    """
    surroundings = Surroundings(Vault(), SystemClock())
    declared_tools(tables)
    sources = [_examine(name, raw, surroundings) for name, raw in found.sources.items()]
    plane = [_reached(found.platform, tuple(found.aliases))] if found.platform else []
    servers = [_tried(server, surroundings.vault) for server in declared_servers(tables)]
    return [*await together([*sources, *plane, *servers]), *_programs(tables)]


async def _reached(settings: Mapping[str, Any], services: Sequence[str]) -> Examined:
    """The platform that changes are made through: whether it answers, and knows the services that are configured."""
    began, plane = monotonic(), ControlPlane(**settings)
    try:
        async with asyncio.timeout(DEADLINE):
            known = {
                name: await plane.read(f"services/{quote(name, safe='')}") for name in services or ("any",)
            }
    except TimeoutError:
        checks = [Check("reached", "failed", f"no answer within {DEADLINE:g} s", _WAY)]
    except ToolError as error:
        checks = [Check("reached", "failed", str(error), _WAY)]
    else:
        unknown = [name for name in services if known[name] is None]
        checks = [Check("reached", "ok", plane.url)]
        if unknown:
            text, remedy = (
                f"it knows no {', '.join(unknown[:8])}",
                "call services as it does, and the others aliases",
            )
            checks.append(Check("services", "warning", text, remedy))
    return Examined(plane.name, "platform", monotonic() - began, checks)


def _programs(tables: Tables) -> Iterable[Examined]:
    """Declared commands: whether their programs are there. Nothing is run."""
    for name, row in tables.get("command", {}).items():
        program = str(row["argv"][0])
        where = shutil.which(program)
        check = Check("program", "ok", where) if where else Check("program", "failed", f"{program} is not found", "install it, or give its path")  # fmt: skip
        yield Examined(name, "command", 0.0, [check])


async def _tried(server: McpServer, vault: Vault) -> Examined:
    """An MCP server: whether it starts, and what it offers besides what is allowed."""
    began = monotonic()
    tools = open_servers([server], vault)
    assert tools is not None  # noqa: S101 - one server was given
    try:
        await tools.settle(DEADLINE)
        return Examined(
            server.name, "mcp", monotonic() - began, tools.checks(), tuple(_places(server.model_dump()))
        )
    finally:
        await tools.aclose()


async def _examine(name: str, raw: Mapping[str, Any], surroundings: Surroundings) -> Examined:
    began = monotonic()
    try:
        source: LiveSource = open_one(name, raw, surroundings)
        async with asyncio.timeout(DEADLINE):
            checks = await source.check()
    except TimeoutError as error:
        text = str(error) or f"no answer within {DEADLINE:g} s"
        checks = [Check("reached", "failed", text, _WAY)]
    except (ToolError, ConfigError) as error:
        checks = [Check("reached", "failed", str(error))]
    return Examined(name, str(raw["kind"]), monotonic() - began, checks, tuple(_places(raw)))


def _places(raw: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON value
    if not isinstance(raw, Mapping):
        return
    for key, value in raw.items():
        if isinstance(value, Mapping) and value.keys() & {"env", "file", "command", "keyring"}:
            yield f"{key} from {Secret.model_validate(value).place}"
        else:
            yield from _places(value)


def _document(found: Configured, examined: Sequence[Examined]) -> Mapping[str, Any]:
    return {
        "environment": found.environment,
        "files": [str(path) for path in found.files],
        "sources": [
            {
                "name": source.name,
                "kind": source.kind,
                "seconds": round(source.seconds, 2),
                "secrets": list(source.secrets),
                "checks": [asdict(check) for check in source.checks],
            }
            for source in examined
        ],
    }


def _show(options: Options, found: Configured, examined: Sequence[Examined]) -> None:
    screen = screen_of(options)
    room = max((screen.width or 200) - 11, 40)
    screen.line(f"environment {found.environment}   {', '.join(map(str, found.files))}")
    for source in examined:
        secrets = f"   {', '.join(source.secrets)}" if source.secrets else ""
        screen.line(Part(source.name, "title"), f"   {source.kind}   {source.seconds:.1f} s{secrets}")
        for check in source.checks:
            first, *rest = wrap(f"{check.what}: {check.text}", room) or [check.what]
            screen.line("  ", Part(f"{check.state:<8}", _STYLES[check.state]), first)
            for line in (*rest, *wrap(f"-> {check.remedy}" if check.remedy else "", room)):
                screen.line(" " * 10, line)
