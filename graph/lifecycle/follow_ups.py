"""A question on an ended run: a read-only branch that sees all evidence of the run and spends what is left of its limits."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import ValidationError

from opsleuth import __version__
from opsleuth.checkpoints.errors import ConflictError, UnreadableStoreError
from opsleuth.checkpoints.follow_up_rows import FOLLOW_UP, find_asked_run, list_follow_ups
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.graph import build
from opsleuth.graph.lifecycle.first_state import RunSettings, aliases_of
from opsleuth.graph.lifecycle.queued import redact_first_state
from opsleuth.questions.mentioned_services import find_mentioned_services
from opsleuth.state.base import to_json
from opsleuth.state.budget import Budget, RunLimits, RunUsage
from opsleuth.state.errors import UsageError
from opsleuth.state.follow_up import MOST_CAUSES, MOST_EVIDENCE, MOST_SERVICES, FollowUp
from opsleuth.state.investigation import Investigation
from opsleuth.state.limit_caps import LimitCaps
from opsleuth.state.plurals import format_count
from opsleuth.state.run_status import FINISHED_STATUSES, Status, StopReason
from opsleuth.verification.question_demands import parse_question_demands

_DRAWS = 20
"""Attempts to draw an id that is not taken."""
_FLAGS: Mapping[StopReason, tuple[str, str]] = {
    StopReason.TURN_LIMIT: ("turns", "--max-turns"),
    StopReason.TIME_LIMIT: ("seconds", "--max-time"),
    StopReason.TOKEN_LIMIT: ("tokens", "--max-tokens"),
    StopReason.COST_LIMIT: ("cost", "--max-cost"),
}


class NothingLeftError(UsageError):
    """The run and the questions on it have used up what the run was allowed."""


class FollowUpRequest(NamedTuple):
    """A question on a run, with new totals for the run's limits where the operator gives some."""

    run: str
    question: str
    limits: Mapping[str, Any]
    planner: str | None = None
    model: Mapping[str, Any] | None = None


def require_ended(row: RunRow) -> None:
    """Raises UsageError for a run that may still go on by itself."""
    if row.status not in FINISHED_STATUSES:
        raise UsageError(
            f"{row.id} has not ended: its status is {row.status}. Ask again when it has, or tell its planner something now: "
            f"opsleuth note {row.id} TEXT"
        )


def build_follow_up(
    store: Store, parent: RunRow, settings: RunSettings, known: Sequence[str], asked: FollowUpRequest
) -> RunRow:
    """The row, still without an id, of a question on `parent`; `known` are the services of its sources.

    Raises NothingLeftError, UsageError for a limit above the operator's, UnreadableStoreError.
    """
    root = find_asked_run(store.runs, parent)
    budget = budget_left(store, root, settings, asked.limits)
    before = _read_last_state(store, parent)
    services = {name: aliases_of(name, settings) for name in (*known, *settings.aliases)}
    earlier = _summarize_run(store, parent, before, asked.question, services)
    state = redact_first_state(store, _build_first_state(before, budget, asked.question, earlier, services))
    stored = dict(parent.settings) | replace(settings, read_only=True).to_json()
    return replace(
        parent,
        id="",
        question=state["question"],
        name=None,
        parent=parent.id,
        parent_checkpoint=_name_last_checkpoint(store, parent.id),
        forked_at_observation=state["observations"],
        status=Status.RUNNING,
        stop_reason=None,
        verdict=None,
        turn=budget.used.turns,
        node="plan",
        attempt=0,
        pid=None,
        host=None,
        process_start=None,
        locked=None,
        tokens=0,
        cost=Decimal(0),
        graph_revision=build.graph_revision(),
        app_version=__version__,
        settings=stored | {"state": state, FOLLOW_UP: {"used": to_json(budget.used)}},
    )


def store_follow_up(store: Store, made: RunRow, new_id: Callable[[], str]) -> RunRow:
    """Store the row of a question under an id that is free, and note in its log what it was forked from."""
    for _ in range(_DRAWS):
        with suppress(ConflictError):
            row = store.runs.create(replace(made, id=new_id()))
            parent = {"run": made.parent, "ckpt": made.parent_checkpoint}
            data = {"parent": parent, "by": "operator", "next": made.node}
            store.events.append(row.id, "run.forked", data, turn=row.turn)
            return row
    raise ConflictError(f"{_DRAWS} ids were taken: try again")


