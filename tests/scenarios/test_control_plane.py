"""The control plane as a real process: what it does, what it counts, how it misbehaves."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsleuth.scenarios.case_folder import parse_epoch
from opsleuth.scenarios.control_plane import build_plane_server
from opsleuth.scenarios.orders_incident import NEW_STATEMENT, OLD_STATEMENT
from opsleuth.scenarios.plane.engine import OperationRequest, PlaneEngine
from opsleuth.scenarios.plane.ledger import PlaneLedger
from opsleuth.scenarios.plane.signals import generate_statements
from opsleuth.scenarios.plane.state import OPERATIONS, RELEASE_AGE, PlaneError, PlaneWorld
from opsleuth.scenarios.plane.switches import MODES, FaultSwitches

Start = Callable[[], httpx.Client]
NOW = 1_772_000_000.0
REFUND = {"target": "order-7", "arguments": {"amount_cents": 500}}


@pytest.fixture
def start(tmp_path: Path, importable: dict[str, str]) -> Iterator[Start]:
    """Starts a control plane on one state file; a second call starts it again after the first was killed."""
    processes: list[subprocess.Popen[str]] = []
    clients: list[httpx.Client] = []

    def run() -> httpx.Client:
        for process in processes:
            process.kill()
            process.wait()
        command = [
            sys.executable,
            "-m",
            "opsleuth.scenarios.control_plane",
            "--state",
            str(tmp_path / "plane.jsonl"),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=importable)
        processes.append(process)
        assert process.stdout is not None
        client = httpx.Client(base_url=f"http://127.0.0.1:{int(process.stdout.readline())}", timeout=10)
        clients.append(client)
        return client

    yield run
    for client in clients:
        client.close()
    for process in processes:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) in {0, -signal.SIGKILL}
        assert process.stdout is not None
        process.stdout.close()


def _applied(client: httpx.Client) -> list[str]:
    return [a["operation"] for a in client.get("/ledger").json()["applications"]]


def _latency(client: httpx.Client) -> float:
    rows = client.get("/metrics", params={"service": "orders-api", "metric": "latency_p50"}).json()["rows"]
    return float(rows[-1]["value"])


def test_a_rollback_makes_the_orders_api_well_again(start: Start) -> None:
    client = start()
    assert client.get("/services/orders-api").json()["health"] == "degraded"
    assert _latency(client) > 500
    body = {"target": "orders-api", "arguments": {"version": "2.13.4"}}
    assert client.post("/operations/rollback", json=body).json()["status"] == "done"
    assert client.get("/services/orders-api").json()["health"] == "healthy"
    assert _latency(client) < 100
    captures = client.get("/statements").json()["rows"]
    texts = [row["statement"] for row in captures if row["captured_at"] == captures[-1]["captured_at"]]
    assert OLD_STATEMENT in texts
    assert NEW_STATEMENT not in texts
    changes = client.get("/changes", params={"service": "orders-api"}).json()["rows"]
    assert [row["kind"] for row in changes] == ["deploy", "rollback"]
    assert client.get("/logs", params={"service": "orders-api", "level": "WARN"}).json()["rows"]


def test_counts_and_keys_survive_a_kill(start: Start) -> None:
    client = start()
    for key in ("a", "b"):
        client.post("/operations/refund", json=REFUND, headers={"Idempotency-Key": key})
    client = start()
    assert _applied(client) == ["refund", "refund"]
    again = client.post("/operations/refund", json=REFUND, headers={"Idempotency-Key": "a"})
    assert again.json()["replayed"] is True
    assert client.get("/state").json()["refunded_cents"] == {"order-7": 1000}


def test_a_dropped_connection_was_applied_and_the_key_keeps_it_from_happening_twice(start: Start) -> None:
    client = start()
    client.post("/switches", json={"operation": "refund", "mode": "drop", "times": 1})
    headers = {"Idempotency-Key": "k1"}
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        client.post("/operations/refund", json=REFUND, headers=headers)
    assert client.get("/applied/refund", params={"key": "k1"}).json()["applied"][0]["target"] == "order-7"
    assert client.post("/operations/refund", json=REFUND, headers=headers).json()["replayed"] is True
    assert _applied(client) == ["refund"]


def test_without_keys_a_repeated_refund_adds_up(start: Start) -> None:
    client = start()
    client.post("/switches", json={"operation": "refund", "honours_keys": False, "readable": False})
    for _ in range(2):
        client.post("/operations/refund", json=REFUND, headers={"Idempotency-Key": "k1"})
    assert _applied(client) == ["refund", "refund"]
    assert client.get("/applied/refund").status_code == 403
    assert "refunded_cents" not in client.get("/state").json()


def test_a_hanging_request_holds_up_nobody_else(start: Start) -> None:
    client = start()
    client.post("/switches", json={"operation": "message", "mode": "hang_applied", "times": 1})
    body = {"target": "#incidents", "arguments": {"text": "orders are slow"}}
    with pytest.raises(httpx.ReadTimeout):
        client.post("/operations/message", json=body, timeout=0.3)
    assert _applied(client) == ["message"]


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/operations/rollback", {"target": "orders", "arguments": {}}, 404, "there are web"),
        ("/operations/explode", {"target": "web"}, 404, "choose from restart"),
        ("/operations/scale", {"target": "web", "arguments": {"replicas": True}}, 400, "replicas (int)"),
        ("/operations/scale", {"target": "web", "arguments": {"replicas": 51}}, 400, "0 to 50"),
        ("/operations/refund", {"target": "o", "arguments": {"amount_cents": 0}}, 400, "above 0"),
        ("/operations/message", {"target": "#c", "arguments": {}}, 400, "missing: text"),
        ("/operations/restart", {"target": "web", "force": True}, 400, "target"),
        ("/operations/restart", [1], 400, "JSON object"),
        ("/switches", {"operation": "refund", "mode": "explode"}, 400, "choose from normal"),
        ("/switches", {"operation": "refund", "moode": "drop"}, 400, "honours_keys"),
    ],
)
def test_wrong_requests_are_refused_with_the_choices(
    server: httpx.Client, path: str, body: object, status: int, says: str
) -> None:
    answer = server.post(path, json=body)
    assert answer.status_code == status
    assert says in answer.json()["error"]
    assert _applied(server) == []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One control plane in this process, for requests that change nothing."""
    plane = build_plane_server(tmp_path_factory.mktemp("plane") / "state.jsonl")
    thread = Thread(target=plane.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{plane.server_port}", timeout=10) as client:
        yield client
    plane.shutdown()
    thread.join()
    plane.stop()


def test_a_service_has_a_revision_to_match(server: httpx.Client) -> None:
    assert server.get("/services/web").headers["ETag"] == '"1"'


def test_signals_repeat_and_keep_to_their_span(server: httpx.Client) -> None:
    now = server.get("/metrics", params={"step": 60}).json()["rows"][-1]["timestamp"]
    span = {"from": now[:14] + "00:00Z", "to": now}
    first, second = (server.get("/logs", params=span).json()["rows"] for _ in range(2))
    assert first == second
    assert first
    assert all(row["timestamp"][:19] >= span["from"][:19] for row in first)
    assert server.get("/logs", params={"from": now, "to": "2020-01-01T00:00:00Z"}).status_code == 400
    assert {"caller": "web", "callee": "gateway"} in server.get("/topology").json()["rows"]


def _engine(folder: Path) -> PlaneEngine:
    return PlaneEngine(
        PlaneWorld(PlaneLedger(folder / "plane.jsonl", NOW)),
        FaultSwitches(frozenset(OPERATIONS)),
        lambda: NOW,
    )


def _request(key: str | None = None, if_match: str | None = None) -> OperationRequest:
    return OperationRequest("scale", "web", {"replicas": 5}, key, if_match)


@pytest.mark.parametrize("mode", sorted(MODES))
def test_every_mode_applies_what_it_says(tmp_path: Path, mode: str) -> None:
    engine = _engine(tmp_path)
    engine.switches.set("scale", {"mode": mode, "seconds": 0.01})
    when, how = MODES[mode]
    assert engine.submit(_request("k")).how == how
    engine.wait()
    assert len(list(engine.world.applications)) == (when != "never")
    assert engine.world.services["web"].replicas == (3 if when == "never" else 5)


def test_a_key_that_is_waiting_is_not_applied_again(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    engine.switches.set("*", {"mode": "late", "seconds": 0.01})
    with engine.world.lock:  # nothing is applied before both are in
        assert engine.submit(_request("k")).status == 202
        assert engine.submit(_request("k")).document["replayed"] is True
        assert list(engine.world.applications) == []
    engine.wait()
    assert len(list(engine.world.applications)) == 1


def test_a_key_for_another_request_is_refused(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    engine.submit(_request("k"))
    with pytest.raises(PlaneError, match="was used for scale of web"):
        engine.submit(OperationRequest("restart", "web", {}, "k"))


def test_a_conditional_write_needs_the_present_revision(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    engine.submit(_request(if_match='"1"'))
    with pytest.raises(PlaneError, match="at revision 2"):
        engine.submit(_request(if_match='"1"'))
    assert len(list(engine.world.applications)) == 1


def test_a_deleted_service_is_gone(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    engine.submit(OperationRequest("delete", "web", {}))
    with pytest.raises(PlaneError, match="no service 'web'"):
        engine.submit(_request())


def test_a_line_cut_by_a_crash_is_dropped(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    engine.submit(_request())
    with (tmp_path / "plane.jsonl").open("ab") as file:
        file.write(b'{"n": 2, "operation": "ref')
    engine = _engine(tmp_path)
    engine.submit(_request())
    assert [a.n for a in PlaneLedger(tmp_path / "plane.jsonl", 0).applications] == [1, 2]


_ASKS = st.one_of(
    st.tuples(st.just("restart"), st.sampled_from(["web", "payments"]), st.just({})),
    st.tuples(st.just("scale"), st.just("web"), st.fixed_dictionaries({"replicas": st.integers(0, 50)})),
    st.tuples(st.just("rollback"), st.just("orders-api"), st.just({})),
    st.tuples(
        st.just("flag"), st.just("web"), st.fixed_dictionaries({"flag": st.just("f"), "on": st.booleans()})
    ),
    st.tuples(st.just("message"), st.just("#c"), st.just({"text": "t"})),
    st.tuples(st.just("refund"), st.just("o"), st.fixed_dictionaries({"amount_cents": st.integers(1, 9)})),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    asks=st.lists(st.tuples(_ASKS, st.one_of(st.none(), st.integers(0, 5)))),
    modes=st.sampled_from(["normal", "drop"]),
)
def test_a_world_started_again_is_the_world_that_was(
    tmp_path_factory: pytest.TempPathFactory,
    asks: list[tuple[tuple[str, str, dict[str, object]], int | None]],
    modes: str,
) -> None:
    folder = tmp_path_factory.mktemp("world")
    engine = _engine(folder)
    engine.switches.set("*", {"mode": modes})
    seen: set[int] = set()
    expected = 0
    for (operation, target, arguments), key in asks:
        try:
            engine.submit(
                OperationRequest(operation, target, arguments, None if key is None else f"{operation}-{key}")
            )
        except PlaneError:
            continue
        label = hash((operation, key))
        expected += key is None or label not in seen
        seen |= set() if key is None else {label}
    again = _engine(folder).world
    assert len(list(again.applications)) == expected
    assert again.services == engine.world.services
    assert (again.messages, again.refunded_cents) == (engine.world.messages, engine.world.refunded_cents)


def test_the_port_is_printed_first_and_switches_are_taken_at_the_start(
    tmp_path: Path, importable: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "opsleuth.scenarios.control_plane", "--state", str(tmp_path / "s.jsonl")]
    switch = json.dumps({"operation": "refund", "mode": "refuse", "status": 403})
    with subprocess.Popen(
        [*command, "--switch", switch], stdout=subprocess.PIPE, text=True, env=importable
    ) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        assert httpx.post(f"{url}/operations/refund", json=REFUND).status_code == 403
        process.terminate()
        assert process.wait(timeout=10) == 0
    wrong = subprocess.run(
        [*command, "--switch", '{"mode": "no"}'], capture_output=True, text=True, check=False, env=importable
    )
    assert wrong.returncode == 2
    assert "choose from normal" in wrong.stderr


def test_many_at_once_with_one_key_are_one_refund(server: httpx.Client) -> None:
    url = str(server.base_url)

    def send() -> None:
        httpx.post(f"{url}/operations/refund", json=REFUND, headers={"Idempotency-Key": "same"}, timeout=10)

    threads = [Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.get("/applied/refund", params={"key": "same"}).json()["applied"]) == 1


@pytest.mark.parametrize("second", range(0, 900, 75))
def test_the_new_statement_is_captured_long_after_the_release_whenever_the_demo_starts(
    tmp_path: Path, second: int
) -> None:
    """Seen within minutes of the release it would be blamed on that, and the demo would tell another cause."""
    born = NOW + second
    world = PlaneWorld(PlaneLedger(tmp_path / "plane.jsonl", born))
    rows = list(generate_statements(world, born - 5400, born + 3))
    new = [parse_epoch(row["captured_at"]) for row in rows if row["statement"] == NEW_STATEMENT]
    old = [parse_epoch(row["captured_at"]) for row in rows if row["statement"] == OLD_STATEMENT]
    assert min(new) - (born - RELEASE_AGE) > 900
    assert len(old) >= 3
