"""Written claims whose evidence has changed since: they cite what the runs of today do not hold.

The check under test has no say in it: only the ids, times and figures of a sentence are looked up, as text, in the
records that it cites. A single digit is never looked up, nor what people compute (`6.3 times as`, `2 minutes before`,
`46 % more`): a true claim that the check refuses must not pass for a stale one.
"""

import json
import re
from collections.abc import Iterator, Sequence

from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView

_TIME = re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?(?=(?:\.\d+)?Z)")
_FIGURE = re.compile(r"(?<![\w.:/-])\d[\d,]*(?:\.\d+)?(?![\w:/-]|\.\d)")
_COMPUTED = re.compile(
    r"^ ?(?:times as|x\b|min|s\b|hours?\b|seconds?\b|minutes?\b|% (?:more|less|of all)|(?:more|less|fewer|earlier|later)\b)"
)
_LEAST_DIGITS = 3
_SCALES = (1.0, 100.0, 1000.0, 0.001)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def cite_again(evidence: Sequence[str], written: ConclusionBasis, basis: ConclusionBasis) -> list[str]:
    """The ids that the results of the same calls have in `basis`, or the call where it was not made again."""
    now = {_describe_call(view): id_ for id_, view in basis.evidence.items()}
    calls = {id_: _describe_call(view) for id_, view in written.evidence.items()}
    return [now.get(calls[id_], calls[id_]) if id_ in calls else id_ for id_ in evidence]


def _describe_call(view: EvidenceView) -> str:
    asked = {name: value for name, value in view.asked.items() if value not in ("", None, False)}
    return f"{view.tool} {json.dumps(asked, sort_keys=True)}"


def find_stale_parts(
    text: str, evidence: Sequence[str], basis: ConclusionBasis, written: ConclusionBasis | None = None
) -> list[str]:
    """The ids that the run does not have, and the times and figures of the sentence that stand in no cited record.

    Of records that have changed since the investigation that it was `written` from, shorter figures are looked up too.
    """
    if missing := [id_ for id_ in evidence if id_ not in basis.evidence]:
        return missing
    records = [basis.evidence[id_].record for id_ in evidence]
    before = [view.record for view in written.evidence.values()] if written else records
    least = _LEAST_DIGITS if all(record in before for record in records) else 2
    shown = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    asked = "\n".join(json.dumps(dict(basis.evidence[id_].asked)) for id_ in evidence)
    held = f"{shown}\n{asked}\n{basis.given}"
    values = [abs(float(match[0])) for match in _NUMBER.finditer(held)]
    edges = f"{basis.window.start.isoformat()} {basis.window.end.isoformat()}"
    times = [t for t in _TIME.findall(text) if t not in held and t not in edges]
    return [*times, *(figure for figure in _list_figures(text, least) if not _is_among(figure, values))]


def _list_figures(text: str, least: int) -> Iterator[str]:
    """The figures of `least` digits and more that a sentence quotes."""
    for match in _FIGURE.finditer(_TIME.sub(" ", text)):
        digits = match[0].replace(",", "").replace(".", "").lstrip("0")
        if len(digits) >= least and not _COMPUTED.match(match.string[match.end() :]):
            yield match[0].strip(",")


def _is_among(figure: str, values: Sequence[float]) -> bool:
    """Whether a value rounds to the figure as it is written, in its own unit, in per cent or a thousandth of it."""
    said = float(figure.replace(",", ""))
    half = 0.5 * 10.0 ** -len(figure.partition(".")[2])
    return any(abs(scale * value - said) <= half * 1.001 for value in values for scale in _SCALES)
