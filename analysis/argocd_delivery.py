"""The state of a delivery (an Argo CD application): synced or not, healthy or not, and why the last sync failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opsleuth.analysis import kubectl_output
from opsleuth.analysis.records import ObjectState


@dataclass(frozen=True, slots=True)
class DeliveryState:
    """One application as its delivery tool sees it, in the tool's own words; empty where it does not say."""

    name: str
    sync: str
    health: str
    phase: str = ""
    message: str = ""

    @property
    def failed(self) -> bool:
        """Whether the last operation failed, or what was delivered is absent or broken."""
        return self.phase in {"Failed", "Error"} or self.health in {"Degraded", "Missing"}

    @property
    def summary(self) -> str:
        """The state in one line, the failure's own message last."""
        parts = [f"sync {self.sync}", f"health {self.health}"]
        if self.phase:
            parts.append(f"last operation {self.phase}")
        return ", ".join(parts) + (f": {self.message}" if self.message else "")


def read_delivery_state(state: ObjectState) -> DeliveryState | None:
    """The delivery behind one object state: the text of `argocd app get` or an Application document."""
    name = state.name.rpartition("/")[2]
    if isinstance(state.status, Mapping):
        return _delivery_from_document(name, state.status)
    top = {
        label: value for indent, label, value in kubectl_output.read_label_fields(state.status) if indent == 0
    }
    if "Sync Status" not in top or "Health Status" not in top:
        return None
    return DeliveryState(
        name=top.get("Name", name).rpartition("/")[2],
        sync=_first_word(top["Sync Status"]),
        health=_first_word(top["Health Status"]),
        phase=top.get("Phase", ""),
        message=top.get("Message", ""),
    )


def _first_word(text: str) -> str:
    return text.split(None, 1)[0] if text else "unknown"


def _delivery_from_document(name: str, status: Mapping[str, Any]) -> DeliveryState | None:
    sync, health = status.get("sync"), status.get("health")
    if not isinstance(sync, Mapping) or not isinstance(health, Mapping):
        return None
    operation = status.get("operationState")
    last = operation if isinstance(operation, Mapping) else {}
    return DeliveryState(
        name=name,
        sync=str(sync.get("status", "unknown")),
        health=str(health.get("status", "unknown")),
        phase=str(last.get("phase", "")),
        message=str(last.get("message", "")),
    )
