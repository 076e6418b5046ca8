"""The ports behind which decisions are made: `Planner.decide` and `Reviewer.review`.

PlannerError
├── Malformed          the reply is no valid decision; told to the planner, three in a row end the run
└── ModelUnavailable   the endpoint cannot be used now; the text holds the remedy
    └── ModelRefused   nor later, before the configuration is mended: key, model's name, address, window
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from opsleuth.state.budget import Spent
from opsleuth.state.conclusion import Conclusion, Review
from opsleuth.state.decision import Decision
from opsleuth.state.investigation import Investigation
from opsleuth.state.results import Observation as Observation  # noqa: PLC0414 - planners speak of it by this module
from opsleuth.tools.spec import ToolSpec

OFFLINE = "offline"
"""The name of the planner that needs no model."""


class Exchange(NamedTuple):
    """What was sent to a model and what it said, for the trace. `prompt` is the prompt's hash."""

    model: str
    mode: str
    prompt: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    reply: str
    finish: str = ""


class PlannerError(Exception):
    """A turn without a decision; `spent` is what the attempt cost all the same, `exchanges` what was said."""

    def __init__(self, text: str, spent: Spent | None = None, exchanges: Sequence[Exchange] = ()) -> None:
        super().__init__(text)
        self.spent = spent or Spent()
        self.exchanges = tuple(exchanges)


class Malformed(PlannerError):
    """The reply is no valid decision: empty, cut, not JSON, or against the schema."""


class ModelUnavailable(PlannerError):
    """The endpoint cannot be used (down, overloaded, quota gone); the text holds the remedy."""


class ModelRefused(ModelUnavailable):
    """The endpoint will not be usable before its configuration is mended; the text says how."""


class PlannerView(NamedTuple):
    """All that a planner may look at this turn: the state, what was observed, and the tools that exist."""

    state: Investigation
    observations: Sequence[Observation]
    tools: Sequence[ToolSpec]
    not_available: Sequence[str]


class Decided(NamedTuple):
    """A decision, what it cost, and what was sent and said for it (nothing for the offline planner).

    `instead` says why another planner decided than the one that was asked for, when that begins.
    """

    decision: Decision
    spent: Spent = Spent()
    exchanges: Sequence[Exchange] = ()
    instead: str = ""


class Reviewed(NamedTuple):
    """A reviewer's word and what it cost."""

    review: Review
    spent: Spent = Spent()
    exchanges: Sequence[Exchange] = ()


class Planner(Protocol):
    """Chooses the next step. Raises `Malformed`, `ModelUnavailable` or `ModelRefused`."""

    @property
    def name(self) -> str: ...

    async def decide(self, view: PlannerView) -> Decided: ...


class Reviewer(Protocol):
    """A second opinion on a draft, from its question, checklist, cited evidence and the checks' findings alone."""

    @property
    def name(self) -> str: ...

    async def review(
        self, state: Investigation, draft: Conclusion, cited: Sequence[Observation], findings: Sequence[str]
    ) -> Reviewed: ...
