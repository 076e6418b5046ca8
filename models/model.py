"""The planner that is a model: builds its context, asks, and takes a decision only as it was made."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from opsleuth.models.context import Context
from opsleuth.models.modes import Ladder, Mode
from opsleuth.models.openai import ContextTooLong, Endpoint, Unsupported
from opsleuth.models.planner import Decided, Exchange, Malformed, ModelRefused, PlannerError, PlannerView
from opsleuth.models.prices import cost
from opsleuth.models.prompting import prompt
from opsleuth.models.protocol import (
    check_whole,
    decision_of_calls,
    decision_of_text,
    response_schema,
    tool_functions,
)
from opsleuth.models.reply import Asked, Reply
from opsleuth.models.settings import ModelSettings
from opsleuth.models.tokens import estimate
from opsleuth.state.budget import Spent
from opsleuth.state.conclusion import KINDS
from opsleuth.state.decision import Decision
from opsleuth.tools.schema import description, parameters
from opsleuth.tools.spec import ToolSpec

SMALLEST_WINDOW = 4_000


class _Way(NamedTuple):
    """How a decision is asked for in one mode, with the tools of one run."""

    mode: Mode
    offered: tuple[str, ...]
    prompt: str
    tools: Sequence[dict[str, Any]]
    response_format: dict[str, Any] | None
    context: Context


class _Talk:
    """What one turn's requests were and cost."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self.spent, self.exchanges = Spent(), list[Exchange]()

    def add(self, way: _Way, asked: Asked, reply: Reply) -> None:
        self.spent = self.spent.plus(spent_on(asked, reply, self._settings))
        self.exchanges.append(
            Exchange(
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

    def __init__(self, endpoint: Endpoint, ladder: Ladder) -> None:
        self.name = endpoint.settings.model
        self._endpoint, self._ladder, self._settings = endpoint, ladder, endpoint.settings
        self._window = self._settings.context_tokens
        self._way: _Way | None = None

    async def decide(self, view: PlannerView) -> Decided:
        """One decision; a way of asking that the server does not know costs a further request, once."""
        talk = _Talk(self._settings)
        try:
            decision = await self._decision(view, talk)
        except PlannerError as error:
            error.spent, error.exchanges = talk.spent, tuple(talk.exchanges)
            raise
        self._ladder.works()
        return Decided(decision, talk.spent, talk.exchanges)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _decision(self, view: PlannerView, talk: _Talk) -> Decision:
        while True:
            try:
                reply = await self._ask(view, talk)
            except Unsupported as error:
                if not self._ladder.down():
                    raise ModelRefused(f"{error}: set another --model-mode, or use another model") from None
                continue
            except ContextTooLong as error:
                if not self._smaller():
                    raise ModelRefused(str(error)) from None
                continue
            try:
                return _read(reply, view.tools)
            except Malformed:
                if not self._speaks_no_tools(reply):
                    raise
                self._ladder.down()

    async def _ask(self, view: PlannerView, talk: _Talk) -> Reply:
        way = self._way_for(view.tools)
        asked = Asked(way.context.messages(view), way.tools, way.response_format)
        left = view.state.budget.limits.seconds - view.state.budget.used.seconds
        reply = await self._endpoint.ask(asked, max(left, 1.0))
        talk.add(way, asked, reply)
        return reply

    def _speaks_no_tools(self, reply: Reply) -> bool:
        """Whether a whole reply without any tool call is the first thing that this server was seen to say to tools."""
        unproven = self._settings.mode == "auto" and not self._ladder.proven
        whole = reply.finish == "stop" and bool(reply.text.strip())
        return unproven and whole and self._ladder.mode is Mode.TOOLS and not reply.calls

    def _smaller(self) -> bool:
        """Plan with a smaller window from now on; False where that cannot help any more."""
        self._window, self._way = self._window * 6 // 10, None
        return self._window >= SMALLEST_WINDOW

    def _way_for(self, tools: Sequence[ToolSpec]) -> _Way:
        offered = tuple(spec.name for spec in tools)  # a tool may become known in the course of a run
        if self._way is None or (self._way.mode, self._way.offered) != (self._ladder.mode, offered):
            self._way = self._prepared(self._ladder.mode, tools)
        return self._way

    def _prepared(self, mode: Mode, specs: Sequence[ToolSpec]) -> _Way:
        native = mode is Mode.TOOLS
        texts = [prompt("planner")] if native else [prompt("planner"), prompt("json")]
        system = "\n\n".join(p.text for p in texts)
        if not native:
            system = system.replace("KINDS", ", ".join(KINDS)).replace("TOOLS", _tools_in_words(specs))
        tools = tool_functions(specs) if native else []
        context = Context(
            system,
            window=self._window,
            reply=min(self._settings.output_tokens, self._window // 4),
            fixed=estimate(json.dumps(tools, ensure_ascii=False)),
            native=native,
        )
        offered = tuple(spec.name for spec in specs)
        return _Way(
            mode, offered, "+".join(p.hash for p in texts), tools, _response_format(mode, specs), context
        )


def spent_on(asked: Asked, reply: Reply, settings: ModelSettings) -> Spent:
    """What a request cost: by the server's count, or by our own estimate, marked as one."""
    if reply.tokens is not None:
        sent, received, cached = reply.tokens
    else:
        sent = estimate(json.dumps([*asked.messages, *asked.tools], ensure_ascii=False))
        received, cached = estimate(reply.raw), 0
    return Spent(
        tokens_in=sent,
        tokens_out=received,
        tokens_cached=min(cached, sent),
        cost=cost(settings.price, sent, received, min(cached, sent)),
        estimated=reply.tokens is None,
        model_calls=1,
    )


def _read(reply: Reply, specs: Sequence[ToolSpec]) -> Decision:
    """The decision in a reply, wherever the model put it: some answer tools with text and the other way round."""
    check_whole(reply)
    if reply.calls:
        return decision_of_calls(reply, specs)
    return decision_of_text(reply.text)


def _response_format(mode: Mode, specs: Sequence[ToolSpec]) -> dict[str, Any] | None:
    if mode is Mode.SCHEMA:
        schema = {"name": "decision", "schema": response_schema(specs)}
        return {"type": "json_schema", "json_schema": schema}
    return {"type": "json_object"} if mode is Mode.OBJECT else None


def _tools_in_words(specs: Sequence[ToolSpec]) -> str:
    return "\n".join(
        f"- {spec.name}: {description(spec)} Arguments: {json.dumps(_arguments(spec), ensure_ascii=False)}"
        for spec in specs
    )


def _arguments(spec: ToolSpec) -> dict[str, str]:
    """Each argument with its type, whether it is required, and what it means."""
    form = parameters(spec)
    required = form.get("required", ())
    return {
        name: f"{'|'.join(map(str, of.get('enum', []))) or of.get('type', 'any')}{' required' if name in required else ''}"
        f"{': ' + of['description'] if of.get('description') else ''}"
        for name, of in form["properties"].items()
    }
