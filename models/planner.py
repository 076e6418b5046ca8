"""The ports behind which decisions are made: `Planner.decide` and `Reviewer.review`.

PlannerError
├── Malformed          the reply is no valid decision; told to the planner, three in a row end the run
└── ModelUnavailable   the endpoint cannot be used; the text holds the remedy
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from opsleuth.state.budget import Spent
from opsleuth.state.conclusion import Conclusion, Review
from opsleuth.state.decision import Decision
from opsleuth.state.investigation import Investigation
from opsleuth.state.results import Observation as Observation  # noqa: PLC0414 - planners speak of it by this module
from opsleuth.tools.spec import ToolSpec


class PlannerError(Exception):
    """A turn without a decision; `spent` is what the attempt cost all the same."""

    def __init__(self, text: str, spent: Spent | None = None) -> None:
        super().__init__(text)
        self.spent = spent or Spent()


class Malformed(PlannerError):
    """The reply is no valid decision: empty, cut, not JSON, or against the schema."""


class ModelUnavailable(PlannerError):
    """The endpoint cannot be used (down, refused, quota gone); the text holds the remedy."""


class PlannerView(NamedTuple):
    """All that a planner may look at this turn: the state, what was observed, and the tools that exist."""

    state: Investigation
    observations: Sequence[Observation]
    tools: Sequence[ToolSpec]
    not_available: Sequence[str]


class Decided(NamedTuple):
    """A decision, what it cost, and the snapshot ids of what was sent and said (empty for the offline planner)."""

    decision: Decision
    spent: Spent = Spent()
    snapshot: Sequence[str] = ()


class Planner(Protocol):
    """Chooses the next step. Raises `Malformed` or `ModelUnavailable`."""

    name: str

    async def decide(self, view: PlannerView) -> Decided: ...


class Reviewer(Protocol):
    """A second opinion on a draft, from its question, checklist and cited evidence alone."""

    name: str

    async def review(
        self, state: Investigation, draft: Conclusion, cited: Sequence[Observation]
    ) -> tuple[Review, Spent]: ...
