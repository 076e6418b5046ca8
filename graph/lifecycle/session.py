"""The life of a run: start, resume, and what an attempt leaves behind however it ends.

One process per run: the lock is held for the whole attempt. The state's own status says whether a run is
finished; the runs row is a cache of it for `list`, repaired here.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from opsleuth import __version__
from opsleuth.checkpoints.follow_up_rows import find_asked_run
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph import build
from opsleuth.graph.approvals import decisions, questions
from opsleuth.graph.approvals.answering import AwaitAnswers, collect_answers, find_edit_fault
from opsleuth.graph.approvals.decisions import ApprovalPrompt
from opsleuth.graph.lifecycle import follow_ups, queued
from opsleuth.graph.lifecycle.drive import AttemptEnd, Hold, StepPace, drive_graph
from opsleuth.graph.lifecycle.first_state import (
    RunSettings,
    StartRequest,
    first_state,
    with_meant_service,
)
from opsleuth.graph.lifecycle.follow_ups import FollowUpRequest
from opsleuth.graph.lifecycle.outcome import LAST_EVENT, AttemptOutcome, attempt_outcome
from opsleuth.graph.lifecycle.stored_state import (
    caps_of_run,
    cut_to_caps,
    read_stored_state,
    settings_with_limits,
)
from opsleuth.graph.lifecycle.wiring import AttemptParts, deciders_of, deps_for, restrict_settings
from opsleuth.models.planner_selection import PlannerAndReviewer
from opsleuth.nodes.deps import Deps
from opsleuth.nodes.operator_requests import STOPS
from opsleuth.nodes.trace import Event
from opsleuth.state.base import to_json
from opsleuth.state.budget import Budget, RunLimits
from opsleuth.state.calls import Risk
from opsleuth.state.clock import Clock, SystemClock
from opsleuth.state.errors import OpsleuthError, UsageError
from opsleuth.state.investigation import Investigation
from opsleuth.state.plurals import format_count
from opsleuth.state.run_status import FINISHED_STATUSES, ExitCode, Status, StopReason
from opsleuth.tools.sources.open_sources import discover_services

DISCOVERY_SECONDS = 2.0
"""So long may sources take to tell the names of their services before the first decision."""
MOST_SERVICES = 5_000
"""Names of services that are kept with a run."""
MOST_STEPS = 100_000
"""The framework's own guard against endless loops; ours are the limits in the state."""


Given = dict[str, Any] | Command[str] | AwaitAnswers | None
Which = Callable[[str, Sequence[str]], str | None]
NextInput = Callable[[StateSnapshot], Given]


class NothingToDoError(OpsleuthError):
    """The run is over, or still waits for an answer; the text says what would make it go on."""

    exit_code = ExitCode.USAGE

    def __init__(self, text: str, status: Status, reason: StopReason | None = None) -> None:
        super().__init__(text)
        self.status, self.reason = status, reason


