"""Why a case went wrong, and at which step, from the run's own observations, hypotheses and trace."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from opsleuth.evals.answer_matching import text_contains, values_match
from opsleuth.evals.cases import EvalCase, ExpectedReport
from opsleuth.evals.score import CaseScore
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.plurals import format_count
from opsleuth.state.results import Observation
from opsleuth.state.run_status import ENDING_BY_STOP_REASON, ExitCode, StopReason
from opsleuth.verification.name_extraction import name_occurs_in
from opsleuth.verification.record_facts import normalize_for_matching

Event = Mapping[str, Any]
OVERVIEWS = frozenset({"topology", "rank_suspects", "time_now", "calculate", "evidence_read"})
"""Tools that name services without looking at any."""


class MissGroup(StrEnum):
    """In what way a case can go wrong."""

    UNSAFE = "unsafe"
    FAILED = "did not finish"
    LIMIT = "limit hit"
    UNSUPPORTED = "unsupported"
    TRAPPED = "fell into a trap"
    DROPPED = "right first, then dropped"
    MISREAD = "looked and misread"
    TOOL_FAILED = "tool failed"
    NEVER_LOOKED = "never looked at the source"


class MissDiagnosis(NamedTuple):
    """`step` names where it went wrong, `why` in a few words what happened there."""

    group: MissGroup
    step: str
    why: str

    def to_json(self) -> dict[str, str]:
        return {"group": self.group.value, "step": self.step, "why": self.why}


class RunRecord(NamedTuple):
    """What a run left behind."""

    report: Mapping[str, Any]
    observations: Sequence[Observation]
    events: Sequence[Event]


NOTHING = RunRecord({}, (), ())
"""What a run leaves that could not start."""


def diagnose_miss(case: EvalCase, found: CaseScore, course: RunRecord) -> MissDiagnosis | None:
    """Why a score is not right; None if it is."""
    if found.right:
        return None
    return _diagnose_early_end(found, course) or _diagnose_conclusion(case.expected, found, course)


def _diagnose_early_end(found: CaseScore, course: RunRecord) -> MissDiagnosis | None:
    last = f"turn {found.turns}"
    if found.guarded is False:
        return MissDiagnosis(MissGroup.TRAPPED, last, f"it fell into {found.case}: said {found.verdict}")
    if found.unsafe:
        return MissDiagnosis(
            MissGroup.UNSAFE, last, f"{format_count(found.unsafe, 'change')} that nobody had approved"
        )
    reason = course.report.get("stop_reason")
    if not reason:
        return MissDiagnosis(MissGroup.FAILED, last, found.problem or f"it is {found.status}")
    if ENDING_BY_STOP_REASON[StopReason(reason)][1] is ExitCode.LIMIT:
        return MissDiagnosis(MissGroup.LIMIT, last, str(course.report.get("stop_detail") or reason))
    if reason != StopReason.CONCLUDED:
        return MissDiagnosis(MissGroup.FAILED, last, str(course.report.get("stop_detail") or reason))
    return None


def _diagnose_conclusion(key: ExpectedReport, found: CaseScore, course: RunRecord) -> MissDiagnosis:
    if found.top1 is False or (found.top1 is None and not found.verdict_right and key.services):
        return _diagnose_missed_service(key, found, course)
    if found.kind is False or found.all_causes is False:
        named = "; ".join(f"{c['service']} ({c['kind']})" for c in course.report.get("causes", ()))
        wanted = ", ".join(sorted(f"{s} ({k})" for s, k in key.causes) or sorted(key.kinds))
        return MissDiagnosis(MissGroup.MISREAD, _find_concluding_step(course), f"named {named}, not {wanted}")
    if found.exact is False:
        return _diagnose_missed_answer(key, course)
    if found.blamed:
        return _diagnose_wrong_blame(course)
    return MissDiagnosis(
        MissGroup.MISREAD, _find_concluding_step(course), f"said {found.verdict}, not {key.verdict}"
    )


def _diagnose_missed_service(key: ExpectedReport, found: CaseScore, course: RunRecord) -> MissDiagnosis:
    right = sorted(key.services)
    for claim in course.report.get("claims", ()):
        if claim["status"] == "unsupported" and any(
            name_occurs_in(s, [normalize_for_matching(claim["text"])]) for s in right
        ):
            problem = "; ".join(claim.get("problems", ())) or "no evidence"
            return MissDiagnosis(
                MissGroup.UNSUPPORTED, _find_concluding_step(course), f"{claim['id']} was removed: {problem}"
            )
    suspected = [h for h in course.report.get("hypotheses", ()) if h.get("service") in key.services]
    if suspected:
        return _diagnose_dropped_suspect(suspected[0], found, course)
    seen = next((o for o in course.observations if _looks_at_service(o, right)), None)
    if seen is not None:
        said = found.answered or found.verdict
        return MissDiagnosis(
            MissGroup.MISREAD,
            _find_ranking_step(course),
            f"O{seen.number} ({seen.tool}) showed {right[0]}; it said {said}",
        )
    return _not_seen(course, f"no call looked at {right[0]}")


def _not_seen(course: RunRecord, why: str) -> MissDiagnosis:
    """The evidence was not seen: a tool failed, or none was asked, for the reason `why`."""
    failed = next((o for o in course.observations if o.status.is_error), None)
    if failed is not None:
        return MissDiagnosis(
            MissGroup.TOOL_FAILED, _format_observation_step(failed), f"{failed.status}: {failed.headline}"
        )
    return MissDiagnosis(MissGroup.NEVER_LOOKED, _find_concluding_step(course), why)


def _diagnose_dropped_suspect(
    hypothesis: Mapping[str, Any], found: CaseScore, course: RunRecord
) -> MissDiagnosis:
    """It was a hypothesis: dropped if it had been the favourite or supported, else never believed."""
    mine = [
        e for e in course.events if e["type"] == "hypothesis.updated" and e["data"]["id"] == hypothesis["id"]
    ]
    believed = hypothesis["id"] == "H1" or any(e["data"]["status"] == "supported" for e in mine)
    step = f"turn {mine[-1]['turn']}, {mine[-1]['node']}" if mine else _find_concluding_step(course)
    why = f"{hypothesis['id']} ({hypothesis['text']}) ended {hypothesis['status']}; it said {found.answered or found.verdict}"
    return MissDiagnosis(MissGroup.DROPPED if believed else MissGroup.MISREAD, step, why)


def _diagnose_missed_answer(key: ExpectedReport, course: RunRecord) -> MissDiagnosis:
    text, fields = str(course.report.get("answer") or ""), course.report.get("fields") or {}
    missing = [part for part in key.answer if not text_contains(part, text)]
    missing += [
        f"{name} = {value}" for name, value in key.fields.items() if not values_match(value, fields.get(name))
    ]
    values = [part.rpartition(" = ")[2] for part in missing]
    seen = next(
        (
            o
            for o in course.observations
            if any(text_contains(v, to_canonical_json(dict(o.record))) for v in values)
        ),
        None,
    )
    if seen is not None:
        return MissDiagnosis(
            MissGroup.MISREAD,
            _find_concluding_step(course),
            f"O{seen.number} ({seen.tool}) holds it; missing: {missing[0]}",
        )
    return _not_seen(course, f"nothing that was seen holds {missing[0]}")


def _diagnose_wrong_blame(course: RunRecord) -> MissDiagnosis:
    first = course.report["causes"][0]
    why = f"blamed {first['service']} ({first['kind']})"
    return MissDiagnosis(MissGroup.MISREAD, _find_ranking_step(course), why)


def _find_ranking_step(course: RunRecord) -> str:
    """Where the suspects were chosen: the last ranking, else the first turn that opened a hypothesis, else the end."""
    ranked = [o for o in course.observations if o.tool == "rank_suspects"]
    if ranked:
        return _format_observation_step(ranked[-1])
    opened = next((e for e in course.events if e["type"] == "hypothesis.updated"), None)
    return f"turn {opened['turn']}, {opened['node']}" if opened else _find_concluding_step(course)


def _find_concluding_step(course: RunRecord) -> str:
    """The turn that concluded."""
    ends = [e for e in course.events if e["type"] == "decision.made" and e["data"].get("concludes")]
    return f"turn {ends[-1]['turn']}, the conclusion" if ends else "the end"


def _format_observation_step(o: Observation) -> str:
    return f"turn {o.turn}, O{o.number} {o.tool}"


def _looks_at_service(o: Observation, services: Iterable[str]) -> bool:
    if o.status.is_error or o.tool in OVERVIEWS:
        return False
    text = [normalize_for_matching(to_canonical_json(dict(o.record)))]
    return any(name_occurs_in(service, text) for service in services)
