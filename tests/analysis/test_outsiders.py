"""Suspects outside the call graph step back behind those inside it."""

from typing import Any

from cluster_objects import ONSET, deployment, pod, recorded, whole

from opsleuth.analysis.outsiders import demote_outsiders
from opsleuth.analysis.records import AlertFacts, Finding, Suspect

CALLS = [("web", "cart"), ("cart", "cart-db")]


def make_suspect(service: str, kind: str, score: float, **figures: object) -> Suspect:
    finding = Finding("platform", "objects", service, kind, 9.0, f"{service}: {kind}.", figures)
    return Suspect(service, kind, score, [finding], None, None)


def list_scores(*suspects: Suspect, away: str | None = None, alert: str = "web fails") -> dict[str, float]:
    place: dict[str, Any] = {"namespace": away} if away else {}
    recording = recorded(
        deployment("web"), deployment("cart"), pod("cart", node="node-b"), deployment("report", **place), whole("Node", "node-a", namespace=None),
        whole("Node", "node-b", namespace=None), pod("report", number=3, **place), calls=CALLS,
        alert=AlertFacts(alert, service="web", onset=ONSET),
    )  # fmt: skip
    return {s.service: s.score for s in demote_outsiders(recording, suspects)}


def test_outsider_steps_back_behind_a_named_fault_inside() -> None:
    scores = list_scores(make_suspect("report", "config", 0.9), make_suspect("cart", "image_pull", 0.8))
    assert scores == {"cart": 0.8, "report": 0.45}


def test_outsider_in_the_same_namespace_stays_before_a_mere_symptom() -> None:
    scores = list_scores(make_suspect("report", "config", 0.9), make_suspect("cart", "errors", 0.8))
    assert scores == {"report": 0.9, "cart": 0.8}


def test_outsider_in_a_foreign_namespace_steps_back_behind_a_symptom() -> None:
    suspects = make_suspect("report", "config", 0.9), make_suspect("cart", "errors", 0.8)
    assert list_scores(*suspects, away="staging")["report"] == 0.45


def test_outsider_is_all_there_is() -> None:
    assert list_scores(make_suspect("report", "config", 0.9)) == {"report": 0.9}


def test_outsider_that_the_alert_names_or_that_harms_an_insider_keeps_its_score() -> None:
    inside = make_suspect("cart", "image_pull", 0.8)
    assert list_scores(make_suspect("report", "config", 0.9), inside, alert="report is late")["report"] == 0.9
    assert list_scores(make_suspect("report", "config", 0.9, victims=["cart"]), inside)["report"] == 0.9


def test_node_counts_as_inside_where_it_runs_a_service_of_the_calls() -> None:
    inside = make_suspect("cart", "image_pull", 0.8)
    assert list_scores(make_suspect("node-b", "network_loss", 0.9), inside)["node-b"] == 0.9
    assert list_scores(make_suspect("node-a", "network_loss", 0.9), inside)["node-a"] == 0.45
