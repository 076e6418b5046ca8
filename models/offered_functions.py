"""Which tools a model is shown: few enough to choose from, and no more text than its window can spare.

A tool that is not shown can still be called: planners without a window of tokens use them all.
"""

import json
from collections.abc import Sequence
from typing import Any

from opsleuth.models.control_tools import CONTROLS
from opsleuth.models.decision_parsing import planner_functions
from opsleuth.models.token_estimate import estimate_tokens
from opsleuth.state.calls import Risk
from opsleuth.tools.spec import ToolSpec

MOST_FUNCTIONS = 18
"""Those of tools and the three to plan, judge and conclude with; more are offered only where the operator adds many."""
SMALL_WINDOW, SMALL_ROOM = 8_192, 3_000
"""Up to the first many tokens of window, all functions together take at most the second many."""
LEAST_READS = 8

NEEDED_FIRST = (
    "rank_suspects",
    "metrics_query",
    "logs_search",
    "evidence_read",
    "object_view",
    "changes_list",
    "events_list",
    "metrics_anomalies",
    "logs_patterns",
    "traces_compare",
    "topology",
    "database_statements",
    "runbooks_find",
    "source_query",
    "metrics_relate",
    "metrics_list",
    "calculate",
    "objects_get",
    "time_now",
)
"""The built-in reads, what a planner misses most first; those at the end have others that answer the same."""


def select_offered_tools(specs: Sequence[ToolSpec], window: int) -> Sequence[ToolSpec]:
    """The tools that a model with this window is shown, in their own order: what acts or was added, then reads by need."""
    always = [spec for spec in specs if not _is_ranked_read(spec)]
    ranked = sorted(filter(_is_ranked_read, specs), key=lambda spec: NEEDED_FIRST.index(spec.name))
    most = max(MOST_FUNCTIONS - len(CONTROLS) - len(always), LEAST_READS)
    room = compute_functions_room(window) - measure_functions(always, window)
    names = {spec.name for spec in always}
    for spec in ranked[:most]:
        room -= estimate_tokens(encode_functions(build_functions([spec], window)[:1]))
        if room < 0 and len(names) > len(always):
            break
        names.add(spec.name)
    return [spec for spec in specs if spec.name in names]


def _is_ranked_read(spec: ToolSpec) -> bool:
    return spec.risk is Risk.READ and spec.origin == "built in" and spec.name in NEEDED_FIRST


def build_functions(specs: Sequence[ToolSpec], window: int) -> list[dict[str, Any]]:
    """The functions that are sent: for a small window without what only tells tools apart."""
    return planner_functions(specs, lean=window <= SMALL_WINDOW)


def measure_functions(specs: Sequence[ToolSpec], window: int) -> int:
    """Tokens that the functions take, by our own estimate, as they are sent."""
    return estimate_tokens(encode_functions(build_functions(specs, window)))


def encode_functions(functions: Sequence[dict[str, Any]]) -> str:
    """The functions as they leave."""
    return json.dumps(functions, ensure_ascii=False, separators=(",", ":"))


def compute_functions_room(window: int) -> int:
    """Tokens that all functions may take together."""
    return SMALL_ROOM if window <= SMALL_WINDOW else window * 3 // 8
