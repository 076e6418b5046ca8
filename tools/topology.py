"""Topology: who calls whom."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis.records import ServiceDependency
from opsleuth.analysis.topology import callees_by_caller, measure_call_distances
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import Service
from opsleuth.tools.recordings import not_recorded_result, read_recording, require_service, source_names
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

MOST_EDGES = 400


class TopologyArguments(Arguments):
    service: Service | None = None
    depth: Annotated[int, Field(ge=1, le=10, description="calls away from the service, 1 to 10")] = 2


async def show_topology(arguments: TopologyArguments, context: ToolContext) -> ToolResult:
    recording = await read_recording(context, "topology")
    edges = recording.topology or ()
    names = {name for edge in edges for name in (edge.caller, edge.callee)}
    await require_service(context, arguments.service, names)
    if not names or (arguments.service is not None and arguments.service not in names):
        return not_recorded_result(
            context, "topology", f"no dependencies of {arguments.service or 'any service'}"
        )
    if arguments.service is None:
        record, headline = (
            _all_edges_record(edges),
            f"{format_count(len(names), 'service')}, {format_count(len(edges), 'dependency', 'dependencies')}",
        )
    else:
        record = _neighbours_record(arguments.service, arguments.depth, edges)
        callers = len(record["called_by"])
        headline = f"{len(record['calls'])} called by {arguments.service}, {format_count(callers, 'caller')}"
    return ToolResult(
        record=record,
        headline=headline,
        source=source_names(context, "topology"),
        scanned=len(edges),
        matched=len(edges),
    )


def _all_edges_record(edges: Iterable[ServiceDependency]) -> dict[str, Any]:
    pairs = sorted({(edge.caller, edge.callee) for edge in edges})
    shown = [list(pair) for pair in pairs[:MOST_EDGES]]
    return {"caller_callee": shown, "dependencies": len(pairs), "not_shown": len(pairs) - len(shown)}


def _neighbours_record(service: str, depth: int, edges: Iterable[ServiceDependency]) -> dict[str, Any]:
    forward = list(edges)
    backward = [ServiceDependency(edge.callee, edge.caller) for edge in forward]
    return {
        "service": service,
        "depth": depth,
        "calls": _services_within(forward, service, depth),
        "called_by": _services_within(backward, service, depth),
    }


def _services_within(edges: list[ServiceDependency], service: str, depth: int) -> list[dict[str, Any]]:
    reach = measure_call_distances(callees_by_caller(edges), service)
    near = sorted((steps, name) for name, steps in reach.items() if 0 < steps <= depth)
    return [{"service": name, "distance": steps} for steps, name in near]


TOPOLOGY: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="topology",
        purpose="Who calls whom: around one service, or all dependencies.",
        not_for="Measured traffic: traces_compare.",
        arguments=TopologyArguments,
        example={"service": "checkout", "depth": 2},
        run=show_topology,
        capability="topology",
        target=lambda arguments: arguments.service,
    ),
)
