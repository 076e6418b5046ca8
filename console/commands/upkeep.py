"""The commands about what is kept, and those that help at the shell: `watch`, `note`, `prune`, `export`, `import`, `completion`."""

import sys
from datetime import timedelta
from pathlib import Path

import click

from opsleuth.console.options import Command, Duration, Group, given

COMPLETE = "_OPSLEUTH_COMPLETE"
"""The variable by which a shell asks for completions."""


@click.command(cls=Command, help="Follow a run that another process works on, as it would be shown there.")
@click.argument("run_id", metavar="RUN", default="-")
def watch(run_id: str) -> int:
    from opsleuth.console import watch

    return watch.watch(given(), run_id)


@click.command(cls=Command, help="Tell the planner of a run something; - reads it from stdin.")
@click.argument("run_id", metavar="RUN")
@click.argument("text", metavar="TEXT|-")
def note(run_id: str, text: str) -> int:
    from opsleuth.console import upkeep

    return upkeep.note(given(), run_id, text)


@click.command(
    cls=Command, help="Remove runs that were last changed so long ago, with all that is stored of them."
)
@click.option(
    "--older-than", type=Duration(), default="30d", show_default=True, metavar="D", help="Their age."
)
@click.option("--dry-run", is_flag=True, help="Only say which.")
def prune(older_than: timedelta, *, dry_run: bool) -> int:
    from opsleuth.console import upkeep

    return upkeep.prune(given(), older_than, dry_run=dry_run)


@click.command(cls=Command, help="Write a run, with the runs it was forked from, into one file.")
@click.argument("run_id", metavar="RUN")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE"
)
@click.option(
    "--with-evidence", is_flag=True, help="With the stored evidence, so that the run can go on there."
)
def export(run_id: str, output: Path, *, with_evidence: bool) -> int:
    from opsleuth.console import upkeep

    return upkeep.export(given(), run_id, output, with_evidence=with_evidence)


@click.command("import", cls=Command, help="Read a run that was exported.")
@click.argument("source", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def take_in(source: Path) -> int:
    from opsleuth.console import upkeep

    return upkeep.take_in(given(), source)


@click.command(
    cls=Command,
    help='Print what completes commands at the shell.\n\nFor its start-up file: eval "$(opsleuth completion bash)"',
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    program = click.get_current_context().find_root().command
    sys.stdout.write(made(program, {}, "opsleuth", COMPLETE).source() + "\n")
    return 0


@click.group("config", cls=Group)
def config() -> None:
    """What is configured."""


@config.command("show")
@click.option("--origin", is_flag=True, help="Every option, and where its value comes from.")
def config_show(*, origin: bool) -> int:
    """What holds for this invocation: options, files, sources."""
    from opsleuth.console import config_show

    return config_show.show(given(), origin=origin)


COMMANDS: tuple[click.Command, ...] = (watch, note, prune, export, take_in, config, completion)
