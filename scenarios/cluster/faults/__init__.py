"""All cluster faults by kind."""

from collections.abc import Mapping

from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.faults import (
    admission,
    jobs,
    naming,
    nodes,
    placing,
    policies,
    probing,
    running,
    scaling,
    services,
    starting,
    stores,
    volumes,
)

_FAMILIES = (
    services,
    policies,
    naming,
    starting,
    probing,
    placing,
    admission,
    scaling,
    nodes,
    volumes,
    running,
    stores,
    jobs,
)
CLUSTER_FAULTS: Mapping[str, ClusterFault] = {
    fault.kind: fault for family in _FAMILIES for fault in family.FAULTS
}
FAMILY_OF: Mapping[str, str] = {
    fault.kind: family.__name__.rsplit(".", 1)[1] for family in _FAMILIES for fault in family.FAULTS
}

__all__ = ["CLUSTER_FAULTS", "FAMILY_OF", "ClusterFault"]
