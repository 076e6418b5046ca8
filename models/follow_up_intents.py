"""Follow-up questions of a known form: whether it is over, who holds the lock, who calls whom, what share fails.

Each is answered from what was measured for it, or with what is missing; a yes or no that nothing measured is not given.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from opsleuth.models.metric_end import describe_metric_end, parse_time
from opsleuth.models.planner import PlannerView
from opsleuth.models.question_topics import QuestionSubjects
from opsleuth.state.base import to_json
from opsleuth.state.calls import ResultStatus
from opsleuth.state.follow_up import FollowUp
from opsleuth.state.plurals import format_count
from opsleuth.state.results import Observation

Intent = Literal["state", "holder", "neighbours", "share"]
Lookup = tuple[str, Mapping[str, Any]]

_FORMS: Mapping[Intent, re.Pattern[str]] = {
    "holder": re.compile(
        r"\b(?:who|what|which)\b.{0,60}\b(?:hold(?:s|ing)?|held|own(?:s|ed)?|block(?:s|ed|ing)?|blocker|locks)\b",
        re.IGNORECASE,
    ),
    "share": re.compile(
        r"\b(?:share|percent(?:age)?|per cent|proportion|fraction|how many|how much)\b.{0,80}\b(?:fail\w*|errors?|5xx)\b"
        r"|\b(?:error|failure|success)[- ](?:rate|ratio|share)\b",
        re.IGNORECASE,
    ),
    "neighbours": re.compile(
        r"\b(?:up|down)stream\b|\bdepend(?:s|encies|ency|ents?)?\b|\bcallers?\b|\bcallees?\b"
        r"|\b(?:who|what|which)\b.{0,30}\bcalls?\b|\bcalled by\b",
        re.IGNORECASE,
    ),
    "state": re.compile(
        r"^\W*(?:so |and |but |then )?(?:is|are|has|have|did|does|was)\b.{0,60}\b(?:fixed|over|resolved|solved|recovered|recover|healed|ended"
        r"|ongoing|still|finished|back (?:to normal|up)|normal (?:again|now)|healthy (?:again|now)|gone)\b"
        r"|\bstill (?:failing|broken|down|slow|happening)\b",
        re.IGNORECASE,
    ),
}
_HOLDERS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"\bprocess(?:es)? holding the lock: (?P<id>\d+)",
        r"\bblocked by (?:process|pid|session|spid|backend)(?: id)?[ =:]+(?P<id>\d+)",
        r"\bheld by (?:process|pid|session|thread)(?: id)?[ =:]+(?P<id>\d+)",
        r"\bblocking[ _](?:process|pid|session|spid|trx|thread)(?:[ _]id)?[ =:\"']+(?P<id>\d+)",
        r"\b(?:lock|locks) (?:is |are )?held by (?P<id>prepared transaction '[^']{1,80}')",
        r"\bheld by (?P<id>prepared transaction '[^']{1,80}')",
    )
)
_SEARCHES = ("holding the lock", "blocked by", "blocking")
_MOST_NAMES = 12
_PAUSES = 5.0
_LEAST_PAUSE = 60.0


class IntentAnswer(NamedTuple):
    """The first sentence, and a line for each thing that it rests on, with its evidence; `missing` where nothing was measured."""

    first: str
    lines: tuple[tuple[str, str], ...] = ()
    missing: bool = False


def find_intent(question: str) -> Intent | None:
    """Which of the known forms the question has; None for another."""
    return next((intent for intent, form in _FORMS.items() if form.search(question)), None)


def list_intent_lookups(
    intent: Intent, subjects: QuestionSubjects, view: PlannerView, about: FollowUp
) -> Iterator[Lookup]:
    """Tools and arguments that can measure what the question asks."""
    services = _choose_services(subjects, view, about)
    if intent == "holder":
        yield from (("logs_search", {"text": text}) for text in _SEARCHES)
        yield "events_list", {}
        if holder := _count_holders(view).most_common(1):
            yield "logs_search", {"text": holder[0][0]}
    elif intent == "neighbours":
        yield from (("topology", {"service": name}) for name in services[:1])
    elif intent == "share":
        yield from (("metrics_anomalies", {"service": name}) for name in services[:1])
    else:
        for service, metric in _list_alarmed_metrics(subjects, view, about)[:3]:
            yield "metrics_query", {"service": service, "metric": metric}
        for service in services[:2]:
            yield "logs_search", {"service": service, "level": "error"}
            yield "logs_search", {"service": service}


def answer_intent(
    intent: Intent, subjects: QuestionSubjects, view: PlannerView, about: FollowUp
) -> IntentAnswer:
    """What was measured for the question, or what is missing."""
    answers = {
        "state": _answer_state,
        "holder": _answer_holder,
        "neighbours": _answer_neighbours,
        "share": _answer_share,
    }
    return answers[intent](subjects, view, about)


def _choose_services(subjects: QuestionSubjects, view: PlannerView, about: FollowUp) -> list[str]:
    """The services that the question names, failing that the one of the alert and those that are blamed."""
    alert = view.state.alert
    meant = [alert.service if alert else None, *(cause.service for cause in about.causes)]
    return list(subjects.services) or list(dict.fromkeys(name for name in meant if name))


def _read_ok(view: PlannerView, tool: str, **arguments: object) -> list[Observation]:
    """What the tool answered, newest first, where these arguments, and none of those named None, were given."""
    return [
        o
        for o in reversed(view.observations)
        if o.tool == tool
        and o.status in (ResultStatus.OK, ResultStatus.NONE_MATCHED)
        and o.has_own_evidence
        and all(o.arguments.get(name) == value for name, value in arguments.items())
    ]


# --- is it over? ---------------------------------------------------------------------------------------------


def _list_alarmed_metrics(
    subjects: QuestionSubjects, view: PlannerView, about: FollowUp
) -> list[tuple[str, str]]:
    """The alert's own metric, failing that those of its service that moved, failing that the cause's."""
    alert, services = view.state.alert, _choose_services(subjects, view, about)
    if alert and alert.metric and alert.service and alert.service in services:
        return [(alert.service, alert.metric)]
    moved = [
        (str(f["service"]), str(f["metric"]))
        for o in view.observations
        if not o.status.is_error
        for f in (*o.record.get("findings", ()), *o.record.get("impact", ()))
        if isinstance(f, Mapping) and f.get("metric") and f.get("onset") and f.get("service") in services
    ]
    blamed = [(c.service, c.metric) for c in about.causes if c.metric and c.service in services]
    return list(dict.fromkeys((*moved, *blamed)))


def _answer_state(subjects: QuestionSubjects, view: PlannerView, about: FollowUp) -> IntentAnswer:
    end = str(to_json(view.state.window)["end"])
    found: list[tuple[bool | None, str, str]] = []
    for service, metric in _list_alarmed_metrics(subjects, view, about):
        found += [
            (ended.failing, ended.text, o.evidence)
            for o in _read_ok(view, "metrics_query", service=service, metric=metric)[:1]
            if (ended := describe_metric_end(o.record, view.state))
        ]
    services = _choose_services(subjects, view, about)
    for service in services[:2]:
        found += _describe_last_failures(service, view)
    known = [failing for failing, _, _ in found if failing is not None]
    lines = tuple((text, evidence) for _, text, evidence in found)
    if not known:
        of = f" of {' or '.join(services[:2])}" if services else ""
        return IntentAnswer(
            f"Not measured: no metric that alarmed and no failing lines{of} tell how it stands at the end of the window, {end}.",
            lines,
            missing=not lines,
        )
    if any(known):
        return IntentAnswer(f"No: it still fails at the end of the window, {end}.", lines)
    return IntentAnswer(f"Yes, as far as it was measured, up to the end of the window, {end}.", lines)


def _describe_last_failures(service: str, view: PlannerView) -> list[tuple[bool | None, str, str]]:
    """Whether the service writes lines of failure up to the end of the window; nothing where it has none."""
    failing = next((o for o in _read_ok(view, "logs_search", service=service, level="error")), None)
    if failing is None or not failing.record.get("last"):
        return []
    count, last = int(failing.record.get("matched") or 0), str(failing.record["last"])
    first = str(failing.record.get("first") or last)
    after = _seconds_between(last, to_json(view.state.window)["end"])
    pause = max(_LEAST_PAUSE, _PAUSES * _seconds_between(first, last) / max(count - 1, 1))
    lines = format_count(count, f"line of failure of {service}", f"lines of failure of {service}")
    if after <= pause:
        return [(True, f"{lines}, the last at {last}.", failing.evidence)]
    every = next((o for o in _read_ok(view, "logs_search", service=service) if _is_unfiltered(o)), None)
    spoke = str(every.record.get("last") or "") if every else ""
    if every is None or not spoke or _seconds_between(last, spoke) <= pause:
        return [
            (
                None,
                f"{lines}, the last at {last}; {service} writes nothing after that.",
                failing.evidence,
            )
        ]
    return [
        (
            False,
            f"{lines}, the last at {last}; it writes others up to {spoke}.",
            failing.evidence,
        )
    ]


def _is_unfiltered(o: Observation) -> bool:
    return not any(o.arguments.get(name) for name in ("level", "text", "contains", "pattern"))


def _seconds_between(start: str, end: object) -> float:
    return (parse_time(str(end)) - parse_time(start)).total_seconds()


# --- who holds the lock? -------------------------------------------------------------------------------------


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _list_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _list_texts(inner)


def _list_holder_texts(view: PlannerView) -> Iterator[tuple[str, str, str]]:
    """(holder, text, evidence) of each text that names who holds a lock."""
    seen = set[tuple[str, str]]()
    for o in view.observations:
        if o.status.is_error or not o.has_own_evidence:
            continue
        for text in _list_texts(o.record):
            found = next((match for form in _HOLDERS if (match := form.search(text))), None)
            if found and (found["id"], text) not in seen:
                seen.add((found["id"], text))
                yield found["id"], text, o.evidence


def _count_holders(view: PlannerView) -> Counter[str]:
    return Counter(holder for holder, _, _ in _list_holder_texts(view))


def _answer_holder(_: QuestionSubjects, view: PlannerView, __: FollowUp) -> IntentAnswer:
    named = list(_list_holder_texts(view))
    if not named:
        return IntentAnswer(
            "Not recorded: no log line, event or view of a database that was read names who holds a lock. Ask the database, for PostgreSQL: "
            "SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE pg_blocking_pids(pid) <> '{}'",
            missing=True,
        )
    holders = Counter(holder for holder, _, _ in named)
    holder = min(holders, key=lambda name: (-holders[name], name))
    quote, evidence = next((text, e) for name, text, e in named if name == holder)
    lines = [(f'"{_shorten_quote(quote)}"', evidence)]
    doing = _find_line_of_holder(holder, view)
    if doing:
        lines.append((f'It did: "{_shorten_quote(doing[0])}"', doing[1]))
    others = [name for name in holders if name != holder]
    more = f"; {' and '.join(others[:3])} are named as well" if others else ""
    who = f"Session {holder}" if holder.isdecimal() else holder[:1].upper() + holder[1:]
    unknown = "" if doing else " What it runs is not recorded."
    return IntentAnswer(f"{who} holds the lock{more}.{unknown}", tuple(lines))


def _find_line_of_holder(holder: str, view: PlannerView) -> tuple[str, str] | None:
    """A line of the holder itself, which says what it does; the lines of those that wait are about others."""
    own = re.compile(rf"(?<![\d.]){re.escape(holder)}(?![\d.])")
    waits = re.compile(r"wait queue|still waiting|holding the lock|blocked by|blocking", re.IGNORECASE)
    for o in _read_ok(view, "logs_search", text=holder):
        for line in o.record.get("lines", ()):
            text = str(line.get("message") or "")
            if own.search(text) and not waits.search(text):
                return text, o.evidence
    return None


def _shorten_quote(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 300 else f"{flat[:299]}…"


# --- who calls whom? -----------------------------------------------------------------------------------------


def _answer_neighbours(subjects: QuestionSubjects, view: PlannerView, about: FollowUp) -> IntentAnswer:
    services = _choose_services(subjects, view, about)
    if not services:
        return IntentAnswer("Not known which service is meant: name one.", missing=True)
    service = services[0]
    for o in _read_ok(view, "topology"):
        if o.arguments.get("service") == service:
            calls, callers = _list_near(o.record.get("calls")), _list_near(o.record.get("called_by"))
            lines = ((f"{service} calls {_join_service_names(calls)}.", o.evidence), (f"{service} is called by {_join_service_names(callers)}.", o.evidence))  # fmt: skip
            count = f"{len(calls)} below {service}, {len(callers)} above it"
            return IntentAnswer(f"As the topology shows: {count}.", lines)
    return IntentAnswer(
        f"Not recorded: no topology that was read holds {service}, so what it calls and what calls it is not known.",
        missing=True,
    )


def _list_near(rows: object) -> list[str]:
    """Those one call away."""
    listed = rows if isinstance(rows, list | tuple) else ()
    return [str(row["service"]) for row in listed if row.get("distance") == 1]


def _join_service_names(names: Sequence[str]) -> str:
    if not names:
        return "nothing that is recorded"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


# --- what share fails? ---------------------------------------------------------------------------------------


def _answer_share(subjects: QuestionSubjects, view: PlannerView, about: FollowUp) -> IntentAnswer:
    services = _choose_services(subjects, view, about)
    for service in services[:1]:
        for o in view.observations:
            if o.status.is_error or not o.has_own_evidence:
                continue
            for row in _list_share_rows(service, o.record):
                return IntentAnswer(f"Measured for {service}:", ((row, o.evidence),))
    of = f" of {services[0]}" if services else ""
    return IntentAnswer(
        f"Not measured: no source that was read counts the requests{of} and which of them fail.", missing=True
    )


def _list_share_rows(service: str, record: Mapping[str, Any]) -> Iterator[str]:
    """Sentences that state a share of failed requests of the service: measured rows first, then lines of requests."""
    rows = [row for row in record.get("impact", ()) if isinstance(row, Mapping)]
    for row in rows:
        if row.get("service") == service and row.get("respect") == "failures" and row.get("unit") == "%":
            yield f"{row['text']}."
    suspects = [row for row in record.get("suspects", ()) if isinstance(row, Mapping)]
    for f in (*record.get("findings", ()), *(f for s in suspects for f in s.get("findings", ()))):
        if (
            isinstance(f, Mapping)
            and f.get("service") == service
            and f.get("detector") in ("harm.failures", "log_statuses")
        ):
            yield f"{str(f['text']).partition(';')[0].rstrip('.')}."
