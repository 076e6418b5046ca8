"""What code can recompute from the figures of cited evidence, where they belong together and not by chance.

Difference, ratio, percent change, share, sum, mean, length and duration: of figures stated in the text itself;
of columns that it names; of objects that it names; of one object; of one column. With many figures some pair
fits any number, so beyond the stated ones a derived value counts only if the chance of such a fit is below
`CHANCE`: the number of values in the octaves around, times the width that the writing leaves open.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice

from opsleuth.verification.figures import Facts, Figure, Instant
from opsleuth.verification.grounding import Ground, fits, found
from opsleuth.verification.moments import placed
from opsleuth.verification.quantities import Quantity

# The wider the choice, the less a fit says: the last resort, any figures of the evidence, is held tightest.
CHANCE = 0.15
CHANCE_OF_ANY = 0.05
MAX_PAIR_FIGURES = 60
MAX_FIGURES = 400
MAX_INSTANTS = 40
MAX_VALUES = 40_000


def ungrounded(ground: Ground) -> list[Quantity]:
    """Which of the stated numbers the ground neither holds nor gives; one may be derived from another."""
    failed = [q for q in ground.stated if not found(q, ground)]
    computed = [q for q in failed if derived(q, ground)]
    if not computed:
        return failed
    wider = replace(ground, computed=computed)
    return [q for q in failed if q not in computed and not derived(q, wider)]


def derived(quantity: Quantity, ground: Ground) -> bool:
    """Whether code can recompute `quantity` from figures that belong together, and not by chance."""
    if quantity.value == 0:
        return False
    if _any_fits(quantity, _from_stated(quantity, ground)):
        return True
    named = (_from_spoken, _from_totals, _from_times, _from_named)
    if any(_fits_by_law(quantity, tier(quantity, ground), CHANCE) for tier in named):
        return True
    return _fits_by_law(quantity, _from_all(quantity, ground), CHANCE_OF_ANY)


def _any_fits(quantity: Quantity, values: Iterable[float]) -> bool:
    return any(fits(quantity, value) for value in islice(values, MAX_VALUES))


def _fits_by_law(quantity: Quantity, values: Iterable[float], chance: float) -> bool:
    """Whether a value fits, where so few lie in the octaves around that this is no accident."""
    near = {
        float(f"{v:.6g}") for v in islice(values, MAX_VALUES) if quantity.value / 2 <= v <= quantity.value * 2
    }
    if not any(fits(quantity, value) for value in near):
        return False
    width = (quantity.high - quantity.low) / (1.5 * quantity.value)
    return len(near) * width <= chance


def _from_stated(quantity: Quantity, ground: Ground) -> Iterator[float]:
    """From the numbers and times that the text itself states, where the evidence holds them."""
    figures: list[Figure] = []
    for other in ground.stated:
        if other is not quantity and (other in ground.computed or found(other, ground)):
            figures += [*islice(_matching(other, ground), 3), Figure(other.value, other.units, "", 0)]
    yield from _pairs(quantity, figures[:24])
    yield from _sums(quantity, figures[:24])
    times = [placed(m, ground.start) for m in ground.moments][:12]
    yield from _durations(quantity, [*times, ground.start, ground.end])


def _sums(quantity: Quantity, figures: Sequence[Figure]) -> Iterator[float]:
    """Sums of two stated figures of one kind, and of all of that kind."""
    for unit in quantity.units:
        alike = [_base(f) for f in figures if _kind(f) in (unit.dimension, None)]
        for factor in unit.factors:
            yield from ((a + b) / factor for a, b in combinations(alike, 2))
            yield sum(alike) / factor


def _matching(quantity: Quantity, ground: Ground) -> Iterator[Figure]:
    """The figures, distinct in value, that `quantity` may stand for, in base units."""
    seen: set[float] = set()
    for facts in ground.facts:
        for figure in facts.figures:
            base = _base(figure)
            if base not in seen and stands_for(quantity, figure):
                seen.add(base)
                yield figure


def stands_for(quantity: Quantity, figure: Figure) -> bool:
    if fits(quantity, abs(figure.raw)) and (not figure.units or quantity.bare):
        return True
    own = {unit.dimension for unit in figure.units}
    return any(
        (not own or unit.dimension in own) and fits(quantity, _base(figure) / factor)
        for unit in quantity.units
        for factor in unit.factors
    )


def _from_spoken(quantity: Quantity, ground: Ground) -> Iterator[float]:
    """Sum, mean and length of the columns whose key the text says (`restarts`, `calls`)."""
    for facts in ground.facts:
        for (_, key), column in _columns(facts).items():
            if key.lower() in ground.words:
                yield from _aggregates(quantity, column, ())


def _from_totals(quantity: Quantity, ground: Ground) -> Iterator[float]:
    """Sum, mean and length of every list's columns."""
    for facts in ground.facts:
        yield from _from_columns(quantity, facts, set())


def _from_times(quantity: Quantity, ground: Ground) -> Iterator[float]:
    """Durations between any two times of the evidence, and to the ends of the window."""
    yield from _durations(quantity, _edges([i for facts in ground.facts for i in facts.instants], ground))


