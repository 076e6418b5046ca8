"""The built-in set: generated incidents of every kind, healthy ones, some with two causes, all with decoys.

Every fourth holds orders to its reader in every field, and in every fourth each source has a time zone of its own.

Small enough for every change: nothing is stored but the recipes, a case is written when its turn comes.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from opsleuth.evals.cases import BUILTIN, Case, Expected, Recipe, expected
from opsleuth.scenarios.generator import HEALTHY_KIND, KINDS, LEVELS, TWO_KIND, generate
from opsleuth.scenarios.hostile import plant
from opsleuth.scenarios.orders import write_case
from opsleuth.scenarios.zones import rezone

MORE = {HEALTHY_KIND: 8, TWO_KIND: 6}
"""Cases of these kinds; of every other kind there is one, and a second one of every third."""

ORDERS = "orders"
"""The kind of a recipe for the incident of the demonstration, whose key a case brings with it."""

UNKNOWN = Expected("")
"""What is expected of a case that is not yet generated."""


def builtin_set() -> Sequence[Case]:
    """All recipes as cases, by id. The names tell nothing about the causes."""
    return [
        Case(f"builtin-{n:02}", BUILTIN, Path(f"builtin-{n:02}"), UNKNOWN, recipe=recipe)
        for n, recipe in enumerate(_recipes(), 1)
    ]


def generated(case: Case, folder: Path) -> Case:
    """The case with its folder written below `folder`, and with its key; as it is, where it has no recipe."""
    if case.recipe is None:
        return case
    recipe, target = case.recipe, folder / case.id
    if recipe.kind == ORDERS:
        return replace(case, folder=write_case(target))
    key = generate(recipe.kind, recipe.level, recipe.seed, target)
    if recipe.hostile:
        plant(target)
    if recipe.zoned:
        rezone(target)
    wanted = expected(key)
    tags = (*case.tags, *_tags(recipe, wanted, target))
    return replace(case, folder=target, expected=wanted, tags=tags)


def _tags(recipe: Recipe, wanted: Expected, folder: Path) -> Iterator[str]:
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


def _recipes() -> Iterator[Recipe]:
    levels = tuple(LEVELS)
    for n, kind in enumerate(KINDS):
        for i in range(MORE.get(kind, 2 if n % 3 == 0 else 1)):
            seed = 7000 + 10 * n + i
            yield Recipe(
                kind, levels[(n + i) % len(levels)], seed, hostile=(n + i) % 4 == 3, zoned=(n + i) % 4 == 1
            )
