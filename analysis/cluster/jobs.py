"""Jobs and cron jobs that do not complete, or are kept from starting."""

from collections.abc import Iterator

from opsleuth.analysis.cluster.deviation import (
    ClusterView,
    Deviation,
    format_describe_command,
    format_kubectl,
)
from opsleuth.analysis.cluster.model import container_states
from opsleuth.analysis.cluster.objects import ClusterObject, ObjectRef, get_part, number_of, parse_moment
from opsleuth.analysis.fault_phrases import ACTS, NAMES_CAUSE
from opsleuth.analysis.records import PlatformEvent

# A job that runs for half a day is stuck more often than long; an alert that names it says so.
_LONG_SECONDS = 12 * 3600.0
# What the controller of cron jobs says of a start that it leaves out.
_REFUSED = frozenset({"JobAlreadyActive", "MissSchedule", "FailedNeedsStart", "TooManyMissedTimes"})


def find_job_troubles(view: ClusterView) -> Iterator[Deviation]:
    """Jobs that failed or run on and on, and cron jobs that are suspended or held up by them."""
    for job in view.cluster.of_kind("Job"):
        yield from _find_failed_job(job, view)
        yield from _find_stuck_job(job, view)
    for cron in view.cluster.of_kind("CronJob"):
        if cron.spec.get("suspend") is True:
            yield Deviation(
                entity=cron.ref,
                kind="config",
                weight=NAMES_CAUSE,
                text=f"{cron.ref} is suspended: it starts no jobs",
                service=cron.ref.name,
                latent=cron.ref.name not in view.alert.text,
                show=format_describe_command(cron.ref),
                undo=format_kubectl("patch", cron.ref, """-p '{"spec":{"suspend":false}}'"""),
                figures={"chosen": True},
            )


def _find_failed_job(job: ClusterObject, view: ClusterView) -> Iterator[Deviation]:
    condition = job.condition("Failed")
    if condition.get("status") != "True":
        return
    entity = _schedule_of(job, view) or job.ref
    yield Deviation(
        entity=entity,
        kind="crash",
        weight=ACTS,
        text=f"{job.ref} failed ({condition.get('reason')}): {str(condition.get('message', ''))[:300]}",
        service=entity.name,
        since=parse_moment(condition.get("lastTransitionTime")),
        show=format_describe_command(job.ref),
    )


def _find_stuck_job(job: ClusterObject, view: ClusterView) -> Iterator[Deviation]:
    active, started = number_of(job.status.get("active")), parse_moment(job.status.get("startTime"))
    if not active or started is None or job.read_at is None:
        return
    entity = _schedule_of(job, view) or job.ref
    hours = (job.read_at - started) / 3600.0
    held = _held_up_by(job, view)
    refused = _find_refused_start(entity, view)
    named = job.ref.name in view.alert.text or entity.name in view.alert.text
    if held is None and not (named or job.read_at - started >= _LONG_SECONDS):
        return
    text = f"{job.ref} has been active for {hours:.1f} h"
    if held:
        main, other = held
        text += (
            f": container {main} has completed, container {other} runs on and keeps the pod from completing"
        )
    if refused:
        text += f"; {entity} cannot start another one ({refused.reason})"
    yield Deviation(
        entity=entity,
        kind="config" if held else "other",
        weight=NAMES_CAUSE if held else ACTS,
        text=text,
        service=entity.name,
        since=refused.time if refused and refused.began is not None else started,
        show=format_describe_command(job.ref),
        undo=format_kubectl("edit", entity),
        figures={"hours": round(hours, 1)},
    )


def _find_refused_start(schedule: ObjectRef, view: ClusterView) -> PlatformEvent | None:
    """That the schedule was due in this window, and did not start a job."""
    told = [e for e in view.events_of(schedule) if e.reason in _REFUSED and e.time >= view.window.start]
    return told[-1] if told else None


def _held_up_by(job: ClusterObject, view: ClusterView) -> tuple[str, str] | None:
    """A container of the job's pod that has completed, and another that runs on."""
    for pod in view.cluster.of_kind("Pod"):
        owned = any(row.get("kind") == "Job" and row.get("name") == job.ref.name for row in pod.owners)
        alike = pod.ref.namespace == job.ref.namespace and (
            pod.labels.get("job-name") == job.ref.name
            or pod.ref.name.startswith(f"{job.ref.name}-")
            or pod.ref.name.rpartition("-")[0].rpartition("-")[0] == job.ref.name.rpartition("-")[0] != ""
        )
        if not (owned or alike):
            continue
        states = list(container_states(pod))
        done = [n for n, row in states if get_part(row, "state", "terminated").get("exitCode") == 0]
        on = [n for n, row in states if get_part(row, "state", "running")]
        if done and on:
            return done[-1], on[0]
    return None


def _schedule_of(job: ClusterObject, view: ClusterView) -> ObjectRef | None:
    """The cron job that made a job: by owner, else by the name that it derives, where anything names it."""
    for row in job.owners:
        if row.get("kind") == "CronJob":
            return ObjectRef("CronJob", job.ref.namespace, str(row.get("name")))
    name, _, number = job.ref.name.rpartition("-")
    if not number.isdigit() or not name:
        return None
    told = any(event.object == f"CronJob/{name}" for event in view.events)
    known = view.cluster.get("CronJob", job.ref.namespace, name)
    return ObjectRef("CronJob", job.ref.namespace, name) if told or known else None
