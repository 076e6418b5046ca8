"""What stands out where nothing points at a cause: failing and new lines, series that moved, and where to look next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opsleuth.models.planner import PlannerView
from opsleuth.state.conclusion import Claim, Recommendation
from opsleuth.state.plurals import format_times
from opsleuth.state.results import Observation

MOST_FACTS = 5
MOST_COMMANDS = 3
_QUOTED = 140
_MOST_OF_A_KIND = 2


def collect_key_facts(view: PlannerView) -> tuple[Claim, ...]:
    """At most five claims, each with the evidence it stands in."""
    found: dict[str, str] = {}
    for observation in view.observations:
        if observation.status == "ok":
            for text in _facts_of(observation):
                found.setdefault(text[:1000], observation.evidence)
    texts = list(found.items())[:MOST_FACTS]
    return tuple(
        Claim(id=f"C{number}", text=text, evidence=(evidence,))
        for number, (text, evidence) in enumerate(texts, start=1)
    )


def _facts_of(observation: Observation) -> Iterator[str]:
    record = observation.record
    if observation.tool == "logs_patterns":
        yield from _pattern_facts(record)
    elif observation.tool == "logs_search" and observation.arguments.get("level") == "error":
        yield from _failing_line_facts(record)
    if observation.tool != "rank_suspects":
        findings = [f for f in record.get("findings", ()) if isinstance(f, Mapping) and f.get("direction") != "healthy"]  # fmt: skip
        yield from (str(finding["text"]) for finding in findings[:_MOST_OF_A_KIND])


def _pattern_facts(record: Mapping[str, Any]) -> Iterator[str]:
    """The most frequent lines of failure, then the new ones."""
    seen: set[str] = set()
    for kind in ("failing", "new"):
        for row in record.get(kind, ())[:_MOST_OF_A_KIND]:
            if row["pattern"] not in seen:
                seen.add(row["pattern"])
                usual = f", usually {format_times(row['usual'])}" if "usual" in row else ""
                yield f'{row["service"]} writes "{row["pattern"][:_QUOTED]}" {format_times(row["now"])}{usual}'


def _failing_line_facts(record: Mapping[str, Any]) -> Iterator[str]:
    if record.get("matched"):
        since = f", the first at {record['first']}" if record.get("first") else ""
        yield f"{record['matched']:,} of {record['scanned']:,} log lines report failure{since}"


def next_commands(view: PlannerView, facts: Sequence[Claim]) -> Iterator[Recommendation]:
    """Three things to look at next, each a command."""
    shown = list(dict.fromkeys(evidence for claim in facts for evidence in claim.evidence))
    first = (facts[0].id,) if facts else ()
    texts = [f"Read what stands out: `opsleuth evidence - {evidence}`" for evidence in shown[:1]]
    texts += [
        f"Read it as the source gave it: `opsleuth evidence - {evidence} --raw`" for evidence in shown[-1:]
    ]
    texts += ["See every look-up and what it found: `opsleuth log -`"]
    if view.not_available:
        texts.append("Find further sources from here: `opsleuth init`")
    texts += ["Try each source: `opsleuth doctor`", "See what can be asked: `opsleuth tools`"]
    for number, text in enumerate(texts[:MOST_COMMANDS]):
        yield Recommendation(text=text, claims=first if shown and number == 0 else ())
