"""True claims and what becomes of them when they are made false: how much of a planner's words code lets stand.

    python benchmarks/mutations.py CASES [CASE…] [--claims FILE] [--keep FOLDER] [--written-from FOLDER]

Each CASE (a folder under CASES) is investigated offline; its evidence is what the claims are held against. Half of
the true claims are made by program, as paraphrases of single facts in other wordings, precisions, units and zones. FILE
adds claims that somebody wrote after reading the evidence, one JSON object a line: case, text, evidence. Where what they
cite has changed since, so that they quote what is not there, they are counted as stale and measure nothing.

Prints for the true ones how many are refused and how many of those with a figure or time stand as measured or computed,
and for each of 13 mutations: to how many claims it applied, how many still stand as measured or computed, how many
of these rest on other facts than the true claim did, and how many say the false thing in the sentence that is shown.
"""

import argparse
import contextlib
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from claim_mutations import MUTATIONS, Mutant
from stale_claims import cite_again, find_stale_parts
from true_claims import TrueClaim, make_true_claims, make_true_reasons

from opsleuth.checkpoints.store import Store
from opsleuth.cli import main as run_command
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import SystemClock
from opsleuth.state.conclusion import Claim
from opsleuth.state.investigation import Window
from opsleuth.verification.claim_resolution import resolve_claim
from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView
from opsleuth.verification.quantities import TimeToken, find_quantities, scan_tokens

SEED = 20_261_130


def investigate_case(folder: Path, home: Path) -> ConclusionBasis:
    """What the offline investigator saw of a case, as a basis for claims."""
    place = home / f"{folder.name}.db"
    if not place.exists():
        _run_quietly(["--db", str(place), "--json", "run", "--case", str(folder), "--planner", "offline"])
    with Store.open(place, SystemClock(), Redactor()) as store:
        run = next(iter(store.runs.list())).id
        report = store.reports.get(run) or {}
        views = {
            o.evidence: EvidenceView(
                o.evidence, o.tool, o.tool, ResultStatus(o.status), o.record, asked=o.arguments
            )
            for o in store.observations.list(run, 200)
            if o.has_own_evidence
        }
    window = Window(start=report["window"]["start"], end=report["window"]["end"])
    known = {h["service"] for h in report["hypotheses"] if h["service"]}
    return ConclusionBasis(views, window, tuple(known), given=str(report.get("question") or ""))


def _run_quietly(argv: Sequence[str]) -> None:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))  # the command sets their encoding
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run_command(list(argv))
        except SystemExit:
            return


def _drop_stale_claims(
    claims: Sequence[TrueClaim], bases: dict[str, ConclusionBasis], written: dict[str, ConclusionBasis]
) -> Iterator[TrueClaim]:
    """The claims that may be measured; how many others there are is printed, and each with what it lacks."""
    stale = 0
    for true in claims:
        basis, before = bases[true.case], written.get(true.case)
        evidence = cite_again(true.claim.evidence, before, basis) if before else true.claim.evidence
        lacking = [] if true.made else find_stale_parts(true.claim.text, evidence, basis, before)
        if not lacking:
            claim = true.claim if true.made else true.claim.model_copy(update={"evidence": tuple(evidence)})
            yield true._replace(claim=claim)
            continue
        stale += 1
        sys.stderr.write(f"stale: {true.case}: {true.claim.text}\n   not in {list(evidence)}: {lacking}\n")
    print(f"stale claims, left out: {stale}")


def measure_true_claims(claims: Sequence[TrueClaim], bases: dict[str, ConclusionBasis]) -> list[TrueClaim]:
    """Print how the true claims fare; back come those that stand as measured or computed."""
    outcomes: Counter[tuple[bool, str]] = Counter()
    with_figures: Counter[bool] = Counter()
    standing = []
    for true in claims:
        made, problems = resolve_claim(true.claim, bases[true.case])
        basis = "refused" if problems else made.basis
        outcomes[true.made, basis] += 1
        stated = bool(find_quantities(true.claim.text, words=True)) or any(isinstance(t, TimeToken) for t in scan_tokens(true.claim.text))  # fmt: skip
        with_figures[stated and basis in ("measured", "computed")] += stated
        if basis in ("measured", "computed"):
            standing.append(true)
        if problems:
            sys.stderr.write(f"refused: {true.case}: {true.claim.text}\n   {problems[0].text}\n")
    for by_program in (True, False):
        row = {basis: n for (made, basis), n in sorted(outcomes.items()) if made is by_program}
        print(
            f"true claims {'by construction' if by_program else 'written after reading'}: {sum(row.values())} {row}"
        )
    total = sum(with_figures.values())
    refused = sum(n for (_, basis), n in outcomes.items() if basis == "refused")
    print(f"true ones refused: {refused} of {len(claims)} ({100 * refused / max(len(claims), 1):.1f} %)")
    print(f"with a figure or time, measured or computed: {with_figures[True]} of {total} ({100 * with_figures[True] / max(total, 1):.1f} %)")  # fmt: skip
    return standing


