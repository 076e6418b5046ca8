"""What is sent in sum over the turns of an investigation, beside sending everything again each turn.

    python benchmarks/context.py

Each turn brings one observation of about 300 tokens. Counted are the tokens of what was observed, as they are sent;
prompt, tools, question and the run's standing are the same in both and left out.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from opsleuth.models.planner import Observation, PlannerView
from opsleuth.models.planner_context import PlannerContext
from opsleuth.models.token_estimate import BYTES_A_TOKEN, estimate_tokens
from opsleuth.state.calls import ResultStatus
from opsleuth.state.investigation import Investigation, Window

TOKENS = 300
WINDOW = Window(start=datetime(2024, 5, 1, 14, tzinfo=UTC), end=datetime(2024, 5, 1, 15, tzinfo=UTC))


def observation(number: int, tokens: int = TOKENS) -> Observation:
    text = "".join(f"{number * 7919 * i % 9973:04d} " for i in range(1, tokens * BYTES_A_TOKEN // 5 - 44))
    return Observation(
        number=number,
        call_id=f"r/t{number}c1",
        turn=number,
        tool="metrics_query",
        arguments={"service": f"service-{number}", "metric": "latency_p95"},
        purpose="whether it became slow",
        status=ResultStatus.OK,
        evidence=f"E{number}",
        headline=f"service-{number}: 412 points, peak at 14:12Z",
        record={"service": f"service-{number}", "values": text},
    )


def sent(turns: int, tokens: int = TOKENS, window: int = 32_000) -> tuple[int, int]:
    """Tokens of observations in sum over so many turns: sent whole each time, and as we send them."""
    context = PlannerContext("", window=window, reply=2_000, fixed=0, native=True)
    observed = [observation(n, tokens) for n in range(1, turns + 1)]
    empty = _size(context, [])
    ours = sum(_size(context, observed[:n]) - empty for n in range(1, turns + 1))
    whole = [_size(context, [o]) - empty for o in observed]
    return sum(sum(whole[:n]) for n in range(1, turns + 1)), ours


def _size(context: PlannerContext, observed: Sequence[Observation]) -> int:
    state = Investigation(question="why", window=WINDOW, observations=len(observed))
    return estimate_tokens(
        json.dumps(context.messages(PlannerView(state, observed, (), ())), ensure_ascii=False)
    )


def main() -> None:
    print(f"{'turns':>6}{'sent whole':>14}{'ours':>10}")
    for turns in (5, 10, 20, 40, 80):
        whole, ours = sent(turns)
        print(f"{turns:>6}{whole:>14,}{ours:>10,}")


if __name__ == "__main__":
    main()
