"""The commands of the live lab: `lab up`, `lab fault`, `lab heal`, `lab status`, `lab down`."""

from pathlib import Path

import click

from opsleuth.console.options import Group, given

_FOLDER = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The lab's folder, and no other; else ./opsleuth-lab, or the one we are in.",
)


@click.group(cls=Group, help="A small shop of real processes on this machine, to break and to investigate.")
def lab() -> None:
    pass


@lab.command("up")
@_FOLDER
@click.option(
    "--orders",
    type=click.IntRange(1_000, 5_000_000),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Rows.",
)
@click.option(
    "--for",
    "duration",
    default="1h",
    show_default=True,
    metavar="D",
    help="When it ends by itself, such as 20m.",
)
@click.option("--detach", is_flag=True, help="Go on when the shell that starts it has ended.")
def up(folder: Path | None, orders: int, duration: str, *, detach: bool) -> int:
    """Start PostgreSQL, the services, Prometheus, Alertmanager and customers, and write a configuration for them."""
    from opsleuth.console import lab

    return lab.up(folder, orders, duration, detach=detach)


@lab.command("fault")
@click.argument("name", metavar="NAME")
@_FOLDER
@click.option(
    "--after",
    type=click.FloatRange(0, 600),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Seconds of normal running before it, to compare with.",
)
def fault(name: str, folder: Path | None, after: float) -> int:
    """Break the shop, and wait for the alert. NAME: release, index, lock, pool, slow, config or errors."""
    from opsleuth.console import lab

    return lab.fault(given(), folder, name, after)


@lab.command("heal")
@_FOLDER
def heal(folder: Path | None) -> int:
    """Undo the fault, and wait until all is well."""
    from opsleuth.console import lab

    return lab.heal(folder)


@lab.command("status")
@_FOLDER
def status(folder: Path | None) -> int:
    """What runs where, and how the shop is."""
    from opsleuth.console import lab

    return lab.status(given(), folder)


@lab.command("down")
@_FOLDER
def down(folder: Path | None) -> int:
    """End every process of the lab."""
    from opsleuth.console import lab

    return lab.down(folder)


COMMANDS: tuple[click.Command, ...] = (lab,)
