"""Requests that the API server forbade: the account, the missing right, and the role that lacks it."""

import re
from collections.abc import Iterator

from opsleuth.analysis.cluster.deviation import Deviation, format_edit_command
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.cluster.objects import ObjectRef, get_part, rows_of
from opsleuth.analysis.fault_phrases import NAMES_CAUSE
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Recording

# An alert is sent after its rule held for minutes: what began so long before it may be the incident.
_ALERT_DELAY_SECONDS = 600.0
# As the API server words it, for every client alike.
_FORBIDDEN = re.compile(
    r'is forbidden: User \\*"system:serviceaccount:(?P<namespace>[\w.-]+):(?P<account>[\w.-]+)\\*" cannot '
    r'(?P<verb>\w+) resource \\*"(?P<resource>[\w./-]+)\\*"'
)


def find_forbidden_requests(recording: Recording, cluster: Cluster) -> Iterator[Deviation]:
    """One deviation for each service whose account lacks a right, new since the onset."""
    onset = assumed_onset_of(recording)
    seen: dict[tuple[str, str], tuple[re.Match[str], float | None]] = {}
    usual: set[tuple[str, str]] = set()
    for line in [*(recording.logs_baseline or ()), *(recording.logs or ())]:
        if "is forbidden" not in line.message or not (found := _FORBIDDEN.search(line.message)):
            continue
        key = line.service, found["account"]
        if line.time is None or line.time < onset - _ALERT_DELAY_SECONDS:
            usual.add(key)
        elif key not in usual:
            seen.setdefault(key, (found, line.time))
    for (service, account), (found, time) in seen.items():
        role = _role_of(account, found["namespace"], cluster) or ObjectRef("Role", found["namespace"], "")
        is_missing = cluster.lists(role.kind, role.namespace) and role not in cluster.by_ref
        yield Deviation(
            entity=role,
            kind="permission",
            weight=NAMES_CAUSE,
            text=f"service account {found['namespace']}/{account} may not {found['verb']} {found['resource']}",
            service=service,
            since=time,
            show=f"kubectl auth can-i {found['verb']} {found['resource']} -n {found['namespace']} "
            f"--as=system:serviceaccount:{found['namespace']}:{account}",
            undo=format_edit_command(role) if role.name and not is_missing else "",
        )


def _role_of(account: str, namespace: str, cluster: Cluster) -> ObjectRef | None:
    for binding in cluster.of_kind("RoleBinding", "ClusterRoleBinding"):
        for subject in rows_of(binding.body, "subjects"):
            if subject.get("name") == account and subject.get("namespace", namespace) == namespace:
                role = get_part(binding.body, "roleRef")
                kind = str(role.get("kind", "Role"))
                return ObjectRef(kind, namespace if kind == "Role" else None, str(role.get("name", "")))
    return None
