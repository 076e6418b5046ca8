"""Which service a pod, a job or an event's object belongs to."""

import pytest
from platform_rows import recording, row

from opsleuth.analysis.object_owners import ObjectOwners, collect_object_owners
from opsleuth.analysis.records import LogLine, ServiceDependency

KNOWN = ObjectOwners(frozenset({"web", "web-admin", "sum", "db"}), {"odd-name": "db"})


@pytest.mark.parametrize(
    ("name", "kind", "service"),
    [
        ("web-7c9d8b6f5-x2k4p", "Pod", "web"),
        ("Pod/web-admin-7c9d8b6f5-x2k4p", "", "web-admin"),
        ("shop/Pod/web-0", "", "web"),
        ("web-next1", "Pod", "web"),
        ("web-profile", "Pod", "web-profile"),
        ("odd-name", "Pod", "db"),
        ("sum-x2k4p", "Job", "sum"),
        ("mail-7c9d8b6f5-x2k4p", "Pod", "mail"),
        ("mail-7c9d8b6f5", "ReplicaSet", "mail"),
        ("cache-0", "Pod", "cache"),
        ("Deployment/web-1", "", "web-1"),
        ("db-replica-2", "", "db"),
        ("Node/node-1.zone-a", "", "node-1.zone-a"),
        ("somewhere", "Pod", "somewhere"),
    ],
)
def test_owner_by_name(name: str, kind: str, service: str) -> None:
    assert KNOWN.of(name, kind) == service


def test_names_come_from_the_rows_of_the_recording() -> None:
    known = collect_object_owners(
        recording(
            logs=[
                LogLine(0.0, "kubelet", "x", pod="cart-7c9d8b6f5-x2k4p"),
                LogLine(0.0, "pay", "x", pod="p1"),
            ],
            topology=[ServiceDependency("web", "cart")],
            objects=[row("Deployment", "shop/mail", ready="1/1")],
        )
    )
    assert known.names == {"web", "cart", "kubelet", "pay", "mail"}
    assert (known.of("cart-7c9d8b6f5-x2k4p", "Pod"), known.of("p1", "Pod")) == ("cart", "pay")


@pytest.mark.parametrize(
    ("text", "service"),
    [
        ("Back-off restarting container web", "web"),
        ("Deployment shop/sum: zero available", "sum"),
        ("web calls db", None),
        ("nobody", None),
    ],
)
def test_a_text_names_a_service_if_it_names_one_only(text: str, service: str | None) -> None:
    assert KNOWN.mentioned_service(text) == service


def test_a_text_may_name_its_own_service_besides() -> None:
    assert KNOWN.mentioned_service("web calls db", besides="web") == "db"
    assert KNOWN.mentioned_service("web calls itself", besides="web") is None
