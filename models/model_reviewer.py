"""The reviewer: a model that sees the draft and its evidence, but not how it was made."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from opsleuth.models.chat_endpoint import ContextTooLongError, ModelEndpoint, UnsupportedModeError
from opsleuth.models.data_fence import escape_fence, render_question
from opsleuth.models.decision_parsing import check_reply_complete, describe_faults, find_json_objects
from opsleuth.models.model_reply import ModelReply, ModelRequest
from opsleuth.models.planner import (
    MalformedReplyError,
    ModelExchange,
    ModelRefusedError,
    Observation,
    PlannerError,
    ReviewerResult,
)
from opsleuth.models.prompt_files import load_prompt
from opsleuth.models.request_modes import ModeLadder, RequestMode
from opsleuth.models.token_estimate import BYTES_A_TOKEN, estimate_tokens
from opsleuth.models.token_usage import spent_from_reply
from opsleuth.models.turn_history import render_observation
from opsleuth.state.base import to_json
from opsleuth.state.clock import format_timestamp
from opsleuth.state.conclusion import Conclusion, Review
from opsleuth.state.investigation import Investigation
from opsleuth.state.json_types import JSON

MOST_GAPS = 20
LARGEST_PIECE = 1_500
"""Tokens of one piece of evidence."""

_SCHEMA = {
    "type": "object",
    "properties": {
        "accepted": {"type": "boolean"},
        "gaps": {"type": "array", "items": {"type": "string", "maxLength": 400}, "maxItems": MOST_GAPS},
    },
    "required": ["accepted", "gaps"],
    "additionalProperties": False,
}
_FORMATS: dict[RequestMode, dict[str, Any] | None] = {
    RequestMode.SCHEMA: {"type": "json_schema", "json_schema": {"name": "review", "schema": _SCHEMA}},
    RequestMode.OBJECT: {"type": "json_object"},
    RequestMode.TEXT: None,
}


class ModelReviewer:
    """Reviews drafts with a model of its own, or the planner's, asked apart."""

    def __init__(self, endpoint: ModelEndpoint, ladder: ModeLadder) -> None:
        self.name = endpoint.settings.model
        self._endpoint, self._ladder = endpoint, ladder

    async def review(
        self, state: Investigation, draft: Conclusion, cited: Sequence[Observation], findings: Sequence[str]
    ) -> ReviewerResult:
        """What the model objects to. Raises MalformedReplyError, ModelUnavailableError or ModelRefusedError."""
        messages = [
            {"role": "system", "content": load_prompt("reviewer").text},
            {"role": "user", "content": self._case(state, draft, cited, findings)},
        ]
        left = max(state.budget.limits.seconds - state.budget.used.seconds, 1.0)
        asked, reply = await self._asked(messages, left)
        spent = spent_from_reply(asked, reply, self._endpoint.settings)
        exchanges = [self._exchange(asked, reply)]
        try:
            review = _read_review(reply)
        except PlannerError as error:
            error.spent, error.exchanges = spent, tuple(exchanges)
            raise
        self._ladder.remember_mode()
        return ReviewerResult(review, spent, exchanges)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _asked(
        self, messages: Sequence[dict[str, str]], seconds: float
    ) -> tuple[ModelRequest, ModelReply]:
        while True:
            asked = ModelRequest(messages, (), _FORMATS[self._ladder.mode])
            try:
                return asked, await self._endpoint.ask(asked, seconds)
            except UnsupportedModeError as error:
                if not self._ladder.down():
                    raise ModelRefusedError(str(error)) from None
            except ContextTooLongError as error:
                raise ModelRefusedError(str(error)) from None

    def _case(
        self, state: Investigation, draft: Conclusion, cited: Sequence[Observation], findings: Sequence[str]
    ) -> str:
        window = f"{format_timestamp(state.window.start)} to {format_timestamp(state.window.end)}"
        parts = [
            render_question(state.question, outside=state.from_alert),
            f"Incident window: {window} (UTC)",
        ]
        if state.checklist:
            parts.append("It demands: " + "; ".join(escape_fence(demand.text) for demand in state.checklist))
        parts.append(
            "Draft:\n" + escape_fence(json.dumps(_drop_empty_fields(to_json(draft)), ensure_ascii=False))
        )
        if findings:
            parts.append("The program already found:\n" + "\n".join(f"- {escape_fence(f)}" for f in findings))
        room = self._endpoint.settings.context_tokens // 2 - estimate_tokens("\n".join(parts))
        share = min(LARGEST_PIECE, max(room, 0) // max(len(cited), 1))
        parts.append("Evidence that the draft cites:")
        return "\n\n".join([*parts, *(render_observation(o, max(share, 100) * BYTES_A_TOKEN) for o in cited)])

    def _exchange(self, asked: ModelRequest, reply: ModelReply) -> ModelExchange:
        return ModelExchange(
            model=self.name,
            mode=self._ladder.mode,
            prompt=load_prompt("reviewer").hash,
            messages=asked.messages,
            tools=asked.tools,
            reply=reply.raw,
            finish=reply.finish,
        )


def _read_review(reply: ModelReply) -> Review:
    """The one review in a reply. Raises MalformedReplyError."""
    check_reply_complete(reply)
    found = [value for value in find_json_objects(reply.text) if "accepted" in value]
    if len(found) != 1:
        raise MalformedReplyError(
            f"the review holds {len(found)} JSON objects with `accepted`: one is wanted"
        )
    gaps = [str(gap)[:1_000] for gap in found[0].get("gaps") or [] if str(gap).strip()][:MOST_GAPS]
    accepted = found[0]["accepted"] is True
    try:
        return Review(accepted=accepted, gaps=() if accepted else tuple(gaps), by="reviewer")
    except ValidationError as error:
        raise MalformedReplyError(describe_faults(error)) from None


def _drop_empty_fields(value: JSON) -> JSON:
    """Without what is empty, and without what the program itself wrote into a claim."""
    if isinstance(value, dict):
        return {
            key: _drop_empty_fields(item)
            for key, item in value.items()
            if item not in (None, "", [], {}) and key not in ("status", "problems", "confidence")
        }
    return [_drop_empty_fields(item) for item in value] if isinstance(value, list) else value
