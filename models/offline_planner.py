"""The offline investigator: the same graph, the same tools, no model.

It looks the way a person on call does: at the alerting service and what changed, then wider, then at the
whole picture; it opens a hypothesis per suspect, goes and looks for what would speak against its favourite,
and stops. It keeps no memory: every turn is derived from what was observed, so that any process can go on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.models.fault_advice import FAULT_WORDS
from opsleuth.models.follow_up_answers import decide_follow_up
from opsleuth.models.lookup_questions import (
    LookupQuestion,
    answer_lookup,
    parse_lookup_question,
    plan_lookup_calls,
)
from opsleuth.models.offline_conclusion import draft_conclusion
from opsleuth.models.offline_rollback import plan_rollback_calls
from opsleuth.models.planner import OFFLINE, PlannerResult, PlannerView
from opsleuth.models.view_observations import (
    Suspect,
    latest_ranking,
    observations_of_tool,
    ranked_suspects,
)
from opsleuth.state.calls import CallRequest
from opsleuth.state.decision import Decision, HypothesisChange, PlanChange
from opsleuth.state.investigation import Hypothesis
from opsleuth.state.results import Observation

MOST_HYPOTHESES = 3
MOST_COURSES = 3


class OfflineStage(NamedTuple):
    """One stretch of the investigation: why, and the calls it wants."""

    step: str
    reason: str
    calls: Callable[[PlannerView], Sequence[CallRequest]]


class OfflinePlanner:
    """A planner that needs no model."""

    name = OFFLINE

    async def decide(self, view: PlannerView) -> PlannerResult:
        """The first stage with a call that was not made yet; after the last one, the conclusion."""
        if (about := view.state.follow_up) is not None:
            return PlannerResult(decide_follow_up(view, about))
        asked = {_question_key(o.tool, o.arguments) for o in view.observations}
        if wanted := parse_lookup_question(
            view.state.question, view.state.alert.service if view.state.alert else None
        ):
            return _decide_lookup(wanted, view)
        for number, stage in enumerate(STAGES, start=1):
            calls = [
                c
                for c in stage.calls(view)
                if _is_offered(c, view) and _question_key(c.tool, c.arguments) not in asked
            ]
            if calls:
                return PlannerResult(
                    Decision(
                        reason=stage.reason,
                        plan=_update_plan(view, number),
                        hypotheses=_open_hypotheses(view),
                        calls=tuple(calls[:8]),
                    )
                )
        if calls_to_undo := plan_rollback_calls(view):
            reason = "The release that set it off can be undone, if a person agrees."
            return PlannerResult(Decision(reason=reason, calls=tuple(calls_to_undo)))
        conclusion = draft_conclusion(view)
        return PlannerResult(
            Decision(
                reason="The available sources can add nothing new.",
                plan=_update_plan(view, len(STAGES) + 1),
                hypotheses=_judge_hypotheses(view),
                conclusion=conclusion,
            )
        )


def _decide_lookup(wanted: LookupQuestion, view: PlannerView) -> PlannerResult:
    calls = tuple(call for call in plan_lookup_calls(wanted, view) if _is_offered(call, view))
    if calls:
        return PlannerResult(
            Decision(reason="The question asks for what is recorded, not for a cause.", calls=calls)
        )
    return PlannerResult(
        Decision(reason="The requested data is here.", conclusion=answer_lookup(wanted, view))
    )


def _orientation_calls(view: PlannerView) -> Sequence[CallRequest]:
    service = view.state.alert.service if view.state.alert else None
    own = {"service": service} if service else {}
    return (
        _build_call("metrics_anomalies", own, "what is unusual at the alerting service itself"),
        _build_call("topology", own, "what it calls and who calls it"),
        _build_call("changes_list", {}, "what was changed before the onset"),
        _build_call("events_list", {}, "what the platform says"),
        _build_call("runbooks_find", {}, "what runbooks say about such a case"),
    )


def _widening_calls(_: PlannerView) -> Sequence[CallRequest]:
    return (
        _build_call("metrics_anomalies", {}, "what is unusual anywhere"),
        _build_call(
            "traces_compare", {}, "which spans and which ways between services are slower, new or lost"
        ),
        _build_call("logs_patterns", {}, "which log lines are new, more frequent, or gone"),
        _build_call("database_statements", {}, "which statements carry the load"),
        _build_call("objects_get", {}, "how the objects of the platform stand"),
    )


def _ranking_calls(_: PlannerView) -> Sequence[CallRequest]:
    return (_build_call("rank_suspects", {}, "all findings put together"),)


def _counter_test_calls(view: PlannerView) -> Sequence[CallRequest]:
    """For the favourite and its rival, a look through another source than the one that made them suspects."""
    if not ranked_suspects(view):
        return [_build_call("logs_search", {"level": "error"}, "which lines report failure, and since when")]
    favourites = list(enumerate(ranked_suspects(view)[:2], start=1))
    ids = {s["service"]: f"H{n}" for n, s in favourites}
    if view.state.hypotheses:  # opened before, maybe by another planner
        ids = {h.service: h.id for h in view.state.hypotheses if h.service}
    tests = [_build_refuting_call(ids[s["service"]], s, view) for _, s in favourites if s["service"] in ids]
    return [test for test in tests if test is not None] + _metric_query_calls(view)


def _metric_query_calls(view: PlannerView) -> list[CallRequest]:
    """The course of what moved at the favourites: when it turned, and what is usual, for people to see."""
    moved = dict.fromkeys(
        (finding["service"], finding["metric"])
        for suspect in ranked_suspects(view)[:2]
        for finding in suspect.get("findings", ())
        if finding.get("signal") == "metrics" and finding.get("metric")
    )
    return [
        _build_call(
            "metrics_query",
            {"service": service, "metric": metric},
            f"the course of {metric} of {service}"[:1000],
        )
        for service, metric in list(moved)[:MOST_COURSES]
    ]


STAGES: tuple[OfflineStage, ...] = (
    OfflineStage(
        "look at the alert, its neighbours and what changed",
        "Symptoms and changes come first.",
        _orientation_calls,
    ),
    OfflineStage(
        "look wider: all services, every kind of signal",
        "The loudest service may be a victim.",
        _widening_calls,
    ),
    OfflineStage(
        "weigh all findings together",
        "Every kind of evidence is there; now they are weighed.",
        _ranking_calls,
    ),
    OfflineStage(
        "look for what speaks against the favourite",
        "A favourite is believed after a counter-test.",
        _counter_test_calls,
    ),
)


def _build_refuting_call(hypothesis: str, suspect: Suspect, view: PlannerView) -> CallRequest | None:
    service = str(suspect["service"])
    for tool in _order_test_tools(suspect):
        extra = {"level": "error"} if tool == "logs_search" else {}
        request = CallRequest(
            tool=tool,
            arguments={"service": service, **extra},
            purpose=f"whether {service} itself shows it"[:1000],
            tests=hypothesis,
        )
        if _is_offered(request, view) and _source_knows_service(tool, service, view):
            return request
    return None


def _order_test_tools(suspect: Suspect) -> Sequence[str]:
    """The tools that look at one service; the one behind its best finding last, another kind tests better."""
    first: Mapping[str, Any] = next(iter(suspect.get("findings", ())), {})
    own = {"metrics": "metrics_anomalies", "logs": "logs_search", "traces": "traces_compare"}.get(
        first.get("signal", "")
    )
    return sorted(("metrics_anomalies", "logs_search", "traces_compare"), key=lambda tool: tool == own)


def _source_knows_service(tool: str, service: str, view: PlannerView) -> bool:
    """Whether the tool's source was seen to hold anything of this service."""
    seen = observations_of_tool(tool, view) or observations_of_tool(
        "logs_patterns" if tool == "logs_search" else tool, view
    )
    return any(service in str(o.record) for o in seen)


