"""What is wrong with one workload or node, by the platform's own words for its state."""

from collections.abc import Mapping

from opsleuth.analysis import message_meaning
from opsleuth.analysis.fault_phrases import ACTS, NAMES_CAUSE, SHOWS
from opsleuth.analysis.workloads import Workload

# The platform's own reason words, as events and container states carry them.
REASONS: Mapping[str, tuple[str, float]] = {
    "OOMKilled": ("out_of_memory", NAMES_CAUSE),
    "OOMKilling": ("out_of_memory", NAMES_CAUSE),
    "SystemOOM": ("out_of_memory", NAMES_CAUSE),
    "oom-kill": ("out_of_memory", NAMES_CAUSE),
    "ErrImagePull": ("image_pull", NAMES_CAUSE),
    "ImagePullBackOff": ("image_pull", NAMES_CAUSE),
    "ErrImageNeverPull": ("image_pull", NAMES_CAUSE),
    "InvalidImageName": ("image_pull", NAMES_CAUSE),
    "FailedScheduling": ("scheduling", NAMES_CAUSE),
    "Unschedulable": ("scheduling", NAMES_CAUSE),
    "CreateContainerConfigError": ("config", NAMES_CAUSE),
    "CreateContainerError": ("config", NAMES_CAUSE),
    "RunContainerError": ("config", NAMES_CAUSE),
    "ContainerCannotRun": ("config", NAMES_CAUSE),
    "StartError": ("config", NAMES_CAUSE),
    "FailedMount": ("config", ACTS),
    "FailedAttachVolume": ("disk", ACTS),
    "FailedCreate": ("config", ACTS),
    "FailedCreatePodSandBox": ("network_loss", ACTS),
    "NetworkNotReady": ("network_loss", ACTS),
    "CrashLoopBackOff": ("crash", ACTS),
    "BackOff": ("crash", ACTS),
    "BackoffLimitExceeded": ("crash", ACTS),
    "DeadlineExceeded": ("crash", ACTS),
    "Error": ("crash", ACTS),
    "Failed": ("crash", SHOWS),
    "Evicted": ("memory", ACTS),
    "Unhealthy": ("probe", ACTS),
    "FreeDiskSpaceFailed": ("storage_full", NAMES_CAUSE),
    "NodeHasDiskPressure": ("storage_full", NAMES_CAUSE),
    "NodeHasInsufficientMemory": ("memory", NAMES_CAUSE),
    "NodeNotReady": ("crash", ACTS),
    "NodeLost": ("crash", ACTS),
    "ProgressDeadlineExceeded": ("deploy", SHOWS),
}
# Conditions of nodes that are troubles when True.
_PRESSURES: Mapping[str, str] = {
    "MemoryPressure": "memory",
    "DiskPressure": "storage_full",
    "PIDPressure": "quota",
    "NetworkUnavailable": "network_loss",
}
_DONE = frozenset({"Completed", "Succeeded", "Complete"})
# The kubelet takes a container back into good standing after ten minutes without a crash.
STEADY_SECONDS = 600.0
# The back-off doubles from ten seconds and stays at five minutes from the sixth restart on.
_DOUBLINGS = 5
_LONGEST_BACK_OFF = 300.0
# Restarts from which a container that happens to be up counts as flapping: the first back-off is over by then.
_FLAPPING = 3


def diagnose_workload(state: Workload) -> tuple[str, float, str] | None:
    """What is wrong with one workload or node now as (kind, weight, words); None if nothing is."""
    if state.kind.lower() == "node":
        return _diagnose_node(state)
    status = state.status.rpartition(":")[2]  # `Init:CrashLoopBackOff`
    if status in _DONE or (state.reasons and set(state.reasons) <= _DONE):
        return None
    if _is_up(state):
        return _diagnose_recent_restart(state)
    said = [status, *state.reasons, *state.past, *(c.reason for c in state.conditions if c.status == "False")]
    candidates = [(*REASONS[word], word) for word in said if word in REASONS]
    texts = [*state.messages, *(c.message for c in state.conditions if c.status == "False")]
    candidates += [(m.kind, m.weight, m.quote) for m in map(message_meaning.read_message_meaning, texts) if m]
    return max(candidates, key=lambda c: c[1]) if candidates else _diagnose_silent(state, status)


def estimate_trouble_start(state: Workload) -> float | None:
    """When the trouble of a workload began at the latest, as far as its state tells; None if it does not.

    A container that never restarted has been in trouble since it exists, unless it ran before it became unready.
    Of one that restarts, the times that its state carries say so; a printed row carries none, only that it restarted
    for at least what the back-off takes.
    """
    if state.read_at is None or (not state.restarts and state.status == "Running" and not state.reasons):
        return None
    if state.restarts and not state.printed:
        return state.unready_since
    if state.restarts:
        spent = (state.restarts - _DOUBLINGS) * _LONGEST_BACK_OFF
        return state.read_at - spent if spent > 0 else None
    return None if state.age_seconds is None else state.read_at - state.age_seconds


def _is_up(state: Workload) -> bool:
    return state.desired is not None and state.ready is not None and state.ready >= state.desired


def _diagnose_recent_restart(state: Workload) -> tuple[str, float, str] | None:
    """A container that is up just now, but was down a moment ago or keeps coming back."""
    recent = state.up_seconds is not None and state.up_seconds < STEADY_SECONDS
    ended = [(*REASONS[word], word) for word in state.past if word in REASONS]
    if not recent or not (ended or (state.restarts or 0) >= _FLAPPING):
        return None
    return max(ended, key=lambda c: c[1]) if ended else ("crash", ACTS, "restarts again and again")


def _diagnose_silent(state: Workload, status: str) -> tuple[str, float, str] | None:
    """A workload that is not up and of which the platform gives no reason."""
    if status == "Pending" and state.placed is False:
        return "scheduling", NAMES_CAUSE, "Pending, no node assigned"
    if state.desired is None or state.ready is None or state.ready >= state.desired:
        return None
    return (
        ("probe", SHOWS, "runs but is not ready") if status == "Running" else ("other", SHOWS, "is not ready")
    )


def _diagnose_node(state: Workload) -> tuple[str, float, str] | None:
    for condition in state.conditions:
        if condition.status == "True" and condition.type in _PRESSURES:
            return _PRESSURES[condition.type], NAMES_CAUSE, condition.type
        if condition.type == "Ready" and condition.status in {"False", "Unknown"}:
            return "crash", ACTS, "node is not ready"
    return ("crash", ACTS, "node is not ready") if "NotReady" in state.status.split(",") else None