def _from_named(quantity: Quantity, ground: Ground) -> Iterator[float]:
    """From the objects that the text names, and the figures that stand outside any list."""
    if not ground.names:
        return
    chosen = [{i for i, h in enumerate(f.holders) if _named(h.label, ground.names)} for f in ground.facts]
    yield from _from_holders(quantity, ground, chosen)


def _named(label: str, wanted: frozenset[str]) -> bool:
    return any(name in label for name in wanted)


def _from_all(quantity: Quantity, ground: Ground) -> Iterator[float]:
    chosen = [set(range(len(facts.holders))) for facts in ground.facts]
    yield from _from_holders(quantity, ground, chosen)


def _from_holders(quantity: Quantity, ground: Ground, chosen: Sequence[set[int]]) -> Iterator[float]:
    """From the chosen objects: pairs in one object or of one key, shares of columns, durations between times."""
    objects: dict[tuple[int, int], list[Figure]] = defaultdict(list)
    columns: dict[str, list[Figure]] = defaultdict(list)
    instants: list[Instant] = []
    for n, (facts, holders) in enumerate(zip(ground.facts, chosen, strict=True)):
        for figure in islice(facts.figures, MAX_FIGURES):
            if figure.holder in holders:
                objects[n, figure.holder].append(figure)
                columns[figure.key].append(figure)
        instants += [instant for instant in facts.instants if instant.holder in holders]
        yield from _from_columns(quantity, facts, holders)
    for group in objects.values():
        yield from _pairs(quantity, group[:MAX_PAIR_FIGURES])
    for column in columns.values():
        yield from _pairs(quantity, _ends(column))
    yield from _durations(quantity, _edges(instants, ground))


def _edges(instants: Sequence[Instant], ground: Ground) -> list[float]:
    """The times, each once: of very many the first and the last; and the ends of the window."""
    times = sorted({instant.seconds for instant in instants})
    half = MAX_INSTANTS // 2
    kept = [*times[:half], *times[-half:]] if len(times) > MAX_INSTANTS else times
    return [*kept, ground.start, ground.end]


def _from_columns(quantity: Quantity, facts: Facts, chosen: set[int]) -> Iterator[float]:
    """Sum, mean and length of each column of the record's lists, and the shares of the chosen rows."""
    for column in _columns(facts).values():
        yield from _aggregates(quantity, column, [f for f in column if f.holder in chosen])


def _columns(facts: Facts) -> dict[tuple[str, str], list[Figure]]:
    """The figures of the record's lists by list and key, where there are two or more."""
    columns: dict[tuple[str, str], list[Figure]] = defaultdict(list)
    for figure in facts.figures:
        path = facts.holders[figure.holder].path
        if path is not None:
            columns[path, figure.key].append(figure)
    return {place: column for place, column in columns.items() if len(column) > 1}


def _ends(column: Sequence[Figure]) -> Sequence[Figure]:
    """A short column whole; of a long one the first, last, least and greatest."""
    if len(column) <= 12:
        return column
    return [column[0], column[-1], min(column), max(column)]


def _base(figure: Figure) -> float:
    return abs(figure.raw) * (figure.units[0].factors[0] if figure.units else 1.0)


def _kind(figure: Figure) -> str | None:
    return figure.units[0].dimension if figure.units else None


def _pairs(quantity: Quantity, figures: Sequence[Figure]) -> Iterator[float]:
    """What two figures of one kind give: in the written unit of `quantity`."""
    for a, b in combinations(figures, 2):
        kind = _kind(a)
        if kind == _kind(b):
            yield from _from_two(quantity, _base(a), _base(b), kind)


def _from_two(quantity: Quantity, a: float, b: float, kind: str | None) -> Iterator[float]:
    small, large = sorted((a, b))
    for unit in quantity.units:
        if unit.dimension == "share" and small > 0:
            yield from _percent(small, large)
        if unit.dimension == "ratio" and small > 0:
            yield large / small
        if quantity.bare and quantity.value < 1 and large > 0:
            yield small / large
        if large > small and (
            unit.dimension == kind or kind is None or {unit.dimension, kind} <= {"count", "ratio"}
        ):
            yield from ((large - small) / factor for factor in unit.factors)
            if kind is None and unit.factors != (1.0,):
                yield large - small  # both already in the written unit


def _percent(small: float, large: float) -> Iterator[float]:
    yield 100 * small / large
    yield 100 * (large - small) / large
    if large < 100 * small:
        yield 100 * (large - small) / small


def _aggregates(quantity: Quantity, column: Sequence[Figure], chosen: Sequence[Figure]) -> Iterator[float]:
    kind = _kind(column[0])
    values = [_base(f) for f in column if _kind(f) == kind]
    total = sum(values)
    for unit in quantity.units:
        if unit.dimension in ("count", "ratio"):
            yield float(len(values))
        if unit.dimension == kind or kind is None or unit.dimension in ("count", "ratio"):
            yield from chain.from_iterable((total / f, total / len(values) / f) for f in unit.factors)
        if unit.dimension == "share" and total > 0:
            yield from (100 * _base(f) / total for f in chosen[:MAX_PAIR_FIGURES] if _kind(f) == kind)


def _durations(quantity: Quantity, times: Sequence[float]) -> Iterator[float]:
    factors = [f for unit in quantity.units if unit.dimension == "time" for f in unit.factors]
    if factors:
        for a, b in combinations(times, 2):
            yield from (abs(a - b) / factor for factor in factors)