def _open_hypotheses(view: PlannerView) -> tuple[HypothesisChange, ...]:
    """One hypothesis per suspect, as soon as there is a ranking."""
    if view.state.hypotheses:
        return ()
    return tuple(
        HypothesisChange(
            text=f"{s['service']}: {FAULT_WORDS[s['kind']]}",
            service=s["service"],
            kind=s["kind"],
            status="open",
        )
        for s in ranked_suspects(view)[:MOST_HYPOTHESES]
    )


def _judge_hypotheses(view: PlannerView) -> tuple[HypothesisChange, ...]:
    """The verdict on each hypothesis, with the evidence that decides it."""
    ranking = latest_ranking(view)
    if ranking is None:
        return ()
    causes = {s["service"] for s in ranked_suspects(view)[: ranking.record["causes"]]}
    return tuple(_judge_hypothesis(h, h.service in causes, ranking, view) for h in view.state.hypotheses)


def _judge_hypothesis(
    h: Hypothesis, is_cause: bool, ranking: Observation, view: PlannerView
) -> HypothesisChange:
    tests = [o.evidence for o in view.observations if o.tests == h.id and o.status in ("ok", "none_matched")]
    decided = tuple(dict.fromkeys((ranking.evidence, *tests)))
    if is_cause:
        return HypothesisChange(id=h.id, status="supported", supporting=decided)
    return HypothesisChange(id=h.id, status="refuted", contradicting=decided)


def _update_plan(view: PlannerView, stage: int) -> tuple[PlanChange, ...]:
    """The rough plan at the first turn; later, which step is done and which is under way. Another's plan stays."""
    if view.state.plan and view.state.plan[0].text != STAGES[0].step:
        return ()
    if not view.state.plan:
        steps = [
            PlanChange(text=s.step, status="active" if i == stage else "pending")
            for i, s in enumerate(STAGES, 1)
        ]
        return tuple(steps)
    wanted = {
        f"P{i}": "done" if i < stage else "active" if i == stage else "pending"
        for i in range(1, len(STAGES) + 1)
    }
    return tuple(
        PlanChange.model_validate({"id": step.id, "status": wanted[step.id]})
        for step in view.state.plan
        if step.id in wanted and step.status != wanted[step.id]
    )


def _build_call(tool: str, arguments: Mapping[str, Any], purpose: str) -> CallRequest:
    return CallRequest(tool=tool, arguments=dict(arguments), purpose=purpose)


def _is_offered(call: CallRequest, view: PlannerView) -> bool:
    return any(spec.name == call.tool for spec in view.tools)


def _question_key(tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """What makes two calls the same question; limits that a tool fills in itself do not."""
    return tool, str(sorted((k, v) for k, v in arguments.items() if k in _ASKED and v is not None))


_ASKED = ("service", "level", "metric")
"""Arguments that say what is asked about; a window, a limit or a purpose only says how much of it."""
