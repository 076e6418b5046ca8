"""What a model call cost goes to the budget; what was sent and said is kept, and the trace reports both."""

from collections.abc import Iterable
from typing import Any, Protocol

from opsleuth.models.planner import ModelExchange
from opsleuth.nodes.deps import Deps
from opsleuth.state.budget import ModelCallCost
from opsleuth.state.investigation import Investigation


class ModelCost(Protocol):
    """A decision, a review, or a failure to make one."""

    @property
    def spent(self) -> ModelCallCost: ...

    @property
    def exchanges(self) -> Iterable[ModelExchange]: ...


def charge_model_cost(
    state: Investigation, cost: ModelCost, deps: Deps, role: str = "planner", *, ms: int = 0
) -> Investigation:
    """The state after this cost; one event for each exchange, with the id of its snapshot.

    What several exchanges cost together, and the `ms` they took, is told with the last one.
    """
    exchanges = list(cost.exchanges)
    if exchanges:
        with deps.store.transaction():
            for exchange in exchanges:
                last = exchange is exchanges[-1]
                _emit_model_completed(
                    exchange, role, cost.spent if last else ModelCallCost(), ms if last else 0, deps
                )
    if near := deps.allowance.charge(cost.spent):
        deps.warn_of_limit("team budget", near)
    return state.changed(budget=state.budget.plus(spent=cost.spent))


def _emit_model_completed(
    exchange: ModelExchange, role: str, spent: ModelCallCost, ms: int, deps: Deps
) -> None:
    used: dict[str, Any] = {"in": spent.tokens_in, "out": spent.tokens_out, "cached": spent.tokens_cached}
    used |= {"usd": str(spent.cost), "estimated": spent.estimated}
    deps.trace.emit(
        "model.completed",
        model=exchange.model,
        role=role,
        mode=exchange.mode,
        prompt=exchange.prompt,
        finish=exchange.finish,
        snapshot=_store_exchange(exchange, deps),
        ms=ms,
        **used,
    )


def _store_exchange(exchange: ModelExchange, deps: Deps) -> str:
    """The id of the exchange's snapshot; its messages and tools are documents of their own, stored once."""
    parts = [*map(dict, exchange.messages), {"tools": list(exchange.tools)}, {"reply": exchange.reply}]
    *messages, tools, reply = deps.store.snapshots.put_all(deps.run, parts)
    whole = {"model": exchange.model, "mode": exchange.mode, "prompt": exchange.prompt, "messages": messages}
    return deps.store.snapshots.put(deps.run, whole | {"tools": tools, "reply": reply})
