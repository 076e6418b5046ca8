"""All limits of a run in one table, what it has used of them, and which one it has hit."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from opsleuth.state.base import FrozenModel
from opsleuth.state.run_status import StopReason

Positive = Annotated[int, Field(gt=0, lt=2**53)]
Amount = Annotated[int, Field(ge=0, lt=2**53)]
Seconds = Annotated[float, Field(ge=0, lt=1e9)]
Money = Annotated[Decimal, Field(ge=0, lt=Decimal(10) ** 9)]


class RunLimits(FrozenModel):
    """What a run may use. `cost` is in US dollars; None means no limit (there may be no prices)."""

    turns: Positive = 30
    seconds: Seconds = 900.0
    tokens: Positive = 300_000
    cost: Money | None = None
    call_seconds: Annotated[float, Field(gt=0, lt=86_400)] = 10.0
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    malformed: Annotated[int, Field(ge=1, le=10)] = 3
    rework: Annotated[int, Field(ge=0, le=10)] = 2
    repeats: Annotated[int, Field(ge=1, le=50)] = 4


class RunUsage(FrozenModel):
    """What a run has used. Waiting for people is not active time. `estimated` marks tokens we counted ourselves."""

    turns: Amount = 0
    seconds: Seconds = 0.0
    tokens_in: Amount = 0
    tokens_out: Amount = 0
    tokens_cached: Amount = 0
    cost: Money = Decimal(0)
    model_calls: Amount = 0
    tool_calls: Amount = 0
    estimated: bool = False

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


class ModelCallCost(NamedTuple):
    """What one model call cost; all zero for the offline planner."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: Decimal = Decimal(0)
    estimated: bool = False
    model_calls: int = 0

    def plus(self, other: "ModelCallCost") -> "ModelCallCost":
        """Both together."""
        return ModelCallCost(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.tokens_cached + other.tokens_cached,
            self.cost + other.cost,
            self.estimated or other.estimated,
            self.model_calls + other.model_calls,
        )


class Budget(FrozenModel):
    """Limits and use."""

    limits: RunLimits = RunLimits()
    used: RunUsage = RunUsage()

    def find_exceeded_limit(self, active_seconds: float | None = None) -> StopReason | None:
        """The limit that forbids another model call, if any; `active_seconds` is the use up to this moment."""
        seconds = self.used.seconds if active_seconds is None else active_seconds
        limits, used = self.limits, self.used
        if used.turns >= limits.turns:
            return StopReason.TURN_LIMIT
        if seconds >= limits.seconds:
            return StopReason.TIME_LIMIT
        if used.tokens >= limits.tokens:
            return StopReason.TOKEN_LIMIT
        if limits.cost is not None and used.cost >= limits.cost:
            return StopReason.COST_LIMIT
        return None

    def within(self, limits: Mapping[str, Any]) -> "Budget":
        """The same use under other limits, by name; those that are not named stay. Raises ValidationError."""
        merged = self.limits.model_dump(mode="json") | dict(limits)
        return Budget(limits=RunLimits.model_validate(merged), used=self.used)

    def plus(
        self, *, turns: int = 0, seconds: float = 0.0, tool_calls: int = 0, spent: ModelCallCost | None = None
    ) -> "Budget":
        """The budget after that much more use."""
        cost, used = spent or ModelCallCost(), self.used
        return Budget(
            limits=self.limits,
            used=RunUsage(
                turns=used.turns + turns,
                seconds=round(used.seconds + seconds, 3),
                tokens_in=used.tokens_in + cost.tokens_in,
                tokens_out=used.tokens_out + cost.tokens_out,
                tokens_cached=used.tokens_cached + cost.tokens_cached,
                cost=used.cost + cost.cost,
                model_calls=used.model_calls + cost.model_calls,
                tool_calls=used.tool_calls + tool_calls,
                estimated=used.estimated or cost.estimated,
            ),
        )
