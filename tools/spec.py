"""What a tool is: a strict argument model, a spec that a model can read, and an async function.

A tool either returns a `ToolResult` or raises one of the errors below; the executor turns both, and
everything unforeseen, into a `CallResult`. No tool stores, retries, redacts or cuts anything itself.
The errors are drawn in `opsleuth.state.errors`.
"""

import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from opsleuth.state.calls import Risk
from opsleuth.state.clock import Clock
from opsleuth.state.investigation import Alert, Window
from opsleuth.state.results import CallResult, ResultStatus
from opsleuth.state.tool_errors import (
    InvalidArgumentsError,
    NotPermittedError,
    OutcomeUnknownError,
    ToolError,
    TransientError,
    UnavailableError,
)

if TYPE_CHECKING:
    from opsleuth.tools.sources.source_protocols import Capability, RunSources

__all__ = [
    "Arguments",
    "CallResult",
    "CallTrail",
    "EvidenceBody",
    "InvalidArgumentsError",
    "NotPermittedError",
    "OutcomeUnknownError",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolSpec",
    "TransientError",
    "UnavailableError",
]

_FORMER_NAMES = {
    "InvalidArguments": InvalidArgumentsError,
    "NotPermitted": NotPermittedError,
    "OutcomeUnknown": OutcomeUnknownError,
    "Transient": TransientError,
    "Unavailable": UnavailableError,
}


def __getattr__(name: str) -> type[ToolError]:
    """Names that packages of tools were written with before 0.2: they still work, with a warning."""
    if name in _FORMER_NAMES:
        new = _FORMER_NAMES[name]
        warnings.warn(
            f"opsleuth.tools.spec.{name} is now {new.__name__}; the old name goes in 0.3",
            DeprecationWarning,
            stacklevel=2,
        )
        return new
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Arguments(BaseModel):
    """Base of every argument model: strict, no extra keys, no input value in error texts."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False
    )


@dataclass(frozen=True, slots=True)
class EvidenceBody:
    """A stored body, as `calculate` and `evidence_read` see it."""

    id: str
    tool: str
    status: ResultStatus
    record: Mapping[str, Any]


@dataclass(slots=True)
class CallTrail:
    """What happened behind one call: the requests `asked` of backends, and the sources that were `missed`, with why."""

    asked: list[str] = field(default_factory=list)
    missed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may use besides its arguments.

    `evidence` returns the stored body of an evidence id of this run, or None. `folder` is the run's own
    folder (drafts go there). `subject` is the alert, if the run has one. An effect also gets the key under
    which its target may recognise repeats, its check what the ledger holds of the effect (`result`), its probe
    when it was `begun`. `trail` is
    filled as sources are read.
    """

    window: Window
    clock: Clock
    sources: "RunSources"
    evidence: Callable[[str], EvidenceBody | None]
    subject: Alert | None = None
    folder: str | None = None
    idempotency_key: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    begun: datetime | None = None
    trail: CallTrail = field(default_factory=CallTrail)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool found.

    `record` is the typed record as plain JSON, a few fields computed by code; it becomes the evidence body.
    `headline` is one line for screens (`412 pts, peak 13:58Z`); `spark` up to 60 values for a sparkline.
    `scanned` and `matched` are given by every search, so that "nothing found" says where it looked.
    """

    record: Mapping[str, Any]
    headline: str
    status: ResultStatus = ResultStatus.OK
    source: str = ""
    query: str = ""
    scanned: int | None = None
    matched: int | None = None
    spark: tuple[float, ...] = ()


CARRIED = frozenset({"why", "tests", "repeat_of"})
"""What every call carries besides its tool's arguments: no argument may have such a name."""

Run = Callable[[Any, ToolContext], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool. `example` validates against `arguments`; a model reads it as documentation.

    `capability` names the kind of source it needs (`metrics`, `logs`, …; None: needs none), `substitute` one that does
    instead; `served_by` says of sources of any kind whether they serve it. `target` says what
    a call acts on, from its arguments. Effects add:

    - `precheck`: does the change make sense now? Raises NotPermittedError if not.
    - `postcondition`: is true what should be? `ok`; `none_matched` for not yet, asked again for `settles` seconds;
      `not_recorded` if nobody can tell.
    - `probe`: did the try with this key happen? `ok`, `none_matched`, or `not_recorded` if it is not known.
    - `bounded_work`: its work is limited in lines and bytes, so that it may take longer on a loaded machine.
    - `takes_key`: its target applies two tries with one key once. Only then a lost one may be sent again.
    - `described`: False while nobody knows yet what it takes: it can be run, but is not offered.
    - `binding`: what it really runs and where, as JSON values by name: shown to whoever approves a call, and another
      description asks again.
    - `undo`: how to take it back, for the person who decides. `environment` is for policy rules, as is
      `runs_commands`: its arguments become part of a command.
    """

    name: str
    purpose: str
    not_for: str
    arguments: type[Arguments]
    example: Mapping[str, Any]
    run: Run
    capability: "Capability | None" = None
    served_by: "Callable[[RunSources], bool] | None" = None
    substitute: "Capability | None" = None
    risk: Risk = Risk.READ
    target: Callable[[Any], str | None] = field(default=lambda _: None)
    timeout: float | None = None
    bounded_work: bool = False
    max_record_bytes: int = 64_000
    precheck: Run | None = None
    postcondition: Run | None = None
    probe: Run | None = None
    binding: Callable[[Any], Mapping[str, Any]] | None = None
    undo: str = ""
    takes_key: bool = False
    settles: float = 30.0
    environment: str = ""
    runs_commands: bool = False
    origin: str = "built in"
    described: bool = True
