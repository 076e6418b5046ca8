"""Resource quantities as Kubernetes writes them (`500m`, `1.5`, `2Gi`, `1e3`) as numbers."""

import re

_FORM = re.compile(r"^([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(m|u|n|k|K|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$")
_SCALE = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
          "E": 1e18, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60}  # fmt: skip


def parse_amount(quantity: object) -> float | None:
    """The number that a quantity stands for (cores, bytes, pieces); None where it is not one."""
    found = _FORM.match(str(quantity).strip()) if quantity is not None else None
    return float(found[1]) * _SCALE[found[2] or ""] if found else None
