"""The built-in set: generated incidents of every kind, healthy ones, some with two causes, all with decoys.

Small enough for every change: nothing is stored but the recipes, a case is written when its turn comes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from opsleuth.evals.cases import BUILTIN, Case, Expected, Recipe, expected
from opsleuth.scenarios.generator import HEALTHY_KIND, KINDS, LEVELS, TWO_KIND, generate

MORE = {HEALTHY_KIND: 8, TWO_KIND: 6}
"""Cases of these kinds; of every other kind there is one, and a second one of every third."""

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
    key = generate(*case.recipe, folder / case.id)
    level = (case.recipe.level,) if key["verdict"] == "cause_found" else ()
    return replace(case, folder=folder / case.id, expected=expected(key), tags=(*case.tags, *level))


def _recipes() -> Iterator[Recipe]:
    levels = tuple(LEVELS)
    for n, kind in enumerate(KINDS):
        for i in range(MORE.get(kind, 2 if n % 3 == 0 else 1)):
            yield Recipe(kind, levels[(n + i) % len(levels)], 7000 + 10 * n + i)
