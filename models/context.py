"""What a planner is sent this turn, derived from the state within a hard budget of tokens.

system    the prompt                                    the same for ever
user      question, window, alert, demands; the folded calls       changes at a fold only
assistant/tool …  the latest turns in full              only added to, until the next fold
user      where the run stands: plan, hypotheses, notices, what is left    new every turn
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.models.fence import fenced, fenced_lines, one_line, question
from opsleuth.models.history import Rendered, Turn, folded, ledger
from opsleuth.models.planner import ModelRefused, Observation, PlannerView
from opsleuth.models.tokens import BYTES_A_TOKEN, estimate
from opsleuth.state.base import to_json
from opsleuth.state.clock import stamp
from opsleuth.state.investigation import Hypothesis, Investigation, Notice
from opsleuth.state.words import counted
from opsleuth.tools.bounds import cut_text

Message = dict[str, Any]

LEFT = "Left:"
"""The one line of a request that depends on how fast things went."""
SMALLEST_ROOM, LEDGER_TOKENS = 600, 2_000
"""Tokens: the least that an investigation needs beside prompt and tools, and the most that folded calls may take."""
_CALLS, _CAME_IN = "What became of calls:", "What came in meanwhile:"
_OUTSIDE = {"breaker": _CALLS, "denied": _CALLS, "repeated": _CALLS, "checked": _CALLS, "alert": _CAME_IN}
"""Notices that quote what a tool or an alert said, with the words above their fence."""


class Context:
    """Builds the messages of one run. `fixed` is what the prompt and the tools take, in tokens, beside the messages."""

    def __init__(self, system: str, *, window: int, reply: int, fixed: int, native: bool) -> None:
        self._system, self._native = system, native
        self._open = window - reply - fixed - estimate(system)
        self._tail_cap = min(2_000, window // 8)
        self._rendered: Rendered | None = None
        self._room = 0

    def messages(self, view: PlannerView) -> list[Message]:
        """The whole request. Raises ModelRefused where the window has no room for an investigation."""
        task = _task(view)
        rendered = self._rendered or self._settle(task)
        turns = rendered.turns(view.observations)
        start = folded(turns, rendered.soft)
        old = [o for turn in turns[:start] for o in turn.observations]
        beginning = task
        if old:
            past = ledger(old, min(self._room // 3, LEDGER_TOKENS))
            beginning += f"\n\nEarlier calls, a line each (evidence_read shows any in full):\n{past}"
        recent = [message for turn in turns[start:] for message in self._turn(turn)]
        tail = cut_text(_standing(view, old), self._tail_cap * BYTES_A_TOKEN)
        parts = [_user(beginning), *recent, _user(tail)]
        return [{"role": "system", "content": self._system}, *_joined(parts)]

    def _settle(self, task: str) -> Rendered:
        self._room = self._open - estimate(task) - self._tail_cap
        if self._room < SMALLEST_ROOM:
            raise ModelRefused(
                f"the prompt, the tools and the question leave {max(self._room, 0)} tokens of the model's window for "
                "an investigation: raise context_tokens if the model has a larger window, or use another model"
            )
        self._rendered = Rendered(self._room * 2 // 3)
        return self._rendered

    def _turn(self, turn: Turn) -> list[Message]:
        return _native_turn(turn) if self._native else _json_turn(turn)


def _task(view: PlannerView) -> str:
    """What does not change during a run."""
    state = view.state
    parts = [
        question(state.question, outside=state.from_alert),
        f"Incident window: {stamp(state.window.start)} to {stamp(state.window.end)} (UTC, end not included)",
    ]
    if state.alert is not None:
        said: tuple[Any, ...] = (None, {}, "", state.question if state.from_alert else "")
        alert = {key: value for key, value in to_json(state.alert).items() if value not in said}
        parts.append(f"Alert:\n{fenced(alert)}")
    if state.checklist:
        parts.append(
            "Demands, checked at the end: " + "; ".join(one_line(demand.text) for demand in state.checklist)
        )
    if view.not_available:
        parts.append("Not available: " + "; ".join(map(one_line, view.not_available)))
    if state.read_only:
        parts.append("Read-only: nothing may be changed.")
    return "\n".join(parts)


def _standing(view: PlannerView, old: Sequence[Observation]) -> str:
    """Where the run stands; the least important comes last, where it may be cut."""
    state = view.state
    parts = [*_messages(state.notices), *_draft(state)]
    if state.hypotheses:
        parts.append("Hypotheses:\n" + "\n".join(map(_hypothesis, state.hypotheses)))
    if state.plan:
        parts.append("Plan: " + "; ".join(f"{s.id} {s.status}: {one_line(s.text)}" for s in state.plan))
    parts += _facts(state, old)
    return "\n".join([_left(state), *parts, "Decide now: tool calls, or conclude."])


def _left(state: Investigation) -> str:
    limits, used = state.budget.limits, state.budget.used
    left = [f"{counted(limits.turns - used.turns + 1, 'turn')} with this one"]
    left.append(f"{max(limits.seconds - used.seconds, 0) / 60:.0f} minutes")
    left.append(f"{max(limits.tokens - used.tokens, 0)} tokens")
    if limits.cost is not None:
        left.append(f"${max(limits.cost - used.cost, 0):.2f}")
    return f"{LEFT} {', '.join(left)}"


def _messages(notices: Sequence[Notice]) -> list[str]:
    ours = [f"- {one_line(notice.text)}" for notice in notices if notice.code not in _OUTSIDE]
    parts = ["To heed:\n" + "\n".join(ours)] if ours else []
    theirs = {
        above: [n.text for n in notices if _OUTSIDE.get(n.code) == above] for above in (_CALLS, _CAME_IN)
    }
    return [*parts, *(f"{above}\n{fenced_lines(texts)}" for above, texts in theirs.items() if texts)]


def _draft(state: Investigation) -> list[str]:
    """A conclusion that was sent back, without which it cannot be mended."""
    if state.draft is None or not any(notice.code == "rework" for notice in state.notices):
        return []
    draft = {key: value for key, value in to_json(state.draft).items() if value not in (None, [], {}, "")}
    for claim in draft.get("claims", ()):
        claim.pop("status", None)
        claim.pop("problems", None)
    return [
        "Your conclusion was sent back. Mend it and conclude again, or look closer first. It was:\n"
        + fenced(draft)
    ]


def _hypothesis(h: Hypothesis) -> str:
    about = f"{h.id} {h.status}: {one_line(h.text)}"
    about += f" ({one_line(h.service)}, {h.kind})" if h.service else ""
    about += f" for {' '.join(h.supporting)}" if h.supporting else ""
    return about + (f" against {' '.join(h.contradicting)}" if h.contradicting else "")


def _facts(state: Investigation, old: Sequence[Observation]) -> list[str]:
    """What live hypotheses rest on, where the evidence itself is folded: a line more than its id."""
    live = [h for h in state.hypotheses if h.status != "refuted"]
    wanted = dict.fromkeys(e for h in live for e in (*h.supporting, *h.contradicting))
    by_id = {o.evidence: o for o in old}
    lines = [f"{e}: {cut_text(by_id[e].headline, 240)}" for e in wanted if e in by_id]
    return [f"They rest on:\n{fenced_lines(lines[-12:])}"] if lines else []


def _native_turn(turn: Turn) -> list[Message]:
    calls = [
        {
            "id": _call_id(o),
            "type": "function",
            "function": {"name": o.tool, "arguments": _compact({**o.arguments, **_purpose(o)})},
        }
        for o in turn.observations
    ]
    answers = [
        {"role": "tool", "tool_call_id": _call_id(o), "content": text}
        for o, text in zip(turn.observations, turn.texts, strict=True)
    ]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *answers]


def _json_turn(turn: Turn) -> list[Message]:
    calls = [{"tool": o.tool, "arguments": dict(o.arguments), **_purpose(o)} for o in turn.observations]
    said = _compact({"reason": turn.observations[0].purpose, "calls": calls})
    return [{"role": "assistant", "content": said}, _user("\n\n".join(turn.texts))]


def _purpose(o: Observation) -> dict[str, str]:
    return {"why": o.purpose} | ({"tests": o.tests} if o.tests else {})


def _call_id(o: Observation) -> str:
    """Nine letters and digits, the strictest form that any server asks for."""
    return f"call{o.number:05d}"


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Neighbours of the user's role as one: some chat templates refuse two in a row."""
    joined: list[Message] = []
    for message in messages:
        if joined and message["role"] == joined[-1]["role"] == "user":
            joined[-1] = _user(f"{joined[-1]['content']}\n\n{message['content']}")
        else:
            joined.append(message)
    return joined


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
