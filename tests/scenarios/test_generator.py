"""Generated incidents: repeatable, in the published format, and true to their key."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsleuth.scenarios.case_folder import parse_epoch
from opsleuth.scenarios.faults import FAULTS
from opsleuth.scenarios.generator import (
    KINDS,
    LEVELS,
    AnswerKey,
    generate_incident,
    generate_incident_set,
)
from opsleuth.state.conclusion import KINDS as KNOWN

Check = Callable[[Path], dict[str, list[dict[str, Any]]]]


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(KINDS),
    level=st.sampled_from(sorted(LEVELS)),
    seed=st.integers(0, 10**6),
    decoys=st.booleans(),
)
@pytest.mark.slow
def test_any_case_is_repeatable_valid_and_true_to_its_key(
    check_case: Check, kind: str, level: str, seed: int, decoys: bool
) -> None:
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        one, two = Path(first) / "case", Path(second) / "case"
        key = generate_incident(kind, level, seed, one, decoys=decoys)
        assert generate_incident(kind, level, seed, two, decoys=decoys) == key
        assert _bytes(one) == _bytes(two)
        tables = check_case(one)
        services = set(json.loads((one / "incident.json").read_text())["services"])
        _check_key(key, kind, services)
        measured = {row["service"] for row in tables["metrics.csv"]}
        assert measured == services
        if kind != "healthy":
            assert set(key["acceptable_services"]) <= measured


def _check_key(key: AnswerKey, kind: str, services: set[str]) -> None:
    if kind == "healthy":
        assert key["verdict"] == "healthy"
        assert key["root_cause_service"] is None
        return
    assert key["verdict"] == "cause_found"
    assert key["root_cause_service"] in services
    assert key["kind"] in key["acceptable_kinds"]
    assert not set(key["must_not_blame"]) & set(key["acceptable_services"])
    if kind == "two_causes":
        assert len({cause["service"] for cause in key["causes"]}) == 2


# Kind, the metric that its own key service must show, by any dialect's name, and the direction.
_SHOWN = {
    "cpu": ("cpu",),
    "latency": ("latency_p50", "p50"),
    "errors": ("errors", "error"),
    "disk": ("disk_queue", "queue"),
    "connections": ("connections",),
    "traffic": ("request",),
}


@pytest.mark.parametrize("kind", sorted(_SHOWN))
@pytest.mark.slow
def test_a_stronger_fault_stands_out_more(check_case: Check, tmp_path: Path, kind: str) -> None:
    """The key's service shows the fault in its own metric, the more the higher the level."""
    scores = [_mean_score(check_case, tmp_path, kind, level) for level in ("low", "middle", "high")]
    assert 1 < scores[0] < scores[1] < scores[2]


def _mean_score(check_case: Check, folder: Path, kind: str, level: str) -> float:
    """Mean shift of the metric at the key's service, in standard deviations of its samples before the onset."""
    scores = []
    for seed in range(5):
        case = folder / f"{level}-{seed}"
        key = generate_incident(kind, level, seed, case)
        rows = [r for r in check_case(case)["metrics.csv"] if r["service"] == key["root_cause_service"]]
        wanted = [r for r in rows if any(word in r["metric"].lower() for word in _SHOWN[kind])]
        # The fault begins at most seven minutes before the alert, and is at full strength two minutes later.
        fired = parse_epoch(json.loads((case / "incident.json").read_text())["alert"]["fired_at"])
        before = [float(r["value"]) for r in wanted if parse_epoch(r["timestamp"]) < fired - 420]
        after = [float(r["value"]) for r in wanted if parse_epoch(r["timestamp"]) > fired]
        scores.append((fmean(after) - fmean(before)) / stdev(before))
    return fmean(scores)


def test_a_set_holds_every_kind_and_level_and_its_names_tell_nothing(tmp_path: Path) -> None:
    keys = generate_incident_set(tmp_path, per=1, seed=3, kinds=("cpu", "healthy"))
    assert json.loads((tmp_path / "answers.json").read_text()) == keys
    assert {path.name for path in tmp_path.iterdir()} == {*keys, "answers.json"}
    labels = {(k["source_label"]["kind"], k["source_label"]["level"]) for k in keys.values()}
    assert labels == {(kind, level) for kind in ("cpu", "healthy") for level in LEVELS}
    assert sorted(keys) == [f"generated-{n:04}" for n in range(1, 7)]


def test_the_key_is_nowhere_in_the_case(tmp_path: Path) -> None:
    generate_incident("two_causes", "middle", 7, tmp_path / "generated-1")
    text = b"".join(_bytes(tmp_path / "generated-1").values())
    assert b"root_cause" not in text
    assert b"two_causes" not in text


def test_unknown_kinds_and_levels_are_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="choose from cpu, memory"):
        generate_incident("gremlins", "middle", 1, tmp_path)
    with pytest.raises(ValueError, match="choose from high, middle, low"):
        generate_incident("cpu", "8", 1, tmp_path)


def test_every_kind_of_the_format_but_other_can_be_generated() -> None:
    assert set(FAULTS) == set(KNOWN) - {"other"}


def test_the_command_writes_a_set(tmp_path: Path, importable: dict[str, str]) -> None:
    command = [
        sys.executable,
        "-m",
        "opsleuth.scenarios",
        "generate",
        str(tmp_path),
        "--per",
        "1",
        "--kind",
        "dns",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=importable)
    assert "3 cases at 3 levels" in done.stdout
    assert len(json.loads((tmp_path / "answers.json").read_text())) == 3
