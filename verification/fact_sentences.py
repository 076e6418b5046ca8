"""English sentences for the rows that people meet most: log lines, events, objects, spans, changes, suspects."""

from collections.abc import Callable, Mapping
from typing import TypeGuard

from opsleuth.verification.facts import Fact, Number
from opsleuth.verification.value_format import format_clock, format_number, format_value

_LONGEST_PATTERN = 160
_MOST_WAITS = 4


def write_english_sentence(fact: Fact) -> str | None:
    """The sentence of a row whose columns make one, without its full stop; None for any other row."""
    write = _SENTENCES.get(fact.measure)
    return write(fact) if write else None


def _collect_details(fact: Fact) -> dict[str, Number | str]:
    return {d.name: d.value for d in fact.details}


def _format_time(fact: Fact, word: str = "at") -> str:
    return f" {word} {format_clock(fact.at)}" if fact.at else ""


def _format_count(value: Number | str | None, noun: str) -> str:
    return f"{format_value(value)} {noun}{'' if value == 1 else 's'}"


def _write_change(fact: Fact) -> str:
    """`orders-api was changed at 13:58:20Z by r.tanaka, 3.7 min before the onset: its summary (version 2.14.0)`."""
    known = _collect_details(fact)
    summary = format_value(fact.value)
    who = f" by {known['author']}" if known.get("author") else ""
    before = known.get("minutes_before_onset")
    gap = f", {format_number(before)} min before the onset" if _is_positive(before) else ""
    version = str(known.get("version") or "")
    named = f" (version {version})" if version and version not in summary else ""
    why = f"; {_explain_grade(known)}" if known.get("why") else ""
    return f"{fact.subject or 'something'} was changed{_format_time(fact)}{who}{gap}: {summary}{named}{why}"


def _explain_grade(known: Mapping[str, Number | str]) -> str:
    """What a ranking holds a change for, in its own words."""
    return str(known["why"]) if known.get("grade") == "cause" else f"it coincides, {known['why']}"


def _write_suspect_score(fact: Fact) -> str:
    place = _collect_details(fact).get("place")
    rank = "the strongest suspect" if place == 1 else f"suspect number {place}" if place else "a suspect"
    return f"{fact.subject} is {rank}: its score is {format_value(fact.value)}, 1 at most"


def _write_log_line(fact: Fact) -> str:
    who = f"{fact.subject} logged" if fact.subject else "the log says"
    return f'{who} "{format_value(fact.value)}"{_format_time(fact)}'


def _write_log_count(fact: Fact) -> str:
    """`log lines of quote that match "…" fell from 52 to 0`, or how many lines a search found."""
    known = _collect_details(fact)
    pattern = format_value(str(known.get("pattern") or ""), longest=_LONGEST_PATTERN)
    lines = f"log lines{f' of {fact.subject}' if fact.subject else ''}"
    if fact.before is None:
        one = lines.replace("lines", "line", 1) if fact.value == 1 else lines
        match = "matches" if fact.value == 1 else "match"
        asked = f' {match} "{pattern}"' if pattern else _format_criteria(fact)
        return f"{format_value(fact.value)} {one}{asked}{_format_first_and_last(fact, str(known.get('last') or ''))}"
    moved = {1: "rose from {} to {}", -1: "fell from {} to {}", 0: "stayed at {1}"}[fact.change]
    moved = moved.format(format_value(fact.before), format_value(fact.value))
    which = f' that match "{pattern}"' if pattern else ""
    return f"{lines}{which} {moved}{_format_time(fact, 'since')}"


def _format_criteria(fact: Fact) -> str:
    """What a search looked for, apart from the service that the sentence names."""
    asked = fact.searched.criteria if fact.searched else ()
    criteria = ", ".join(f"{name} {value}" for name, value in asked if value != fact.subject)
    return f" ({criteria})" if criteria else ""


def _format_first_and_last(fact: Fact, last: str) -> str:
    if not fact.at or not last or last == fact.at:
        return _format_time(fact)
    return f", the first at {fact.at}, the last at {last}"


