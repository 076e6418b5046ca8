"""Claims and volumes that are not bound, and volumes that two nodes want."""

from collections.abc import Iterator

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_describe_command,
    format_edit_command,
)
from opsleuth.analysis.cluster.model import template_of
from opsleuth.analysis.cluster.objects import ClusterObject, ObjectRef, get_part, rows_of
from opsleuth.analysis.fault_phrases import NAMES_CAUSE

_DEFAULT_NOTE = "storageclass.kubernetes.io/is-default-class"
_SHARED = ("Multi-Attach error",)


def find_unbound_storage(view: ClusterView) -> Iterator[Deviation]:
    """Claims that wait or lost their volume, volumes that failed, and volumes attached elsewhere."""
    for claim in view.cluster.of_kind("PersistentVolumeClaim"):
        yield from _check_claim(claim, view)
    for volume in view.cluster.of_kind("PersistentVolume"):
        if volume.status.get("phase") == "Failed":
            yield Deviation(
                entity=volume.ref,
                kind="disk",
                weight=NAMES_CAUSE,
                text=f"{volume.ref} failed: {str(volume.status.get('message', 'no message'))[:200]}",
                latent=True,
                show=format_describe_command(volume.ref),
            )
    yield from _attached_elsewhere(view)


def _check_claim(claim: ClusterObject, view: ClusterView) -> Iterator[Deviation]:
    phase = claim.status.get("phase")
    if phase not in {"Pending", "Lost"}:
        return
    users = find_claim_users(claim.ref, view)
    chosen = claim.spec.get("storageClassName")
    known = view.cluster.lists("StorageClass", None)
    why, kind = "", "scheduling"
    if phase == "Lost":
        why, kind = f": its volume {claim.spec.get('volumeName')} is gone", "storage_full"
    elif chosen and known and view.cluster.get("StorageClass", None, str(chosen)) is None:
        why, kind = f": there is no StorageClass {chosen}", "config"
    elif not chosen and known and not _has_default(view):
        why, kind = ": it names no StorageClass, and none is the default", "config"
    else:
        told = [e.message for e in view.events_of(claim.ref) if e.type != "Normal"]
        if not told and _waits_for_pod(claim, view):
            return
        why = f": {told[-1][:200]}" if told else ""
    yield Deviation(
        entity=claim.ref,
        kind=kind,
        weight=NAMES_CAUSE,
        text=f"{claim.ref} is {phase}{why}",
        service=users[0] if users else None,
        since=claim.created,
        latent=not users,
        victims=tuple(users[1:]),
        show=format_describe_command(claim.ref),
        undo=format_edit_command(claim.ref),
    )


def _has_default(view: ClusterView) -> bool:
    return any(c.annotations.get(_DEFAULT_NOTE) == "true" for c in view.cluster.of_kind("StorageClass"))


def _waits_for_pod(claim: ClusterObject, view: ClusterView) -> bool:
    """Whether the class binds a claim only when a pod that uses it was placed."""
    chosen = view.cluster.get("StorageClass", None, str(claim.spec.get("storageClassName")))
    return chosen is not None and chosen.body.get("volumeBindingMode") == "WaitForFirstConsumer"


def find_claim_users(claim: ObjectRef, view: ClusterView) -> list[str]:
    """Workloads whose template, or a pod of theirs, mounts the claim; a stateful set by the names of its claims."""
    names: dict[str, None] = {}
    for workload, template in view.cluster.templates():
        if workload.ref.namespace == claim.namespace and any(
            get_part(v, "persistentVolumeClaim").get("claimName") == claim.name
            for v in rows_of(template, "volumes")
        ):
            names[workload.ref.name] = None
    for workload in view.cluster.of_kind("StatefulSet"):
        for row in rows_of(workload.spec, "volumeClaimTemplates"):
            stem = f"{get_part(row, 'metadata').get('name')}-{workload.ref.name}-"
            if (
                workload.ref.namespace == claim.namespace
                and claim.name.startswith(stem)
                and template_of(workload)
            ):
                names[workload.ref.name] = None
    numbered = claim.name.rpartition("-")
    if not names and numbered[2].isdigit():
        sets = [w.ref for w in view.cluster.of_kind("StatefulSet") if w.ref.namespace == claim.namespace]
        names = {ref.name: None for ref in sets if numbered[0].endswith(f"-{ref.name}")}
    return list(names)


def _attached_elsewhere(view: ClusterView) -> Iterator[Deviation]:
    for event in view.events:
        if not any(words in event.message for words in _SHARED):
            continue
        pod = next((p for p in view.cluster.of_kind("Pod") if event.object.endswith(f"/{p.ref.name}")), None)
        workload = view.cluster.workload_of(pod) if pod else None
        if workload is not None:
            yield Deviation(
                entity=workload.ref,
                kind="disk",
                weight=NAMES_CAUSE,
                text=f"a volume of {workload.ref} is attached to another node: {event.message[:200]}",
                service=workload.ref.name,
                since=event.began,
                show=format_describe_command(workload.ref),
            )