def budget_left(store: Store, root: RunRow, settings: RunSettings, given: Mapping[str, Any]) -> Budget:
    """The limits of the run, or new totals, and what it and all questions on it have used. Raises NothingLeftError, UsageError."""
    state = _read_last_state(store, root)
    caps = LimitCaps.model_validate(settings.caps or {})
    if excess := caps.describe_excess(given):
        raise UsageError(f"{root.id} was taken in by a service: {excess}")
    limits = caps.cut_limits(RunLimits.model_validate(to_json(state.budget.limits) | dict(given)))
    earlier = list_follow_ups(store.runs, root.id)
    used = state.budget.used
    for row in earlier:
        used = _add_usage(used, _spent_by(store, row))
    budget = Budget(limits=limits, used=used)
    if (reached := budget.find_exceeded_limit()) is not None:
        raise NothingLeftError(_describe_nothing_left(root, budget, len(earlier), reached))
    return budget


def _describe_nothing_left(root: RunRow, budget: Budget, questions: int, reached: StopReason) -> str:
    name, flag = _FLAGS[reached]
    used, limit = getattr(budget.used, name), getattr(budget.limits, name)
    figures = f"${used:.2f} of ${limit:.2f}" if name == "cost" else f"{used:g} of {limit:g} {name}"
    by = f" by it and {format_count(questions, 'question')} on it" if questions else ""
    return f"nothing is left of {root.id} for a question: {figures} are used{by}. Give a new total: {flag} {_suggest_total(name, limit)}"


def _suggest_total(name: str, limit: float) -> str:
    """A total that leaves room for a few questions, in the form of the flag."""
    more = math.ceil(float(limit) * 1.5)
    return f"{math.ceil(more / 60)}m" if name == "seconds" else str(more)


def _add_usage(one: RunUsage, other: RunUsage) -> RunUsage:
    both = {
        name: getattr(one, name) + getattr(other, name)
        for name in RunUsage.model_fields
        if name != "estimated"
    }
    return RunUsage.model_validate(both | {"estimated": one.estimated or other.estimated})


def _spent_by(store: Store, row: RunRow) -> RunUsage:
    """What one question has used itself, up to its last stored step."""
    start = RunUsage.model_validate(row.settings[FOLLOW_UP]["used"])
    now = _read_last_state(store, row).budget.used
    spent = {
        name: max(getattr(now, name) - getattr(start, name), type(getattr(now, name))(0))
        for name in RunUsage.model_fields
        if name != "estimated"
    }
    return RunUsage.model_validate(spent | {"estimated": now.estimated})


def _read_last_state(store: Store, row: RunRow) -> Investigation:
    """The newest stored state; that from the start where the run never began. Raises UnreadableStoreError."""
    points = store.history.list(row.id)
    try:
        return Investigation.model_validate(points[-1].values if points else row.settings["state"])
    except ValidationError as error:
        what = format_validation_errors(error)
        raise UnreadableStoreError(
            f"the stored state of run {row.id} does not fit this version ({what}): ask it with opsleuth {row.app_version}"
        ) from None


def _name_last_checkpoint(store: Store, run: str) -> str | None:
    points = store.history.list(run)
    return points[-1].name if points else None


def _summarize_run(
    store: Store,
    parent: RunRow,
    before: Investigation,
    question: str,
    services: Mapping[str, tuple[str, ...]],
) -> FollowUp:
    """What the run concluded, or the run behind a question; and the services that the question names or nearly names."""
    draft, asked_about = before.draft, before.follow_up
    causes = draft.causes[:MOST_CAUSES] if draft else ()
    by_claim = {claim.id: claim.evidence for claim in draft.claims} if draft else {}
    shown = dict.fromkeys(e for cause in causes[:1] for name in cause.claims for e in by_claim.get(name, ()))
    if not causes and asked_about is not None:
        causes, shown = asked_about.causes, dict.fromkeys(asked_about.evidence)
    report = store.reports.get(parent.id) or {}
    return FollowUp(
        run=parent.id,
        question=before.question,
        answer=str(report.get("answer") or (draft.answer if draft else "")),
        causes=causes,
        services=find_mentioned_services(question, services).services[:MOST_SERVICES],
        evidence=tuple(shown)[:MOST_EVIDENCE],
    )


def _build_first_state(
    before: Investigation,
    budget: Budget,
    question: str,
    earlier: FollowUp,
    services: Mapping[str, tuple[str, ...]],
) -> Investigation:
    """The state that the question begins with: window, alert and evidence of the run, and a plan of its own."""
    return Investigation(
        question=question,
        follow_up=earlier,
        alert=before.alert,
        window=before.window,
        checklist=parse_question_demands(question, tuple(services)),
        read_only=True,
        observations=before.observations,
        budget=budget,
    )
