"""What the offline investigator recommends: undo what set the fault off, then what helps with each kind of cause."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.analysis.memory_kills import MemoryKill
from opsleuth.models.fault_advice import (
    advice_for_external_host,
    advice_for_fault,
    advice_for_memory_kill,
    advice_unanswered,
)
from opsleuth.models.planner import PlannerView
from opsleuth.models.remedy_commands import build_rollout_undo, find_previous_version
from opsleuth.models.view_observations import observations_of_tool
from opsleuth.state.calls import Risk
from opsleuth.state.conclusion import Action, Cause, Claim, Recommendation

Change = Mapping[str, Any]


class CauseWithClaims(NamedTuple):
    """One cause with its claims."""

    cause: Cause
    claims: tuple[Claim, ...]
    show: str = ""
    undo: str = ""
    subject: str = ""
    unanswered: bool = False
    index_command: str = ""
    external_host: str = ""
    memory_kill: MemoryKill | None = None


def recommend_for_causes(
    cases: Sequence[CauseWithClaims], change: Change | None, triggered: Sequence[Claim], view: PlannerView
) -> Iterable[Recommendation]:
    """First what to do about what set it off, then what else helps with each kind of cause; each sentence once."""
    undone = bool(observations_of_tool("service_rollback", view))
    shown = change is not None and change["grade"] == "cause"
    if change is not None and not undone:
        yield _recommend_undo(change, triggered, view) if shown else _recommend_look(change, triggered)
    said = set(advice_for_fault("deploy", str(change["service"] if change else cases[0].cause.service))[:1])
    for case in cases[:2]:
        yield from _recommend_commands(case)
        for text in _advice_for(case):
            if (
                text not in said
                and not text.startswith("Undo the last change of")
                and not (shown and text.startswith("Undo the "))
            ):
                said.add(text)
                yield Recommendation(text=text, claims=case.cause.claims[:1])


def _advice_for(case: CauseWithClaims) -> Sequence[str]:
    if case.index_command:
        return (f"Give the statement the index it needs (PostgreSQL): `{case.index_command}`",)
    if case.external_host and (
        texts := advice_for_external_host(case.cause.kind, case.cause.service, case.external_host)
    ):
        return texts
    if case.unanswered and case.cause.kind in {"dependency", "network_loss"}:
        return advice_unanswered(case.cause.service)
    subject = case.subject or case.cause.service
    if (kill := case.memory_kill) and (texts := advice_for_memory_kill(kill.scope, subject, kill.process)):
        return texts
    return advice_for_fault(case.cause.kind, subject)


def _recommend_commands(case: CauseWithClaims) -> Iterable[Recommendation]:
    """The commands that show the object at fault as it is, and that would undo it: text for a person, nothing is run."""
    if case.show:
        yield Recommendation(text=f"See it for yourself: `{case.show}`", claims=case.cause.claims[:1])
    if case.undo:
        yield Recommendation(
            text=f"What would undo it: `{case.undo}`", risk=Risk.HIGH, claims=case.cause.claims[:1]
        )


def _recommend_look(change: Change, triggered: Sequence[Claim]) -> Recommendation:
    version = f" {change['version']}" if change.get("version") else ""
    what = f"{change['kind']}{version} of {change['service']}"
    text = f"Look at the diff of {what}: it fits in place and time. Going back is an option if the diff explains it."
    return Recommendation(text=text[:1000], claims=tuple(c.id for c in triggered))


def _recommend_undo(change: Change, triggered: Sequence[Claim], view: PlannerView) -> Recommendation:
    service = str(change["service"])
    release = change["kind"] == "deploy"
    offered = release and any(spec.name == "service_rollback" for spec in view.tools)
    text = (
        _describe_rollback(service, change, view, offered=offered)
        if release
        else f"Revert {change['id']} and release what contains it."
        if change["kind"] == "commit"
        else f"Undo the {change['kind']} change of {service}."
    )
    action = Action(tool="service_rollback", arguments={"service": service}) if offered else None
    return Recommendation(
        text=text[:1000], action=action, risk=Risk.HIGH, claims=tuple(c.id for c in triggered)
    )


def _describe_rollback(service: str, change: Change, view: PlannerView, *, offered: bool) -> str:
    """Back to which version, and the command for it where no platform is at hand that would do it."""
    listed = [row for o in observations_of_tool("changes_list", view) for row in o.record.get("changes", ())]
    before = find_previous_version(change, listed)
    what = f"Roll {service} back to {before or 'the release before'}."
    command = None if offered else build_rollout_undo(service)
    return f"{what} On Kubernetes: `{command}`" if command else what


def recommend_threshold_check(claims: Sequence[Claim]) -> Recommendation:
    """With the range in which the alert's metric stayed, where that was measured."""
    kept = next((claim for claim in claims if " kept between " in claim.text), None)
    if kept is None:
        return Recommendation(text="Check the alert's threshold against the usual range of its metric.")
    return Recommendation(text=f"Check the alert's threshold: {kept.text}"[:1000], claims=(kept.id,))
