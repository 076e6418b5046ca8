"""The turns so far as a model reads them: the latest in full, older ones folded to facts, headlines and ids.

Everything is derived from the observations alone, so that any process builds the same messages, and message
by message the beginning stays the same from turn to turn until the next fold.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from opsleuth.models.data_fence import fence_json, fence_lines, one_line
from opsleuth.models.fact_marks import MarkedRecord, mark_facts
from opsleuth.models.memory_sizes import MemorySizes, share_room
from opsleuth.models.planner import Observation
from opsleuth.models.record_fitting import fit_record
from opsleuth.models.token_estimate import BYTES_A_TOKEN, estimate_tokens
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.truncation import cut_text
from opsleuth.verification.fact_derivation import derive_facts
from opsleuth.verification.fact_wording import format_fact_line
from opsleuth.verification.facts import MOST_SHOWN

_CALL_FRAME = 40
"""Tokens of what stands around one result."""

_ROOM_FOR_VALUES = 600
"""Bytes for the ids of single values, which the record shows."""

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
        self._marked: dict[str, MarkedRecord] = {}

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
            if o.call_id not in self._marked:
                self._marked[o.call_id] = mark_observation(o)
            text = render_observation(o, limit * BYTES_A_TOKEN, self._marked[o.call_id])
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


def mark_observation(o: Observation) -> MarkedRecord:
    """The record of a result with the ids of its facts; as it is where it is no evidence of its own."""
    if not o.has_own_evidence:
        return MarkedRecord(o.record, (), {})
    return mark_facts(o.record, derive_facts(o.evidence, o.tool, o.status, o.record, o.arguments))


def render_observation(o: Observation, size: int, marked: MarkedRecord | None = None) -> str:
    """One observation in about `size` bytes: its id and status, then what the tool said, as data."""
    meaning = _MEANING.get(o.status, f"{o.status}: an error of the tool, no evidence of the incident")
    again = "" if o.has_own_evidence else " (you had this already)"
    about = f"{o.evidence} {meaning}{again}"
    marked = marked or mark_observation(o)
    lines = _render_fact_lines(marked, size // 3)
    left = max(size - len(about) - len(lines.encode()) - 20, 200)
    return f"{about}\n{fence_json(fit_record(marked.record, left))}{lines}"


def _render_fact_lines(marked: MarkedRecord, room: int) -> str:
    """The facts that are not rows of the record, in `room` bytes: a line each, single values by their ids alone."""
    lines: list[str] = []
    for fact in marked.lines[:MOST_SHOWN]:
        line = cut_text(one_line(format_fact_line(fact)), 160)
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
    values = _list_value_ids(marked.values, min(room, _ROOM_FOR_VALUES))
    return f"\nFacts:\n{fence_lines([*lines, *values])}" if lines or values else ""


def _list_value_ids(values: Mapping[str, str], room: int) -> list[str]:
    """One line with the ids of single values by their place in the record; as many as fit."""
    shown: list[str] = []
    for place, fact in values.items():
        text = f"{place} {fact}"
        room -= len(text.encode()) + 2
        if room < 0:
            break
        shown.append(one_line(text))
    return [f"Ids of values: {', '.join(shown)}"] if shown else []
