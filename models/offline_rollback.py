"""The offline investigator's one change: undo the release that set it off, where a platform offers that and a person agrees."""

from collections.abc import Sequence

from opsleuth.models.offline_conclusion import find_faulty_release
from opsleuth.models.planner import PlannerView
from opsleuth.models.view_observations import observations_of_tool
from opsleuth.state.calls import CallRequest

STATE, ROLLBACK = "service_state", "service_rollback"


def plan_rollback_calls(view: PlannerView) -> Sequence[CallRequest]:
    """First the look at the service, then the rollback to the version before; empty once it was asked for."""
    offered = {spec.name for spec in view.tools}
    service = find_faulty_release(view)
    asked = any(o.tool == ROLLBACK for o in view.observations)
    if service is None or asked or not {STATE, ROLLBACK} <= offered:
        return ()
    seen = [o for o in view.observations if o.tool == STATE and o.arguments.get("service") == service]
    if not seen:
        return (_build_call(STATE, f"which version {service} runs, and which ran before", service=service),)
    for known in reversed(observations_of_tool(STATE, view)):
        versions, now = list(known.record["versions"]), known.record["version"]
        if known in seen and (before := versions[: versions.index(now)]):
            why = f"the release of {service} set it off: go back to {before[-1]}"
            return (_build_call(ROLLBACK, why, service=service, version=before[-1]),)
    return ()


def _build_call(tool: str, purpose: str, **arguments: str) -> CallRequest:
    return CallRequest(tool=tool, arguments=dict(arguments), purpose=purpose)
