"""All kinds of fault that can be generated, by kind."""

from collections.abc import Mapping

from opsleuth.scenarios.faults import changes, databases, network, platform, resources, services
from opsleuth.scenarios.faults.answer import Answer, Fault

FAULTS: Mapping[str, Fault] = {
    fault.kind: fault
    for family in (resources, network, services, platform, changes, databases)
    for fault in family.FAULTS
}

__all__ = ["FAULTS", "Answer", "Fault"]
