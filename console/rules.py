"""`policy explain` and `policy check`: which rule decides, and whether a file of rules can be used."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opsleuth.console import events
from opsleuth.console.options import Options
from opsleuth.console.output import screen_of
from opsleuth.graph.decisions import call_of, changed
from opsleuth.state.calls import CallRequest, Gate
from opsleuth.state.canonical import from_json
from opsleuth.state.configfile import read_file
from opsleuth.state.errors import UsageError
from opsleuth.state.words import counted
from opsleuth.tools.added import added_tools
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.declared.reading import declared_servers, declared_tools
from opsleuth.tools.effects.offered import effect_tools
from opsleuth.tools.effects.plane import ControlPlane
from opsleuth.tools.policy_file import declared, load, policy_files, read
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.base import Sources
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.spec import InvalidArguments, ToolSpec

MEANS = {
    Gate.FREE: "runs by itself, recorded",
    Gate.ASK: "a person confirms this exact call",
    Gate.REFUSED: "refused",
}


def explain(options: Options, call: Sequence[str]) -> int:
    """`policy explain`: raises UsageError for a call that no tool takes, ConfigError for broken rules."""
    request = _request(call)
    policy = load(policy_files(str(options.policy) if options.policy else None))
    toolbox = Toolbox(_every_tool(options), Sources(), policy)
    try:
        checked = toolbox.check(request)
    except InvalidArguments as error:
        raise UsageError(str(error)) from None
    ruling = checked.ruling
    if options.json:
        document = {
            "tool": request.tool,
            "risk": checked.spec.risk,
            "target": checked.target,
            "gate": ruling.gate,
            "rule": ruling.reason,
            "policy": policy.version,
        }
        events.write_json(sys.stdout, document)
        return 0
    screen = screen_of(options)
    screen.line(f"{request.tool}   risk {checked.spec.risk}   target {checked.target or 'none'}")
    screen.line(f"{MEANS[ruling.gate]}: {ruling.reason or 'nothing is changed by it'}")
    return 0


def check(options: Options, file: Path) -> int:
    """`policy check`: raises ConfigError with the line of the first mistake."""
    if not file.exists():
        raise UsageError(f"there is no file {file}")
    given = read_file("file", file)
    layer, tables = read(given), declared([given])
    foreign = [server.tool_name(tool) for server in declared_servers(tables) for tool in server.tools]
    tools = [*(tool.name for tool in declared_tools(tables)), *foreign]
    if options.json:
        events.write_json(sys.stdout, {"file": str(file), "rules": len(layer.rules), "tools": tools})
    else:
        names = f", and {', '.join(tools)}" if tools else ""
        screen_of(options).line(
            f"{file}: {counted(len(layer.rules), 'rule')}{names}, all of them can be used"
        )
    return 0


def _every_tool(options: Options) -> tuple[ToolSpec, ...]:
    """All tools that there are, as if every source were there: rules are asked about, nothing is called."""
    reads = (replace(spec, capability=None) for spec in BUILTIN)
    added = added_tools(str(options.policy) if options.policy else None, Vault())
    own = {spec.name for spec in added.specs}
    usual = (spec for spec in effect_tools(ControlPlane("http://127.0.0.1:9")) if spec.name not in own)
    return (*reads, *usual, *added.specs)


def _request(call: Sequence[str]) -> CallRequest:
    """`TOOL NAME=VALUE…`, or one JSON object with tool and arguments."""
    if len(call) == 1 and call[0].lstrip().startswith("{"):
        try:
            document: Any = from_json(call[0])
            return call_of(document["tool"], document.get("arguments", {}))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError('a call as JSON is {"tool": NAME, "arguments": {…}}') from None
    return call_of(call[0], changed({}, call[1:]))
