"""`python -m opsleuth.scenarios generate SET_DIR --per 5 --seed 1`: write a set of generated incidents."""

from collections import Counter
from pathlib import Path

import click

from opsleuth.scenarios.cluster.faults import CLUSTER_FAULTS
from opsleuth.scenarios.cluster.worlds import ABLATIONS, WORLD_ROLES, generate_world_set
from opsleuth.scenarios.generator import KINDS, LEVELS, generate_incident_set


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
    keys = generate_incident_set(set_dir, per=per, seed=seed, kinds=kinds or KINDS, decoys=decoys)
    verdicts = Counter(key["verdict"] for key in keys.values())
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    click.echo(f"{len(keys)} cases at {len(LEVELS)} levels in {set_dir}: {counts}")


@main.command("cluster")
@click.argument("set_dir", type=click.Path(path_type=Path, file_okay=False))
@click.option("--per", default=1, show_default=True, type=click.IntRange(1), help="Worlds per kind and role.")
@click.option("--seed", default=1, show_default=True, help="Another seed gives other worlds.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    type=click.Choice(tuple(CLUSTER_FAULTS)),
    help="Only this fault kind (may be repeated).",
)
@click.option(
    "--role", "roles", multiple=True, type=click.Choice(WORLD_ROLES), help="Only this role (may be repeated)."
)
@click.option(
    "--without", multiple=True, type=click.Choice(ABLATIONS), help="Leave a source out (may be repeated)."
)
def generate_cluster(
    set_dir: Path,
    per: int,
    seed: int,
    kinds: tuple[str, ...],
    roles: tuple[str, ...],
    without: tuple[str, ...],
) -> None:
    """Write Kubernetes worlds below SET_DIR, with answers.json beside them."""
    keys = generate_world_set(
        set_dir,
        kinds=kinds or tuple(CLUSTER_FAULTS),
        roles=roles or WORLD_ROLES,
        per=per,
        seed=seed,
        without=without,
    )
    counts = Counter(key["source_label"]["role"] for key in keys.values())
    click.echo(f"{len(keys)} worlds in {set_dir}: " + ", ".join(f"{n} {role}" for role, n in counts.items()))


if __name__ == "__main__":
    main()
