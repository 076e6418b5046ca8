"""`python -m opsleuth.scenarios generate SET_DIR --per 5 --seed 1`: write a set of generated incidents."""

from collections import Counter
from pathlib import Path

import click

from opsleuth.scenarios.generator import KINDS, LEVELS, generate_set


@click.group()
def main() -> None:
    """Worlds with a known cause."""


@main.command()
@click.argument("set_dir", type=click.Path(path_type=Path, file_okay=False))
@click.option("--per", default=5, show_default=True, type=click.IntRange(1), help="Cases per kind and level.")
@click.option("--seed", default=1, show_default=True, help="Another seed gives other cases.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only this kind (may be repeated)."
)
@click.option(
    "--decoys/--no-decoys",
    default=True,
    show_default=True,
    help="Unrelated deploy, loud victim, second alert.",
)
def generate(set_dir: Path, per: int, seed: int, kinds: tuple[str, ...], *, decoys: bool) -> None:
    """Write cases of all kinds at all levels below SET_DIR, with answers.json beside them."""
    keys = generate_set(set_dir, per=per, seed=seed, kinds=kinds or KINDS, decoys=decoys)
    verdicts = Counter(key["verdict"] for key in keys.values())
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    click.echo(f"{len(keys)} cases at {len(LEVELS)} levels in {set_dir}: {counts}")


if __name__ == "__main__":
    main()
