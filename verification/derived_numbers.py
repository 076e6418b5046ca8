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

from opsleuth.verification.grounding import EvidenceGround, fits_quantity, holds_number
from opsleuth.verification.quantities import Quantity
from opsleuth.verification.record_facts import RecordFacts, RecordFigure, RecordInstant
from opsleuth.verification.written_times import resolve_written_time

# The wider the choice, the less a fit says: the last resort, any figures of the evidence, is held tightest.
CHANCE = 0.15
CHANCE_OF_ANY = 0.05
MAX_PAIR_FIGURES = 60
MAX_FIGURES = 400
MAX_INSTANTS = 40
MAX_VALUES = 40_000


def find_ungrounded_numbers(ground: EvidenceGround) -> list[Quantity]:
    """Which of the stated numbers the ground neither holds nor gives; one may be derived from another."""
    failed = [q for q in ground.stated if not holds_number(q, ground)]
    computed = [q for q in failed if is_derivable_number(q, ground)]
    if not computed:
        return failed
    wider = replace(ground, computed=computed)
    return [q for q in failed if q not in computed and not is_derivable_number(q, wider)]


def is_derivable_number(quantity: Quantity, ground: EvidenceGround) -> bool:
    """Whether code can recompute `quantity` from figures that belong together, and not by chance."""
    if quantity.value == 0:
        return False
    if _any_fits(quantity, _values_from_stated(quantity, ground)):
        return True
    named = (_values_from_spoken_keys, _values_from_totals, _values_from_times, _values_from_named_objects)
    if any(_fits_beyond_chance(quantity, tier(quantity, ground), CHANCE) for tier in named):
        return True
    return _fits_beyond_chance(quantity, _values_from_all(quantity, ground), CHANCE_OF_ANY)


def _any_fits(quantity: Quantity, values: Iterable[float]) -> bool:
    return any(fits_quantity(quantity, value) for value in islice(values, MAX_VALUES))


def _fits_beyond_chance(quantity: Quantity, values: Iterable[float], chance: float) -> bool:
    """Whether a value fits, where so few lie in the octaves around that this is no accident."""
    near = {
        float(f"{v:.6g}") for v in islice(values, MAX_VALUES) if quantity.value / 2 <= v <= quantity.value * 2
    }
    if not any(fits_quantity(quantity, value) for value in near):
        return False
    width = (quantity.high - quantity.low) / (1.5 * quantity.value)
    return len(near) * width <= chance


def _values_from_stated(quantity: Quantity, ground: EvidenceGround) -> Iterator[float]:
    """From the numbers and times that the text itself states, where the evidence holds them."""
    figures: list[RecordFigure] = []
    for other in ground.stated:
        if other is not quantity and (other in ground.computed or holds_number(other, ground)):
            figures += [
                *islice(_find_matching_figures(other, ground), 3),
                RecordFigure(other.value, other.units, "", 0),
            ]
    yield from _derive_from_pairs(quantity, figures[:24])
    yield from _sum_figures(quantity, figures[:24])
    times = [resolve_written_time(m, ground.start) for m in ground.moments][:12]
    yield from _derive_durations(quantity, [*times, ground.start, ground.end])


def _sum_figures(quantity: Quantity, figures: Sequence[RecordFigure]) -> Iterator[float]:
    """Sums of two stated figures of one kind, and of all of that kind."""
    for unit in quantity.units:
        alike = [_value_in_base_unit(f) for f in figures if _figure_dimension(f) in (unit.dimension, None)]
        for factor in unit.factors:
            yield from ((a + b) / factor for a, b in combinations(alike, 2))
            yield sum(alike) / factor


def _find_matching_figures(quantity: Quantity, ground: EvidenceGround) -> Iterator[RecordFigure]:
    """The figures, distinct in value, that `quantity` may stand for, in base units."""
    seen: set[float] = set()
    for facts in ground.facts:
        for figure in facts.figures:
            base = _value_in_base_unit(figure)
            if base not in seen and stands_for(quantity, figure):
                seen.add(base)
                yield figure


