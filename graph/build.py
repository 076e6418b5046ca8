"""The whole loop on one page: five nodes, every way out of each, and how a node becomes part of a graph.

START → plan ─┬─ calls, none needs a person ──→ act → observe ─┬─ an effect was tried → verify ─┬─ unknown → approve → verify
              ├─ some need a person → approve → act            └─ otherwise → plan              └─ otherwise → plan
              │                          ↑       └─ an approval has expired → approve
              ├─ not a valid decision → plan
              └─ conclusion drafted, or a limit hit → verify ─┬─ gaps, rework left → plan
                                                              └─ accepted, or no rework left → END
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from opsleuth.checkpoints.errors import StoreError
from opsleuth.nodes.act.node import act
from opsleuth.nodes.approve.node import approve
from opsleuth.nodes.deps import Deps, NodeStep
from opsleuth.nodes.observe.node import observe
from opsleuth.nodes.operator_requests import step_for_operator_request
from opsleuth.nodes.plan.node import plan
from opsleuth.nodes.verify.node import verify
from opsleuth.state.base import to_json
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.investigation import SCHEMA_VERSION, Investigation

Node = Callable[[Investigation, Deps], Awaitable[NodeStep]]
Graph = CompiledStateGraph[Any, Deps, Any, Any]

NODES: Mapping[str, Node] = {
    "plan": plan,
    "approve": approve,
    "act": act,
    "observe": observe,
    "verify": verify,
}
EDGES: Mapping[str, tuple[str, ...]] = {
    "plan": ("plan", "approve", "act", "verify"),
    "approve": ("approve", "act", "verify"),
    "act": ("observe", "approve"),
    "observe": ("plan", "verify"),
    "verify": ("plan", "approve", END),
}
ACCEPTED_REVISIONS: tuple[str, ...] = ()
"""Older revisions whose stored runs this graph still resumes."""

# One channel for each field of the typed state, in JSON form: plain values survive strict msgpack, are
# readable without the framework, and cost a third of the bytes of one whole document a step.
Channels = TypedDict("Channels", dict.fromkeys(Investigation.model_fields, Any), total=False)  # type: ignore[misc]


class NodeFailureError(OpsleuthError):
    """A node raised. The framework stores this text with the checkpoint, so it is redacted before."""

    def __init__(self, node: str, text: str) -> None:
        super().__init__(f"{node}: {text}")
        self.node = node


def build_graph(saver: BaseCheckpointSaver[str] | None) -> Graph:
    """The compiled graph; `saver` stores a checkpoint after each node."""
    return _compile_graph().copy({"checkpointer": saver})


@cache
def _compile_graph() -> Graph:
    """Made once for all runs of a process: the framework takes every node's code apart to make it."""
    graph: StateGraph[Any, Deps, Any, Any] = StateGraph(Channels, context_schema=Deps)
    for name, node in NODES.items():
        graph.add_node(name, wrap_node(name, node), destinations=EDGES[name])  # type: ignore[call-overload]
    graph.add_edge(START, "plan")
    return graph.compile()


def graph_revision() -> str:
    """What a stored run needs to be resumable: node names, edges, state schema. 12 hex digits."""
    shape = {
        "nodes": sorted(NODES),
        "edges": {k: sorted(v) for k, v in EDGES.items()},
        "schema": SCHEMA_VERSION,
    }
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:12]


def wrap_node(name: str, node: Node) -> Callable[[Any, Runtime[Deps]], Awaitable[Command[str]]]:
    """A node of ours as a node of the framework: typed state in, checked state and a legal way out.

    A border where everything is caught: a node's failure must not carry a secret into the store.
    """

    async def run(channels: Channels, runtime: Runtime[Deps]) -> Command[str]:
        deps = runtime.context
        before = Investigation.model_validate(channels)
        if (
            deps.toolbox.read_only and not before.read_only
        ):  # this attempt allows less than the run began with
            before = before.changed(read_only=True)
        deps.enter(name, before, runtime.execution_info.checkpoint_id if runtime.execution_info else "")
        try:
            step = step_for_operator_request(name, before, deps) or await node(before, deps)
        except (GraphBubbleUp, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - the border: see above
            deps.on_failure(name, error)
            raise NodeFailureError(name, deps.redact(f"{type(error).__name__}: {error}")[0]) from None
        if step.goto not in EDGES[name]:
            raise NodeFailureError(
                name, f"has no way to {step.goto!r}; its ways are {', '.join(EDGES[name])}"
            )
        after = deps.leave(before, step)
        written = to_json(after)
        Investigation.model_validate(written)
        changed = {k: v for k, v in written.items() if k not in channels or channels[k] != v}  # type: ignore[literal-required]
        return Command(update=changed, goto=step.goto)

    run.__name__ = name
    return run
