"""Score the recommendations of a report: whether there are any, whether their targets exist, whether their risk is right."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from opsleuth.evals.cases import ExpectedAdvice, ExpectedReport
from opsleuth.state.run_status import Verdict
from opsleuth.tools.spec import ToolSpec
from opsleuth.verification.name_extraction import extract_names

TARGETS = ("target", "service", "name", "object", "deployment", "workload", "database", "host")
"""Arguments of an action that name what it is done to."""


def score_advice(
    expected: ExpectedReport, report: Mapping[str, Any], seen: str, specs: Mapping[str, ToolSpec]
) -> float | None:
    """The share of what can be asked of the advice that holds; None where none is called for.

    `seen` is all text that the run observed: a name that is nowhere in it does not exist. `specs` are tools by name.
    """
    wanted = expected.advice
    if wanted is None and expected.verdict != Verdict.CAUSE_FOUND:
        return None
    given: Sequence[Mapping[str, Any]] = report.get("recommendations") or ()
    checks = [len(given) >= (wanted.at_least if wanted else 1)]
    for one in given:
        checks += [_targets_were_observed(one, seen), _names_right_risk(one, specs)]
    if wanted:
        checks += _check_expected_advice(wanted, given)
    return round(sum(checks) / len(checks), 4)


def _targets_were_observed(one: Mapping[str, Any], seen: str) -> bool:
    """Every thing that the action would touch, or that its sentence names, was observed."""
    action = one.get("action")
    if action:
        targets = [str(v) for k, v in action["arguments"].items() if k in TARGETS and isinstance(v, str)]
    else:
        targets = extract_names(one["text"])
    return all(target.rpartition("/")[2] in seen for target in targets)


def _names_right_risk(one: Mapping[str, Any], specs: Mapping[str, ToolSpec]) -> bool:
    """An action has the risk of its tool; an action whose tool is unknown cannot be right."""
    action = one.get("action")
    if not action:
        return True
    spec = specs.get(action["tool"])
    return spec is not None and spec.risk == one.get("risk")


def _check_expected_advice(wanted: ExpectedAdvice, given: Sequence[Mapping[str, Any]]) -> list[bool]:
    def any_has(value: str | None, of: Callable[[Mapping[str, Any]], Iterable[str | None]]) -> list[bool]:
        return [] if value is None else [any(value == found for one in given for found in of(one))]

    return [
        *any_has(wanted.tool, lambda one: [(one.get("action") or {}).get("tool")]),
        *any_has(wanted.risk, lambda one: [one.get("risk")]),
        *any_has(wanted.target, _list_named_targets),
    ]


def _list_named_targets(one: Mapping[str, Any]) -> list[str]:
    action = one.get("action") or {}
    return [*map(str, (action.get("arguments") or {}).values()), *extract_names(one["text"])]
