"""What a request cost: by the server's count where that can be true, else by our own estimate, marked as one."""

import json

from opsleuth.configuration.model_prices import compute_call_cost
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.models.model_reply import ModelReply, ModelRequest, TokenUsage
from opsleuth.models.token_estimate import estimate_tokens
from opsleuth.state.budget import ModelCallCost

_TIMES, _EXTRA = 4, 8_000
"""A count beyond this many times the estimate, and this many tokens of a server's own template, cannot be true."""


def spent_from_reply(asked: ModelRequest, reply: ModelReply, settings: ModelSettings) -> ModelCallCost:
    """The tokens and the money of one request."""
    estimate = _estimate_usage(asked, reply)
    counted = reply.tokens if reply.tokens and is_plausible(reply.tokens, estimate, settings) else None
    sent, received, cached = counted or estimate
    cached = min(max(cached, 0), sent)
    return ModelCallCost(
        tokens_in=sent,
        tokens_out=received,
        tokens_cached=cached,
        cost=compute_call_cost(settings.price, sent, received, cached),
        estimated=counted is None,
        model_calls=1,
    )


def is_plausible(counted: TokenUsage, estimate: TokenUsage, settings: ModelSettings) -> bool:
    """Whether a server's count can be true. Hidden reasoning counts as received, up to the longest reply."""
    longest_reply = max(estimate.received, settings.output_tokens)
    return (
        0 < counted.sent <= _TIMES * estimate.sent + _EXTRA
        and 0 < counted.received <= _TIMES * longest_reply + _EXTRA
    )


def _estimate_usage(asked: ModelRequest, reply: ModelReply) -> TokenUsage:
    sent = estimate_tokens(json.dumps([*asked.messages, *asked.tools], ensure_ascii=False))
    return TokenUsage(sent, estimate_tokens(reply.raw))
