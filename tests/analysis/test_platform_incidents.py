"""Whole made-up incidents of platforms and databases through all detectors and the ranking."""

from typing import Any

import pytest
from platform_rows import END, ONSET, START, crashing, event, lines, pod, recording, row

from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import (
    MetricSeries,
    ObjectState,
    Ranking,
    Recording,
    ServiceDependency,
    StatementLoad,
)

POD = "web-7c9d8b6f5-x2k4p"


def ranked(incident: Recording) -> Ranking:
    return rank_findings(incident, run_detectors(incident))


def first(incident: Recording) -> tuple[str, str]:
    found = ranked(incident)
    assert found.verdict == "cause_found"
    return found.suspects[0].service, found.suspects[0].kind


def series(metric: str, unit: str, before: float, after: float, service: str = "db") -> MetricSeries:
    times = [START + 60.0 * n for n in range(int((END - START) / 60))]
    ripple = [1.0 + 0.01 * (n % 3) for n in range(len(times))]
    return MetricSeries(
        service,
        metric,
        unit,
        times,
        [(after if t >= ONSET else before) * r for t, r in zip(times, ripple, strict=True)],
    )


def rds(time: float, message: str, reason: str = "notification") -> object:
    return event("db", reason, message, source="rds", type="Normal", time=time)


def test_a_failover_in_the_window() -> None:
    incident = recording(
        service="db",
        text="connections of db dropped to zero and came back",
        events=[
            rds(ONSET - 20, "Multi-AZ instance failover started.", "failover"),
            rds(ONSET + 40, "Multi-AZ instance failover completed", "failover"),
            rds(ONSET + 45, "The instance is available.", "availability"),
        ],
        metrics=[series("DatabaseConnections", "Count", 200.0, 20.0)],
    )
    assert first(incident) == ("db", "failover")


def test_sessions_used_up_by_clients_that_hold_them() -> None:
    incident = recording(
        service="db",
        text="connections of db near the maximum",
        metrics=[series("DatabaseConnections", "Count", 100.0, 495.0)],
        events=[rds(ONSET + 60, "The instance has reached its maximum number of connections")],
        statements=[
            StatementLoad(
                END,
                "db",
                "SELECT 1",
                calls_per_sec=2.0,
                load=40.0,
                waits={"Client:ClientRead": 39.0, "CPU": 1.0},
            )
        ],
    )
    assert first(incident) == ("db", "connections")


def test_an_image_that_cannot_be_pulled_is_not_a_name_that_cannot_be_resolved() -> None:
    incident = recording(
        events=[
            event(f"Pod/{POD}", "Failed", 'Failed to pull image "r/x:1": lookup r: no such host', count=4)
        ],
        objects=[crashing(POD, "ImagePullBackOff", restart_count=0)],
    )
    assert first(incident) == ("web", "image_pull")


def test_a_missing_setting_stands_above_the_crash_loop_and_the_stuck_rollout() -> None:
    incident = recording(
        text="rollout of web is stuck",
        events=[
            event(f"Pod/{POD}", "BackOff", "Back-off restarting failed container", count=6),
            event("Deployment/web", "ProgressDeadlineExceeded", "ReplicaSet has timed out progressing."),
        ],
        objects=[crashing(POD), row("Deployment", "web", ready="0/1", age="20m")],
        logs=lines("web", ["starting", "FATAL: required environment variable TOKEN is not set"]),
    )
    assert first(incident) == ("web", "config")


def test_a_full_volume_stands_above_the_locks_that_it_causes() -> None:
    incident = recording(
        service="db",
        text="writes of db time out",
        events=[rds(ONSET, "The instance ran out of storage space.")],
        statements=[
            StatementLoad(END, "db", "INSERT", calls_per_sec=0.0, load=9.0, waits={"Lock:relation": 9.0})
        ],
    )
    assert first(incident) == ("db", "storage_full")


def test_two_independent_troubles_of_one_database_are_both_listed() -> None:
    incident = recording(
        service="db",
        text="db is short of CPU and of space",
        events=[rds(ONSET, "Storage space is critically low: 4 GB free of 200 GB")],
        statements=[StatementLoad(END, "db", "SELECT", calls_per_sec=2.0, load=7.0, waits={"CPU": 7.0})],
    )
    assert {s.kind for s in ranked(incident).suspects[:2]} == {"slow_query", "storage_full"}


def test_a_callee_that_refuses_connections_is_blamed_not_its_caller() -> None:
    incident = recording(
        logs=lines("web", ["call to http://cart:80: connection refused"] * 9),
        objects=[crashing("cart-7c9d8b6f5-x2k4p"), pod(POD)],
        topology=[ServiceDependency("web", "cart")],
    )
    assert first(incident) == ("cart", "crash")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            "Pod of web was pending",
            {
                "events": [event(f"Pod/{POD}", "FailedScheduling", "0/2 nodes are available", time=ONSET)],
                "objects": [pod(POD)],
            },
        ),
        (
            "rollout of web stuck",
            {
                "events": [
                    event("Deployment/web", "ProgressDeadlineExceeded", "exceeded its progress deadline")
                ],
                "objects": [row("Deployment", "web", ready="3/3", age="6d"), pod(POD)],
            },
        ),
        (
            "web restarted once",
            {
                "events": [
                    event(f"Pod/{POD}", "BackOff", "Back-off restarting failed container", time=ONSET)
                ],
                "objects": [
                    pod(POD, restart_count=1, state={"running": {"startedAt": "1970-01-01T11:40:00Z"}})
                ],
                "logs": lines("web", ["started", *["handled a request"] * 30], ONSET, 30.0),
            },
        ),
        (
            "scheduled check of web",
            {
                "objects": [pod(POD), ObjectState(END, "Monitor", "latency", "OK")],
                "logs": lines("web", ["ok"] * 9),
            },
        ),
    ],
)
def test_stale_alerts_blame_nobody(text: str, rows: dict[str, Any]) -> None:
    found = ranked(recording(text=text, **rows))
    assert (found.verdict, found.suspects) == ("healthy", [])


def test_storage_that_was_extended_in_time_blames_nobody() -> None:
    incident = recording(
        service="db",
        text="free storage of db is low",
        events=[
            rds(ONSET, "Storage space is critically low: 4 GB free of 200 GB"),
            rds(ONSET + 300, "Storage autoscaling completed; 120 GB free of 320 GB"),
        ],
    )
    assert ranked(incident).suspects == []
