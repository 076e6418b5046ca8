"""The budget that a run shares with the other runs of its team, besides its own limits."""

from typing import NamedTuple, Protocol

from opsleuth.state.budget import ModelCallCost
from opsleuth.state.run_status import StopReason


class SpendingRefusal(NamedTuple):
    """Why no model may be asked now, for the run's end and for people."""

    reason: StopReason
    text: str


class SpendingAllowance(Protocol):
    """Asked before each call to a model, and given the cost of each."""

    def find_refusal(self) -> SpendingRefusal | None:
        """Why nothing may be spent now; None if spending is allowed."""
        ...

    def charge(self, spent: ModelCallCost) -> str | None:
        """Count a cost; what people should know of it, or None."""
        ...


class UnlimitedAllowance:
    """The allowance of a run that shares no budget."""

    def find_refusal(self) -> SpendingRefusal | None:
        """Nothing is refused."""
        return None

    def charge(self, spent: ModelCallCost) -> str | None:  # a shared budget counts, this one has none
        """Nothing is counted."""
        del spent
        return None
