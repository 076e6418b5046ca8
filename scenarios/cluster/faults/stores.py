"""Databases and caches that are up and turn their clients away."""

from collections.abc import Sequence

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, make_manifest, ref_of
from opsleuth.scenarios.cluster.traffic import refuse_clients
from opsleuth.scenarios.cluster.workloads import replace_pods

Entities = Sequence[EntityRef]


def rotate_password(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The store's password is changed; its clients were restarted with it, or hold the old one."""
    secret = cluster.ref("Secret", target, f"{target.name}-credentials")
    cluster.edit(
        cluster.state.get("Secret", secret.name, secret.namespace), target, f"{target.name}: password rotated"
    )
    replace_pods(cluster, target)
    cache = cluster.ports[target.name] == 6379
    if wrong and cache:
        refuse_clients(
            cluster,
            target,
            lambda r: f"Client 10.244.1.{r.randrange(2, 250)} failed authentication",
            lambda _: "WRONGPASS invalid username-password pair or user is disabled.",
        )
    elif wrong:
        refuse_clients(
            cluster,
            target,
            lambda _: 'password authentication failed for user "app"',
            lambda _: 'pq: password authentication failed for user "app" (SQLSTATE 28P01)',
        )
    elif target.live:
        for call in cluster.base.world.callers(target.name):
            replace_pods(cluster, Target(call.caller, cluster.namespace, target.since, live=True))
    return [secret, cluster.workload_ref(target)]


def fill_cache(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The cache drops old keys when it is full, or refuses new ones."""
    policy, most = ("noeviction", "32mb") if wrong else ("allkeys-lru", "700mb")
    cluster.container(target)["args"] = ["--maxmemory", most, "--maxmemory-policy", policy]
    cluster.edit(cluster.workload(target), target, f"{target.name}: {most}, {policy}")
    replace_pods(cluster, target)
    if wrong:
        refuse_clients(
            cluster,
            target,
            lambda _: "WARNING: used_memory 33554432 above maxmemory, rejecting writes",
            lambda _: "OOM command not allowed when used memory > 'maxmemory'.",
        )
    return [cluster.workload_ref(target)]


def revoke_rights(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The application's user may read its tables, or no longer may."""
    cluster.record_change(target, "rights of user app reviewed", kind="migration")
    if wrong:
        refuse_clients(
            cluster,
            target,
            lambda r: f"permission denied for table t{r.randrange(9)}",
            lambda r: f"pq: permission denied for table t{r.randrange(9)} (SQLSTATE 42501)",
        )
    return [cluster.workload_ref(target), *(ref_of(p) for p in cluster.pods(target))]


def exhaust_connections(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The store takes hundreds of connections, or a handful."""
    most = 12 if wrong else 300
    cluster.container(target)["args"] = ["-c", f"max_connections={most}"]
    cluster.edit(cluster.workload(target), target, f"{target.name}: max_connections {most}")
    replace_pods(cluster, target)
    if wrong:
        refuse_clients(
            cluster,
            target,
            lambda _: "sorry, too many clients already",
            lambda _: "pq: sorry, too many clients already (SQLSTATE 53300)",
        )
    return [cluster.workload_ref(target)]


def expire_certificate(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The store's certificate is valid, or has expired without being renewed."""
    end = target.since if wrong else cluster.base.timing.end + 86_400 * 60
    secret = cluster.ref("Secret", target, f"{target.name}-tls")
    cluster.state.add(make_manifest(cluster.random, secret, end - 86_400 * 90, type="kubernetes.io/tls"))
    ready = {"type": "Ready", "status": str(not wrong), "reason": "Expired" if wrong else "Ready"}
    ready["message"] = (
        f"Certificate expired on {format_utc(int(end))}"
        if wrong
        else "Certificate is up to date and has not expired"
    )
    spec = {
        "secretName": secret.name,
        "dnsNames": [target.name],
        "issuerRef": {"name": "internal-ca", "kind": "ClusterIssuer"},
    }
    ref = cluster.ref("Certificate", target, f"{target.name}-tls")
    cluster.state.add(
        make_manifest(
            cluster.random,
            ref,
            end - 86_400 * 90,
            spec=spec,
            status={"conditions": [ready], "notAfter": format_utc(int(end))},
        )
    )
    if wrong:
        text = f"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time is after {format_utc(int(end))}"
        refuse_clients(
            cluster,
            target,
            lambda _: "could not accept SSL connection: sslv3 alert certificate expired",
            lambda _: text,
        )
    return [ref, secret, cluster.workload_ref(target)]


_RIGHTS = ("config", "errors", "connections")
FAULTS = (
    ClusterFault("database_password", "database", "permission", rotate_password, "SREGym, AIOpsLab auth_miss_mongodb; SREGym secret_rotation_stale_env_credentials", _RIGHTS),
    ClusterFault("cache_password", "cache", "permission", rotate_password, "ITBench valkey-workload-changed-password; SREGym valkey_auth_disruption", _RIGHTS),
    ClusterFault("cache_full", "cache", "memory", fill_cache, "ITBench valkey-workload-out-of-memory; SREGym valkey_memory_disruption", ("out_of_memory", "quota", "storage_full", "config", "deploy")),
    ClusterFault("database_rights", "database", "permission", revoke_rights, "SREGym, AIOpsLab revoke_auth, storage_user_unregistered", _RIGHTS),
    ClusterFault("database_connections", "database", "connections", exhaust_connections, "PostgreSQL documents: error codes", ("config", "quota", "deploy")),
    ClusterFault("database_certificate", "database", "certificate", expire_certificate, "SREGym expired_tls", ("config", "permission")),
)  # fmt: skip
