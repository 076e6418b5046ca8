"""Jobs that never end, fail or never start, and deletions that hang: no request notices them."""

from collections.abc import Sequence

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest, record_edit, ref_of
from opsleuth.scenarios.cluster.workloads import add_pod

Entities = Sequence[EntityRef]


def _job_of(cluster: ClusterScene, target: Target) -> tuple[Manifest, Manifest]:
    cron = cluster.state.get("CronJob", target.name, target.namespace)
    return cron, cluster.state.owned_by(cron, "Job")[0]


def block_job(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A job with a sidecar that ends with it, or that runs for ever."""
    cron, job = _job_of(cluster, target)
    container = {
        "name": "shipper",
        "image": "registry.example/log-shipper:2.2.0",
        "args": ["--follow"] if wrong else ["--until-exit"],
    }
    for spec in (cron["spec"]["jobTemplate"]["spec"], job["spec"]):
        spec["template"]["spec"]["containers"].append(dict(container))
    record_edit(cron, target.since - 40_000, "helm")
    started = cluster.base.timing.start - 3600 * 11
    if wrong:
        job["status"] = {"active": 1, "ready": 1, "startTime": format_utc(int(started))}
        cron["status"] = {
            "active": [{"kind": "Job", "name": job["metadata"]["name"], "namespace": target.namespace}],
            "lastScheduleTime": format_utc(int(started)),
            "lastSuccessfulTime": format_utc(int(started - 86_400)),
        }
        cluster.event(
            cron,
            "JobAlreadyActive",
            "Not starting job because prior execution is running and concurrency policy is Forbid",
            target,
            kind="Normal",
        )
        job["spec"]["template"].setdefault("metadata", {"labels": {"job-name": job["metadata"]["name"]}})
        pod = add_pod(
            cluster, job, f"{job['metadata']['name']}-{cluster.suffix()}", cluster.nodes[0], started
        )
        ended = {"exitCode": 0, "reason": "Completed", "finishedAt": format_utc(int(started + 200))}
        pod["status"]["containerStatuses"][0] |= {"ready": False, "state": {"terminated": ended}}
    return [ref_of(cron), ref_of(job)]


def fail_job(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The job's last run ended well, or gave up after its retries."""
    cron, job = _job_of(cluster, target)
    if wrong:
        why = {
            "type": "Failed",
            "status": "True",
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
        }
        job["status"] = {
            "startTime": job["status"]["startTime"],
            "failed": 4,
            "conditions": [why | {"lastTransitionTime": format_utc(int(target.since))}],
        }
        cron["status"].pop("lastSuccessfulTime", None)
        cluster.event(
            job, "BackoffLimitExceeded", "Job has reached the specified backoff limit", target, repeats=False
        )
        cluster.log(
            target, "ERROR", lambda _: "Traceback (most recent call last): KeyError: 'REPORT_BUCKET'", 0.3
        )
    return [ref_of(job), ref_of(cron)]


def suspend_job(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The job runs every night, or is suspended and was forgotten."""
    cron, _ = _job_of(cluster, target)
    cron["spec"]["suspend"] = wrong
    record_edit(cron, target.since, "kubectl-patch")
    cluster.record_change(target, f"{target.name}: {'paused for the migration' if wrong else 'resumed'}")
    if wrong:
        last = cluster.base.timing.start - 86_400 * 3
        cron["status"] = {
            "lastScheduleTime": format_utc(int(last)),
            "lastSuccessfulTime": format_utc(int(last + 240)),
        }
    return [ref_of(cron)]


def hold_deletion(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A claim that is used and protected, or one whose deletion waits for a controller that is gone."""
    ref = cluster.ref("PersistentVolumeClaim", target, f"{target.name}-scratch")
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": "standard",
    }
    claim = cluster.state.add(
        make_manifest(cluster.random, ref, target.since - 86_400, spec=spec, status={"phase": "Bound"})
    )
    claim["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    if wrong:
        claim["metadata"] |= {
            "deletionTimestamp": format_utc(int(target.since)),
            "deletionGracePeriodSeconds": 0,
            "finalizers": ["backup.example.com/snapshot"],
        }
    return [ref]


FAULTS = (
    ClusterFault("job_sidecar", "job", "config", block_job, "SREGym cronjob_sidecar_blocks_completion", ("other", "deploy", "probe"), alert="KubeJobNotCompleted: a job of {namespace}/{name} takes more than 10 hours to complete."),
    ClusterFault("job_failed", "job", "crash", fail_job, "Kubernetes documents: jobs", ("exception", "errors", "config", "other"), alert="KubeJobFailed: a job in namespace {namespace} failed to complete."),
    ClusterFault("job_suspended", "job", "config", suspend_job, "Kubernetes documents: CronJob", ("other", "scheduling"), alert="The result of {namespace}/{name} is three days old."),
    ClusterFault("deletion_held", "app", "config", hold_deletion, "SREGym finalizer_deadlock_controller", ("other", "storage_full", "disk"), alert="A PersistentVolumeClaim in namespace {namespace} has been terminating for more than 15 minutes."),
)  # fmt: skip
