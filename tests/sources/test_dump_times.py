"""When what a dump of a cluster shows began: by the times inside it, never by that of its file."""

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from opsleuth.analysis.platform_reports import find_reported_troubles
from opsleuth.analysis.records import AlertFacts, Recording, TimeRange
from opsleuth.console.input_sources import recognize_listing
from opsleuth.console.reading_flags import ReadingFlags
from opsleuth.tools.sources.cluster_dumps import date_dump, read_dump
from opsleuth.tools.sources.input_files import InputListing
from opsleuth.tools.sources.kube_rows import epoch_from_rfc3339

MADE, UNREADY, ENDED = "2026-03-04T09:00:04Z", "2026-03-04T09:00:11Z", "2026-03-04T09:41:30Z"


def crashing_pod(restarts: int, *, condition: bool, ended: bool) -> dict[str, Any]:
    state: dict[str, Any] = {"name": "biller", "ready": False, "restartCount": restarts}
    state["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    if ended:
        state["lastState"] = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": ENDED}}
    ready = [{"type": "Ready", "status": "False", "lastTransitionTime": UNREADY}] if condition else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "biller-6c8f7d9b5-4xk2p", "namespace": "pay", "creationTimestamp": MADE},
        "spec": {"containers": [{"name": "biller"}]},
        "status": {"phase": "Running", "conditions": ready, "containerStatuses": [state]},
    }


def write_dump(folder: Path, name: str, items: list[dict[str, Any]]) -> Path:
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    path = folder / name
    path.write_text(json.dumps(document) if name.endswith("json") else yaml.safe_dump(document))
    return path


def find_onsets(path: Path, mtime: float) -> set[float | None]:
    dump = date_dump(read_dump([path], mtime), mtime)
    window = TimeRange(mtime - 3600.0, mtime + 60.0)
    recording = Recording(
        alert=AlertFacts("why is biller down?"), window=window, objects=dump.objects, events=dump.events
    )
    found = [f for f in find_reported_troubles(recording) if f.size > 0]
    assert found
    return {finding.onset for finding in found}


@pytest.mark.parametrize(
    ("name", "restarts", "condition", "ended"),
    list(itertools.product(("pods.json", "pods.yaml"), (1, 9, 60), (True, False), (True, False))),
)
def test_onset_comes_from_inside_whatever_the_time_of_the_file(
    tmp_path: Path, name: str, restarts: int, condition: bool, ended: bool
) -> None:
    path = write_dump(tmp_path, name, [crashing_pod(restarts, condition=condition, ended=ended)])
    inside = UNREADY if condition else ENDED if ended else None
    for mtime in ("2026-03-04T06:00:00Z", "2026-03-04T09:45:00Z", "2026-05-01T00:00:00Z"):
        assert find_onsets(path, epoch_from_rfc3339(mtime) or 0.0) == {epoch_from_rfc3339(inside)}


def test_objects_are_as_of_the_newest_time_inside(tmp_path: Path) -> None:
    path = write_dump(tmp_path, "pods.json", [crashing_pod(9, condition=True, ended=True)])
    [state] = date_dump(read_dump([path], 5.0), 5.0).objects
    assert state.time == epoch_from_rfc3339(ENDED)


def test_objects_without_times_are_as_captured(tmp_path: Path) -> None:
    pod = crashing_pod(9, condition=False, ended=False)
    del pod["metadata"]["creationTimestamp"]
    path = write_dump(tmp_path, "pods.json", [pod])
    [state] = date_dump(read_dump([path], 5.0), 5.0).objects
    assert state.time == 5.0
    assert find_onsets(path, 5.0) == {None}


@pytest.mark.parametrize("spread", [True, False])
def test_ages_of_printed_events_date_no_onset(tmp_path: Path, spread: bool) -> None:
    columns = [["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]]
    columns += [
        [age, "Warning", "BackOff", "pod/biller-x", "Back-off restarting failed container"]
        for age in ("12s", "4m (x9 over 31m)")
    ]
    spaces = ["NAMESPACE", "pay", "pay"]
    rows = [([space] if spread else []) + row for space, row in zip(spaces, columns, strict=True)]
    path = tmp_path / "what-happened"
    path.write_text("\n".join("   ".join(row) for row in rows) + "\n")
    assert len(read_dump([path], 1000.0).events) == 2
    assert find_onsets(path, 1000.0) == {None}


@pytest.mark.parametrize("begin", ["", "---\n"])
def test_yaml_of_objects_is_read_as_objects_and_gives_the_window(tmp_path: Path, begin: str) -> None:
    path = write_dump(tmp_path, "pods.yaml", [crashing_pod(9, condition=True, ended=True)])
    path.write_text(begin + path.read_text())
    os.utime(path, (1e9, 1e9))
    found = recognize_listing(InputListing([path], []), set(), ReadingFlags())
    assert [kind.holds for kind in found.kinds] == ["kubernetes"]
    assert found.services == ()
    assert found.window is not None
    assert found.window[1].isoformat() == "2026-03-04T09:41:31+00:00"
    assert read_dump([path], 5.0).objects


def test_manifest_that_no_cluster_accepted_is_not_a_state(tmp_path: Path) -> None:
    path = tmp_path / "deploy.yaml"
    path.write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: biller\nspec:\n  replicas: 2\n"
    )
    found = recognize_listing(InputListing([path], []), set(), ReadingFlags())
    assert [kind.holds for kind in found.kinds] == []


@pytest.mark.parametrize("first_seen", ["2026-03-04T09:00:12Z", "2026-03-04T09:00:40Z"])
def test_the_cause_never_begins_after_its_effect(tmp_path: Path, first_seen: str) -> None:
    pod = crashing_pod(9, condition=True, ended=True)
    ended = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    ended["message"] = "panic: required environment variable SMTP_HOST is not set"
    event = {
        "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "BackOff",
        "metadata": {"name": "biller.1"}, "message": "Back-off restarting failed container", "count": 40,
        "involvedObject": {"kind": "Pod", "name": pod["metadata"]["name"], "namespace": "pay"},
        "firstTimestamp": first_seen, "lastTimestamp": "2026-03-04T09:42:00Z",
    }  # fmt: skip
    path = write_dump(tmp_path, "all.json", [pod, event])
    dump = date_dump(read_dump([path], 4e9), 4e9)
    end = (dump.newest or 0.0) + 1.0
    recording = Recording(
        alert=AlertFacts("why is biller down?"), window=TimeRange(end - 3600.0, end), objects=dump.objects,
        events=dump.events,
    )  # fmt: skip
    onsets = {
        finding.kind: finding.onset for finding in find_reported_troubles(recording) if finding.size > 0
    }
    assert onsets["config"] == epoch_from_rfc3339(UNREADY)
    assert onsets["crash"] == epoch_from_rfc3339(first_seen)
