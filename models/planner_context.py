"""What a planner is sent this turn, derived from the state within a hard budget of tokens.

system    the prompt                                    the same forever
user      question, window, alert, demands; the folded calls       changes at a fold only
assistant/tool …  the latest turns in full              only added to, until the next fold
user      where the run is: plan, hypotheses, notices, what is left    new every turn
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.models.cited_evidence import render_cited_evidence
from opsleuth.models.data_fence import fence_json, fence_lines, one_line, render_question
from opsleuth.models.folded_calls import render_folded_calls
from opsleuth.models.memory_sizes import (
    MemorySizes,
    choose_thrift,
    compute_memory_sizes,
    compute_status_size,
)
from opsleuth.models.planner import ModelRefusedError, Observation, PlannerView
from opsleuth.models.record_fitting import fit_record
from opsleuth.models.token_estimate import BYTES_A_TOKEN, estimate_tokens
from opsleuth.models.turn_history import RenderedTurn, TurnRenderer, count_folded_turns
from opsleuth.state.base import to_json
from opsleuth.state.clock import format_timestamp
from opsleuth.state.follow_up import FollowUp
from opsleuth.state.investigation import Hypothesis, Investigation, PlannerNotice
from opsleuth.state.plurals import format_count
from opsleuth.tools.truncation import cut_text

Message = dict[str, Any]

_ASK = "Decide now: tool calls, or conclude."
LEFT = "Left:"
"""The one line of a request that depends on how fast things went."""
SMALLEST_ROOM = 600
"""Tokens: the least that an investigation needs beside prompt and tools."""
_LONGEST_REASON = 300
_LONGEST_CONCLUSION = 2_000
_CALLS, _CAME_IN = "What became of calls:", "What came in meanwhile:"
_OUTSIDE = {"breaker": _CALLS, "denied": _CALLS, "repeated": _CALLS, "checked": _CALLS, "alert": _CAME_IN}
"""Notices that quote what a tool or an alert said, with the words above their fence."""


class PlannerContext:
    """Builds the messages of one run. `fixed` is what the prompt and the tools take, in tokens, beside the messages."""

    def __init__(self, system: str, *, window: int, reply: int, fixed: int, native: bool) -> None:
        self._system, self._native, self._window = system, native, window
        self._open = window - reply - fixed - estimate_tokens(system)
        self._status_size = compute_status_size(window)
        self._room = 0
        self._renderers: dict[MemorySizes, TurnRenderer] = {}
        self._folded: tuple[str, str] = "", ""

    def messages(self, view: PlannerView) -> list[Message]:
        """The whole request. Raises ModelRefusedError where the window has no room for an investigation."""
        task = _task_text(view)
        room = self._room = self._room or self._measure_room(task)
        sizes = compute_memory_sizes(self._window, room, choose_thrift(view.state.budget))
        renderer = self._renderers.setdefault(sizes, TurnRenderer(sizes))
        turns = renderer.turns(view.observations)
        start = count_folded_turns(turns, sizes)
        old = [o for turn in turns[:start] for o in turn.observations]
        beginning = task
        if old:
            past = self._past(old, sizes)
            beginning += f"\n\nEarlier calls, a line each (evidence_read shows any in full):\n{past}"
        recent = [message for turn in turns[start:] for message in self._turn(turn)]
        parts = [_user_message(beginning), *recent, _user_message(self._status_text(view, old))]
        return [{"role": "system", "content": self._system}, *_merge_user_messages(parts)]

    def _measure_room(self, task: str) -> int:
        room = self._open - estimate_tokens(task) - self._status_size
        if room < SMALLEST_ROOM:
            raise ModelRefusedError(
                f"the prompt, the tools and the question leave {max(room, 0)} tokens of the model's window for "
                "an investigation: raise context_tokens if the model has a larger window, or use another model"
            )
        return room

    def _past(self, old: Sequence[Observation], sizes: MemorySizes) -> str:
        """The folded calls; the same text until the next fold."""
        if self._folded[0] != old[-1].call_id:
            self._folded = old[-1].call_id, render_folded_calls(old, sizes.folded)
        return self._folded[1]

    def _status_text(self, view: PlannerView, old: Sequence[Observation]) -> str:
        """Where the run is. What is cited keeps half of the room, and needs less as a rule."""
        room = self._status_size * BYTES_A_TOKEN
        cited = render_cited_evidence(view.state, old, room // 2)
        left = room - len(cited.encode())
        return "\n".join(filter(None, [cut_text(_run_status_text(view, left), left), cited, _ASK]))

    def _turn(self, turn: RenderedTurn) -> list[Message]:
        return _native_turn(turn) if self._native else _json_turn(turn)


def _task_text(view: PlannerView) -> str:
    """What does not change during a run."""
    state = view.state
    parts = [
        render_question(state.question, outside=state.from_alert),
        f"Incident window: {format_timestamp(state.window.start)} to {format_timestamp(state.window.end)} (UTC, end not included)",
    ]
    if state.follow_up is not None:
        parts.append(_follow_up_text(state.follow_up))
    if state.alert is not None:
        said: tuple[Any, ...] = (None, {}, "", state.question if state.from_alert else "")
        alert = {key: value for key, value in to_json(state.alert).items() if value not in said}
        parts.append(f"Alert:\n{fence_json(alert)}")
    if state.checklist:
        parts.append(
            "Demands, checked at the end: " + "; ".join(one_line(demand.text) for demand in state.checklist)
        )
    if view.not_available:
        parts.append("Not available: " + "; ".join(map(one_line, view.not_available)))
    if state.read_only:
        parts.append("Read-only: nothing may be changed.")
    return "\n".join(parts)


def _follow_up_text(about: FollowUp) -> str:
    """What a question on an ended run is about; its evidence stands below, under the same ids."""
    earlier = {"question": about.question, "conclusion": about.answer[:_LONGEST_CONCLUSION]}
    return (
        "This is a question on an investigation that has ended. Answer this question alone, from its evidence where that is enough; "
        f"conclude with the verdict answered, or inconclusive. It was asked and concluded:\n{fence_json(earlier)}"
    )


def _run_status_text(view: PlannerView, room: int) -> str:
    """Where the run is, in about `room` bytes; the least important comes last, where it may be cut."""
    state = view.state
    parts = [*_notice_parts(state.notices), *_rejected_draft_parts(state, room * 2 // 3)]
    if state.hypotheses:
        parts.append("Hypotheses:\n" + "\n".join(map(_hypothesis_line, state.hypotheses)))
    if state.plan:
        parts.append("Plan: " + "; ".join(f"{s.id} {s.status}: {one_line(s.text)}" for s in state.plan))
    return "\n".join([_budget_line(state), *parts])


def _budget_line(state: Investigation) -> str:
    limits, used = state.budget.limits, state.budget.used
    left = [f"{format_count(limits.turns - used.turns + 1, 'turn')} with this one"]
    left.append(f"{max(limits.seconds - used.seconds, 0) / 60:.0f} minutes")
    left.append(f"{max(limits.tokens - used.tokens, 0)} tokens")
    if limits.cost is not None:
        left.append(f"${max(limits.cost - used.cost, 0):.2f}")
    return f"{LEFT} {', '.join(left)}"


def _notice_parts(notices: Sequence[PlannerNotice]) -> list[str]:
    ours = [f"- {one_line(notice.text)}" for notice in notices if notice.code not in _OUTSIDE]
    parts = ["To heed:\n" + "\n".join(ours)] if ours else []
    theirs = {
        above: [n.text for n in notices if _OUTSIDE.get(n.code) == above] for above in (_CALLS, _CAME_IN)
    }
    return [*parts, *(f"{above}\n{fence_lines(texts)}" for above, texts in theirs.items() if texts)]


def _rejected_draft_parts(state: Investigation, room: int) -> list[str]:
    """A conclusion that was sent back or was not valid, without which it cannot be fixed."""
    if state.malformed_conclusion is not None:
        return [
            "Your conclusion was not valid, so nothing of it was taken. Correct it and send it whole. It was:\n"
            + fence_json(fit_record(state.malformed_conclusion, room))
        ]
    if state.draft is None or not any(notice.code == "rework" for notice in state.notices):
        return []
    draft = {key: value for key, value in to_json(state.draft).items() if value not in (None, [], {}, "")}
    for claim in draft.get("claims", ()):
        claim.pop("status", None)
        claim.pop("problems", None)
    return [
        "Your conclusion was sent back. Mend it and conclude again, or look closer first. It was:\n"
        + fence_json(fit_record(draft, room))
    ]


def _hypothesis_line(h: Hypothesis) -> str:
    about = f"{h.id} {h.status}: {one_line(h.text)}"
    about += f" ({one_line(h.service)}, {h.kind})" if h.service else ""
    about += f" for {' '.join(h.supporting)}" if h.supporting else ""
    return about + (f" against {' '.join(h.contradicting)}" if h.contradicting else "")


def _native_turn(turn: RenderedTurn) -> list[Message]:
    calls = [
        {
            "id": _call_id(o),
            "type": "function",
            "function": {"name": o.tool, "arguments": _compact_json({**o.arguments, **_purpose_fields(o)})},
        }
        for o in turn.observations
    ]
    answers = [
        {"role": "tool", "tool_call_id": _call_id(o), "content": text}
        for o, text in zip(turn.observations, turn.texts, strict=True)
    ]
    return [{"role": "assistant", "content": _reason_of(turn), "tool_calls": calls}, *answers]


def _json_turn(turn: RenderedTurn) -> list[Message]:
    calls = [
        {"tool": o.tool, "arguments": dict(o.arguments), **_purpose_fields(o)} for o in turn.observations
    ]
    said = _compact_json({"reason": _reason_of(turn) or turn.observations[0].purpose, "calls": calls})
    return [{"role": "assistant", "content": said}, _user_message("\n\n".join(turn.texts))]


def _reason_of(turn: RenderedTurn) -> str:
    """Why the planner asked for this turn's calls, in its own words; empty where their purposes say it all."""
    return cut_text(one_line(turn.observations[0].reason), _LONGEST_REASON)


def _purpose_fields(o: Observation) -> dict[str, str]:
    return {"why": o.purpose} | ({"tests": o.tests} if o.tests else {})


def _call_id(o: Observation) -> str:
    """Nine letters and digits, the strictest form that any server asks for."""
    return f"call{o.number:05d}"


def _user_message(text: str) -> Message:
    return {"role": "user", "content": text}


def _merge_user_messages(messages: Sequence[Message]) -> list[Message]:
    """Neighbours of the user's role as one: some chat templates refuse two in a row."""
    joined: list[Message] = []
    for message in messages:
        if joined and message["role"] == joined[-1]["role"] == "user":
            joined[-1] = _user_message(f"{joined[-1]['content']}\n\n{message['content']}")
        else:
            joined.append(message)
    return joined


def _compact_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
