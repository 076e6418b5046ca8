"""Dumps of a cluster in a case folder: lists, support bundles, must-gather folders, rows that are whole objects."""

import json
from pathlib import Path
from typing import Any

import yaml
from cluster_objects import deployment, pod, service

from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.sources.cluster_dumps import printed_events

INCIDENT = {"id": "dump", "window": {"start": "2026-01-05T07:00:00Z", "end": "2026-01-05T08:00:00Z"}}
EVENT = {
    "kind": "Event",
    "metadata": {"name": "cart.17", "namespace": "store"},
    "involvedObject": {"kind": "Pod", "name": "cart-x", "namespace": "store"},
    "type": "Warning",
    "reason": "BackOff",
    "message": "Back-off restarting failed container",
    "lastTimestamp": "2026-01-05T07:40:00Z",
}


def opened(folder: Path, **files: Any) -> CaseSource:
    (folder / "incident.json").write_text(json.dumps(INCIDENT))
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".").replace("_dash_", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return CaseSource.open(folder)


def held(case: CaseSource) -> set[str]:
    return {f"{o.kind}/{o.name}" for o in case.recording().objects or ()}


def test_list_that_kubectl_printed(tmp_path: Path) -> None:
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [service("cart"), pod("cart"), EVENT]})
    case = opened(tmp_path, objects_dot_json=listed)
    assert held(case) == {"Service/cart", "Pod/cart-6d5c7f8b4-x1k2p"}
    assert [e.object for e in case.recording().events or ()] == ["Pod/cart-x"]
    assert {"objects", "events"} <= case.capabilities


def test_support_bundle_and_must_gather(tmp_path: Path) -> None:
    pods = json.dumps({"kind": "PodList", "items": [{k: v for k, v in pod("cart").items() if k != "kind"}]})
    one = yaml.safe_dump(deployment("cart"))
    case = opened(
        tmp_path,
        cluster_dash_resources__pods__store_dot_json=pods,
        must_dash_gather__namespaces__store__apps__cart_dot_yaml=one,
    )
    assert held(case) == {"Pod/cart-6d5c7f8b4-x1k2p", "Deployment/cart"}
    assert case.warnings == ()


def test_row_that_is_a_whole_object(tmp_path: Path) -> None:
    case = opened(tmp_path, objects_dot_jsonl=json.dumps(service("cart")) + "\n")
    [state] = case.recording().objects or ()
    assert (state.kind, state.name, state.namespace) == ("Service", "cart", "store")


def test_file_that_holds_no_objects_is_said(tmp_path: Path) -> None:
    case = opened(tmp_path, objects_dot_yaml="just: words\n")
    assert held(case) == set()
    assert "objects.yaml holds no Kubernetes objects" in case.warnings


def test_table_of_events_counts_ages_back() -> None:
    text = (
        "LAST SEEN   TYPE      REASON             OBJECT              MESSAGE\n"
        "5m12s       Warning   FailedScheduling   pod/cart-x          0/3 nodes are available\n"
        "<unknown>   Normal    Pulled             pod/cart-y          pulled\n"
    )
    [event] = printed_events(text, 1000.0)
    assert (event.time, event.object, event.reason) == (688.0, "Pod/cart-x", "FailedScheduling")
