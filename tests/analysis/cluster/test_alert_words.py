"""What people say of an object, and what a probe or a missing certificate does, in the words of real clusters."""

import pytest
from cluster_objects import (
    FAILING,
    NAMESPACE,
    READ_AT,
    WINDOW,
    deployment,
    found_by,
    pod,
    states,
    view,
    whole,
)

from opsleuth.analysis.cluster.alert_words import is_job_spoken_of, is_object_named
from opsleuth.analysis.cluster.jobs import find_job_troubles
from opsleuth.analysis.cluster.objects import ObjectRef
from opsleuth.analysis.cluster.references import find_dangling_references
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, PlatformEvent, Recording
from opsleuth.scenarios.case_folder import format_utc


@pytest.mark.parametrize(
    ("kind", "text", "named"),
    [
        ("HorizontalPodAutoscaler", "web is slow under load and does not scale", True),
        ("HorizontalPodAutoscaler", "the HPA of web does nothing", True),
        ("HorizontalPodAutoscaler", "web is slow", False),
        ("HorizontalPodAutoscaler", "cart does not scale", False),
        ("Ingress", "the certificate of web is not trusted", True),
        ("Ingress", "web is slow", False),
        ("PodDisruptionBudget", "draining nodes hangs on web", True),
        ("PodDisruptionBudget", "web is slow", False),
        ("ConfigMap", "configmap web is wrong", True),
    ],
)
def test_object_is_named_by_its_name_and_a_word_for_its_kind(kind: str, text: str, named: bool) -> None:
    assert is_object_named(ObjectRef(kind, NAMESPACE, "web"), "web", text) is named


@pytest.mark.parametrize(
    ("name", "text", "spoken"),
    [
        ("settle-payments", "settlements are 13 hours behind", True),
        ("settle-payments", "payments fail", False),
        ("nightly-report", "reports of last night are missing", True),
        ("sync-job", "the job queue is slow", False),
    ],
)
def test_job_is_spoken_of_by_its_work(name: str, text: str, spoken: bool) -> None:
    services = {"payments", "web"}
    assert is_job_spoken_of(ObjectRef("CronJob", NAMESPACE, name), text, services) is spoken
    assert is_job_spoken_of(ObjectRef("Deployment", NAMESPACE, name), text, services) is False


@pytest.mark.parametrize("reason", ["JobAlreadyActive", "MissSchedule"])
@pytest.mark.parametrize("ago", [60.0, 7200.0])
def test_start_that_was_left_out_in_the_window_is_new_trouble(reason: str, ago: float) -> None:
    schedule = whole("CronJob", "settle", {"schedule": "*/10 * * * *"})
    owner = {"ownerReferences": [{"kind": "CronJob", "name": "settle"}]}
    status = {"active": 1, "startTime": format_utc(READ_AT - 50_000.0)}
    job = whole("Job", "settle-28912", status=status, metadata=owner)
    event = PlatformEvent(READ_AT - ago, "kubernetes", "CronJob/settle", "Normal", reason, "not started")
    [found] = found_by(find_job_troubles, view(schedule, job, events=[event]))
    assert found.since == READ_AT - (60.0 if ago == 60.0 else 50_000.0)


TLS = {"tls": [{"hosts": ["shop.example"], "secretName": "shop-tls"}], "rules": [{"host": "shop.example"}]}


@pytest.mark.parametrize(("secret", "kinds"), [("other", ["certificate"]), ("shop-tls", [])])
@pytest.mark.parametrize(("alert", "latent"), [("shop.example is not trusted", False), ("web is slow", True)])
def test_certificate_that_is_in_no_secret(secret: str, kinds: list[str], alert: str, latent: bool) -> None:
    seen = view(whole("Ingress", "shop", TLS), whole("Secret", secret), alert=AlertFacts(alert))
    found = found_by(find_dangling_references, seen)
    assert [d.kind for d in found] == kinds
    assert [d.latent for d in found] == [latent for _ in kinds]


def test_secrets_that_were_not_listed_are_not_missing() -> None:
    assert found_by(find_dangling_references, view(whole("Ingress", "shop", TLS))) == []


@pytest.mark.parametrize("probe", ["Liveness", "Startup", "Readiness"])
@pytest.mark.parametrize("code", [1, 137, 143])
def test_container_that_the_kubelet_ended_did_not_crash_by_itself(probe: str, code: int) -> None:
    ended = {"reason": "Error", "exitCode": code, "finishedAt": format_utc(READ_AT - 60.0)}
    row = {
        "name": "web",
        "ready": False,
        "restartCount": 6,
        "state": {"running": {"startedAt": format_utc(READ_AT - 50.0)}},
    }
    made = pod("web", ready=False, status={"containerStatuses": [row | {"lastState": {"terminated": ended}}]})
    message = f"{probe} probe failed: dial tcp 10.1.0.1:9090: connect: connection refused"
    event = PlatformEvent(
        READ_AT - 90.0, "kubernetes", f"Pod/{made['metadata']['name']}", "Warning", "Unhealthy", message
    )
    recording = Recording(FAILING, WINDOW, objects=states(deployment("web", ready=0), made), events=[event])
    ranking = rank_findings(recording, run_detectors(recording))
    killed = probe != "Readiness" and code != 1
    assert (ranking.suspects[0].kind == "probe") is killed