def measure_mutations(claims: Sequence[TrueClaim], bases: dict[str, ConclusionBasis]) -> None:
    """Print the table of mutations."""
    print(f"{'mutation':<18} applicable  standing  on other facts  also true  and false")
    for name, mutation in MUTATIONS.items():
        chance = random.Random(SEED)
        rows: Counter[str] = Counter()
        for true in claims:
            mutant = mutation(true, bases[true.case], chance)
            if mutant is None:
                continue
            rows["applicable"] += 1
            made, problems = resolve_claim(mutant.claim, bases[true.case])
            if problems or made.basis == "inferred":
                continue
            rows["standing"] += 1
            before, _ = resolve_claim(true.claim, bases[true.case])
            other = not set(made.facts) <= set(before.facts)
            rows["other"] += other
            also_true = name == "service within" and _is_also_true(made, before, bases[true.case])
            rows["also true"] += also_true
            false = not also_true and _says_false_thing(made.text, before.text, mutant, name)
            rows["false"] += false
            if false or other:
                sys.stderr.write(
                    f"{name}: {true.claim.text}\n  mutant: {mutant.claim.text}\n  shown:  {made.text}\n"
                )
        print(
            f"{name:<18} {rows['applicable']:>10} {rows['standing']:>9} {rows['other']:>15} {rows['also true']:>10} {rows['false']:>10}"
        )


def measure_reasons(claims: Sequence[TrueClaim], bases: dict[str, ConclusionBasis]) -> None:
    """Print what becomes of inferred sentences (`say`) and their mutants: refused, or shown under the label inferred."""
    refused = sum(bool(resolve_claim(true.claim, bases[true.case])[1]) for true in claims)
    print(f"\nsay: {len(claims)} true ones, {refused} refused")
    print(f"{'mutation':<18} applicable   refused  inferred  measured or computed")
    for name, mutation in MUTATIONS.items():
        chance = random.Random(SEED)
        rows: Counter[str] = Counter()
        for true in claims:
            prose = true._replace(claim=Claim(id="C1", text=true.claim.say, evidence=_evidence_of(true)))
            mutant = mutation(prose, bases[true.case], chance)
            if mutant is None or not mutant.claim.text:
                continue
            submitted = true.claim.model_copy(update={"say": mutant.claim.text})
            made, problems = resolve_claim(submitted, bases[true.case])
            rows["refused" if problems else made.basis] += 1
        total = sum(rows.values())
        solid = rows["measured"] + rows["computed"]
        print(f"{name:<18} {total:>10} {rows['refused']:>9} {rows['inferred']:>9} {solid:>21}")


def _evidence_of(true: TrueClaim) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_.partition(".")[0] for id_ in true.claim.facts))


def _is_also_true(made: Claim, before: Claim, basis: ConclusionBasis) -> bool:
    """Whether the mutant happens to be true: what it says of another service has the same measure and figure there."""
    shown = {(f.measure, f.value, f.before) for id_ in made.facts if (f := basis.find_fact(id_))}
    true = {(f.measure, f.value, f.before) for id_ in before.facts if (f := basis.find_fact(id_))}
    return bool(shown) and shown <= true


def _says_false_thing(shown: str, true_shown: str, mutant: Mutant, name: str) -> bool:
    """Whether the sentence that is shown holds the false words, and not because the true one had them too."""
    if name == "cause and effect":
        return True
    return bool(mutant.false) and mutant.false in shown and mutant.false not in true_shown


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--claims", type=Path)
    parser.add_argument(
        "--keep", type=Path, help="a folder whose investigations are used, and where new ones stay"
    )
    parser.add_argument("--written-from", type=Path, help="the investigations kept when FILE was written")
    options = parser.parse_args()
    written = [json.loads(line) for line in options.claims.read_text().splitlines()] if options.claims else []
    names = list(dict.fromkeys([*options.cases, *(row["case"] for row in written)]))
    chance = random.Random(SEED)
    with contextlib.ExitStack() as stack:
        home = options.keep or stack.enter_context(TemporaryDirectory())
        bases = {name: investigate_case(options.root / name, Path(home)) for name in names}
        before = {n: investigate_case(options.root / n, options.written_from) for n in names} if options.written_from else {}  # fmt: skip
    claims = [true for name in names for true in make_true_claims(name, bases[name], chance)]
    claims += [
        TrueClaim(row["case"], Claim(id="C1", text=row["text"], evidence=tuple(row["evidence"])), made=False)
        for row in written
    ]
    claims = list(_drop_stale_claims(claims, bases, before))
    measure_mutations(measure_true_claims(claims, bases), bases)
    measure_reasons([true for name in names for true in make_true_reasons(name, bases[name])], bases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