def stands_for(quantity: Quantity, figure: RecordFigure) -> bool:
    if fits_quantity(quantity, abs(figure.raw)) and (not figure.units or quantity.bare):
        return True
    own = {unit.dimension for unit in figure.units}
    return any(
        (not own or unit.dimension in own) and fits_quantity(quantity, _value_in_base_unit(figure) / factor)
        for unit in quantity.units
        for factor in unit.factors
    )


def _values_from_spoken_keys(quantity: Quantity, ground: EvidenceGround) -> Iterator[float]:
    """Sum, mean and length of the columns whose key the text says (`restarts`, `calls`)."""
    for facts in ground.facts:
        for (_, key), column in _group_into_columns(facts).items():
            if key.lower() in ground.words:
                yield from _derive_aggregates(quantity, column, ())


def _values_from_totals(quantity: Quantity, ground: EvidenceGround) -> Iterator[float]:
    """Sum, mean and length of every list's columns, the sum of each tally, and what a list has beside the named ones."""
    for facts in ground.facts:
        yield from _values_from_columns(quantity, facts, set())
        yield from _sum_tallies(quantity, facts)
        if quantity.bare and ground.words & _REST:
            yield from (
                float(size - n) for size in facts.sizes for n in range(1, max(4, len(ground.names)) + 1)
            )


_REST = frozenset(["other", "others", "more", "further", "remaining", "rest", "additional"])


def _sum_tallies(quantity: Quantity, facts: RecordFacts) -> Iterator[float]:
    """The sums of the objects that hold nothing but two to forty counts (`{"ERROR": 2, "OK": 1}`)."""
    if not quantity.bare:
        return
    tallies: dict[int, list[float]] = defaultdict(list)
    for figure in facts.figures:
        if facts.holders[figure.holder].path is None:
            tallies[figure.holder].append(figure.raw)
    yield from (sum(counts) for counts in tallies.values() if 2 <= len(counts) <= 40)


def _values_from_times(quantity: Quantity, ground: EvidenceGround) -> Iterator[float]:
    """Durations between any two times of the evidence, and to the ends of the window."""
    yield from _derive_durations(
        quantity, _select_interval_ends([i for facts in ground.facts for i in facts.instants], ground)
    )


def _values_from_named_objects(quantity: Quantity, ground: EvidenceGround) -> Iterator[float]:
    """From the objects that the text names, and the figures that stand outside any list."""
    if not ground.names:
        return
    chosen = [
        {i for i, h in enumerate(f.holders) if _label_holds_name(h.label, ground.names)} for f in ground.facts
    ]
    yield from _values_from_objects(quantity, ground, chosen)


def _label_holds_name(label: str, wanted: frozenset[str]) -> bool:
    return any(name in label for name in wanted)


def _values_from_all(quantity: Quantity, ground: EvidenceGround) -> Iterator[float]:
    chosen = [set(range(len(facts.holders))) for facts in ground.facts]
    yield from _values_from_objects(quantity, ground, chosen)


def _values_from_objects(
    quantity: Quantity, ground: EvidenceGround, chosen: Sequence[set[int]]
) -> Iterator[float]:
    """From the chosen objects: pairs in one object or of one key, shares of columns, durations between times."""
    objects: dict[tuple[int, int], list[RecordFigure]] = defaultdict(list)
    columns: dict[str, list[RecordFigure]] = defaultdict(list)
    instants: list[RecordInstant] = []
    for n, (facts, holders) in enumerate(zip(ground.facts, chosen, strict=True)):
        for figure in islice(facts.figures, MAX_FIGURES):
            if figure.holder in holders:
                objects[n, figure.holder].append(figure)
                columns[figure.key].append(figure)
        instants += [instant for instant in facts.instants if instant.holder in holders]
        yield from _values_from_columns(quantity, facts, holders)
    for group in objects.values():
        yield from _derive_from_pairs(quantity, group[:MAX_PAIR_FIGURES])
    for column in columns.values():
        yield from _derive_from_pairs(quantity, _select_column_extremes(column))
    yield from _derive_durations(quantity, _select_interval_ends(instants, ground))


