"""Pods that do not start or do not stay: images, commands, settings, rights."""

from collections.abc import Sequence

from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.pods import (
    crash_pods,
    fail_mount,
    keep_waiting,
    pull_badly,
    refuse_creation,
)
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest
from opsleuth.scenarios.cluster.traffic import fail_requests
from opsleuth.scenarios.cluster.workloads import replace_pods, roll_out

Entities = Sequence[EntityRef]


def _set_image(cluster: ClusterScene, target: Target, image: str) -> list[Manifest]:
    old = cluster.container(target)["image"]
    cluster.container(target)["image"] = image
    return roll_out(
        cluster, target, f"image {image.rsplit(':', maxsplit=1)[-1]}", f"-  image: {old}\n+  image: {image}"
    )


def miss_image(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A release whose tag the registry has, or has not."""
    name = cluster.container(target)["image"].rsplit(":", 1)[0]
    image = f"{name}:{cluster.random.randrange(3, 9)}.{cluster.random.randrange(30)}.0"
    pods = _set_image(cluster, target, image)
    if wrong:
        why = f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": failed to resolve reference "{image}": {image}: not found'
        pull_badly(cluster, target, pods, image, why)
    return [cluster.workload_ref(target)]


def lack_pull_secret(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A private registry, with the credentials for it or without."""
    image = f"private.registry.example/{target.name}:{cluster.random.randrange(2, 9)}.1.0"
    secret = cluster.ref("Secret", target, "registry-pull")
    cluster.pod_spec(target)["imagePullSecrets"] = [{"name": secret.name}]
    if not wrong and secret not in cluster.state:
        cluster.state.add(
            make_manifest(cluster.random, secret, target.since - 900, type="kubernetes.io/dockerconfigjson")
        )
    pods = _set_image(cluster, target, image)
    if wrong:
        why = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized'
        pull_badly(cluster, target, pods, image, why)
        for pod in pods:
            cluster.event(
                pod,
                "FailedToRetrieveImagePullSecret",
                f"Unable to retrieve some image pull secrets ({secret.name}); attempting to pull the image may not succeed.",
                target,
            )
    return [cluster.workload_ref(target), secret]


def use_other_architecture(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """An image for the nodes' processors, or for others."""
    name = cluster.container(target)["image"].rsplit(":", 1)[0]
    pods = _set_image(
        cluster, target, f"{name}:{cluster.random.randrange(3, 9)}.2.1-{'arm64' if wrong else 'amd64'}"
    )
    if wrong:
        crash_pods(cluster, target, pods, code=255)
        cluster.log(target, "", lambda _: f"exec /usr/local/bin/{target.name}: exec format error", 0.8)
    return [cluster.workload_ref(target)]


def set_command(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A command that the image has, or has not."""
    command = f"/opt/{target.name}/bin/serve" if wrong else "/usr/local/bin/entrypoint"
    cluster.container(target)["command"] = [command]
    pods = roll_out(cluster, target, "start command set explicitly")
    if wrong:
        text = f'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "{command}": stat {command}: no such file or directory: unknown'
        crash_pods(cluster, target, pods, code=128, reason="StartError")
        for pod in pods:
            pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["message"] = text
            cluster.event(pod, "Failed", f"Error: {text}", target)
    return [cluster.workload_ref(target)]


def mount_config_map(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A mounted ConfigMap that exists, or does not."""
    ref = cluster.ref("ConfigMap", target, f"{target.name}-tuning")
    if not wrong:
        cluster.state.add(
            make_manifest(cluster.random, ref, target.since - 60, data={"tuning.yaml": "threads: 8\n"})
        )
    cluster.pod_spec(target)["volumes"].append({"name": "tuning", "configMap": {"name": ref.name}})
    pods = roll_out(cluster, target, "tuning in a file of its own")
    if wrong:
        fail_mount(
            cluster,
            target,
            pods,
            "FailedMount",
            f'MountVolume.SetUp failed for volume "tuning" : configmap "{ref.name}" not found',
        )
    return [ref, cluster.workload_ref(target)]


def read_config_key(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A variable from a key that the ConfigMap has, or has not."""
    ref = cluster.ref("ConfigMap", target, f"{target.name}-flags")
    key = cluster.choose("MAX_BATCH", "REGION", "QUEUE_NAME")
    data = {f"{key}_DEFAULT" if wrong else key: "eu"}
    cluster.state.add(make_manifest(cluster.random, ref, target.since - 300, data=data))
    source = {"configMapKeyRef": {"name": ref.name, "key": key}}
    cluster.container(target)["env"].append({"name": key, "valueFrom": source})
    pods = roll_out(cluster, target, f"{key} from the shared settings")
    if wrong:
        text = f"couldn't find key {key} in ConfigMap {target.namespace}/{ref.name}"
        keep_waiting(cluster, target, pods, "CreateContainerConfigError", text)
    return [ref, cluster.workload_ref(target)]


def read_secret(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A variable from a Secret that exists, or does not."""
    ref = cluster.ref("Secret", target, f"{target.name}-token")
    if not wrong:
        cluster.state.add(make_manifest(cluster.random, ref, target.since - 300, type="Opaque"))
    cluster.container(target)["env"].append(
        {"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": ref.name, "key": "token"}}}
    )
    pods = roll_out(cluster, target, "token from the vault")
    if wrong:
        keep_waiting(cluster, target, pods, "CreateContainerConfigError", f'secret "{ref.name}" not found')
    return [ref, cluster.workload_ref(target)]


def write_settings(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Settings that the application can read, or cannot."""
    settings = cluster.state.get("ConfigMap", f"{target.name}-settings", target.namespace)
    before = settings["data"]["settings.yaml"]
    after = "workers: 8\n  queue default\n" if wrong else "workers: 12\nqueue: default\n"
    settings["data"]["settings.yaml"] = after
    cluster.edit(settings, target, f"{target.name}: more workers", f"-{before}+{after}")
    pods = replace_pods(cluster, target)
    if wrong:
        crash_pods(cluster, target, pods, code=1)
        cluster.log(
            target,
            "FATAL",
            lambda _: "cannot load /etc/app/settings.yaml: yaml: line 2: could not find expected ':'",
            1.0,
        )
    return [cluster.ref("ConfigMap", target, f"{target.name}-settings")]


def drop_variable(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A variable goes that the application needs, or one that nothing reads."""
    environment = cluster.container(target)["env"]
    variable = environment[-1]["name"] if wrong else "LEGACY_MODE"
    cluster.container(target)["env"] = [e for e in environment if e["name"] != variable]
    pods = roll_out(cluster, target, f"{variable} removed", f"-  - name: {variable}\n")
    if wrong:
        crash_pods(cluster, target, pods, code=2)
        cluster.log(
            target, "FATAL", lambda _: f"required environment variable {variable} is not set, exiting", 1.0
        )
    return [cluster.workload_ref(target)]


def lock_file_system(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A read-only root file system, with a writable /tmp or without."""
    container = cluster.container(target)
    container["securityContext"] = {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False}
    if not wrong:
        cluster.pod_spec(target)["volumes"].append({"name": "scratch", "emptyDir": {}})
        container.setdefault("volumeMounts", []).append({"name": "scratch", "mountPath": "/tmp"})  # noqa: S108 - in a pod
    pods = roll_out(cluster, target, "hardened security context")
    if wrong:
        crash_pods(cluster, target, pods, code=1)
        cluster.log(target, "ERROR", lambda _: "cannot create /tmp/app.pid: Read-only file system", 1.0)
    return [cluster.workload_ref(target)]


def forbid_root(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The pod must not run as root; a user is set or not."""
    context: Manifest = {"runAsNonRoot": True}
    if not wrong:
        context["runAsUser"] = 10001
    cluster.container(target)["securityContext"] = context
    pods = roll_out(cluster, target, "no root")
    if wrong:
        for pod in pods:
            own = pod["metadata"]
            text = f'container has runAsNonRoot and image will run as root (pod: "{own["name"]}_{own["namespace"]}({own["uid"]})", container: {target.name})'
            keep_waiting(cluster, target, [pod], "CreateContainerConfigError", text)
    return [cluster.workload_ref(target)]


def lose_account(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The pods' ServiceAccount exists, or does not."""
    ref = cluster.ref("ServiceAccount", target, f"{target.name}-runner")
    if not wrong:
        cluster.state.add(make_manifest(cluster.random, ref, target.since - 60))
    cluster.pod_spec(target)["serviceAccountName"] = ref.name
    roll_out(cluster, target, "account of its own")
    if wrong:
        refuse_creation(
            cluster,
            target,
            f'pods "{{pod}}" is forbidden: error looking up service account {target.namespace}/{ref.name}: serviceaccount "{ref.name}" not found',
        )
    return [ref, cluster.workload_ref(target)]


def lose_rights(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The application may read its leases, or may not."""
    role = cluster.ref("Role", target, f"{target.name}-leases")
    verbs = ["get"] if wrong else ["get", "list", "watch", "update"]
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}
    cluster.state.add(make_manifest(cluster.random, role, target.since, rules=[rule]))
    binding = cluster.ref("RoleBinding", target, role.name)
    subject = {"kind": "ServiceAccount", "name": target.name, "namespace": target.namespace}
    body: Manifest = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role.name},
        "subjects": [subject],
    }
    cluster.state.add(make_manifest(cluster.random, binding, target.since, **body))
    cluster.record_change(target, f"{target.name}: rights cut down to what is needed")
    if wrong:
        text = f'leases.coordination.k8s.io is forbidden: User "system:serviceaccount:{target.namespace}:{target.name}" cannot list resource "leases" in API group "coordination.k8s.io" in the namespace "{target.namespace}"'
        fail_requests(cluster, target, 0.55, lambda _: text)
        for pod in cluster.pods(target):
            pod["status"]["containerStatuses"][0]["restartCount"] = 0
    return [role, binding]


_RELEASE = ("deploy", "config", "crash")
FAULTS = (
    ClusterFault("image_missing", "app", "image_pull", miss_image, "ITBench nonexistent-kubernetes-workload-container-image; SREGym incorrect_image", ("deploy", "config")),
    ClusterFault("image_unauthorized", "app", "image_pull", lack_pull_secret, "Kubernetes documents: private registries", ("permission", "deploy", "config")),
    ClusterFault("image_architecture", "app", "crash", use_other_architecture, "ITBench unsupported-architecture-kubernetes-workload-container-image", ("image_pull", *_RELEASE)),
    ClusterFault("command_missing", "app", "crash", set_command, "ITBench invalid-kubernetes-workload-container-command; SREGym wrong_bin_usage", _RELEASE),
    ClusterFault("config_map_missing", "app", "config", mount_config_map, "SREGym missing_configmap", _RELEASE),
    ClusterFault("config_key_missing", "app", "config", read_config_key, "SREGym configmap_drift", _RELEASE),
    ClusterFault("secret_missing", "app", "config", read_secret, "Kubernetes documents: Secrets", _RELEASE),
    ClusterFault("config_malformed", "app", "config", write_settings, "ITBench malformed-configmap-service-crash", _RELEASE),
    ClusterFault("variable_missing", "app", "config", drop_variable, "SREGym missing_env_variable", _RELEASE),
    ClusterFault("read_only_root", "app", "config", lock_file_system, "SREGym operator security_context_fault", ("permission", *_RELEASE)),
    ClusterFault("root_forbidden", "app", "config", forbid_root, "SREGym operator security_context_fault", ("permission", *_RELEASE)),
    ClusterFault("account_missing", "app", "permission", lose_account, "Kubernetes documents: service accounts", ("config", "deploy")),
    ClusterFault("rights_missing", "app", "permission", lose_rights, "SREGym rbac_misconfiguration", ("config", "errors", "deploy")),
)  # fmt: skip
