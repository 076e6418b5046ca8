"""The offline investigator: the same graph, the same tools, no model.

It looks the way a person on call does: at the alerting service and what changed, then wider, then at the
whole picture; it opens a hypothesis per suspect, goes and looks for what would speak against its favourite,
and stops. It keeps no memory: every turn is derived from what was observed, so that any process can go on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.models.advice import WORDS
from opsleuth.models.draft import Suspect, draft, evidence_of, ranking_in, suspects_in
from opsleuth.models.lookup import Lookup, lookup, reply, search
from opsleuth.models.planner import OFFLINE, Decided, PlannerView
from opsleuth.models.undo import undo
from opsleuth.state.calls import CallRequest
from opsleuth.state.decision import Decision, HypothesisChange, PlanChange
from opsleuth.state.investigation import Hypothesis
from opsleuth.state.results import Observation

MOST_HYPOTHESES = 3
MOST_COURSES = 3


class Stage(NamedTuple):
    """One stretch of the investigation: why, and the calls it wants."""

    step: str
    reason: str
    calls: Callable[[PlannerView], Sequence[CallRequest]]


class OfflinePlanner:
    """A planner that needs no model."""

    name = OFFLINE

    async def decide(self, view: PlannerView) -> Decided:
        """The first stage with a call that was not made yet; after the last one, the conclusion."""
        asked = {_key(o.tool, o.arguments) for o in view.observations}
        if wanted := lookup(view.state.question, view.state.alert.service if view.state.alert else None):
            return _looked_up(wanted, view)
        for number, stage in enumerate(STAGES, start=1):
            calls = [
                c for c in stage.calls(view) if _offered(c, view) and _key(c.tool, c.arguments) not in asked
            ]
            if calls:
                return Decided(
                    Decision(
                        reason=stage.reason,
                        plan=_plan(view, number),
                        hypotheses=_opened(view),
                        calls=tuple(calls[:8]),
                    )
                )
        if calls_to_undo := undo(view):
            reason = "The release that set it off can be undone, if a person agrees."
            return Decided(Decision(reason=reason, calls=tuple(calls_to_undo)))
        conclusion = draft(view)
        return Decided(
            Decision(
                reason="Nothing new is to be expected from the sources there are.",
                plan=_plan(view, len(STAGES) + 1),
                hypotheses=_judged(view),
                conclusion=conclusion,
            )
        )


def _looked_up(wanted: Lookup, view: PlannerView) -> Decided:
    calls = tuple(call for call in search(wanted, view) if _offered(call, view))
    if calls:
        return Decided(
            Decision(reason="The question asks for what is recorded, not for a cause.", calls=calls)
        )
    return Decided(Decision(reason="What was asked for is at hand.", conclusion=reply(wanted, view)))


def _orient(view: PlannerView) -> Sequence[CallRequest]:
    service = view.state.alert.service if view.state.alert else None
    own = {"service": service} if service else {}
    return (
        _call("metrics_anomalies", own, "what is unusual at the alerting service itself"),
        _call("topology", own, "what it calls and who calls it"),
        _call("changes_list", {}, "what was changed before the onset"),
        _call("events_list", {}, "what the platform says"),
        _call("runbooks_find", {}, "what people wrote down for such a case"),
    )


def _widen(_: PlannerView) -> Sequence[CallRequest]:
    return (
        _call("metrics_anomalies", {}, "what is unusual anywhere"),
        _call("traces_compare", {}, "which spans and which ways between services are slower, new or lost"),
        _call("logs_patterns", {}, "which log lines are new, more frequent, or gone"),
        _call("database_statements", {}, "which statements carry the load"),
        _call("objects_get", {}, "how the objects of the platform stand"),
    )


def _weigh(_: PlannerView) -> Sequence[CallRequest]:
    return (_call("rank_suspects", {}, "all findings put together"),)


def _challenge(view: PlannerView) -> Sequence[CallRequest]:
    """For the favourite and its rival, a look through another source than the one that made them suspects."""
    favourites = list(enumerate(suspects_in(view)[:2], start=1))
    ids = {s["service"]: f"H{n}" for n, s in favourites}
    if view.state.hypotheses:  # opened before, maybe by another planner
        ids = {h.service: h.id for h in view.state.hypotheses if h.service}
    tests = [_test(ids[s["service"]], s, view) for _, s in favourites if s["service"] in ids]
    return [test for test in tests if test is not None] + _courses(view)


def _courses(view: PlannerView) -> list[CallRequest]:
    """The course of what moved at the favourites: when it turned, and what is usual, for people to see."""
    moved = dict.fromkeys(
        (finding["service"], finding["metric"])
        for suspect in suspects_in(view)[:2]
        for finding in suspect.get("findings", ())
        if finding.get("signal") == "metrics" and finding.get("metric")
    )
    return [
        _call(
            "metrics_query",
            {"service": service, "metric": metric},
            f"the course of {metric} of {service}"[:1000],
        )
        for service, metric in list(moved)[:MOST_COURSES]
    ]


STAGES: tuple[Stage, ...] = (
    Stage("look at the alert, its neighbours and what changed", "Symptoms and changes come first.", _orient),
    Stage("look wider: all services, every kind of signal", "The loudest service may be a victim.", _widen),
    Stage("weigh all findings together", "Every kind of evidence is there; now they are weighed.", _weigh),
    Stage(
        "look for what speaks against the favourite",
        "A favourite is believed after a counter-test.",
        _challenge,
    ),
)


def _test(hypothesis: str, suspect: Suspect, view: PlannerView) -> CallRequest | None:
    service = str(suspect["service"])
    for tool in _tools_for(suspect):
        extra = {"level": "error"} if tool == "logs_search" else {}
        request = CallRequest(
            tool=tool,
            arguments={"service": service, **extra},
            purpose=f"whether {service} itself shows it"[:1000],
            tests=hypothesis,
        )
        if _offered(request, view) and _knows(tool, service, view):
            return request
    return None


def _tools_for(suspect: Suspect) -> Sequence[str]:
    """The tools that look at one service; the one behind its best finding last, another kind tests better."""
    first: Mapping[str, Any] = next(iter(suspect.get("findings", ())), {})
    own = {"metrics": "metrics_anomalies", "logs": "logs_search", "traces": "traces_compare"}.get(
        first.get("signal", "")
    )
    return sorted(("metrics_anomalies", "logs_search", "traces_compare"), key=lambda tool: tool == own)


def _knows(tool: str, service: str, view: PlannerView) -> bool:
    """Whether the tool's source was seen to hold anything of this service."""
    seen = evidence_of(tool, view) or evidence_of("logs_patterns" if tool == "logs_search" else tool, view)
    return any(service in str(o.record) for o in seen)


