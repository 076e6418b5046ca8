"""The ports behind which decisions are made: `Planner.decide` and `Reviewer.review`.

PlannerError
├── Malformed          the reply is not a valid decision; told to the planner, three in a row end the run
└── ModelUnavailable   the endpoint cannot be used now; the text holds the remedy
    └── ModelRefused   nor later, before the configuration is fixed: key, model's name, address, window
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from opsleuth.state.budget import ModelCallCost
from opsleuth.state.conclusion import Conclusion, Review
from opsleuth.state.decision import Decision
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.investigation import Investigation
from opsleuth.state.results import Observation as Observation  # noqa: PLC0414 - planners import it from this module
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.spec import ToolSpec

OFFLINE = "offline"
"""The name of the planner that needs no model."""


class ModelExchange(NamedTuple):
    """What was sent to a model and what it said, for the trace. `prompt` is the prompt's hash."""

    model: str
    mode: str
    prompt: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    reply: str
    finish: str = ""


class PlannerError(OpsleuthError):
    """A turn without a decision; `spent` is what the attempt cost nevertheless, `exchanges` what was said."""

    exit_code = ExitCode.UNREACHABLE

    def __init__(
        self, text: str, spent: ModelCallCost | None = None, exchanges: Sequence[ModelExchange] = ()
    ) -> None:
        super().__init__(text)
        self.spent = spent or ModelCallCost()
        self.exchanges = tuple(exchanges)


class MalformedReplyError(PlannerError):
    """The reply is not a valid decision: empty, cut, not JSON, or against the schema.

    `conclusion` is the one that it held, if any: it is shown again with what is wrong, so that it is not lost.
    """

    conclusion: Mapping[str, Any] | None = None


class ModelUnavailableError(PlannerError):
    """The endpoint cannot be used (down, overloaded, quota gone); the text holds the remedy."""


class ModelRefusedError(ModelUnavailableError):
    """The endpoint will not be usable before its configuration is fixed; the text says how."""

    exit_code = ExitCode.CONFIG


class PlannerView(NamedTuple):
    """All that a planner may look at this turn: the state, what was observed, and the tools that exist."""

    state: Investigation
    observations: Sequence[Observation]
    tools: Sequence[ToolSpec]
    not_available: Sequence[str]


class PlannerResult(NamedTuple):
    """A decision, what it cost, and what was sent and said for it (nothing for the offline planner).

    `instead` says why another planner decided than the one that was asked for, when that begins. `unreadable` says of
    each call that could not be read why, while the others of the reply are in the decision.
    """

    decision: Decision
    spent: ModelCallCost = ModelCallCost()
    exchanges: Sequence[ModelExchange] = ()
    instead: str = ""
    unreadable: Sequence[str] = ()


class ReviewerResult(NamedTuple):
    """A reviewer's word and what it cost."""

    review: Review
    spent: ModelCallCost = ModelCallCost()
    exchanges: Sequence[ModelExchange] = ()


class Planner(Protocol):
    """Chooses the next step. Raises `MalformedReplyError`, `ModelUnavailableError` or `ModelRefusedError`."""

    @property
    def name(self) -> str: ...

    async def decide(self, view: PlannerView) -> PlannerResult: ...


class Reviewer(Protocol):
    """A second opinion on a draft, from its question, checklist, cited evidence and the checks' findings alone."""

    @property
    def name(self) -> str: ...

    async def review(
        self, state: Investigation, draft: Conclusion, cited: Sequence[Observation], findings: Sequence[str]
    ) -> ReviewerResult: ...