@dataclass(frozen=True, slots=True)
class Runner:
    """Starts and resumes runs in one store.

    `on_event` receives every event as it is stored. `asker` puts questions to a person at this process's terminal;
    without one they stay pending. `pace` decides between two nodes, `hold` after a Ctrl-C, whether the run goes on.
    `which` asks there which of these services is meant, where the question leaves it open.
    `leaving`, where one process drives many runs, tells all of them to stop at the next node; where it drives one,
    `heard` is told at once that a signal came. `held` is called with the run's id as soon as its lock is held, before
    anything is done: what it raises ends the attempt.
    """

    store: Store
    on_event: Callable[[Event], None] = lambda _: None
    clock: Clock = field(default_factory=SystemClock)
    parts: AttemptParts = field(default_factory=AttemptParts)
    pace: StepPace | None = None
    asker: ApprovalPrompt | None = None
    hold: Hold | None = None
    which: Which | None = None
    leaving: asyncio.Event | None = None
    heard: Callable[[], None] = lambda: None
    held: Callable[[str], None] = lambda _: None

    async def start(self, request: StartRequest) -> AttemptOutcome:
        """A new run, to its end or to where it stops. Nothing is stored before the request is found valid."""
        first, services = await self._first(request)
        request = replace(request, settings=replace(request.settings, services=services))
        chosen = deciders_of(self.parts, request.settings, self.store)  # the redactor learns their keys
        state = queued.redact_first_state(self.store, first)
        row = self.store.runs.create(queued.row_of(self.store, request, state))
        with self.store.lock(row.id):
            self.held(row.id)
            return await self._attempt(row, lambda _: state, chosen)

    async def _first(self, request: StartRequest) -> tuple[Investigation, tuple[str, ...]]:
        """The state before the first node, as the sources make it of the request, and the services that they know."""
        opened = self.parts.sources(request.settings)
        self.parts.policy(request.settings)  # a broken policy file stops the start
        await discover_services(opened.sources.by_name.values(), DISCOVERY_SECONDS)
        services = tuple(sorted(opened.sources.services))[:MOST_SERVICES]
        state = first_state(request, opened, self.clock)
        if state.unresolved and self.which and opened.case is None:
            named = self.which(state.unresolved, sorted({*services, *request.settings.aliases}))
            state = with_meant_service(state, named) if named else state
        return state, services

    async def resume(
        self,
        run: str,
        limits: Mapping[str, Any],
        planner: str | None = None,
        model: Mapping[str, Any] | None = None,
    ) -> AttemptOutcome:
        """Go on with a run from its last node. `limits` are new totals; `planner` and `model` take over from here.

        Raises NotFoundError, RunBusyError, UsageError for totals above the operator's caps, and UnreadableStoreError for a run that
        this version cannot read; nothing is changed then.
        """
        with self._held(run) as row:
            caps = caps_of_run(row, self.parts.restrictions)
            if excess := caps.describe_excess(limits):
                raise UsageError(f"{row.id} was taken in by a service: {excess}")
            if row.status is Status.QUEUED:
                first, services = await self._first(queued.request_of(row))
                state = queued.redact_first_state(self.store, first)
                row = queued.with_first_state(row, state, services)  # noqa: PLW2901 - the same run
            row, asked = queued.taken_limits(row)  # noqa: PLW2901 - the same run
            limits = cut_to_caps(row, {**asked, **limits}, caps)
            changed = {key: value for key, value in (("planner", planner), ("model", model)) if value}
            changed |= settings_with_limits(row, limits)
            row = replace(row, settings=dict(row.settings) | changed)  # noqa: PLW2901 - the same run
            chosen = deciders_of(self.parts, RunSettings.of(row.settings), self.store)
            try:
                return await self._attempt(row, lambda s: self._resumed(row, s, limits), chosen)
            except NothingToDoError as over:
                return self._left(row, over)

    async def ask(self, asked: FollowUpRequest, new_id: Callable[[], str]) -> AttemptOutcome:
        """Answer a question on an ended run in a read-only branch, within what is left of the run's limits.

        The run stays held meanwhile, so that two questions cannot spend the same rest. Raises NotFoundError, RunBusyError, UsageError.
        """
        parent = self._row(asked.run)
        follow_ups.require_ended(parent)
        with self._held(find_asked_run(self.store.runs, parent).id):
            settings = restrict_settings(self.parts, RunSettings.of(parent.settings))
            settings = replace(
                settings, planner=asked.planner or settings.planner, model=asked.model or settings.model
            )
            opened = self.parts.sources(settings)
            await discover_services(opened.sources.by_name.values(), DISCOVERY_SECONDS)
            known = sorted({*settings.services, *opened.sources.services})
            made = follow_ups.build_follow_up(self.store, parent, settings, known, asked)
            chosen = deciders_of(self.parts, settings, self.store)
            row = follow_ups.store_follow_up(self.store, made, new_id)
            self.held(row.id)
            with self.store.lock(row.id):
                return await self._attempt(row, lambda _: dict(row.settings["state"]), chosen)

    async def end(self, run: str, kind: Literal["cancel", "terminate"]) -> AttemptOutcome:
        """End a run that no process holds: through verify, so that it has a report. The wish is in its rows.

        What waits for a person is withdrawn; an unknown effect stays a question. Raises NotFoundError, RunBusyError.
        """
        with self._held(run) as row:
            self._withdraw_questions(row.id, f"the run was ended ({kind})")
            chosen = deciders_of(self.parts, RunSettings.of(row.settings), self.store)
            outcome = await self._attempt(row, self._ending, chosen)
            self.store.control.clear(row.id, kind)
            return outcome

    def _withdraw_questions(self, run: str, why: str) -> None:
        """No question about a call survives its run; the outcome of an effect stays open until somebody knows."""
        for asked in self.store.approvals.list(run, "pending"):
            if asked.about != "effect":
                self.store.approvals.stale(run, asked.id, why)

    def _ending(self, snapshot: StateSnapshot) -> Given:
        if snapshot.interrupts:
            return AwaitAnswers({}, lambda s, _: Command(resume=questions.resume_value_without_answers(s)))
        return (
            None
            if snapshot.values
            else dict(self._row(snapshot.config["configurable"]["thread_id"]).settings["state"])
        )

    async def retry(self, run: str) -> AttemptOutcome:
        """Go on, and forget the failed look-ups of the turn in progress; a change is never made again for that."""
        with self._held(run) as row:
            with self.store.saver() as saver:
                snapshot = await build.build_graph(saver).aget_state({"configurable": {"thread_id": row.id}})
            # Past act every pending call must keep its result: observe takes them all.
            before_act = set(snapshot.next) & {"approve", "act"}
            for call in read_stored_state(row, snapshot).pending if before_act else ():
                found = self.store.results.get(row.id, call.id)
                if call.risk is Risk.READ and found is not None and found.status.is_error:
                    self.store.results.discard(row.id, call.id)
        return await self.resume(run, {})

    async def edit(self, run: str, approval_id: str, hashed: str, edits: Sequence[str]) -> AttemptOutcome:
        """Ask again with other arguments: a person changed the call with this digest. The rest stays asked.

        Raises NotFoundError, RunBusyError, WrongDigestError, AlreadyDecidedError, and UsageError for arguments that the tool refuses.
        """

        def again(snapshot: StateSnapshot, deps: Deps) -> Command[str]:
            if wrong := find_edit_fault(asked, arguments, deps):
                raise UsageError(wrong)
            return Command(resume=questions.resume_value_for_edit(snapshot, asked, arguments))

        with self._held(run) as row:
            asked = self.store.approvals.asked(row.id, approval_id, hashed)
            arguments = decisions.apply_argument_edits(asked.document["arguments"], edits)
            chosen = deciders_of(self.parts, RunSettings.of(row.settings), self.store)
            return await self._attempt(row, lambda _: AwaitAnswers({}, again), chosen)

    @contextmanager
    def _held(self, run: str) -> Iterator[RunRow]:
        """The run's lock, and its row as it stands under it: another attempt may have ended meanwhile.

        Nobody held the run, so a pause that was asked for has been granted. Raises NotFoundError, RunBusyError.
        """
        run = self._row(run).id
        with self.store.lock(run):
            self.held(run)
            self.store.control.clear(run, "pause")
            yield self._row(run)

    async def _attempt(
        self,
        row: RunRow,
        next_input: NextInput,
        chosen: PlannerAndReviewer,
    ) -> AttemptOutcome:
        restricted = restrict_settings(self.parts, RunSettings.of(row.settings)).to_json()
        if self.parts.restrictions:  # the run keeps them, even if it then turns out to be waiting still
            kept = {name: restricted[name] for name in ("read_only", "added_policies", "rules")}
            self.store.runs.update(row.id, settings=dict(self._row(row.id).settings) | kept)
        row = replace(row, settings=dict(row.settings) | restricted)
        with self.store.saver() as saver:
            graph = build.build_graph(saver)
            config: RunnableConfig = {
                "configurable": {"thread_id": row.id},
                "recursion_limit": MOST_STEPS,
                "metadata": {"revision": build.graph_revision()},
            }
            snapshot = await graph.aget_state(config)
            given = next_input(snapshot)
            row = self._begin(row)
            deps = deps_for(
                self.parts,
                self.store,
                row,
                chosen,
                self.clock,
                self.on_event,
                step=(snapshot.metadata or {}).get("step", 0),
            )
            try:
                await deps.added.start_servers(deps.toolbox)
                self._announce(row, deps, resumed=bool(snapshot.values))
                return await self._to_the_end(graph, given, config, row, deps)
            finally:
                await deps.aclose()

    async def _to_the_end(
        self, graph: build.Graph, given: Given, config: RunnableConfig, row: RunRow, deps: Deps
    ) -> AttemptOutcome:
        """Drive, ask, drive again, until nothing is asked or nobody answers."""
        ended = AttemptEnd()
        while True:
            if isinstance(given, AwaitAnswers):
                given = collect_answers(await graph.aget_state(config), given, deps, self.asker)
                if given is None:
                    break
            ended = await drive_graph(
                graph, given, config, deps, self.pace, self.hold, self.leaving, self.heard
            )
            if not (await graph.aget_state(config)).interrupts:
                break
            given = AwaitAnswers({})
        return self._end(row, await graph.aget_state(config), ended, deps)

    def _resumed(self, row: RunRow, snapshot: StateSnapshot, limits: Mapping[str, Any]) -> Given:
        """What makes the graph go on: nothing, the answers that were waited for, or another way out of the end."""
        if not snapshot.values:
            return dict(row.settings["state"])
        state = read_stored_state(row, snapshot)
        budget = Budget(
            limits=RunLimits.model_validate(to_json(state.budget.limits) | dict(limits)),
            used=state.budget.used,
        )
        if state.status in FINISHED_STATUSES:
            return self._reopened(state, budget)
        if any(asked.kind in STOPS for asked in self.store.control.pending(row.id)):
            return self._ending(snapshot)
        if snapshot.interrupts:
            if self.asker is None and questions.has_unanswered_approval(self.store, row.id, snapshot):
                raise NothingToDoError(
                    "it still waits for an answer; opsleuth approvals shows to what", Status.WAITING
                )
            return AwaitAnswers(limits)
        return Command(update={"budget": to_json(budget)}) if limits else None

    def _reopened(self, state: Investigation, budget: Budget) -> Given:
        """A finished run goes on from plan, if what ended it is no longer so.

        The partial conclusion of the stop goes: a second stop must tell what was found since.
        """
        ended = (state.status, state.stop_reason)
        if state.stop_reason is StopReason.TERMINATED:
            raise NothingToDoError(
                "it was terminated for good; fork it from an earlier checkpoint to go on", *ended
            )
        if state.stop_reason is StopReason.CONCLUDED:
            raise NothingToDoError("it has concluded; opsleuth report shows the answer", *ended)
        if (limit := budget.find_exceeded_limit()) is not None:
            flag = {
                StopReason.TURN_LIMIT: "turns",
                StopReason.TIME_LIMIT: "time",
                StopReason.TOKEN_LIMIT: "tokens",
            }
            raise NothingToDoError(
                f"its {limit.value.replace('_', ' ')} is used up; give a new total with --max-{flag.get(limit, 'cost')}",
                *ended,
            )
        again = state.changed(
            status=Status.RUNNING,
            stop_reason=None,
            stop_detail="",
            stalled=0,
            malformed=0,
            rework=0,
            draft=None,
            review=None,
            budget=budget,
        )
        return Command(goto="plan", update=to_json(again))

    def _left(self, row: RunRow, over: NothingToDoError) -> AttemptOutcome:
        """Nothing was done; the row is repaired, for whoever ended the run may have died before it could."""
        outcome = attempt_outcome(self.store, row.id, over.status, over.reason, detail=str(over))
        self.store.runs.update(row.id, status=over.status, stop_reason=over.reason, verdict=outcome.verdict)
        return outcome

    def _begin(self, row: RunRow) -> RunRow:
        """A new attempt, with the settings that it is given. A cancellation that was never granted still stands: its process may have died before."""
        self.store.runs.update(
            row.id,
            attempt=row.attempt + 1,
            status=Status.RUNNING,
            stop_reason=None,
            settings=row.settings,
        )
        return self._row(row.id)

    def _row(self, run: str) -> RunRow:
        """The run's row by its whole id. Raises NotFoundError: a graph asked for an unknown thread would start one."""
        return self.store.runs.get(run) or self.store.runs.find(run)

    def _announce(self, row: RunRow, deps: Deps, *, resumed: bool) -> None:
        state = row.settings["state"]
        deps.trace.emit(
            "run.resumed" if resumed else "run.started",
            question=row.question,
            window={"from": state["window"]["start"], "to": state["window"]["end"]},
            versions={"app": __version__, "graph": build.graph_revision(), "model": deps.planner.name},
            limits=state["budget"]["limits"],
            cost=str(row.cost),
            read_only=deps.toolbox.read_only,
            replay=deps.executor.is_replaying,
            resume_cmd=f"opsleuth resume {row.id}",
        )
        deps.warn()

    def _end(self, row: RunRow, snapshot: StateSnapshot, ended: AttemptEnd, deps: Deps) -> AttemptOutcome:
        """Repair the row from the state, say the last word in the trace, and return its status."""
        deps.forget_notes()
        state = Investigation.model_validate(snapshot.values) if snapshot.values else None
        status, reason, detail = ended.status, ended.stop_reason, ended.detail
        waiting = questions.request_approvals(snapshot, deps)
        if snapshot.interrupts and ended.status is Status.COMPLETED:
            status, detail = Status.WAITING, f"{format_count(len(waiting), 'approval')} pending"
        elif state is not None and state.status in FINISHED_STATUSES:
            status, reason, detail = state.status, state.stop_reason, state.stop_detail
            self.store.control.clear(row.id, "cancel")
            self._withdraw_questions(row.id, "the run has ended")
        elif ended.status is Status.COMPLETED:
            status, reason = Status.FAILED, StopReason.INTERNAL_ERROR
            detail = (
                f"the loop ended without a verdict, with {snapshot.next[0] if snapshot.next else 'nothing'} to come: "
                "its last steps are missing from the database. Fork it from an earlier checkpoint"
            )
        outcome = attempt_outcome(self.store, row.id, status, reason, detail, ended.signaled)
        used = state.budget.used if state else None
        deps.trace.emit(
            LAST_EVENT[status],
            status=status,
            stop_reason=reason,
            verdict=outcome.verdict,
            exit_code=int(outcome.exit_code),
            conclusion=(outcome.report or {}).get("answer"),
            denied=(outcome.report or {}).get("denied", []),
            unsupported=(outcome.report or {}).get("unsupported", 0),
            usage=to_json(used) if used else {},
            detail=detail,
            resume_cmd=f"opsleuth resume {row.id}",
        )
        # The row last: who reads there that the run is over finds its last event too.
        self.store.runs.update(
            row.id,
            status=status,
            stop_reason=reason,
            verdict=outcome.verdict,
            turn=used.turns if used else 0,
            node=snapshot.next[0] if snapshot.next else "end",
            tokens=used.tokens if used else 0,
            cost=str(used.cost) if used else "0",
        )
        return outcome