def _opened(view: PlannerView) -> tuple[HypothesisChange, ...]:
    """One hypothesis per suspect, as soon as there is a ranking."""
    if view.state.hypotheses:
        return ()
    return tuple(
        HypothesisChange(
            text=f"{s['service']}: {WORDS[s['kind']]}", service=s["service"], kind=s["kind"], status="open"
        )
        for s in suspects_in(view)[:MOST_HYPOTHESES]
    )


def _judged(view: PlannerView) -> tuple[HypothesisChange, ...]:
    """The verdict on each hypothesis, with the evidence that decides it."""
    ranking = ranking_in(view)
    if ranking is None:
        return ()
    causes = {s["service"] for s in suspects_in(view)[: ranking.record["causes"]]}
    return tuple(_verdict(h, h.service in causes, ranking, view) for h in view.state.hypotheses)


def _verdict(h: Hypothesis, is_cause: bool, ranking: Observation, view: PlannerView) -> HypothesisChange:
    tests = [o.evidence for o in view.observations if o.tests == h.id and o.status in ("ok", "none_matched")]
    decided = tuple(dict.fromkeys((ranking.evidence, *tests)))
    if is_cause:
        return HypothesisChange(id=h.id, status="supported", supporting=decided)
    return HypothesisChange(id=h.id, status="refuted", contradicting=decided)


def _plan(view: PlannerView, stage: int) -> tuple[PlanChange, ...]:
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


def _call(tool: str, arguments: Mapping[str, Any], purpose: str) -> CallRequest:
    return CallRequest(tool=tool, arguments=dict(arguments), purpose=purpose)


def _offered(call: CallRequest, view: PlannerView) -> bool:
    return any(spec.name == call.tool for spec in view.tools)


def _key(tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """What makes two calls the same question; limits that a tool fills in itself do not."""
    return tool, str(sorted((k, v) for k, v in arguments.items() if k in ("service", "level")))