def _select_interval_ends(instants: Sequence[RecordInstant], ground: EvidenceGround) -> list[float]:
    """The times, each once: of very many the first and the last; and the ends of the window."""
    times = sorted({instant.seconds for instant in instants})
    half = MAX_INSTANTS // 2
    kept = [*times[:half], *times[-half:]] if len(times) > MAX_INSTANTS else times
    return [*kept, ground.start, ground.end]


def _values_from_columns(quantity: Quantity, facts: RecordFacts, chosen: set[int]) -> Iterator[float]:
    """Sum, mean and length of each column of the record's lists, and the shares of the chosen rows."""
    for column in _group_into_columns(facts).values():
        yield from _derive_aggregates(quantity, column, [f for f in column if f.holder in chosen])


def _group_into_columns(facts: RecordFacts) -> dict[tuple[str, str], list[RecordFigure]]:
    """The figures of the record's lists by list and key, where there are two or more."""
    columns: dict[tuple[str, str], list[RecordFigure]] = defaultdict(list)
    for figure in facts.figures:
        path = facts.holders[figure.holder].path
        if path is not None:
            columns[path, figure.key].append(figure)
    return {place: column for place, column in columns.items() if len(column) > 1}


def _select_column_extremes(column: Sequence[RecordFigure]) -> Sequence[RecordFigure]:
    """A short column whole; of a long one the first, last, least and greatest."""
    if len(column) <= 12:
        return column
    return [column[0], column[-1], min(column), max(column)]


def _value_in_base_unit(figure: RecordFigure) -> float:
    return abs(figure.raw) * (figure.units[0].factors[0] if figure.units else 1.0)


def _figure_dimension(figure: RecordFigure) -> str | None:
    return figure.units[0].dimension if figure.units else None


def _derive_from_pairs(quantity: Quantity, figures: Sequence[RecordFigure]) -> Iterator[float]:
    """What two figures of one kind give: in the written unit of `quantity`."""
    for a, b in combinations(figures, 2):
        kind = _figure_dimension(a)
        if kind == _figure_dimension(b):
            yield from _derive_from_two(quantity, _value_in_base_unit(a), _value_in_base_unit(b), kind)


def _derive_from_two(quantity: Quantity, a: float, b: float, kind: str | None) -> Iterator[float]:
    small, large = sorted((a, b))
    for unit in quantity.units:
        if unit.dimension == "share" and small > 0:
            yield from _derive_percentages(small, large)
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


def _derive_percentages(small: float, large: float) -> Iterator[float]:
    yield 100 * small / large
    yield 100 * (large - small) / large
    if large < 100 * small:
        yield 100 * (large - small) / small


def _derive_aggregates(
    quantity: Quantity, column: Sequence[RecordFigure], chosen: Sequence[RecordFigure]
) -> Iterator[float]:
    kind = _figure_dimension(column[0])
    values = [_value_in_base_unit(f) for f in column if _figure_dimension(f) == kind]
    total = sum(values)
    for unit in quantity.units:
        if unit.dimension in ("count", "ratio"):
            yield float(len(values))
        if unit.dimension == kind or kind is None or unit.dimension in ("count", "ratio"):
            yield from chain.from_iterable((total / f, total / len(values) / f) for f in unit.factors)
        if unit.dimension == "share" and total > 0:
            yield from (
                100 * _value_in_base_unit(f) / total
                for f in chosen[:MAX_PAIR_FIGURES]
                if _figure_dimension(f) == kind
            )


def _derive_durations(quantity: Quantity, times: Sequence[float]) -> Iterator[float]:
    factors = [f for unit in quantity.units if unit.dimension == "time" for f in unit.factors]
    if factors:
        for a, b in combinations(times, 2):
            yield from (abs(a - b) / factor for factor in factors)
