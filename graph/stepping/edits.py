"""Edits of a stored state: checked as a whole, so that no edit can make a run unreadable or skip a rule.

An edit replaces the value at a path; nothing is merged. What the loop itself counts or decides is not for editing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.state.base import ensure_storable, to_json
from opsleuth.state.calls import Call, CallGate, CallRequest
from opsleuth.state.errors import UsageError
from opsleuth.state.investigation import Investigation
from opsleuth.state.state_paths import NoSuchPathError, StateDifference, find_differences, set_at_path
from opsleuth.tools.registry import CheckedCall
from opsleuth.tools.spec import InvalidArgumentsError

KEPT: Mapping[str, str] = {
    "schema_version": "it names the form of the state",
    "read_only": "it belongs to the run's settings: start a run with --read-only",
    "observations": "it counts what lies in the tables",
    "unverified": "it names changes that were made and not checked yet",
    "review": "the check of a draft writes it",
    "objections": "the reviewer writes them",
    "status": "the loop decides it: pause, cancel or terminate the run",
    "stop_reason": "the loop decides it: pause, cancel or terminate the run",
    "stop_detail": "the loop decides it: pause, cancel or terminate the run",
    "budget.used": "it counts what was used: change budget.limits instead",
}
"""What cannot be edited, and why."""

_OF_A_CALL = frozenset({"tool", "arguments", "purpose", "tests"})
"""What may be changed in a pending call; the rest follows from it."""

Check = Callable[[CallRequest], CheckedCall]


class StateEdit(NamedTuple):
    """One value to be put at a path."""

    path: str
    value: Any


def apply_state_edits(
    values: Mapping[str, Any], edits: Sequence[StateEdit], *, run: str, going_to: str, check: Check
) -> dict[str, Any]:
    """The state, as JSON, after the edits; `run` is the branch that gets it, `going_to` its next node.

    Changed calls are validated by `check` and get ids of their own: what was recorded for the old ones is no
    answer to them. Raises UsageError naming what is wrong.
    """
    after: dict[str, Any] = dict(values)
    for edit in edits:
        try:
            after = set_at_path(after, edit.path, ensure_storable(edit.value))
        except (NoSuchPathError, ValueError) as error:
            raise UsageError(f"{edit.path}: {error}") from None
    _refuse_kept(values, after)
    state = _validate_state(after)
    if fault := next(_find_reference_faults(state), None):
        raise UsageError(fault)
    state = _with_calls(_validate_state(values), state, run, going_to, check)
    written = to_json(state)
    Investigation.model_validate(written)
    return written


def list_state_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[StateDifference]:
    """What an edit changed, by path."""
    return find_differences(dict(before), dict(after))


def _refuse_kept(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    for change in find_differences(dict(before), dict(after)):
        for path, why in KEPT.items():
            if change.path == path or change.path.startswith(f"{path}."):
                raise UsageError(f"{path} cannot be edited: {why}")
    if not isinstance(after.get("budget"), dict) or "used" not in after["budget"]:
        raise UsageError("budget.used cannot be edited: change budget.limits instead")


def _validate_state(values: Mapping[str, Any]) -> Investigation:
    try:
        return Investigation.model_validate(values)
    except ValidationError as error:
        what = format_validation_errors(error)
        raise UsageError(f"the state would not be valid: {what}") from None


def _find_reference_faults(state: Investigation) -> Iterator[str]:
    """What the schema alone does not see."""
    for name, items in (("hypotheses", state.hypotheses), ("plan", state.plan)):
        letter = name[0].upper()
        if [item.id for item in items] != [f"{letter}{n}" for n in range(1, len(items) + 1)]:
            yield f"{name} are numbered {letter}1, {letter}2, … in order: the next one is numbered after the last"
    for evidence in _cited_evidence(state):
        if int(evidence[1:]) > state.observations:
            yield f"{evidence} does not exist: the newest is E{state.observations}"
    known = {h.id for h in state.hypotheses}
    for call in state.pending:
        if call.tests is not None and call.tests not in known:
            yield f"{call.id} tests {call.tests}, which does not exist"


def _cited_evidence(state: Investigation) -> Iterable[str]:
    for hypothesis in state.hypotheses:
        yield from (*hypothesis.supporting, *hypothesis.contradicting)
    for claim in state.draft.claims if state.draft else ():
        yield from claim.evidence


def _with_calls(
    before: Investigation, after: Investigation, run: str, going_to: str, check: Check
) -> Investigation:
    """The state with every changed call checked again, as if the planner had asked for it."""
    if before.pending == after.pending:
        return after
    if going_to not in ("approve", "act"):
        raise UsageError("the calls of this turn are made: edit them where the next node is approve or act")
    if len(before.pending) != len(after.pending):
        raise UsageError("calls cannot be added or removed, their numbers are given: skip one instead")
    pairs = zip(before.pending, after.pending, strict=True)
    calls = tuple(a if a == b else _check_edited_call(b, a, run, going_to, check) for b, a in pairs)
    return after.changed(pending=calls)


def _check_edited_call(before: Call, after: Call, run: str, going_to: str, check: Check) -> Call:
    touched = {name for name in Call.model_fields if getattr(before, name) != getattr(after, name)}
    if fixed := sorted(touched - _OF_A_CALL):
        raise UsageError(
            f"{fixed[0]} of a call cannot be edited, it follows from the rest: edit {', '.join(sorted(_OF_A_CALL))}"
        )
    request = after.asked()
    try:
        checked = check(request)
    except InvalidArgumentsError as error:
        raise UsageError(f"{after.tool}: {error}") from None
    call = checked.call(request, call_id=f"{run}/{before.id.rpartition('/')[2]}", number=before.number)
    if call.gate is CallGate.ASK and going_to != "approve":
        raise UsageError(
            f"{call.tool} needs a person's approval, and that is behind this checkpoint: "
            "edit it where the next node is approve"
        )
    return call
