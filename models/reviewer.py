"""A second pair of eyes: a model that sees the draft and its evidence, and no word of how it was made."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from opsleuth.models.fence import inert, question
from opsleuth.models.history import shown
from opsleuth.models.model import spent_on
from opsleuth.models.modes import Ladder, Mode
from opsleuth.models.openai import ContextTooLong, Endpoint, Unsupported
from opsleuth.models.planner import Exchange, Malformed, ModelRefused, Observation, PlannerError, Reviewed
from opsleuth.models.prompting import prompt
from opsleuth.models.protocol import check_whole, faults_in_words, objects
from opsleuth.models.reply import Asked, Reply
from opsleuth.models.tokens import BYTES_A_TOKEN, estimate
from opsleuth.state.base import to_json
from opsleuth.state.clock import stamp
from opsleuth.state.conclusion import Conclusion, Review
from opsleuth.state.investigation import Investigation

MOST_GAPS = 5
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
_FORMATS: dict[Mode, dict[str, Any] | None] = {
    Mode.SCHEMA: {"type": "json_schema", "json_schema": {"name": "review", "schema": _SCHEMA}},
    Mode.OBJECT: {"type": "json_object"},
    Mode.TEXT: None,
}


class ModelReviewer:
    """Reviews drafts with a model of its own, or the planner's, asked apart."""

    def __init__(self, endpoint: Endpoint, ladder: Ladder) -> None:
        self.name = endpoint.settings.model
        self._endpoint, self._ladder = endpoint, ladder

    async def review(
        self, state: Investigation, draft: Conclusion, cited: Sequence[Observation], findings: Sequence[str]
    ) -> Reviewed:
        """What the model objects to. Raises Malformed, ModelUnavailable or ModelRefused."""
        messages = [
            {"role": "system", "content": prompt("reviewer").text},
            {"role": "user", "content": self._case(state, draft, cited, findings)},
        ]
        left = max(state.budget.limits.seconds - state.budget.used.seconds, 1.0)
        asked, reply = await self._asked(messages, left)
        spent = spent_on(asked, reply, self._endpoint.settings)
        exchanges = [self._exchange(asked, reply)]
        try:
            review = _read(reply)
        except PlannerError as error:
            error.spent, error.exchanges = spent, tuple(exchanges)
            raise
        self._ladder.works()
        return Reviewed(review, spent, exchanges)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _asked(self, messages: Sequence[dict[str, str]], seconds: float) -> tuple[Asked, Reply]:
        while True:
            asked = Asked(messages, (), _FORMATS[self._ladder.mode])
            try:
                return asked, await self._endpoint.ask(asked, seconds)
            except Unsupported as error:
                if not self._ladder.down():
                    raise ModelRefused(str(error)) from None
            except ContextTooLong as error:
                raise ModelRefused(str(error)) from None

    def _case(
        self, state: Investigation, draft: Conclusion, cited: Sequence[Observation], findings: Sequence[str]
    ) -> str:
        window = f"{stamp(state.window.start)} to {stamp(state.window.end)}"
        parts = [question(state.question, outside=state.from_alert), f"Incident window: {window} (UTC)"]
        if state.checklist:
            parts.append("It demands: " + "; ".join(inert(demand.text) for demand in state.checklist))
        parts.append("Draft:\n" + inert(json.dumps(_lean(to_json(draft)), ensure_ascii=False)))
        if findings:
            parts.append("The program already found:\n" + "\n".join(f"- {inert(f)}" for f in findings))
        room = self._endpoint.settings.context_tokens // 2 - estimate("\n".join(parts))
        share = min(LARGEST_PIECE, max(room, 0) // max(len(cited), 1))
        parts.append("Evidence that the draft cites:")
        return "\n\n".join([*parts, *(shown(o, max(share, 100) * BYTES_A_TOKEN) for o in cited)])

    def _exchange(self, asked: Asked, reply: Reply) -> Exchange:
        return Exchange(
            model=self.name,
            mode=self._ladder.mode,
            prompt=prompt("reviewer").hash,
            messages=asked.messages,
            tools=asked.tools,
            reply=reply.raw,
            finish=reply.finish,
        )


def _read(reply: Reply) -> Review:
    """The one review in a reply. Raises Malformed."""
    check_whole(reply)
    found = [value for value in objects(reply.text) if "accepted" in value]
    if len(found) != 1:
        raise Malformed(f"the review holds {len(found)} JSON objects with `accepted`: one is wanted")
    gaps = [str(gap)[:1_000] for gap in found[0].get("gaps") or [] if str(gap).strip()][:MOST_GAPS]
    accepted = found[0]["accepted"] is True
    try:
        return Review(accepted=accepted, gaps=() if accepted else tuple(gaps), by="reviewer")
    except ValidationError as error:
        raise Malformed(faults_in_words(error)) from None


def _lean(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Without what is empty, and without what the program itself wrote into a claim."""
    if isinstance(value, dict):
        return {
            key: _lean(item)
            for key, item in value.items()
            if item not in (None, "", [], {}) and key not in ("status", "problems", "confidence")
        }
    return [_lean(item) for item in value] if isinstance(value, list) else value
