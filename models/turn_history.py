"""The turns so far as a model reads them: the latest in full, older ones folded to facts, headlines and ids.

Everything is derived from the observations alone, so that any process builds the same messages, and message
by message the beginning stays the same from turn to turn until the next fold.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from opsleuth.models.data_fence import fence_json, fence_lines, one_line
from opsleuth.models.memory_sizes import MemorySizes, share_room
from opsleuth.models.planner import Observation
from opsleuth.models.record_fitting import fit_record
from opsleuth.models.token_estimate import BYTES_A_TOKEN, estimate_tokens
from opsleuth.state.calls import ResultStatus
from opsleuth.state.json_types import JSON
from opsleuth.tools.truncation import cut_text
from opsleuth.verification.fact_derivation import derive_facts
from opsleuth.verification.fact_wording import format_fact_line
from opsleuth.verification.facts import MOST_SHOWN, Fact

_CALL_FRAME = 40
"""Tokens of what stands around one result."""

_MEANING = {
    ResultStatus.OK: "ok",
    ResultStatus.NONE_MATCHED: "none_matched: searched, nothing found",
    ResultStatus.NOT_RECORDED: "not_recorded: there is no such data",
}


class RenderedTurn(NamedTuple):
    """One turn's observations, with the text of each as the model sees it, and its size in tokens."""

    observations: Sequence[Observation]
    texts: Sequence[str]
    tokens: int


class TurnRenderer:
    """Observations as texts, each rendered once for a size."""

    def __init__(self, sizes: MemorySizes) -> None:
        self._sizes = sizes
        self._texts: dict[tuple[str, int], tuple[str, int]] = {}

    def turns(self, observations: Sequence[Observation]) -> list[RenderedTurn]:
        """The turns in order; a call is cut by its own length, and only where its turn is too long as a whole."""
        made = []
        for _, group in groupby(observations, key=lambda o: o.turn):
            fellows = list(group)
            wanted = [self._text(o, self._sizes.call)[1] for o in fellows]
            limit = share_room(wanted, self._sizes.turn)
            shares = [
                self._text(o, self._sizes.call if tokens <= limit else limit)
                for o, tokens in zip(fellows, wanted, strict=True)
            ]
            size = sum(tokens + _CALL_FRAME for _, tokens in shares)
            made.append(RenderedTurn(fellows, [text for text, _ in shares], size))
        return made

    def _text(self, o: Observation, limit: int) -> tuple[str, int]:
        key = (o.call_id, limit)
        if key not in self._texts:
            text = render_observation(o, limit * BYTES_A_TOKEN)
            self._texts[key] = text, estimate_tokens(text)
        return self._texts[key]


def count_folded_turns(turns: Sequence[RenderedTurn], sizes: MemorySizes) -> int:
    """How many turns from the beginning are folded; the newest never is."""
    start = held = 0
    for i, turn in enumerate(turns):
        held += turn.tokens
        if i - start >= sizes.most_turns or held > sizes.whole:
            while start < i and (i - start >= sizes.kept_turns or held > sizes.whole // 2):
                held -= turns[start].tokens
                start += 1
    return start


def render_observation(o: Observation, size: int) -> str:
    """One observation in about `size` bytes: its id and status, then what the tool said, as data."""
    meaning = _MEANING.get(o.status, f"{o.status}: an error of the tool, no evidence of the incident")
    again = "" if o.has_own_evidence else " (you had this already)"
    about = f"{o.evidence} {meaning}{again}"
    facts = derive_facts(o.evidence, o.tool, o.status, o.record, o.arguments, MOST_SHOWN)
    if not facts or not o.has_own_evidence:
        return f"{about}\n{fence_json(fit_record(o.record, max(size - len(about) - 20, 200)))}"
    record, rest = _mark_facts(o.record, facts)
    lines = _render_fact_lines(rest, size // 3)
    left = max(size - len(about) - len(lines.encode()) - 20, 200)
    return f"{about}\n{fence_json(fit_record(record, left))}{lines}"


def _render_fact_lines(facts: Sequence[Fact], room: int) -> str:
    """The facts that are not rows of the record, a line each, in `room` bytes."""
    lines: list[str] = []
    for fact in facts:
        line = cut_text(one_line(format_fact_line(fact)), 160)
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
    return f"\nFacts:\n{fence_lines(lines)}" if lines else ""


_SERIES = ("max", "min", "first", "last", "mean", "median", "change_point", "samples")
_SAID_BY_FACT = ("figures", "size", "detector", "signal")


def _mark_facts(record: Mapping[str, Any], facts: Sequence[Fact]) -> tuple[Mapping[str, Any], Sequence[Fact]]:
    """The record with the id of its fact on each row, without what the lines say; and the facts that get a line."""
    marked: dict[str, str] = {}
    rest = []
    for fact in facts:
        row = _ROW.match(fact.path)
        if row:
            marked.setdefault(row[0].rstrip("/"), fact.id)
        elif fact.searched or fact.path.split("/")[1] in _SERIES:
            rest.append(fact)
    series = {key for fact in rest if not fact.searched for key in [fact.path.split("/")[1]]}
    kept = {key: value for key, value in record.items() if key not in series}
    return {key: _with_fact_ids(value, f"/{key}", marked) for key, value in kept.items()}, rest


_ROW = re.compile(r"(?:/suspects/\d+)?/(?!points/)\w+/\d+(?=/|$)")


def _with_fact_ids(value: JSON, path: str, marked: Mapping[str, str]) -> JSON:
    if isinstance(value, Mapping):
        made = {k: _with_fact_ids(v, f"{path}/{k}", marked) for k, v in value.items()}
        if path in marked:
            made = {"fact": marked[path], **{k: v for k, v in made.items() if k not in _SAID_BY_FACT}}
        return made
    if isinstance(value, list | tuple):
        return [_with_fact_ids(v, f"{path}/{i}", marked) for i, v in enumerate(value)]
    return value
