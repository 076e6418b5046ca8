"""The gate: how much worse B may be than A, or how bad at all, as rules in a TOML file.

[[rule]]
metric = "top1"          # a metric of the comparison
tag = "healthy"          # over the cases of this tag, set or fault type (default: all)
max_drop = 2.0           # B may be worse than A by so much: percentage points of a share, percent of a mean
beyond_noise = true      # only where chance alone would rarely do that
max_more = 0             # of what counts cases: B may have so many more of them than A
least = 0.8              # and at all: B itself must reach it
most = 0                 # or must not exceed it
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.evals.compare import ALL, COMPARED, MetricComparison, ResultsComparison
from opsleuth.evals.summary import COUNTS
from opsleuth.state.errors import UsageError
from opsleuth.state.plurals import format_count


class GateRule(BaseModel):
    """One rule; it is broken by any of its bounds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: str
    tag: str = ALL
    max_drop: Annotated[float, Field(ge=0)] | None = None
    beyond_noise: bool = False
    max_more: Annotated[int, Field(ge=0)] | None = None
    least: float | None = None
    most: float | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.metric not in COMPARED:
            raise ValueError(f"there is no metric {self.metric}: the choices are {', '.join(COMPARED)}")
        if self.max_more is not None and self.metric not in COUNTS:
            raise ValueError(
                f"max_more bounds {' and '.join(COUNTS)}; for {self.metric} give max_drop, least or most"
            )
        if (self.max_drop, self.max_more, self.least, self.most) == (None,) * 4:
            raise ValueError("give max_drop, max_more, least or most: this rule bounds nothing")
        return self


class RegressionGate(BaseModel):
    """All rules. `missing_cases`: how many cases of A may be absent from B."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    missing_cases: Annotated[int, Field(ge=0)] = 0
    rule: tuple[GateRule, ...] = Field(min_length=1)


def load_gate(path: Path) -> RegressionGate:
    """The rules of a file. Raises UsageError that names the rule and what is wrong with it."""
    try:
        return RegressionGate.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        wrong = format_validation_errors(error)
        raise UsageError(f"{path} is not a gate: {wrong}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None


def list_broken_rules(gate: RegressionGate, comparison: ResultsComparison) -> Sequence[str]:
    """What the comparison breaks, in sentences; empty if it may pass."""
    found = [text for rule in gate.rule for text in _check_rule(rule, comparison)]
    if len(comparison.missing) > gate.missing_cases:
        found.append(
            f"{format_count(len(comparison.missing), 'case is missing', 'cases are missing')} in B: {', '.join(comparison.missing[:5])}"
        )
    return found


def _check_rule(rule: GateRule, comparison: ResultsComparison) -> Iterator[str]:
    compared = comparison.find(rule.metric, rule.tag)
    where = "" if rule.tag == ALL else f" of {rule.tag}"
    if compared is None:
        if rule.max_more is not None:  # where no key tells, there is nothing to count
            return
        yield f"{rule.metric}{where}: no case has it, so the rule cannot be checked"
        return
    more = round((compared.b - compared.a) * compared.cases)
    if rule.max_more is not None and more > rule.max_more:
        yield f"{rule.metric}{where}: {format_count(more, 'case')} more; {rule.max_more} are allowed"
    over = rule.max_drop is not None and _measure_drop(compared) > rule.max_drop + 1e-9
    if over and (not rule.beyond_noise or compared.judgement == "worse"):
        unit = "points" if COMPARED[rule.metric].share else "%"
        yield f"{rule.metric}{where} is worse by {_measure_drop(compared):.1f} {unit}; {rule.max_drop:g} are allowed"
    if rule.least is not None and compared.b < rule.least - 1e-9:
        yield f"{rule.metric}{where} is {compared.b:.3g}; at least {rule.least:g} is asked for"
    if rule.most is not None and compared.b > rule.most + 1e-9:
        yield f"{rule.metric}{where} is {compared.b:.3g}; at most {rule.most:g} is allowed"


def _measure_drop(compared: MetricComparison) -> float:
    """By how much B is worse, in points of a share or in percent of a mean; negative where it is better."""
    metric = COMPARED[compared.metric]
    worse = -compared.difference.value if metric.higher_is_better else compared.difference.value
    if metric.share:
        return 100 * worse
    if not compared.a:
        return float("inf") if worse > 0 else 0.0
    return 100 * worse / abs(compared.a)
