"""The planner that is a model: builds its context, asks, and takes a decision only as it was made."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from opsleuth.configuration.model_settings import ModelSettings, bound_reply
from opsleuth.models.chat_endpoint import ContextTooLongError, ModelEndpoint, UnsupportedModeError
from opsleuth.models.decision_parsing import (
    check_reply_complete,
    decision_from_calls,
    decision_from_text,
    list_unreadable_calls,
    response_schema,
)
from opsleuth.models.model_reply import ModelReply, ModelRequest
from opsleuth.models.offered_functions import build_functions, encode_functions, select_offered_tools
from opsleuth.models.planner import (
    MalformedReplyError,
    ModelExchange,
    ModelRefusedError,
    PlannerError,
    PlannerResult,
    PlannerView,
)
from opsleuth.models.planner_context import PlannerContext
from opsleuth.models.prompt_files import load_prompt
from opsleuth.models.request_modes import ModeLadder, RequestMode
from opsleuth.models.token_estimate import estimate_tokens
from opsleuth.models.token_usage import spent_from_reply
from opsleuth.state.budget import ModelCallCost
from opsleuth.state.conclusion import KINDS
from opsleuth.state.decision import Decision
from opsleuth.tools.spec import ToolSpec
from opsleuth.tools.tool_schema import describe_tool, parameters_schema

SMALLEST_WINDOW = 4_000


class _RequestForm(NamedTuple):
    """How a decision is asked for in one mode, with the tools of one run."""

    mode: RequestMode
    offered: tuple[str, ...]
    prompt: str
    tools: Sequence[dict[str, Any]]
    response_format: dict[str, Any] | None
    context: PlannerContext


class _TurnExchanges:
    """The requests of one turn and their cost."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self.spent, self.exchanges = ModelCallCost(), list[ModelExchange]()

    def add(self, way: _RequestForm, asked: ModelRequest, reply: ModelReply) -> None:
        self.spent = self.spent.plus(spent_from_reply(asked, reply, self._settings))
        self.exchanges.append(
            ModelExchange(
                model=self._settings.model,
                mode=way.mode,
                prompt=way.prompt,
                messages=asked.messages,
                tools=asked.tools,
                reply=reply.raw,
                finish=reply.finish,
            )
        )


class ModelPlanner:
    """Decides by asking a model. What is kept between turns only saves work: any process can go on."""

    def __init__(self, endpoint: ModelEndpoint, ladder: ModeLadder) -> None:
        self.name = endpoint.settings.model
        self._endpoint, self._ladder, self._settings = endpoint, ladder, endpoint.settings
        self._window = self._settings.context_tokens
        self._way: _RequestForm | None = None

    async def decide(self, view: PlannerView) -> PlannerResult:
        """One decision; a request mode that the server does not support costs one extra request."""
        talk = _TurnExchanges(self._settings)
        try:
            decision, unreadable = await self._decision(view, talk)
        except PlannerError as error:
            error.spent, error.exchanges = talk.spent, tuple(talk.exchanges)
            raise
        self._ladder.remember_mode()
        return PlannerResult(decision, talk.spent, talk.exchanges, unreadable=unreadable)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _decision(self, view: PlannerView, talk: _TurnExchanges) -> tuple[Decision, Sequence[str]]:
        while True:
            try:
                reply = await self._ask(view, talk)
            except UnsupportedModeError as error:
                if not self._ladder.down():
                    raise ModelRefusedError(
                        f"{error}: set another --model-mode, or use another model"
                    ) from None
                continue
            except ContextTooLongError as error:
                if not self._smaller():
                    raise ModelRefusedError(str(error)) from None
                continue
            try:
                return _read_decision(reply, view.tools), list_unreadable_calls(reply)
            except MalformedReplyError:
                if not self._speaks_no_tools(reply):
                    raise
                self._ladder.down()

    async def _ask(self, view: PlannerView, talk: _TurnExchanges) -> ModelReply:
        way = self._way_for(view.tools)
        asked = ModelRequest(way.context.messages(view), way.tools, way.response_format)
        left = view.state.budget.limits.seconds - view.state.budget.used.seconds
        reply = await self._endpoint.ask(asked, max(left, 1.0))
        talk.add(way, asked, reply)
        return reply

    def _speaks_no_tools(self, reply: ModelReply) -> bool:
        """Whether a whole reply without any tool call is the first thing that this server was seen to say to tools."""
        unproven = self._settings.mode == "auto" and not self._ladder.proven
        whole = reply.finish == "stop" and bool(reply.text.strip())
        return unproven and whole and self._ladder.mode is RequestMode.TOOLS and not reply.calls

    def _smaller(self) -> bool:
        """Plan with a smaller window from now on; False where that cannot help any more."""
        self._window, self._way = self._window * 6 // 10, None
        return self._window >= SMALLEST_WINDOW

    def _way_for(self, tools: Sequence[ToolSpec]) -> _RequestForm:
        offered = tuple(spec.name for spec in tools)  # a tool may become known in the course of a run
        if self._way is None or (self._way.mode, self._way.offered) != (self._ladder.mode, offered):
            self._way = self._prepared(self._ladder.mode, tools)
        return self._way

    def _prepared(self, mode: RequestMode, known: Sequence[ToolSpec]) -> _RequestForm:
        specs = select_offered_tools(known, self._window)
        native = mode is RequestMode.TOOLS
        texts = [load_prompt("planner")] if native else [load_prompt("planner"), load_prompt("json")]
        system = "\n\n".join(p.text for p in texts)
        if not native:
            system = system.replace("KINDS", ", ".join(KINDS)).replace("TOOLS", _describe_tools(specs))
        tools = build_functions(specs, self._window) if native else []
        context = PlannerContext(
            system,
            window=self._window,
            reply=bound_reply(self._settings.output_tokens, self._window),
            fixed=estimate_tokens(encode_functions(tools)),
            native=native,
        )
        offered = tuple(spec.name for spec in known)
        return _RequestForm(
            mode, offered, "+".join(p.hash for p in texts), tools, _response_format(mode, specs), context
        )


def _read_decision(reply: ModelReply, specs: Sequence[ToolSpec]) -> Decision:
    """The decision in a reply, wherever the model put it: some answer tools with text and the other way round."""
    check_reply_complete(reply)
    if reply.calls:
        return decision_from_calls(reply, specs)
    return decision_from_text(reply.text)


def _response_format(mode: RequestMode, specs: Sequence[ToolSpec]) -> dict[str, Any] | None:
    if mode is RequestMode.SCHEMA:
        schema = {"name": "decision", "schema": response_schema(specs)}
        return {"type": "json_schema", "json_schema": schema}
    return {"type": "json_object"} if mode is RequestMode.OBJECT else None


def _describe_tools(specs: Sequence[ToolSpec]) -> str:
    return "\n".join(
        f"- {spec.name}: {describe_tool(spec)} Arguments: {json.dumps(_describe_arguments(spec), ensure_ascii=False)}"
        for spec in specs
    )


def _describe_arguments(spec: ToolSpec) -> dict[str, str]:
    """Each argument with its type, whether it is required, and what it means."""
    form = parameters_schema(spec)
    required = form.get("required", ())
    return {
        name: f"{'|'.join(map(str, of.get('enum', []))) or of.get('type', 'any')}{' required' if name in required else ''}"
        f"{': ' + of['description'] if of.get('description') else ''}"
        for name, of in form["properties"].items()
    }
