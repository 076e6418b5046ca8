"""What changed since the run before: contents, deletions, and what is no change."""

from collections.abc import Callable
from typing import Any

import pytest

from opsleuth.analysis.cluster.object_digests import (
    BODIES_CAP,
    BODY_CAP,
    ListedObjects,
    SeenObjects,
    compare_with_earlier_run,
    digest_object,
    summarize_listed,
)
from opsleuth.analysis.records import ServiceChange

EARLIER, NOW = 1_772_546_400.0, 1_772_550_000.0
Document = dict[str, Any]


def make_object(kind: str, name: str = "limits", **parts: Any) -> tuple[str, Document]:
    metadata = {"name": name, "namespace": "shop", "resourceVersion": "7", **parts.pop("metadata", {})}
    return kind, {"kind": kind, "metadata": metadata, **parts}


BEFORE = (
    make_object("ConfigMap", data={"rate": "100"}),
    make_object("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
    make_object("NetworkPolicy", "inner", spec={"podSelector": {}, "ingress": [{"from": []}]}),
    make_object("Ingress", "front", spec={"rules": [{"host": "shop.example"}]}),
    make_object("RoleBinding", "team", roleRef={"name": "edit"}, subjects=[{"name": "ci"}]),
    make_object("Deployment", "web", spec={"replicas": 3, "paused": False, "template": {"spec": {"a": 1}}}),
)
AFTER = (
    make_object("ConfigMap", data={"rate": "1"}),
    make_object("Service", "web", spec={"selector": {"app": "wbe"}, "ports": [{"port": 80}]}),
    make_object("NetworkPolicy", "inner", spec={"podSelector": {}, "ingress": []}),
    make_object("Ingress", "front", spec={"rules": [{"host": "shop.exmaple"}]}),
    make_object("RoleBinding", "team", roleRef={"name": "view"}, subjects=[{"name": "ci"}]),
    make_object("Deployment", "web", spec={"replicas": 3, "paused": True, "template": {"spec": {"a": 1}}}),
)


def listed(*objects: tuple[str, Document], at: float = NOW, kinds: tuple[str, ...] | None = None, content: bool = True, clean: Callable[[str], str] = str) -> ListedObjects:  # fmt: skip
    found = [digest_object(kind, document, with_content=content) for kind, document in objects]
    complete = tuple(kind for kind, _ in objects) if kinds is None else kinds
    return ListedObjects(at, [f for f in found if f is not None], complete, clean)


def seen(*objects: tuple[str, Document], content: bool = True) -> SeenObjects:
    return summarize_listed("inv-before", listed(*objects, at=EARLIER, content=content), None)


def compare(*objects: tuple[str, Document], earlier: SeenObjects, **more: Any) -> list[ServiceChange]:
    return compare_with_earlier_run(earlier, listed(*objects, **more))


@pytest.mark.parametrize(("before", "after"), list(zip(BEFORE, AFTER, strict=True)), ids=lambda o: o[0])
def test_content_that_differs_is_a_change_between_the_two_runs(
    before: tuple[str, Document], after: tuple[str, Document]
) -> None:
    (change,) = compare(after, earlier=seen(before))
    kind, name = after[0], after[1]["metadata"]["name"]
    assert (
        change.summary
        == f"{kind} shop/{name} was changed after 2026-03-03T14:00:00Z, when inv-before read it"
    )
    assert (change.time, (change.extra or {})["until"]) == (EARLIER, NOW)
    assert change.author is None


def test_what_did_not_change_is_no_change() -> None:
    assert compare(*BEFORE, earlier=seen(*BEFORE)) == []


@pytest.mark.parametrize("removed", range(len(BEFORE)))
def test_deleted_object_is_a_change_of_its_kind_alone(removed: int) -> None:
    left = [o for place, o in enumerate(BEFORE) if place != removed]
    (change,) = compare(*left, earlier=seen(*BEFORE), kinds=tuple(kind for kind, _ in BEFORE))
    kind, document = BEFORE[removed]
    assert f"{kind} shop/{document['metadata']['name']} was deleted after" in change.summary
    assert (change.extra or {})["deleted"] is True


def test_kind_that_was_not_listed_completely_tells_of_no_deletion() -> None:
    assert compare(*BEFORE[1:], earlier=seen(*BEFORE), kinds=("Service",)) == []


def test_object_that_is_new_is_left_to_its_creation_time() -> None:
    assert compare(*BEFORE, earlier=seen(*BEFORE[1:])) == []


NOISE = (
    (make_object("Deployment", spec={"replicas": 2}), make_object("Deployment", spec={"replicas": 9})),
    (
        make_object("StatefulSet", spec={"template": {"a": 1}}),
        make_object("StatefulSet", spec={"template": {"a": 2}}),
    ),
    (
        make_object("ConfigMap", data={}),
        make_object("ConfigMap", data={}, metadata={"annotations": {"a": "b"}}),
    ),
    (
        make_object("Service", spec={}, status={}),
        make_object("Service", spec={}, status={"loadBalancer": {}}),
    ),
    (make_object("Pod", spec={"nodeName": "a"}), make_object("Pod", spec={"nodeName": "b"})),
)


@pytest.mark.parametrize(("before", "after"), NOISE)
def test_what_others_tell_of_or_nobody_wrote_is_no_change(
    before: tuple[str, Document], after: tuple[str, Document]
) -> None:
    assert compare(after, earlier=seen(before)) == []


def written(manager: str, time: str) -> Document:
    return {"managedFields": [{"manager": manager, "time": time}]}


@pytest.mark.parametrize(
    "manager", ["cluster-autoscaler", "kube-controller-manager", "ingress-nginx-controller"]
)
def test_what_the_cluster_writes_itself_is_no_change(manager: str) -> None:
    person = written("helm", "2026-03-01T00:00:00Z")["managedFields"]
    machine = written(manager, "2026-03-03T14:59:00Z")["managedFields"]
    for metadata in ({"managedFields": machine}, {"managedFields": [*person, *machine]}):
        before = make_object("ConfigMap", data={"status": "1"}, metadata=metadata)
        after = make_object("ConfigMap", data={"status": "2"}, metadata=metadata)
        assert compare(after, earlier=seen(before)) == []


def test_write_whose_time_the_cluster_knows_has_that_time_and_its_author() -> None:
    after = make_object(
        "ConfigMap", data={"rate": "1"}, metadata=written("kubectl-edit", "2026-03-03T14:30:00Z")
    )
    (change,) = compare(after, earlier=seen(BEFORE[0]))
    assert (change.author, change.time - EARLIER) == ("kubectl-edit", 1800.0)
    assert "until" not in (change.extra or {})


def test_rewrite_by_the_same_manager_whose_time_did_not_move_is_seen() -> None:
    old = written("kubectl-edit", "2026-03-01T00:00:00Z")
    before = make_object("ConfigMap", data={"rate": "100"}, metadata=old)
    after = make_object("ConfigMap", data={"rate": "1"}, metadata=old)
    (change,) = compare(after, earlier=seen(before))
    assert (change.time, (change.extra or {})["until"]) == (EARLIER, NOW)


def test_content_is_kept_of_changed_objects_alone_and_shows_the_next_difference() -> None:
    first = seen(*BEFORE)
    assert first.bodies == {}
    second = summarize_listed("inv-2", listed(AFTER[0], *BEFORE[1:]), first)
    assert list(second.bodies) == ["ConfigMap/shop/limits"]
    third = make_object("ConfigMap", data={"rate": "0"})
    (change,) = compare(third, *BEFORE[1:], earlier=second)
    changed = [line for line in (change.diff or "").splitlines() if line.startswith(("-", "+"))][2:]
    assert changed == ["-  rate: '1'", "+  rate: '0'"]


def test_secret_is_compared_by_version_and_leaves_no_content() -> None:
    before = make_object("Secret", "db", data={"password": "Z2VoZWlt"})
    after = make_object("Secret", "db", data={"password": "YW5kZXJz"}, metadata={"resourceVersion": "8"})
    first = seen(before, content=False)
    (change,) = compare(after, earlier=first, content=False)
    second = summarize_listed("inv-2", listed(after, content=False), first)
    assert "Secret shop/db was changed" in change.summary
    assert second.bodies == {}
    assert second.digests == {"Secret/shop/db": "version 8"}


def test_contents_are_capped_one_by_one_and_together() -> None:
    before = [make_object("ConfigMap", f"c{n}", data={"text": "a" * 30_000}) for n in range(40)]
    after = [make_object("ConfigMap", f"c{n}", data={"text": "b" * 30_000}) for n in range(40)]
    kept = summarize_listed("inv-2", listed(*after), seen(*before)).bodies
    assert {len(body) for body in kept.values()} == {BODY_CAP}
    assert len(kept) == BODIES_CAP // BODY_CAP


def test_secrets_in_a_content_do_not_show_as_a_difference() -> None:
    clean: Callable[[str], str] = lambda text: text.replace("geheim", "[secret 1]")  # noqa: E731
    before = make_object("ConfigMap", data={"dsn": "geheim", "rate": "1"})
    first = summarize_listed(
        "inv-1", listed(make_object("ConfigMap", data={"dsn": "geheim", "rate": "0"})), None
    )
    second = summarize_listed("inv-2", listed(before), first)
    kept = SeenObjects("inv-2", EARLIER, second.digests, {k: clean(v) for k, v in second.bodies.items()}, ())
    after = make_object("ConfigMap", data={"dsn": "geheim", "rate": "2"})
    (change,) = compare(after, earlier=kept, clean=clean)
    changed = [line for line in (change.diff or "").splitlines() if line.startswith(("-", "+"))][2:]
    assert changed == ["-  rate: '1'", "+  rate: '2'"]