def _write_load(fact: Fact) -> str:
    """`"INSERT INTO …" has a load of 7.8 on orders-db: 24 calls, 0.02 a second, waits: IO:WALWrite 2.4`."""
    known = _collect_details(fact)
    statement = format_value(str(known.get("statement") or "a statement"), longest=_LONGEST_PATTERN)
    unit = f" {known['load_unit']}" if known.get("load_unit") else ""
    usual = f", usually {format_value(fact.before)}" if fact.before is not None else ""
    waits = sorted(((d.name.removeprefix("waits."), d.value) for d in fact.figures if d.name.startswith("waits.")), key=lambda w: -float(w[1]))  # fmt: skip
    waiting = ", ".join(f"{name} {format_value(value)}" for name, value in waits[:_MOST_WAITS])
    more = [_format_count(known["calls"], "call")] if "calls" in known else []
    more += [f"{format_value(known['calls_per_sec'])} a second"] if "calls_per_sec" in known else []
    more += [f"waits: {waiting}"] if waiting else []
    of = f" on {fact.subject}" if fact.subject else ""
    also = f" ({', '.join(more)})" if more else ""
    return (
        f'"{statement}" has a load of {format_value(fact.value)}{unit}{of}{usual}{also}{_format_time(fact)}'
    )


def _write_event(fact: Fact) -> str:
    known = _collect_details(fact)
    reason, message = str(known.get("reason") or ""), format_value(fact.value)
    said = message if not reason or message.startswith(reason) else f"{reason}: {message}"
    count, first = known.get("count"), known.get("first_time")
    often = f" ({format_value(count)} times)" if isinstance(count, int) and count > 1 else ""
    since = (
        f"{_format_time(fact, ', last at')}, first at {first}"
        if first and first != fact.at
        else _format_time(fact)
    )
    return f"{fact.subject or 'an event'}: {said}{often}{since.replace(' ,', ',')}"


def _write_ready(fact: Fact) -> str:
    """`Deployment web has 0 of 1 replicas ready`; of a pod its containers, with its state and restarts."""
    known = _collect_details(fact)
    parts = "containers" if fact.subject.startswith("Pod ") else "replicas"
    desired = known.get("desired")
    ready = f"{format_value(fact.value)} of {format_value(desired)}" if desired is not None else format_value(fact.value)  # fmt: skip
    more = [str(known["state"])] if known.get("state") else []
    more += [f"reasons: {known['reasons']}"] if known.get("reasons") else []
    more += [_format_count(known["restarts"], "restart")] if "restarts" in known else []
    also = f" ({', '.join(more)})" if more else ""
    return f"{fact.subject or 'an object'} has {ready} {parts} ready{_format_time(fact)}{also}"


def _write_replicas(fact: Fact) -> str:
    return f"{fact.subject or 'a workload'} has {_format_count(fact.value, 'replica')}{_format_time(fact)}"


def _write_state(fact: Fact) -> str:
    return f"{fact.subject or 'an object'} is {format_value(fact.value)}{_format_time(fact)}"


def _write_own_time(fact: Fact) -> str:
    return f"{fact.subject} takes {_format_value_and_usual(fact)} by itself{_format_calls(fact)}{_format_time(fact, 'since')}"


def _write_network_time(fact: Fact) -> str:
    caller, _, callee = fact.subject.partition(" → ")
    return f"calls from {caller} to {callee} spend {_format_value_and_usual(fact)} in the network{_format_calls(fact)}{_format_time(fact, 'since')}"


def _format_value_and_usual(fact: Fact) -> str:
    usual = f" (usually {format_value(fact.before, fact.unit)})" if fact.before is not None else ""
    return f"{format_value(fact.value, fact.unit)}{usual}"


def _format_calls(fact: Fact) -> str:
    calls = _collect_details(fact).get("calls")
    return f", {_format_count(calls, 'call')}" if calls is not None else ""


def _write_patterns(fact: Fact) -> str:
    known = _collect_details(fact)
    if "lines_now" not in known:
        return f"the log lines have {_format_count(fact.value, 'pattern')}"
    usual = f", usually {format_value(known['lines_usual'])}" if "lines_usual" in known else ""
    return f"{_format_count(known['lines_now'], 'log line')} of {_format_count(fact.value, 'pattern')}{usual}"


def _is_positive(value: object) -> TypeGuard[Number]:
    return isinstance(value, int | float) and value > 0


_SENTENCES: Mapping[str, Callable[[Fact], str]] = {
    "change": _write_change,
    "suspect_score": _write_suspect_score,
    "log_line": _write_log_line,
    "lines_matching": _write_log_count,
    "event": _write_event,
    "ready": _write_ready,
    "replicas": _write_replicas,
    "state": _write_state,
    "own_time": _write_own_time,
    "network_time": _write_network_time,
    "load": _write_load,
    "patterns": _write_patterns,
}
