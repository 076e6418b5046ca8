"""Objects stuck in deletion: their finalizers wait for a controller."""

from collections.abc import Iterator

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_edit_command,
    show_yaml,
)
from opsleuth.analysis.cluster.objects import ClusterObject, number_of
from opsleuth.analysis.fault_phrases import NAMES_CAUSE

# The usual grace of a pod, and as much again for controllers that clean up behind it.
_GRACE_SECONDS = 30.0
_CLEAN_UP_SECONDS = 60.0
# Namespaces keep their finalizer while what is in them goes; these conditions say what does not.
_REMAINING = ("NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure",
              "NamespaceDeletionDiscoveryFailure")  # fmt: skip


def find_undeleted_objects(view: ClusterView) -> Iterator[Deviation]:
    """Objects whose deletion was asked for longer ago than it takes."""
    for found in view.cluster.by_ref.values():
        if found.deleted is None or found.read_at is None:
            continue
        grace = number_of(found.metadata.get("deletionGracePeriodSeconds")) or _GRACE_SECONDS
        waited = found.read_at - found.deleted
        if waited <= grace + _CLEAN_UP_SECONDS:
            continue
        held = _held_by(found)
        if held or found.ref.kind == "Pod":
            yield _report_stuck_deletion(found, held, waited)


def _held_by(found: ClusterObject) -> str:
    finalizers = ", ".join(map(str, found.metadata.get("finalizers") or ()))
    if finalizers:
        return f"finalizer {finalizers}"
    remaining = [c for kind in _REMAINING if (c := found.condition(kind)).get("status") == "True"]
    if remaining:
        return str(remaining[0].get("message", ""))[:300]
    return ""


def _report_stuck_deletion(found: ClusterObject, held: str, waited: float) -> Deviation:
    reason = f", held by {held}" if held else ": its node does not confirm that it ended"
    return Deviation(
        entity=found.ref,
        kind="config" if held else "crash",
        weight=NAMES_CAUSE,
        text=f"{found.ref} was deleted {waited / 60.0:.0f} min ago and is still there{reason}",
        since=found.deleted,
        show=show_yaml(found.ref),
        undo=format_edit_command(found.ref) if found.metadata.get("finalizers") else "",
        figures={"minutes": round(waited / 60.0)},
    )
