"""What a model call costs: from the operator's dated price table. Without a price nothing is guessed."""

from datetime import date
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from opsleuth.state.base import FrozenModel

MILLION = Decimal(1_000_000)
Dollars = Annotated[Decimal, Field(ge=0, lt=10_000)]


class TokenPrice(FrozenModel):
    """US dollars for a million tokens, as of `date`; `cached` is for input that the server had kept."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    date: date


def compute_call_cost(
    price: TokenPrice | None, tokens_in: int, tokens_out: int, tokens_cached: int
) -> Decimal:
    """US dollars, to a millionth; `tokens_cached` is the part of `tokens_in` that was cached. 0 without a price."""
    if price is None:
        return Decimal(0)
    kept = price.input if price.cached is None else price.cached
    paid = (tokens_in - tokens_cached) * price.input + tokens_cached * kept + tokens_out * price.output
    return (paid / MILLION).quantize(Decimal("0.000001"))
