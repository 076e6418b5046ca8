"""The manifest of the service, as a real API server takes it: all of it is stored, and nothing else is meant."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml
from kube_place import Namespace
from stored_runs import REPOSITORY

pytestmark = pytest.mark.kubernetes

MANIFEST = REPOSITORY / "deploy" / "kubernetes.yaml"
OLDER = {"policy/v1": "policy/v1beta1"}
"""The server of the tests is older than this name of a group that has not changed otherwise."""


def documents() -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load_all(MANIFEST.read_text("utf-8"))


@pytest.mark.parametrize("document", list(documents()), ids=lambda d: f"{d['kind']}-{d['metadata']['name']}")
def test_the_server_takes_every_field(admin: httpx.Client, shop: Namespace, document: dict[str, Any]) -> None:
    version = OLDER.get(document["apiVersion"], document["apiVersion"])
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    answer = admin.post(
        f"{root}/namespaces/{shop.name}/{document['kind'].lower()}s",
        params={"dryRun": "All"},
        json=document | {"apiVersion": version},
    )
    assert answer.status_code == 201, answer.text
    assert list(missing(document | {"apiVersion": version}, answer.json())) == []


def missing(given: Any, taken: Any, path: str = "") -> Iterator[str]:
    """Where something was given and is not in what was taken: the server leaves out what it does not know."""
    if isinstance(given, dict) and isinstance(taken, dict):
        for name, value in given.items():
            if name in taken:
                yield from missing(value, taken[name], f"{path}.{name}")
            elif value not in ({}, [], None):
                yield f"{path}.{name}"
    elif isinstance(given, list) and isinstance(taken, list):
        for number, (one, other) in enumerate(zip(given, taken, strict=False)):
            yield from missing(one, other, f"{path}[{number}]")
    elif given != taken:
        yield path
