"""What a planner can still see and cite at the end of a long run, by the size of its model's window.

    python benchmarks/memory.py [TURNS]

The built-in incident is investigated offline; its real results come again and again, two calls a turn with every
third turn of five, each time under new ids, with a hypothesis every fifth turn that rests on the two results before it.
Printed for the last request: how many results stand there whole, as facts, with a headline, with what they asked for, and as
bare ids; the same for what hypotheses rest on; the tokens of a request; and the share of a request that is the
same as the one before, from its beginning on, which is what a provider's cache can reuse.
"""

import asyncio
import json
import re
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.models.decision_parsing import planner_functions
from opsleuth.models.planner import Observation, PlannerView
from opsleuth.models.planner_context import PlannerContext
from opsleuth.models.prompt_files import load_prompt
from opsleuth.models.token_estimate import estimate_tokens
from opsleuth.redaction.redactor import Redactor
from opsleuth.scenarios.orders_incident import QUESTION, write_case
from opsleuth.state.clock import SystemClock
from opsleuth.state.investigation import Hypothesis, Investigation, Window
from opsleuth.tools.builtin import BUILTIN

WINDOWS = (8_000, 32_000, 128_000)
LEVELS = ("whole", "facts", "headline", "asked", "id")
_ID = re.compile(r"\bE(\d+)(?:-E(\d+))?\b")


def main(turns: int) -> None:
    window, results = investigate()
    observed = repeat_results(results, turns)
    print(f"{len(observed)} results in {turns} turns; {len(cited_ids(turns, observed))} of them cited")
    heads = [*LEVELS, *(f"cited {level}" for level in LEVELS[:3]), "tokens", "unchanged"]
    print(f"{'window':>8}" + "".join(f"{head:>15}" for head in heads))
    for size in WINDOWS:
        figures = measure_window(size, window, observed, turns)
        print(f"{size:>8}" + "".join(f"{figure:>15}" for figure in figures))


def investigate() -> tuple[Window, Sequence[Observation]]:
    """The results of the built-in incident, as the offline planner asked for them."""
    with tempfile.TemporaryDirectory() as folder:
        write_case(Path(folder) / "case")
        with Store.open(Path(folder) / "x.db", SystemClock(), Redactor()) as store:
            settings = RunSettings(case=str(Path(folder) / "case"), planner="offline")
            request = StartRequest(run="inv-20240501-test", question=QUESTION, settings=settings)
            asyncio.run(Runner(store).start(request))
            seen = store.observations.list("inv-20240501-test")
    times = [o.arguments["since"] for o in seen if "since" in o.arguments] or ["2024-05-01T14:00:00Z"]
    window = Window.model_validate({"start": min(times), "end": "2030-01-01T00:00:00Z"})
    return window, [o for o in seen if o.status == "ok" and o.has_own_evidence]


def repeat_results(results: Sequence[Observation], turns: int) -> list[Observation]:
    made: list[Observation] = []
    for turn in range(1, turns + 1):
        for place in range(1, (5 if turn % 3 == 0 else 2) + 1):
            number = len(made) + 1
            source = results[number % len(results)]
            made.append(
                replace(
                    source,
                    number=number,
                    turn=turn,
                    call_id=f"r/t{turn}c{place}",
                    evidence=f"E{number}",
                    reason="The next thing to know is whether this moved before the symptom did."
                    if place == 1
                    else "",
                )
            )
    return made


def hypotheses_at(turn: int, observed: Sequence[Observation]) -> tuple[Hypothesis, ...]:
    """One for every fifth turn, which rests on the first two results of that turn."""
    made = []
    for at in range(5, turn + 1, 5):
        cited = [o.evidence for o in observed if o.turn == at][:2]
        made.append(
            Hypothesis(
                id=f"H{len(made) + 1}", text=f"what turn {at} saw is the cause", supporting=tuple(cited)
            )
        )
    return tuple(made)


def cited_ids(turns: int, observed: Sequence[Observation]) -> set[str]:
    return {e for h in hypotheses_at(turns, observed) for e in h.supporting}


def measure_window(
    size: int, window: Window, observed: Sequence[Observation], turns: int
) -> Sequence[str | int]:
    tools = planner_functions([spec for spec in BUILTIN if spec.capability != "runbooks"])
    context = PlannerContext(
        load_prompt("planner").text,
        window=size,
        reply=min(4_096, size // 4),
        fixed=estimate_tokens(json.dumps(tools)),
        native=True,
    )
    texts, last = [], list[dict[str, Any]]()
    for turn in range(turns + 1):
        known = [o for o in observed if o.turn <= turn]
        state = Investigation(
            question=QUESTION,
            window=window,
            observations=len(known),
            hypotheses=hypotheses_at(turn, observed),
        )
        last = context.messages(PlannerView(state, known, (), ()))
        texts.append(json.dumps([*tools, *last], ensure_ascii=False))
    levels = level_of_each(last)
    counted = Counter(levels.get(o.evidence, "gone") for o in observed)
    cited = Counter(levels.get(e, "gone") for e in cited_ids(turns, observed))
    if counted["gone"]:
        raise SystemExit(f"{counted['gone']} results are not named any more")
    same = statistics.mean(common_beginning(a, b) / len(b) for a, b in pairwise(texts))
    return [
        *(counted[level] for level in LEVELS),
        *(cited[level] for level in LEVELS[:3]),
        round(statistics.mean(map(estimate_tokens, texts))),
        f"{same:.0%}",
    ]


def level_of_each(messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The best form in which each result stands in a request."""
    found: dict[str, str] = {}
    for message in messages[1:]:
        if message["role"] == "tool":
            set_level(found, message["content"].split(" ", 1)[0], "whole")
            continue
        for line in message["content"].splitlines():
            if head := re.match(r"(E\d+)(\.\d+)? ", line):
                set_level(found, head[1], "facts" if head[2] else "headline")
            elif re.match(r"\w+: E\d", line):
                for entry in line.partition(": ")[2].split("; "):
                    for first, end in _ID.findall(entry.split(" ")[0] if "=" in entry else entry):
                        for number in range(int(first), int(end or first) + 1):
                            set_level(found, f"E{number}", "asked" if "=" in entry else "id")
    return found


def set_level(found: dict[str, str], evidence: str, level: str) -> None:
    if LEVELS.index(level) < LEVELS.index(found.get(evidence, "id")) or evidence not in found:
        found[evidence] = level


def common_beginning(a: str, b: str) -> int:
    """How many characters two texts share from their beginning on."""
    for place, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return place
    return min(len(a), len(b))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
