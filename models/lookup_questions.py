"""Questions that ask for what is recorded, not for a cause: "show me the errors of X", "was there any 'Peer down'?"."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from opsleuth.models.planner import PlannerView
from opsleuth.state.calls import CallRequest
from opsleuth.state.conclusion import Claim, Conclusion
from opsleuth.state.plurals import format_count
from opsleuth.state.results import Observation
from opsleuth.state.run_status import Verdict

_ASKS = re.compile(
    r"\s*(?:please\s+)?(?:(?:can|could) you\s+)?(?:(?:show|give|get|fetch|list|print|tail|display|find|summari[sz]e)\b.{0,40}\b"
    r"(?:logs?|lines?|errors?|warnings?|messages?|events?)\b"
    r"|(?:was|were|is|are|did|has|have)\s+(?:there\s+)?(?:any|an?)\b"
    r"|(?:what|which)\s+(?:were|are|was|is)\s+the\s+(?:errors?|warnings?|messages?|logs?|events?)\b"
    r"|how\s+many\b)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"['\"“`]([^'\"”`]{2,120})['\"”`]")
_ERRORS = re.compile(r"\b(?:errors?|failures?|exceptions?)\b", re.IGNORECASE)
MOST_LINES = 6


class LookupQuestion(NamedTuple):
    """What the question wants to see: lines with this text, or errors, or any lines."""

    text: str = ""
    errors: bool = False


def parse_lookup_question(question: str, service: str | None) -> LookupQuestion | None:
    """What is asked for, or None if the question asks for a cause."""
    if not _ASKS.match(question):
        return None
    quoted = [q for q in _QUOTED.findall(question) if q != service]
    return LookupQuestion(text=quoted[0] if quoted else "", errors=bool(_ERRORS.search(question)))


def plan_lookup_calls(wanted: LookupQuestion, view: PlannerView) -> Sequence[CallRequest]:
    """The search for it: at the service that is named first, anywhere if that service is not known."""
    service = view.state.alert.service if view.state.alert else None
    failed = any(o.tool == "logs_search" and o.status.is_error for o in view.observations)
    arguments: dict[str, str | int] = {"limit": 40}
    if wanted.text:
        arguments["text"] = wanted.text
    elif wanted.errors:
        arguments["level"] = "error"
    if service and not failed:
        arguments["service"] = service
    if any(o.tool == "logs_search" and not o.status.is_error for o in view.observations):
        return ()
    return (
        CallRequest(tool="logs_search", arguments=dict(arguments), purpose="what the question asks to see"),
    )


def answer_lookup(wanted: LookupQuestion, view: PlannerView) -> Conclusion:
    """The lines that were found, or that there were none, or that nothing could be searched."""
    found = [o for o in view.observations if o.tool == "logs_search" and not o.status.is_error]
    if not found or found[-1].status == "not_recorded":
        return Conclusion(
            verdict=Verdict.INCONCLUSIVE,
            answer="No log lines were available to answer this.",
            not_available=tuple(view.not_available)[:40],
        )
    return _answer_with_lines(wanted, found[-1], view)


def _answer_with_lines(wanted: LookupQuestion, found: Observation, view: PlannerView) -> Conclusion:
    matched, scanned = found.record["matched"], found.record["scanned"]
    what = f'hold "{wanted.text}"' if wanted.text else "are errors" if wanted.errors else "are recorded"
    told = f"{matched or 'None'} of {format_count(scanned, 'log line')} {what}."
    quotes = [f'{line.get("service", "")}: "{line["message"]}"' for line in _distinct_lines(found)]
    claims = [Claim(id="C1", text=told, evidence=(found.evidence,))]
    claims += [Claim(id=f"C{i}", text=q[:1000], evidence=(found.evidence,)) for i, q in enumerate(quotes, 2)]
    return Conclusion(
        verdict=Verdict.ANSWERED,
        answer="\n".join([told, *quotes]),
        not_available=tuple(view.not_available)[:40],
        claims=tuple(claims),
    )


def _distinct_lines(found: Observation) -> Iterable[dict[str, str]]:
    """The first line of each kind: messages that differ only in digits and identifiers count once."""
    seen: dict[str, dict[str, str]] = {}
    for line in found.record.get("lines", ()):
        seen.setdefault(re.sub(r"\S*\d\S*", "#", line["message"]), line)
    return list(seen.values())[:MOST_LINES]
