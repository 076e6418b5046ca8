"""All kinds of fault that can be generated, by kind."""

from collections.abc import Mapping

from opsleuth.scenarios.faults import changes, databases, network, platform, resources, services
from opsleuth.scenarios.faults.fault_kind import FaultAnswer, FaultKind

FAULTS: Mapping[str, FaultKind] = {
    fault.kind: fault
    for family in (resources, network, services, platform, changes, databases)
    for fault in family.FAULTS
}

__all__ = ["FAULTS", "FaultAnswer", "FaultKind"]
