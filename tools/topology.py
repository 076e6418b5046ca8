"""Topology: who calls whom."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis.records import Dependency
from opsleuth.analysis.topology import callees_of, distances
from opsleuth.state.words import counted
from opsleuth.tools.arguments import Service
from opsleuth.tools.reading import not_recorded, read, require_service, source_names
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

MOST_EDGES = 400


class Topology(Arguments):
    service: Service | None = None
    depth: Annotated[int, Field(ge=1, le=10, description="calls away from the service, 1 to 10")] = 2


async def topology(arguments: Topology, context: ToolContext) -> ToolResult:
    recording = await read(context, "topology")
    edges = recording.topology or ()
    names = {name for edge in edges for name in (edge.caller, edge.callee)}
    await require_service(context, arguments.service, names)
    if not names or (arguments.service is not None and arguments.service not in names):
        return not_recorded(context, "topology", f"no dependencies of {arguments.service or 'any service'}")
    if arguments.service is None:
        record, headline = (
            _whole(edges),
            f"{counted(len(names), 'service')}, {counted(len(edges), 'dependency', 'dependencies')}",
        )
    else:
        record = _around(arguments.service, arguments.depth, edges)
        callers = len(record["called_by"])
        headline = f"{len(record['calls'])} called by {arguments.service}, {counted(callers, 'caller')}"
    return ToolResult(
        record=record,
        headline=headline,
        source=source_names(context, "topology"),
        scanned=len(edges),
        matched=len(edges),
    )


def _whole(edges: Iterable[Dependency]) -> dict[str, Any]:
    pairs = sorted({(edge.caller, edge.callee) for edge in edges})
    shown = [list(pair) for pair in pairs[:MOST_EDGES]]
    return {"caller_callee": shown, "dependencies": len(pairs), "not_shown": len(pairs) - len(shown)}


def _around(service: str, depth: int, edges: Iterable[Dependency]) -> dict[str, Any]:
    forward = list(edges)
    backward = [Dependency(edge.callee, edge.caller) for edge in forward]
    return {
        "service": service,
        "depth": depth,
        "calls": _reached(forward, service, depth),
        "called_by": _reached(backward, service, depth),
    }


def _reached(edges: list[Dependency], service: str, depth: int) -> list[dict[str, Any]]:
    reach = distances(callees_of(edges), service)
    near = sorted((steps, name) for name, steps in reach.items() if 0 < steps <= depth)
    return [{"service": name, "distance": steps} for steps, name in near]


TOPOLOGY: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="topology",
        purpose="Who calls whom: around one service, or all dependencies.",
        not_for="Measured traffic: traces_compare.",
        arguments=Topology,
        example={"service": "checkout", "depth": 2},
        run=topology,
        capability="topology",
        target=lambda arguments: arguments.service,
    ),
)
