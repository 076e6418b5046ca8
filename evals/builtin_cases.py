"""The built-in set: generated incidents of every kind, healthy ones, some with two causes, all with decoys.

Every fourth holds orders to its reader in every field, and in every fourth each source has a time zone of its own.

Small enough for every change: nothing is stored but the recipes, a case is written when its turn comes.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from opsleuth.evals.cases import BUILTIN, EvalCase, ExpectedReport, IncidentRecipe, expected_from_answer
from opsleuth.scenarios.generator import HEALTHY_KIND, KINDS, LEVELS, TWO_KIND, generate_incident
from opsleuth.scenarios.injected_texts import plant_hostile_texts
from opsleuth.scenarios.orders_incident import write_case
from opsleuth.scenarios.time_zones import rewrite_time_zones

MORE = {HEALTHY_KIND: 8, TWO_KIND: 6}
"""Cases of these kinds; of every other kind there is one, and a second one of every third."""

DEMO_KIND = "orders"
"""The kind of a recipe for the incident of the demonstration, whose key a case brings with it."""

UNKNOWN = ExpectedReport("")
"""What is expected of a case that is not yet generated."""


def list_builtin_cases() -> Sequence[EvalCase]:
    """All recipes as cases, by id. The names tell nothing about the causes."""
    return [
        EvalCase(f"builtin-{n:02}", BUILTIN, Path(f"builtin-{n:02}"), UNKNOWN, recipe=recipe)
        for n, recipe in enumerate(_list_recipes(), 1)
    ]


def generate_case(case: EvalCase, folder: Path) -> EvalCase:
    """The case with its folder written below `folder`, and with its key; as it is, where it has no recipe."""
    if case.recipe is None:
        return case
    recipe, target = case.recipe, folder / case.id
    if recipe.kind == DEMO_KIND:
        return replace(case, folder=write_case(target))
    key = generate_incident(recipe.kind, recipe.level, recipe.seed, target)
    if recipe.hostile:
        plant_hostile_texts(target)
    if recipe.zoned:
        rewrite_time_zones(target)
    wanted = expected_from_answer(key)
    tags = (*case.tags, *_choose_tags(recipe, wanted, target))
    return replace(case, folder=target, expected=wanted, tags=tags)


def _choose_tags(recipe: IncidentRecipe, wanted: ExpectedReport, folder: Path) -> Iterator[str]:
    """The strength of the fault, and what makes the case hard."""
    if wanted.services:
        yield recipe.level
        alerting = json.loads((folder / "incident.json").read_text(encoding="utf-8"))["alert"]["service"]
        if alerting not in wanted.services:
            yield "victim-alerts"
    if recipe.hostile:
        yield "hostile"
    if recipe.zoned:
        yield "zones"


def _list_recipes() -> Iterator[IncidentRecipe]:
    levels = tuple(LEVELS)
    for n, kind in enumerate(KINDS):
        for i in range(MORE.get(kind, 2 if n % 3 == 0 else 1)):
            seed = 7000 + 10 * n + i
            yield IncidentRecipe(
                kind, levels[(n + i) % len(levels)], seed, hostile=(n + i) % 4 == 3, zoned=(n + i) % 4 == 1
            )
