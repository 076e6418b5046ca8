"""`opsleuth policy`: which rule decides about a call, and whether a file of rules can be used."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opsleuth.configuration.config_file import read_config_file
from opsleuth.console import event_lines
from opsleuth.console.options import CliGroup, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.errors import UsageError
from opsleuth.state.plurals import format_count

if TYPE_CHECKING:
    from opsleuth.state.calls import CallRequest
    from opsleuth.tools.spec import ToolSpec

GATE_MEANINGS = {
    "free": "runs by itself, recorded",
    "ask": "a person confirms this exact call",
    "refused": "refused",
}


@click.group("policy", cls=CliGroup)
def policy() -> None:
    """The rules for what may run."""


@policy.command("explain")
@click.argument("call", nargs=-1, required=True, metavar="CALL")
def explain_policy(call: tuple[str, ...]) -> int:
    """What would happen to CALL, and which rule says so: service_scale service=shop replicas=3."""
    from opsleuth.tools.policy_file import find_policy_files, load_policy
    from opsleuth.tools.registry import Toolbox
    from opsleuth.tools.sources.source_protocols import RunSources
    from opsleuth.tools.spec import InvalidArgumentsError

    options = current_options()
    request = parse_call(call)
    rules = load_policy(find_policy_files(str(options.policy) if options.policy else None))
    try:
        checked = Toolbox(list_possible_tools(options), RunSources(), rules).check(request)
    except InvalidArgumentsError as error:
        raise UsageError(str(error)) from None
    ruling = checked.ruling
    if options.json:
        document = {
            "tool": request.tool,
            "risk": checked.spec.risk,
            "target": checked.target,
            "gate": ruling.gate,
            "rule": ruling.reason,
            "policy": rules.version,
        }
        event_lines.write_json(sys.stdout, document)
        return 0
    screen = screen_for_options(options)
    screen.line(f"{request.tool}   risk {checked.spec.risk}   target {checked.target or 'none'}")
    screen.line(f"{GATE_MEANINGS[ruling.gate]}: {ruling.reason or 'nothing is changed by it'}")
    return 0


@policy.command("check")
@click.argument("file", type=click.Path(path_type=Path))
def check_policy(file: Path) -> int:
    """Whether FILE can be used as a policy file."""
    from opsleuth.tools.declared.load_declarations import build_declared_tools, load_mcp_servers
    from opsleuth.tools.policy_file import collect_declared_tables, read_policy_layer

    options = current_options()
    if not file.exists():
        raise UsageError(f"there is no file {file}")
    source = read_config_file("file", file)
    layer, tables = read_policy_layer(source), collect_declared_tables([source])
    foreign = [server.tool_name(tool) for server in load_mcp_servers(tables) for tool in server.tools]
    tools = [*(tool.name for tool in build_declared_tools(tables)), *foreign]
    if options.json:
        event_lines.write_json(sys.stdout, {"file": str(file), "rules": len(layer.rules), "tools": tools})
    else:
        names = f", and {', '.join(tools)}" if tools else ""
        screen_for_options(options).line(
            f"{file}: {format_count(len(layer.rules), 'rule')}{names}, all of them can be used"
        )
    return 0


def list_possible_tools(options: GlobalOptions) -> "tuple[ToolSpec, ...]":
    """All tools, as if every source were configured: rules are asked about, nothing is called."""
    from opsleuth.configuration.secret_references import Vault
    from opsleuth.tools.builtin import BUILTIN
    from opsleuth.tools.effects.control_plane import ControlPlane
    from opsleuth.tools.effects.effect_toolset import build_effect_tools
    from opsleuth.tools.extra_tools import load_extra_tools

    reads = (replace(spec, capability=None) for spec in BUILTIN)
    added = load_extra_tools(str(options.policy) if options.policy else None, Vault())
    own = {spec.name for spec in added.specs}
    usual = (spec for spec in build_effect_tools(ControlPlane("http://127.0.0.1:9")) if spec.name not in own)
    return (*reads, *usual, *added.specs)


def parse_call(call: Sequence[str]) -> "CallRequest":
    """`TOOL NAME=VALUE…`, or one JSON object with tool and arguments. Raises UsageError."""
    from opsleuth.graph.approvals.decisions import apply_argument_edits, parse_typed_call

    if len(call) == 1 and call[0].lstrip().startswith("{"):
        try:
            document: Any = parse_json_text(call[0])
            return parse_typed_call(document["tool"], document.get("arguments", {}))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError('a call as JSON is {"tool": NAME, "arguments": {…}}') from None
    return parse_typed_call(call[0], apply_argument_edits({}, call[1:]))
