"""What an approval binds: this run, this call, what it really runs and where, and what other branches did already."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from opsleuth.checkpoints.effects import EffectRow
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import Call, Risk
from opsleuth.state.canonical_json import canonical_sha256
from opsleuth.tools.call_binding import describe_binding


class BoundCall(NamedTuple):
    """A call as a person approves it. `digest` covers all of it; the call's own digest is equal in every run.

    `elsewhere` are equal changes that a sibling, a descendant, or a parent after the fork has made, or may have made.
    """

    digest: str
    binding: Mapping[str, Any]
    elsewhere: tuple[EffectRow, ...]


def bind_call(call: Call, deps: Deps) -> BoundCall:
    """The call with everything that its approval would bind, as things are now."""
    spec = deps.toolbox.known(call.tool)
    binding = describe_binding(spec, call.arguments) if spec else {}
    elsewhere = (
        ()
        if call.risk is Risk.READ
        else deps.store.effects.find_elsewhere(deps.run, call.tool, call.arguments, call.target)
    )
    bound = {
        "run": deps.run,
        "call": call.digest,
        "binding": binding,
        "elsewhere": sorted([row.run, row.key] for row in elsewhere),
    }
    return BoundCall(canonical_sha256(bound), binding, elsewhere)


def describe_elsewhere(rows: tuple[EffectRow, ...]) -> str:
    """Who made the same change, in words."""
    return "; ".join(f"{row.run} made it as {row.call_id}, {row.status} since {row.started}" for row in rows)
