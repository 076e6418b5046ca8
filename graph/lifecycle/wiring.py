"""Where the parts of an attempt are assembled: store, sources, tools, planner."""

import contextlib
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.configuration.secret_references import Vault
from opsleuth.graph.lifecycle.breaker_memory import BreakerFor, make_own_breaker, restore_breaker
from opsleuth.graph.lifecycle.first_state import OpenedSources, RunSettings, open_sources
from opsleuth.graph.lifecycle.object_memory import attach_object_memory
from opsleuth.graph.lifecycle.restrictions import NO_RESTRICTIONS, Restrictions
from opsleuth.models.planner import Planner, Reviewer
from opsleuth.models.planner_selection import (
    ModelDependencies,
    PlannerAndReviewer,
    choose_planner_and_reviewer,
)
from opsleuth.nodes.act.effects import effect_from_call
from opsleuth.nodes.allowance import SpendingAllowance, UnlimitedAllowance
from opsleuth.nodes.deps import Deps
from opsleuth.nodes.observations import ObservationCache
from opsleuth.nodes.trace import Event, TraceWriter
from opsleuth.redaction.control_characters import escape_control_characters
from opsleuth.state.budget import RunLimits
from opsleuth.state.calls import Call
from opsleuth.state.clock import Clock, format_timestamp
from opsleuth.state.investigation import Investigation
from opsleuth.state.limit_caps import LimitCaps
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.circuit_breaker import CircuitBreaker
from opsleuth.tools.effects.effect_toolset import build_effect_tools, control_plane_from_settings
from opsleuth.tools.executor import Executor
from opsleuth.tools.extra_tools import ExtraTools, load_extra_tools
from opsleuth.tools.policy import Policy, read_policy_layers
from opsleuth.tools.policy_file import find_policy_files, load_policy
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import ToolContext, ToolSpec
from opsleuth.tools.tape import Tape
from opsleuth.tools.taped_executor import TapedExecutor

WISHES = ("terminate", "cancel", "pause")
"""What other processes may ask of a run, the strongest first."""


def effects_of(settings: RunSettings) -> Sequence[ToolSpec]:
    """The tools that change something on the platform of this run."""
    return build_effect_tools(control_plane_from_settings(settings.platform))


def added_to(settings: RunSettings, vault: Vault) -> ExtraTools:
    """What the operator and installed packages add to the tools of this run."""
    return load_extra_tools(settings.policy, vault, platforms=settings.platform is None)


def policy_of(settings: RunSettings) -> Policy:
    """The rules of the machine, of the user, of the project, and of the files that the run was given, as they are now.

    Raises ConfigError for a file that is broken or missing: nothing is started under rules that cannot be read.
    """
    return load_policy(find_policy_files(settings.policy, *settings.added_policies))


@dataclass(frozen=True, slots=True)
class AttemptParts:
    """What an attempt is made of. Whoever embeds the loop, or tests it, replaces single parts."""

    sources: Callable[[RunSettings], OpenedSources] = open_sources
    planner: Callable[[str], Planner] | None = None
    reviewer: Callable[[str], Reviewer | None] | None = None
    specs: Sequence[ToolSpec] = BUILTIN
    effects: Callable[[RunSettings], Sequence[ToolSpec]] = effects_of
    policy: Callable[[RunSettings], Policy] = policy_of
    added: Callable[[RunSettings, Vault], ExtraTools] = added_to
    tape: Tape | None = None
    breaker: BreakerFor = make_own_breaker
    memory: Path | None = None
    """A file that keeps which way of asking a model's server knows."""
    restrictions: Restrictions = NO_RESTRICTIONS
    """What this invocation allows less than the run does."""
    around: Callable[[PlannerAndReviewer, Store], PlannerAndReviewer] = lambda deciders, _: deciders
    """Puts something between a run and those who decide in it."""
    allowance: Callable[[Store, RunRow], SpendingAllowance] = lambda *_: UnlimitedAllowance()
    """What a run may spend besides its own limits."""


def toolbox_of(parts: AttemptParts, settings: RunSettings, sources: RunSources, added: ExtraTools) -> Toolbox:
    """The tools of a run, under the stricter of the rules that it began with and those that hold now."""
    specs = (*parts.specs, *parts.effects(settings), *added.specs)
    policy = parts.policy(settings)
    if settings.rules is not None:
        policy = policy.under_earlier(read_policy_layers(settings.rules))
    return Toolbox(specs, sources, policy, read_only=settings.read_only)


