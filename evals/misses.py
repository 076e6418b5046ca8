"""Why a case went wrong, and at which step: read off the run's own observations, hypotheses and trace."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from opsleuth.evals.cases import Case, Expected
from opsleuth.evals.matching import holds, same
from opsleuth.evals.score import Score
from opsleuth.state.canonical import canonical
from opsleuth.state.outcome import ENDS, ExitCode, StopReason
from opsleuth.state.results import Observation
from opsleuth.state.words import counted
from opsleuth.verification.figures import squeeze
from opsleuth.verification.names import occurs

Event = Mapping[str, Any]
OVERVIEWS = frozenset({"topology", "rank_suspects", "time_now", "calculate", "evidence_read"})
"""Tools that name services without looking at any."""


class Group(StrEnum):
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


class Miss(NamedTuple):
    """`step` names where it went wrong, `why` in a few words what happened there."""

    group: Group
    step: str
    why: str

    def to_json(self) -> dict[str, str]:
        return {"group": self.group.value, "step": self.step, "why": self.why}


class Course(NamedTuple):
    """What a run left behind."""

    report: Mapping[str, Any]
    observations: Sequence[Observation]
    events: Sequence[Event]


NOTHING = Course({}, (), ())
"""What a run leaves that could not start."""


def diagnose(case: Case, found: Score, course: Course) -> Miss | None:
    """Why a score is not right; None if it is."""
    if found.right:
        return None
    return _ended_early(found, course) or _about(case.expected, found, course)


def _ended_early(found: Score, course: Course) -> Miss | None:
    last = f"turn {found.turns}"
    if found.guarded is False:
        return Miss(Group.TRAPPED, last, f"it fell into {found.case}: said {found.verdict}")
    if found.unsafe:
        return Miss(Group.UNSAFE, last, f"{counted(found.unsafe, 'change')} that nobody had allowed")
    reason = course.report.get("stop_reason")
    if not reason:
        return Miss(Group.FAILED, last, found.problem or f"it is {found.status}")
    if ENDS[StopReason(reason)][1] is ExitCode.LIMIT:
        return Miss(Group.LIMIT, last, str(course.report.get("stop_detail") or reason))
    if reason != StopReason.CONCLUDED:
        return Miss(Group.FAILED, last, str(course.report.get("stop_detail") or reason))
    return None


def _about(key: Expected, found: Score, course: Course) -> Miss:
    if found.top1 is False or (found.top1 is None and not found.verdict_right and key.services):
        return _service_missed(key, found, course)
    if found.kind is False or found.all_causes is False:
        named = "; ".join(f"{c['service']} ({c['kind']})" for c in course.report.get("causes", ()))
        wanted = ", ".join(sorted(f"{s} ({k})" for s, k in key.causes) or sorted(key.kinds))
        return Miss(Group.MISREAD, _concluded(course), f"named {named}, not {wanted}")
    if found.exact is False:
        return _answer_missed(key, course)
    if found.blamed:
        return _blamed(course)
    return Miss(Group.MISREAD, _concluded(course), f"said {found.verdict}, not {key.verdict}")


def _service_missed(key: Expected, found: Score, course: Course) -> Miss:
    right = sorted(key.services)
    for claim in course.report.get("claims", ()):
        if claim["status"] == "unsupported" and any(occurs(s, [squeeze(claim["text"])]) for s in right):
            problem = "; ".join(claim.get("problems", ())) or "no evidence"
            return Miss(Group.UNSUPPORTED, _concluded(course), f"{claim['id']} was removed: {problem}")
    suspected = [h for h in course.report.get("hypotheses", ()) if h.get("service") in key.services]
    if suspected:
        return _suspected(suspected[0], found, course)
    seen = next((o for o in course.observations if _looks_at(o, right)), None)
    if seen is not None:
        said = found.answered or found.verdict
        return Miss(
            Group.MISREAD, _chosen(course), f"O{seen.number} ({seen.tool}) showed {right[0]}; it said {said}"
        )
    failed = next((o for o in course.observations if o.status.is_error), None)
    if failed is not None:
        return Miss(Group.TOOL_FAILED, _place(failed), f"{failed.status}: {failed.headline}")
    return Miss(Group.NEVER_LOOKED, _concluded(course), f"no call looked at {right[0]}")


def _suspected(hypothesis: Mapping[str, Any], found: Score, course: Course) -> Miss:
    """It was a hypothesis: dropped if it had been the favourite or supported, else never believed."""
    mine = [
        e for e in course.events if e["type"] == "hypothesis.updated" and e["data"]["id"] == hypothesis["id"]
    ]
    believed = hypothesis["id"] == "H1" or any(e["data"]["status"] == "supported" for e in mine)
    step = f"turn {mine[-1]['turn']}, {mine[-1]['node']}" if mine else _concluded(course)
    why = f"{hypothesis['id']} ({hypothesis['text']}) ended {hypothesis['status']}; it said {found.answered or found.verdict}"
    return Miss(Group.DROPPED if believed else Group.MISREAD, step, why)


def _answer_missed(key: Expected, course: Course) -> Miss:
    text, fields = str(course.report.get("answer") or ""), course.report.get("fields") or {}
    missing = [part for part in key.answer if not holds(part, text)]
    missing += [
        f"{name} = {value}" for name, value in key.fields.items() if not same(value, fields.get(name))
    ]
    values = [part.rpartition(" = ")[2] for part in missing]
    seen = next(
        (o for o in course.observations if any(holds(v, canonical(dict(o.record))) for v in values)), None
    )
    if seen is not None:
        return Miss(
            Group.MISREAD, _concluded(course), f"O{seen.number} ({seen.tool}) holds it; missing: {missing[0]}"
        )
    failed = next((o for o in course.observations if o.status.is_error), None)
    if failed is not None:
        return Miss(Group.TOOL_FAILED, _place(failed), f"{failed.status}: {failed.headline}")
    return Miss(Group.NEVER_LOOKED, _concluded(course), f"nothing that was seen holds {missing[0]}")


def _blamed(course: Course) -> Miss:
    first = course.report["causes"][0]
    why = f"blamed {first['service']} ({first['kind']})"
    return Miss(Group.MISREAD, _chosen(course), why)


def _chosen(course: Course) -> str:
    """Where the suspects were chosen: the last ranking, else the first turn that opened a hypothesis, else the end."""
    ranked = [o for o in course.observations if o.tool == "rank_suspects"]
    if ranked:
        return _place(ranked[-1])
    opened = next((e for e in course.events if e["type"] == "hypothesis.updated"), None)
    return f"turn {opened['turn']}, {opened['node']}" if opened else _concluded(course)


def _concluded(course: Course) -> str:
    """The turn that concluded."""
    ends = [e for e in course.events if e["type"] == "decision.made" and e["data"].get("concludes")]
    return f"turn {ends[-1]['turn']}, the conclusion" if ends else "the end"


def _place(o: Observation) -> str:
    return f"turn {o.turn}, O{o.number} {o.tool}"


def _looks_at(o: Observation, services: Iterable[str]) -> bool:
    if o.status.is_error or o.tool in OVERVIEWS:
        return False
    text = [squeeze(canonical(dict(o.record)))]
    return any(occurs(service, text) for service in services)
