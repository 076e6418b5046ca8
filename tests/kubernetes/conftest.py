"""A real cluster, started once per session and process, and a namespace of it for each test."""

from collections.abc import Iterator

import httpx
import pytest
from kube_place import Namespace
from kube_real import ControlPlane, control_plane
from kubelet import Kubelet, kubelet


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real control plane. Who kills it starts it again."""
    with control_plane(tmp_path_factory.mktemp("plane")) as started:
        yield started


@pytest.fixture(scope="session")
def admin(plane: ControlPlane) -> Iterator[httpx.Client]:
    with plane.admin() as client:
        yield client


@pytest.fixture(scope="session")
def node(plane: ControlPlane, admin: httpx.Client) -> Iterator[Kubelet]:
    """Its one node, which says of pods what a kubelet would."""
    with kubelet(admin, plane.folder) as started:
        yield started


@pytest.fixture
def shop(admin: httpx.Client, node: Kubelet) -> Namespace:
    """A namespace that no other test knows, on a node where every image runs."""
    node.states.clear()
    return Namespace(admin)
