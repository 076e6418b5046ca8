"""Whether cited evidence holds what a text says: each number, time and name, as written or recomputed.

A number is *found* if the evidence holds a figure that rounds to it, in any unit of the same kind. Otherwise it
may be *derived*: difference, ratio, percent change, share, sum, mean or duration of figures that belong together
(stated in the text itself; of an object that the text names; of one object; of one column). With many figures
some pair fits any number, so a derived value counts only if the chance of such a fit is below `CHANCE`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice

from opsleuth.analysis.figures import Facts, Figure, Instant, between
from opsleuth.analysis.moments import Moment, agrees, placed
from opsleuth.analysis.quantities import Quantity

CHANCE = 0.15
MAX_PAIR_FIGURES = 60
MAX_FIGURES = 400
MAX_INSTANTS = 40
MAX_VALUES = 40_000


@dataclass(frozen=True)
class Ground:
    """What a text may rest on.

    The facts of its evidence, the incident window (seconds since the epoch), and what the text itself names
    (casefolded), says (words in lower case) and states; `computed` are those of the stated numbers that were already derived.
    """

    facts: Sequence[Facts]
    start: float
    end: float
    names: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    stated: Sequence[Quantity] = ()
    computed: Sequence[Quantity] = ()
    moments: Sequence[Moment] = field(default=())


def ungrounded(ground: Ground) -> list[Quantity]:
    """Which of the stated numbers the ground neither holds nor gives; one may be derived from another."""
    failed = [q for q in ground.stated if not found(q, ground)]
    computed = [q for q in failed if derived(q, ground)]
    if not computed:
        return failed
    wider = replace(ground, computed=computed)
    return [q for q in failed if q not in computed and not derived(q, wider)]


def holds_moment(moment: Moment, ground: Ground) -> bool:
    """Whether the evidence holds a time that may be written as `moment`."""
    return any(
        any(agrees(moment, instant.seconds) for instant in facts.instants)
        or any(_same_clock(moment, clock) for clock in facts.clocks)
        for facts in ground.facts
    )


def _same_clock(moment: Moment, clock: Moment) -> bool:
    return abs(moment.seconds - clock.seconds) % 86_400 < max(moment.grain, clock.grain) * 0.999


def found(quantity: Quantity, ground: Ground) -> bool:
    """Whether some figure of the evidence can be written as `quantity`."""
    if any(_found_in(quantity, facts) for facts in ground.facts):
        return True
    length = ground.end - ground.start
    return any(
        unit.dimension == "time" and _fits(quantity, length / factor)
        for unit in quantity.units
        for factor in unit.factors
    )


def _found_in(quantity: Quantity, facts: Facts) -> bool:
    low, high = quantity.low, quantity.high
    for unit in quantity.units:
        for factor in unit.factors:
            based = facts.based.get(unit.dimension, ())
            if between(based, low * factor, high * factor) is not None:
                return True
            if unit.dimension == "count":
                if _found_bare(quantity, facts, factor):
                    return True
            elif _found_unitless(facts, low, high, factor):
                return True
    return False


def _found_bare(quantity: Quantity, facts: Facts, factor: float) -> bool:
    low, high = quantity.low * factor, quantity.high * factor
    if (
        between(facts.raws, low, high) is not None
        or between(facts.raws, quantity.low, quantity.high) is not None
    ):
        return True
    if between(facts.based.get("share", ()), low, high) is not None:
        return True
    if factor == 1.0 and any(low <= size <= high for size in facts.sizes):
        return True
    digits = quantity.text.replace(",", "")
    return len(digits) >= 4 and digits.isdigit() and _verbatim(digits, facts.text)


def _found_unitless(facts: Facts, low: float, high: float, factor: float) -> bool:
    as_written = between(facts.unitless, low, high)
    return as_written is not None or between(facts.unitless, low * factor, high * factor) is not None


def _verbatim(digits: str, text: str) -> bool:
    """Whether four digits or more stand in the text on their own (a port, an id), not within a longer number."""
    start = text.find(digits)
    while start >= 0:
        around = text[start - 1 : start] + text[start + len(digits) : start + len(digits) + 1]
        if not any(c.isalnum() or c == "." for c in around):
            return True
        start = text.find(digits, start + 1)
    return False


def derived(quantity: Quantity, ground: Ground) -> bool:
    """Whether code can recompute `quantity` from figures that belong together, and not by chance."""
    if quantity.value == 0:
        return False
    if _any_fits(quantity, _from_stated(quantity, ground)):
        return True
    return any(
        _fits_by_law(quantity, tier(quantity, ground))
        for tier in (_from_spoken, _from_totals, _from_named, _from_all)
    )


def _any_fits(quantity: Quantity, values: Iterable[float]) -> bool:
    return any(_fits(quantity, value) for value in islice(values, MAX_VALUES))


def _fits_by_law(quantity: Quantity, values: Iterable[float]) -> bool:
    """Whether a value fits, where so few lie in the octaves around that this is no accident."""
    near = {
        float(f"{v:.6g}") for v in islice(values, MAX_VALUES) if quantity.value / 2 <= v <= quantity.value * 2
    }
    if not any(_fits(quantity, value) for value in near):
        return False
    width = (quantity.high - quantity.low) / (1.5 * quantity.value)
    return len(near) * width <= CHANCE


def _fits(quantity: Quantity, value: float) -> bool:
    slack = abs(quantity.value) * 1e-9 + 1e-15
    return quantity.low - slack <= value <= quantity.high + slack


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
            if base not in seen and _stands_for(quantity, figure):
                seen.add(base)
                yield figure


def _stands_for(quantity: Quantity, figure: Figure) -> bool:
    if _fits(quantity, abs(figure.raw)) and (not figure.units or quantity.bare):
        return True
    own = {unit.dimension for unit in figure.units}
    return any(
        (not own or unit.dimension in own) and _fits(quantity, _base(figure) / factor)
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
    times = sorted({instant.seconds for instant in instants})
    half = MAX_INSTANTS // 2
    ends = [*times[:half], *times[-half:]] if len(times) > MAX_INSTANTS else times
    yield from _durations(quantity, [*ends, ground.start, ground.end])


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
