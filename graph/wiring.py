"""Where the parts of an attempt are put together: store, sources, tools, planner."""

import contextlib
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsleuth.checkpoints.harmless import harmless
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.prepare import Opened, Settings, open_sources
from opsleuth.graph.taped import TapedExecutor
from opsleuth.models.choose import Deciders, Outside, deciders
from opsleuth.models.planner import Planner, Reviewer
from opsleuth.models.settings import ModelSettings
from opsleuth.models.tape import Tape
from opsleuth.nodes.deps import Deps
from opsleuth.nodes.effects import effect_of
from opsleuth.nodes.observed import Observed
from opsleuth.nodes.trace import Event, Trace
from opsleuth.state.budget import Limits
from opsleuth.state.calls import Call
from opsleuth.state.clock import Clock, stamp
from opsleuth.state.investigation import Investigation
from opsleuth.tools.added import Added, added_tools
from opsleuth.tools.breaker import Breaker
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.effects.offered import effect_tools, platform_of
from opsleuth.tools.executor import Executor
from opsleuth.tools.policy import Policy
from opsleuth.tools.policy_file import load, policy_files
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.base import Sources
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.spec import ToolContext, ToolSpec

WISHES = ("terminate", "cancel", "pause")
"""What other processes may ask of a run, the strongest first."""


def effects_of(settings: Settings) -> Sequence[ToolSpec]:
    """The tools that change something on the platform of this run."""
    return effect_tools(platform_of(settings.platform))


def added_to(settings: Settings, vault: Vault) -> Added:
    """What the operator and installed packages add to the tools of this run."""
    return added_tools(settings.policy, vault, platforms=settings.platform is None)


def policy_of(settings: Settings) -> Policy:
    """The rules of the machine, of the user, of the project, and of the file that the run was given.

    Raises ConfigError for a broken file: nothing is started under rules that cannot be read.
    """
    return load(policy_files(settings.policy))


@dataclass(frozen=True, slots=True)
class Parts:
    """What an attempt is made of. Whoever embeds the loop, or tests it, replaces single parts."""

    sources: Callable[[Settings], Opened] = open_sources
    planner: Callable[[str], Planner] | None = None
    reviewer: Callable[[str], Reviewer | None] | None = None
    specs: Sequence[ToolSpec] = BUILTIN
    effects: Callable[[Settings], Sequence[ToolSpec]] = effects_of
    policy: Callable[[Settings], Policy] = policy_of
    added: Callable[[Settings, Vault], Added] = added_to
    tape: Tape | None = None
    memory: Path | None = None
    """A file that keeps which way of asking a model's server knows."""
    around: Callable[[Deciders, Store], Deciders] = lambda deciders, _: deciders
    """Puts something between a run and those who decide in it."""


def toolbox_of(parts: Parts, settings: Settings, sources: Sources, added: Added) -> Toolbox:
    """The tools of a run."""
    specs = (*parts.specs, *parts.effects(settings), *added.specs)
    return Toolbox(specs, sources, parts.policy(settings), read_only=settings.read_only)


def deps_for(
    parts: Parts,
    store: Store,
    row: RunRow,
    chosen: Deciders,
    clock: Clock,
    on_event: Callable[[Event], None],
    step: int,
) -> Deps:
    """The surroundings of one attempt. `step` counts the run's node steps so far."""
    settings = Settings.of(row.settings)
    opened = parts.sources(settings)
    opened.vault.listen(store.redactor.learn)
    sources = opened.sources
    added = parts.added(settings, opened.vault)
    toolbox = toolbox_of(parts, settings, sources, added)
    observed = Observed(store, row.id, toolbox.capability_of)

    def context(state: Investigation, call: Call | None) -> ToolContext:
        return ToolContext(
            window=state.window,
            clock=clock,
            sources=sources,
            evidence=lambda evidence: observed.body(evidence, state.observations),
            subject=state.alert,
            folder=str(store.folder / "runs" / row.id),
            idempotency_key=effect_of(call).key if call else None,
        )

    limits = Limits.model_validate(row.settings["state"]["budget"]["limits"])
    return Deps(
        run=row.id,
        attempt=row.attempt,
        store=store,
        trace=Trace(store, row.id, row.attempt, on_event),
        observed=observed,
        planner=chosen.planner,
        reviewer=chosen.reviewer,
        toolbox=toolbox,
        executor=_executor(parts.tape, toolbox, clock, store, limits),
        clock=clock,
        context=context,
        redact=store.redactor,
        on_failure=lambda node, error: _log_failure(store, row.id, clock, node, error),
        halted=lambda: _wish(store, row.id),
        warnings=lambda: (*(w for s in sources.by_name.values() for w in s.warnings), *added.warnings),
        added=added,
        services=lambda: sources.services.union(settings.services),
        step=step,
    )


def deciders_of(parts: Parts, settings: Settings, store: Store) -> Deciders:
    """Those of the parts where they are given, else those of the run's settings. Raises ConfigError, UsageError."""
    return parts.around(_deciders(parts, settings, store), store)


def _deciders(parts: Parts, settings: Settings, store: Store) -> Deciders:
    if parts.planner is not None:
        return Deciders(
            parts.planner(settings.planner), parts.reviewer(settings.planner) if parts.reviewer else None
        )
    model = ModelSettings.model_validate(settings.model) if settings.model else None
    outside = Outside(learn=store.redactor.learn, memory=parts.memory, tape=parts.tape)
    return deciders(settings.planner, model, outside)


def _executor(tape: Tape | None, toolbox: Toolbox, clock: Clock, store: Store, limits: Limits) -> Executor:
    if tape is None:
        return Executor(toolbox, clock, store.redactor, Breaker(clock), limits)
    return TapedExecutor(toolbox, clock, store.redactor, Breaker(clock), limits, tape=tape)


def _wish(store: Store, run: str) -> str | None:
    asked = {request.kind for request in store.control.pending(run)}
    return next((wish for wish in WISHES if wish in asked), None)


def _log_failure(store: Store, run: str, clock: Clock, node: str, error: BaseException) -> None:
    """The traceback, redacted, goes to a file beside the database and nowhere else; a full disk must not hide it."""
    text = harmless(store.redactor("".join(traceback.format_exception(error))).value)
    path = store.folder / "errors.log"
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as log:
            log.write(f"{stamp(clock.now())} {run} {node}\n{text}\n")
