"""The turns so far as a model reads them: the latest in full, older ones folded to a line a call.

Everything is derived from the observations alone, so that any process builds the same messages, and message
by message the beginning stays the same from turn to turn until the next fold.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from opsleuth.models.fence import fenced, fenced_lines
from opsleuth.models.fit import fitted
from opsleuth.models.planner import Observation
from opsleuth.models.tokens import BYTES_A_TOKEN, estimate
from opsleuth.state.calls import ResultStatus
from opsleuth.state.canonical import canonical
from opsleuth.tools.bounds import cut_text

MOST_TURNS, KEPT_TURNS = 6, 2
"""More turns than the first are folded, down to the second: so bytes a turn stay level, and a fold stays rare."""
SOFT_TOKENS = 8_000
"""More in full than this is folded too, to half of it: reading on costs a call, carrying on costs every turn."""
MOST_A_CALL = 3_000
"""Tokens of one observation in full."""
_BARE = 7
"""Bytes of an id alone."""

_MEANING = {
    ResultStatus.OK: "ok",
    ResultStatus.NONE_MATCHED: "none_matched: searched, nothing found",
    ResultStatus.NOT_RECORDED: "not_recorded: there is no such data",
}


class Turn(NamedTuple):
    """One turn's observations, with the text of each as the model sees it, and its size in tokens."""

    observations: Sequence[Observation]
    texts: Sequence[str]
    tokens: int


class Rendered:
    """Observations as texts, each rendered once. `room` is the number of tokens that turns in full may take."""

    def __init__(self, room: int) -> None:
        self.soft = min(SOFT_TOKENS, room)
        self._texts: dict[tuple[str, int], tuple[str, int]] = {}

    def turns(self, observations: Sequence[Observation]) -> list[Turn]:
        """The turns in order; an observation's share of a turn shrinks with the number of its fellows."""
        made = []
        for _, group in groupby(observations, key=lambda o: o.turn):
            fellows = list(group)
            limit = min(MOST_A_CALL, self.soft * 3 // 4 // len(fellows))
            shares = [self._text(o, limit) for o in fellows]
            size = sum(tokens for _, tokens in shares) + 40 * len(fellows)
            made.append(Turn(fellows, [text for text, _ in shares], size))
        return made

    def _text(self, o: Observation, limit: int) -> tuple[str, int]:
        key = (o.call_id, limit)
        if key not in self._texts:
            text = shown(o, limit * BYTES_A_TOKEN)
            self._texts[key] = text, estimate(text)
        return self._texts[key]


def folded(turns: Sequence[Turn], soft: int) -> int:
    """How many turns from the beginning are folded; the newest never is."""
    start = held = 0
    for i, turn in enumerate(turns):
        held += turn.tokens
        if i - start >= MOST_TURNS or held > soft:
            while start < i and (i - start >= KEPT_TURNS or held > soft // 2):
                held -= turns[start].tokens
                start += 1
    return start


def shown(o: Observation, size: int) -> str:
    """One observation in about `size` bytes: its id and status, then what the tool said, as data."""
    meaning = _MEANING.get(o.status, f"{o.status}: an error of the tool, no evidence of the incident")
    again = "" if o.evidence == f"E{o.number}" else " (you had this already)"
    about = f"{o.evidence} {meaning}{again}"
    return f"{about}\n{fenced(fitted(o.record, max(size - len(about) - 20, 200)))}"


def ledger(observations: Sequence[Observation], cap: int) -> str:
    """Folded calls in at most about `cap` tokens, so that none is made again because it was forgotten.

    The newest with arguments and headline, older ones with arguments, the oldest as ids with what they asked for.
    """
    own = [o for o in observations if o.evidence == f"E{o.number}"]
    left, lines = cap * BYTES_A_TOKEN, []
    for place, o in enumerate(reversed(own)):
        line = _line(o, short=left < cap * BYTES_A_TOKEN * 3 // 4)
        if left - len(line.encode()) < cap * BYTES_A_TOKEN // 2:
            lines += _by_tool(own[: len(own) - place], left)
            break
        left -= len(line.encode())
        lines.append(line)
    return fenced_lines(lines[::-1])


def _line(o: Observation, *, short: bool) -> str:
    asked = cut_text(canonical(o.arguments), 60 if short else 110)
    if short:
        return f"{o.evidence} {o.tool} {asked}" + ("" if o.status is ResultStatus.OK else f" {o.status}")
    return f"{o.evidence} {o.tool} {asked} {o.status}: {cut_text(o.headline, 140)}"


def _by_tool(observations: Sequence[Observation], room: int) -> list[str]:
    """One line for each tool: its calls with what they asked for, in `room` bytes; the rest as runs of ids."""
    asked: dict[str, list[str]] = {}
    bare: dict[str, list[int]] = {}
    room -= _BARE * len(observations)
    for o in reversed(observations):
        text = f"{o.evidence} {_asked(o.arguments)}"
        room -= len(text.encode()) + 2 - _BARE
        if room > 0:
            asked.setdefault(o.tool, []).append(text)
        else:
            bare.setdefault(o.tool, []).append(o.number)
    lines = [f"{tool}: {'; '.join(texts[::-1])}" for tool, texts in asked.items()]
    return lines + [f"{tool}: {_ranges(numbers[::-1])}" for tool, numbers in bare.items()]


def _asked(arguments: Mapping[str, Any]) -> str:
    """Arguments in as few bytes as can be told apart."""
    return cut_text(" ".join(f"{k}={canonical(v)}".replace('"', "") for k, v in arguments.items()), 40)


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(f"E{run[0]}" if len(run) == 1 else f"E{run[0]}-E{run[-1]}" for run in runs)
