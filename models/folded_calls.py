"""Calls that are no longer shown in full: the newest with facts, then with headlines, the oldest as ids by tool.

`evidence_read` shows any of them in full. So nothing is asked again because it was forgotten.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.models.data_fence import fence_lines
from opsleuth.models.planner import Observation
from opsleuth.models.token_estimate import BYTES_A_TOKEN
from opsleuth.state.calls import ResultStatus
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.tools.truncation import cut_text
from opsleuth.verification.fact_derivation import derive_facts
from opsleuth.verification.fact_wording import format_fact_line

MOST_FACTS = 4
"""Facts of one folded call."""
_ROOM_FOR_FACTS = 900
"""Tokens of all folded calls together below which facts would leave no room for names."""
_BARE = 7
"""Bytes of an id alone."""
_FACT_WIDTH = 150


def render_folded_calls(observations: Sequence[Observation], cap: int) -> str:
    """Folded calls in at most about `cap` tokens."""
    own = [o for o in observations if o.has_own_evidence]
    room = cap * BYTES_A_TOKEN
    facts_until = room * 5 // 8 if cap >= _ROOM_FOR_FACTS else room
    left, lines = room, list[str]()
    for place, o in enumerate(reversed(own)):
        line = _folded_call_line(o, short=left < room * 3 // 4)
        if left - len(line.encode()) < room // 2:
            lines += _group_calls_by_tool(own[: len(own) - place], left)
            break
        facts = render_facts_of(o, MOST_FACTS, _FACT_WIDTH) if left > facts_until else []
        entry = [line, *facts]
        left -= sum(len(text.encode()) + 1 for text in entry)
        lines += reversed(entry)
    return fence_lines(lines[::-1])


def render_facts_of(o: Observation, most: int, width: int) -> list[str]:
    """A line for each of the first facts of a call, which may be cited by their ids."""
    facts = derive_facts(o.evidence, o.tool, o.status, o.record, o.arguments, most)
    return [cut_text(format_fact_line(fact), width) for fact in facts]


def _folded_call_line(o: Observation, *, short: bool) -> str:
    asked = cut_text(to_canonical_json(o.arguments), 60 if short else 110)
    status = "" if o.status is ResultStatus.OK else f" {o.status}"
    return f"{o.evidence} {o.tool} {asked}{status}: {cut_text(o.headline, 60 if short else 140)}"


def _group_calls_by_tool(observations: Sequence[Observation], room: int) -> list[str]:
    """One line for each tool: its calls with what they asked for, in `room` bytes; the rest as runs of ids."""
    asked: dict[str, list[str]] = {}
    bare: dict[str, list[int]] = {}
    room -= _BARE * len(observations)
    for o in reversed(observations):
        text = f"{o.evidence} {_short_arguments(o.arguments)}"
        room -= len(text.encode()) + 2 - _BARE
        if room > 0:
            asked.setdefault(o.tool, []).append(text)
        else:
            bare.setdefault(o.tool, []).append(o.number)
    lines = [f"{tool}: {'; '.join(texts[::-1])}" for tool, texts in asked.items()]
    return lines + [f"{tool}: {_format_id_ranges(numbers[::-1])}" for tool, numbers in bare.items()]


def _short_arguments(arguments: Mapping[str, Any]) -> str:
    """Arguments in as few bytes as can be distinguished."""
    return cut_text(
        " ".join(f"{k}={to_canonical_json(v)}".replace('"', "") for k, v in arguments.items()), 40
    )


def _format_id_ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(f"E{run[0]}" if len(run) == 1 else f"E{run[0]}-E{run[-1]}" for run in runs)
