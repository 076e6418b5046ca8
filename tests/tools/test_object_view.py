"""One object by section, its differences, and what is not in its desired state."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cluster_objects import READ_AT, WINDOW, deployment, pod, whole
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.cluster.object_sections import fit_whole_parts, measure_part
from opsleuth.analysis.records import AlertFacts, ObjectState, PlatformEvent, Recording, ServiceChange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.state.investigation import Window
from opsleuth.tools.object_view import OBJECT_VIEW
from opsleuth.tools.registry import parse_arguments
from opsleuth.tools.sources.kube_rows import object_state_from_document
from opsleuth.tools.sources.memory_source import MemorySource
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import EvidenceBody, InvalidArgumentsError, ToolContext, ToolResult
from opsleuth.tools.truncation import canonical_json_size

(SPEC,) = OBJECT_VIEW
CRASHING = {
    "containerStatuses": [
        {
            "name": "cart",
            "ready": False,
            "restartCount": 7,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
            "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
        }
    ]
}
CART_SPEC = {
    "nodeName": "node-a",
    "containers": [
        {
            "name": "cart",
            "image": "shop/cart:2.1",
            "resources": {"limits": {"memory": "64Mi"}},
            "env": [{"name": "CACHE", "value": "off"}, {"name": "REGION", "value": "eu"}],
        },
        {"name": "proxy", "image": "mesh/proxy:1.0"},
    ],
}
WELL_SPEC = {
    "nodeName": "node-b",
    "containers": [
        {
            "name": "cart",
            "image": "shop/cart:2.0",
            "resources": {"limits": {"memory": "512Mi"}},
            "env": [{"name": "CACHE", "value": "on"}, {"name": "REGION", "value": "eu"}],
        },
        {"name": "proxy", "image": "mesh/proxy:1.0"},
    ],
}


def states(*documents: Mapping[str, Any], at: float = READ_AT) -> list[ObjectState]:
    return [object_state_from_document(str(d["kind"]), d, at) for d in documents]


OBJECTS = states(
    deployment("cart", replicas=2, ready=1),
    pod("cart", ready=False, spec=CART_SPEC, status=CRASHING),
    pod("cart", number=2, spec=WELL_SPEC),
    pod("stock", number=3),
    whole(
        "Node",
        "node-a",
        {"unschedulable": True, "taints": [{"key": "dedicated", "effect": "NoSchedule"}]},
        namespace=None,
    ),
)
BAD, GOOD = "cart-6d5c7f8b4-x1k2p", "cart-6d5c7f8b4-x2k2p"
SHOP = Recording(
    alert=AlertFacts(""),
    window=WINDOW,
    objects=OBJECTS,
    events=[
        PlatformEvent(READ_AT - 60, "kubernetes", f"Pod/{BAD}", "Warning", "BackOff", "restarting", 7),
        PlatformEvent(READ_AT - 50, "kubernetes", f"Pod/{GOOD}", "Normal", "Pulled", "image"),
    ],
)


async def view(
    recording: Recording = SHOP, evidence: EvidenceBody | None = None, **arguments: Any
) -> ToolResult:
    start, end = (datetime.fromtimestamp(t, UTC) for t in (WINDOW.start, WINDOW.end))
    context = ToolContext(
        window=Window(start=start, end=end),
        clock=FakeClock(end),
        sources=RunSources([MemorySource(recording)]),
        evidence=lambda wanted: evidence if evidence and evidence.id == wanted else None,
    )
    return await SPEC.run(parse_arguments(SPEC, arguments), context)


async def test_without_a_name_it_lists_what_is_not_in_its_desired_state() -> None:
    result = await view()
    found = {row["name"]: row["why"] for row in result.record["not_in_desired_state"]}
    assert found["cart"] == ["1 of 2 ready"]
    assert "OOMKilled" in found[BAD]
    assert found["node-a"] == ["cordoned: takes no new pods"]
    assert set(found) == {"cart", BAD, "node-a"}
    assert (result.scanned, result.matched) == (5, 3)
    assert result.record["kinds"] == {"Pod": 3, "Deployment": 1, "Node": 1}


async def test_a_cluster_that_is_as_it_should_be_has_nothing_to_list() -> None:
    healthy = replace(SHOP, objects=states(deployment("stock"), pod("stock")))
    result = await view(healthy)
    assert (result.status, result.scanned, result.matched) == (ResultStatus.NONE_MATCHED, 2, 0)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (whole("PersistentVolumeClaim", "data", status={"phase": "Pending"}), "phase Pending"),
        (whole("Namespace", "old", namespace=None, status={"phase": "Terminating"}), "phase Terminating"),
        (whole("Job", "migrate", status={"failed": 4}), "4 failed pods"),
        (whole("DaemonSet", "agent", status={"desiredNumberScheduled": 5, "numberReady": 3}), "3 of 5 scheduled pods ready"),
        (whole("Certificate", "tls", status={"conditions": [{"type": "Ready", "status": "False", "reason": "Expired"}]}),
         "Ready is False (Expired)"),
        (whole("Service", "web", {"type": "LoadBalancer"}, status={"loadBalancer": {}}), "has no address of a load balancer"),
        (whole("HorizontalPodAutoscaler", "web", {"maxReplicas": 3}, status={"currentReplicas": 3, "desiredReplicas": 5}),
         "3 replicas, 5 wanted"),
        (whole("Application", "shop", status={"sync": {"status": "OutOfSync"}, "health": {"status": "Healthy"}}),
         "sync OutOfSync, health Healthy"),
        (deployment("api", replicas=3, ready=3, status={"updatedReplicas": 1}), "1 of 3 replicas have the new template"),
        (deployment("api", metadata={"deletionTimestamp": "2026-01-05T07:00:00Z"}), "being deleted since 2026-01-05T07:00:00Z"),
    ],
)  # fmt: skip
async def test_each_kind_says_in_its_own_words_what_is_wrong(document: Mapping[str, Any], why: str) -> None:
    (row,) = (await view(replace(SHOP, objects=states(document)))).record["not_in_desired_state"]
    assert row["why"] == [why]


@pytest.mark.parametrize(
    "document",
    [
        whole("Pod", "backup-1", status={"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]}),
        whole("PersistentVolumeClaim", "data", status={"phase": "Bound"}),
        whole("Service", "web", {"type": "ClusterIP"}, status={"loadBalancer": {}}),
        whole("Node", "n", namespace=None, status={"conditions": [{"type": "DiskPressure", "status": "False"}]}),
        whole("ConfigMap", "settings", data={"a": "b"}),
    ],
)  # fmt: skip
async def test_what_is_as_it_should_be_is_not_listed(document: Mapping[str, Any]) -> None:
    assert "not_in_desired_state" not in (await view(replace(SHOP, objects=states(document)))).record


async def test_an_object_is_shown_by_section_with_its_events() -> None:
    record = (await view(name=BAD)).record
    assert record["sections"]["container/cart"]["image"] == "shop/cart:2.1"
    assert record["sections"]["container/cart"]["state"]["lastState"]["terminated"]["exitCode"] == 137
    assert record["sections"]["env/cart"][0] == {"name": "CACHE", "value": "off"}
    assert [event["reason"] for event in record["sections"]["events"]] == ["BackOff"]
    assert "containers" not in record["sections"]["spec"]


@pytest.mark.parametrize(
    ("section", "shown"),
    [
        ("env/cart", {"env/cart": CART_SPEC["containers"][0]["env"]}),  # type: ignore[index]
        ("container/cart.resources.limits.memory", {"container/cart.resources.limits.memory": "64Mi"}),
        ("spec.nodeName", {"spec.nodeName": "node-a"}),
    ],
)
async def test_one_section_or_part_is_shown_alone(section: str, shown: Mapping[str, Any]) -> None:
    record = (await view(name=BAD, section=section)).record
    assert record["sections"] == shown
    assert "status" in record["other_sections"]


async def test_a_section_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidArgumentsError, match=r"no section 'toleration'.*env/cart"):
        await view(name=BAD, section="toleration")


async def test_node_has_its_taints_as_a_section() -> None:
    record = (await view(kind="nodes", name="node-a", section="taints")).record
    assert record["sections"] == {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}


async def test_a_name_that_fits_several_objects_lists_them() -> None:
    result = await view(name="cart-6d5c")
    assert result.record["names"] == [f"Pod store/{BAD}", f"Pod store/{GOOD}"]
    with pytest.raises(InvalidArgumentsError, match="there is no pod 'payments'"):
        await view(name="payments", kind="pod")


async def test_difference_to_a_sibling_that_is_well() -> None:
    record = (await view(name=BAD, compare_with="sibling")).record
    assert record["compared_with"]["name"] == GOOD
    found = {row["path"]: (row["this"], row["other"]) for row in record["differences"]}
    assert found["container/cart.image"] == ("shop/cart:2.1", "shop/cart:2.0")
    assert found["container/cart.resources.limits.memory"] == ("64Mi", "512Mi")
    assert found["env/cart[CACHE].value"] == ("off", "on")
    assert not any("REGION" in path or "podIP" in path or "proxy" in path for path in found)


async def test_difference_within_one_section() -> None:
    record = (await view(name=BAD, compare_with=GOOD, section="env/cart")).record
    assert [row["path"] for row in record["differences"]] == ["env/cart[CACHE].value"]


async def test_an_object_of_another_owner_is_no_sibling() -> None:
    with pytest.raises(InvalidArgumentsError, match="has no sibling"):
        await view(name="stock-6d5c7f8b4-x3k2p", compare_with="sibling")


async def test_difference_to_an_older_snapshot() -> None:
    older = states(deployment("cart", replicas=5, ready=5), at=READ_AT - 3600)
    record = (
        await view(
            replace(SHOP, objects=[*OBJECTS, *older]), name="cart", kind="Deployment", compare_with="earlier"
        )
    ).record
    found = {row["path"]: (row["this"], row["other"]) for row in record["differences"]}
    assert found["spec.replicas"] == (2, 5)
    assert record["compared_with"]["captured_at"] == "2026-01-05T07:00:00Z"


async def test_difference_to_an_earlier_view_of_this_run() -> None:
    stored = (await view(name=BAD)).record
    evidence = EvidenceBody("E3", "object_view", ResultStatus.OK, stored)
    later = states(pod("cart", ready=True, spec=CART_SPEC))
    record = (await view(replace(SHOP, objects=later), evidence, name=BAD, compare_with="E3")).record
    assert record["compared_with"]["evidence"] == "E3"
    assert "container/cart.state.restartCount" in {row["path"] for row in record["differences"]}


async def test_one_snapshot_alone_shows_what_its_last_change_changed() -> None:
    change = ServiceChange(
        READ_AT - 900, "cart", "deploy", "revision 3", diff="-memory: 512Mi\n+memory: 64Mi"
    )
    record = (
        await view(replace(SHOP, changes=[change]), name="cart", kind="Deployment", compare_with="earlier")
    ).record
    assert record["difference"] == ["-memory: 512Mi", "+memory: 64Mi"]
    none = await view(name="cart", kind="Deployment", compare_with="earlier")
    assert none.status is ResultStatus.NOT_RECORDED


async def test_a_large_object_leaves_out_whole_sections_and_names_them() -> None:
    files = {"small.conf": "a=1", "large.conf": "\n".join(f"key{n}=value" for n in range(2_000))}
    large = replace(SHOP, objects=states(whole("ConfigMap", "settings", data=files)))
    record = (await view(large, name="settings")).record
    assert record["sections"] == {"data": {"small.conf": "a=1"}}
    assert record["left_out_bytes"]["data.large.conf"] > 10_000
    assert canonical_json_size(record) < 9_000
    part = (await view(large, name="settings", section="data.small.conf")).record
    assert part["sections"] == {"data.small.conf": "a=1"}


async def test_printed_description_is_shown_by_its_headings() -> None:
    text = "Name: web-1\nNode: node-a/10.0.0.1\nContainers:\n  web:\n    Ready: False\nEvents:\n  Warning BackOff\n"
    printed = replace(SHOP, objects=[ObjectState(READ_AT, "Pod", "web-1", text, "store")])
    record = (await view(printed, name="web-1")).record
    assert record["sections"]["summary"]["Node"] == "node-a/10.0.0.1"
    assert record["sections"]["containers"] == ["  web:", "    Ready: False"]


PARTS = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.recursive(
        st.integers() | st.text(max_size=80),
        lambda inner: (
            st.lists(inner, max_size=6) | st.dictionaries(st.text("xyz", max_size=3), inner, max_size=6)
        ),
        max_leaves=20,
    ),
    max_size=6,
)


@given(PARTS, st.integers(min_value=0, max_value=400))
def test_parts_are_whole_or_named(parts: dict[str, Any], room: int) -> None:
    fitted = fit_whole_parts(parts, room)
    for name, part in parts.items():
        if name in fitted.shown and fitted.shown[name] == part:
            assert name not in fitted.left_out
        else:
            assert any(path.startswith(name) for path in fitted.left_out)
    assert sum(measure_part(part) for part in fitted.shown.values()) <= room + 12 * len(parts) + 60
