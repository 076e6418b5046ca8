"""Exhausted quotas, limits and budgets, and pods preempted for others."""

from collections.abc import Iterator

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_describe_command,
    format_edit_command,
    show_yaml,
)
from opsleuth.analysis.cluster.model import (
    CONTROLLERS,
    Cluster,
    containers_of,
    desired_replicas,
    ready_replicas,
    template_of,
)
from opsleuth.analysis.cluster.objects import ClusterObject, ObjectRef, get_part, number_of, rows_of
from opsleuth.analysis.cluster.quantities import parse_amount
from opsleuth.analysis.fault_phrases import ACTS, NAMES_CAUSE

_DRAINED = ("Cannot evict pod as it would violate", "violate the pod's disruption budget")


def find_exhausted_capacity(view: ClusterView) -> Iterator[Deviation]:
    """What leaves no room for pods that are wanted."""
    short = [w for w in view.cluster.of_kind(*CONTROLLERS) if _is_short(w)]
    for quota in view.cluster.of_kind("ResourceQuota"):
        yield from _find_full_quota(quota, short, view)
    for limits in view.cluster.of_kind("LimitRange"):
        yield from _find_exceeded_limits(limits, [w for w in short if _lacks_pods(w, view.cluster)])
    for budget in view.cluster.of_kind("PodDisruptionBudget"):
        yield from _find_blocking_budget(budget, view)
    yield from _find_preempted_workloads(view)


def _is_short(workload: ClusterObject) -> bool:
    desired, ready = desired_replicas(workload), ready_replicas(workload)
    return desired is not None and ready is not None and ready < desired


def _lacks_pods(workload: ClusterObject, cluster: Cluster) -> bool:
    """Whether pods are missing altogether; one that exists and does not start was not kept from being made."""
    return len(cluster.pods_of(workload)) < (desired_replicas(workload) or 0)


def _find_full_quota(
    quota: ClusterObject, short: list[ClusterObject], view: ClusterView
) -> Iterator[Deviation]:
    hard, used = (
        get_part(quota.status, "hard") or get_part(quota.spec, "hard"),
        get_part(quota.status, "used"),
    )
    refused = [
        e
        for e in view.events
        if "exceeded quota" in e.message
        and quota.ref.name in e.message
        and (e.extra or {}).get("namespace") in {None, quota.ref.namespace}
    ]
    full = [
        name
        for name, most in hard.items()
        if (limit := parse_amount(most)) is not None
        and (now := parse_amount(used.get(name))) is not None
        and now >= limit
    ]
    victims = [
        w.ref.name for w in short if w.ref.namespace == quota.ref.namespace and _lacks_pods(w, view.cluster)
    ]
    if not refused and not (full and victims):
        return
    if refused:
        named = refused[0].object.rpartition("/")[2]
        victims = sorted(victims, key=lambda v: not named.startswith(v)) or [
            named.rpartition("-")[0] or named
        ]
    shown = ", ".join(f"{name} {used.get(name)} of {hard[name]}" for name in full) or refused[0].message[:200]
    yield Deviation(
        entity=quota.ref,
        kind="quota",
        weight=NAMES_CAUSE,
        text=f"{quota.ref} is used up ({shown}): {', '.join(victims[:3])} cannot get its pods",
        service=victims[0],
        since=min((e.began for e in refused if e.began is not None), default=None),
        victims=tuple(victims[1:]),
        show=format_describe_command(quota.ref),
        undo=format_edit_command(quota.ref),
    )


def _find_exceeded_limits(limits: ClusterObject, short: list[ClusterObject]) -> Iterator[Deviation]:
    """Templates that ask for more than a LimitRange allows for one container."""
    for row in rows_of(limits.spec, "limits"):
        if row.get("type") != "Container":
            continue
        for workload in short:
            if workload.ref.namespace != limits.ref.namespace:
                continue
            for container in containers_of(template_of(workload)):
                for name, most in get_part(row, "max").items():
                    asked = get_part(container, "resources", "limits").get(name)
                    wanted, limit = parse_amount(asked), parse_amount(most)
                    if wanted is not None and limit is not None and wanted > limit:
                        yield Deviation(
                            entity=limits.ref,
                            kind="quota",
                            weight=NAMES_CAUSE,
                            text=f"{limits.ref} allows a container {most} {name}; {workload.ref} asks for {asked}",
                            service=workload.ref.name,
                            show=show_yaml(limits.ref),
                            undo=format_edit_command(limits.ref),
                        )


def _find_blocking_budget(budget: ClusterObject, view: ClusterView) -> Iterator[Deviation]:
    """A budget that allows no disruption, where somebody tried one."""
    tried = [e for e in view.events if any(words in e.message for words in _DRAINED)]
    named = budget.ref.name in view.alert.text
    if number_of(budget.status.get("disruptionsAllowed")) != 0 or not (tried or named):
        return
    wanted = budget.spec.get("minAvailable", budget.spec.get("maxUnavailable"))
    yield Deviation(
        entity=budget.ref,
        kind="config",
        weight=ACTS,
        text=(
            f"{budget.ref} allows 0 disruptions ({budget.status.get('currentHealthy')} healthy, "
            f"{budget.status.get('desiredHealthy', wanted)} needed): its pods cannot be moved off a node"
        ),
        service=budget.ref.name,
        show=format_describe_command(budget.ref),
        undo=format_edit_command(budget.ref),
    )


def _find_preempted_workloads(view: ClusterView) -> Iterator[Deviation]:
    for event in view.events:
        if event.reason != "Preempted" or event.time < view.window.start:
            continue
        kind, _, name = event.object.rpartition("/")
        pod = next((p for p in view.cluster.of_kind("Pod") if p.ref.name == name), None)
        namespace = (event.extra or {}).get("namespace")
        workload = view.cluster.workload_of(pod) if pod else _find_maker(name, namespace, view.cluster)
        yield Deviation(
            entity=workload.ref if workload else ObjectRef(kind or "Pod", namespace, name),
            kind="scheduling",
            weight=NAMES_CAUSE,
            text=f"{event.object.replace('/', ' ')} was pushed off its node for a pod of higher priority: {event.message[:200]}",
            service=workload.ref.name if workload else None,
            since=event.began,
            show="kubectl get priorityclasses",
        )


def _find_maker(pod: str, namespace: str | None, cluster: Cluster) -> ClusterObject | None:
    """The workload that made a pod which is gone, by the name that it gives its pods."""
    makers = [
        workload
        for workload in cluster.of_kind("Deployment", "StatefulSet", "DaemonSet", "Rollout")
        if pod.startswith(f"{workload.ref.name}-") and namespace in {None, workload.ref.namespace}
    ]
    return max(makers, key=lambda workload: len(workload.ref.name), default=None)