def restrict_settings(parts: AttemptParts, settings: RunSettings) -> RunSettings:
    """The settings of an attempt: restricted as this invocation asks, with the rules that the run began with.

    Raises ConfigError for a policy file that is missing or broken.
    """
    restricted = parts.restrictions.apply(settings, parts.policy)
    if parts.tape is not None and parts.tape.replays:
        restricted = replace(restricted, replay=True)
    return restricted


def deps_for(
    parts: AttemptParts,
    store: Store,
    row: RunRow,
    chosen: PlannerAndReviewer,
    clock: Clock,
    on_event: Callable[[Event], None],
    step: int,
) -> Deps:
    """The surroundings of one attempt. `step` counts the run's node steps so far."""
    settings = RunSettings.of(row.settings)
    opened = parts.sources(settings)
    opened.vault.listen(store.redactor.learn)
    sources = opened.sources
    attach_object_memory(sources.by_name.values(), store, row)
    added = parts.added(settings, opened.vault)
    toolbox = toolbox_of(parts, settings, sources, added)
    observed = ObservationCache(store, row.id, toolbox.capability_of)

    def context(state: Investigation, call: Call | None) -> ToolContext:
        return ToolContext(
            window=state.window,
            clock=clock,
            sources=sources,
            evidence=lambda evidence: observed.body(evidence, state.observations),
            subject=state.alert,
            folder=str(store.folder / "runs" / row.id),
            idempotency_key=effect_from_call(call).key if call else None,
        )

    breaker = parts.breaker(settings, clock)
    if row.attempt > 1:
        restore_breaker(breaker, store, row.id, toolbox, sources)
    caps = LimitCaps.model_validate(settings.caps or {})
    limits = caps.cut_limits(RunLimits.model_validate(row.settings["state"]["budget"]["limits"]))
    return Deps(
        run=row.id,
        attempt=row.attempt,
        store=store,
        trace=TraceWriter(store, row.id, row.attempt, on_event),
        observed=observed,
        planner=chosen.planner,
        reviewer=chosen.reviewer,
        toolbox=toolbox,
        executor=_build_executor(parts.tape, toolbox, clock, store, limits, breaker),
        clock=clock,
        context=context,
        allowance=parts.allowance(store, row),
        caps=caps,
        redact=store.redactor,
        on_failure=lambda node, error: _log_failure(store, row.id, clock, node, error),
        halted=lambda: _pending_stop_request(store, row.id),
        warnings=lambda: (*(w for s in sources.by_name.values() for w in s.warnings), *added.warnings),
        added=added,
        services=lambda: sources.services.union(settings.services),
        step=step,
    )


def deciders_of(parts: AttemptParts, settings: RunSettings, store: Store) -> PlannerAndReviewer:
    """Those of the parts where they are given, else those of the run's settings. Raises ConfigError, UsageError."""
    return parts.around(_build_deciders(parts, settings, store), store)


def _build_deciders(parts: AttemptParts, settings: RunSettings, store: Store) -> PlannerAndReviewer:
    if parts.planner is not None:
        return PlannerAndReviewer(
            parts.planner(settings.planner), parts.reviewer(settings.planner) if parts.reviewer else None
        )
    model = ModelSettings.model_validate(settings.model) if settings.model else None
    outside = ModelDependencies(learn=store.redactor.learn, memory=parts.memory, tape=parts.tape)
    return choose_planner_and_reviewer(settings.planner, model, outside)


def _build_executor(
    tape: Tape | None,
    toolbox: Toolbox,
    clock: Clock,
    store: Store,
    limits: RunLimits,
    breaker: CircuitBreaker,
) -> Executor:
    if tape is None:
        return Executor(toolbox, clock, store.redactor, breaker, limits)
    return TapedExecutor(toolbox, clock, store.redactor, breaker, limits, tape=tape)


def _pending_stop_request(store: Store, run: str) -> str | None:
    asked = {request.kind for request in store.control.pending(run)}
    return next((wish for wish in WISHES if wish in asked), None)


def _log_failure(store: Store, run: str, clock: Clock, node: str, error: BaseException) -> None:
    """The traceback, redacted, goes to a file beside the database and nowhere else; a full disk must not hide it."""
    text = escape_control_characters(store.redactor("".join(traceback.format_exception(error))).value)
    path = store.folder / "errors.log"
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as log:
            log.write(f"{format_timestamp(clock.now())} {run} {node}\n{text}\n")
