"""`eval`: sets of cases, run and scored."""

from pathlib import Path

import click

from opsleuth.console.options import Group, given


@click.group("eval", cls=Group)
def evaluation() -> None:
    """Run sets of cases and score them."""


@evaluation.command("run")
@click.argument("source", metavar="SET", type=click.Path(path_type=Path))
@click.option(
    "--key", type=click.Path(path_type=Path), metavar="FILE", help="The key (default: SET/answers.json)."
)
@click.option(
    "--repeat", type=click.IntRange(1, 100), default=1, show_default=True, help="Times that each case is run."
)
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes, 1 to 64.")
@click.option("--only", multiple=True, metavar="PATTERN", help="Only cases with such an id: 'builtin-1*'.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The results; an existing file is gone on with. The runs are kept beside it.",
)
def eval_run(
    source: Path, key: Path | None, repeat: int, jobs: int, only: tuple[str, ...], output: Path | None
) -> int:
    """Investigate every case of a set and hold the reports against its key.

    SET is a folder of cases, a .toml or .jsonl file of tasks, or builtin: incidents that are generated.
    --record and --replay name a folder here: one recording for each case.
    """
    from opsleuth.console.run_settings import wanted
    from opsleuth.evals import command

    options = given()
    planner = options.planner or "offline"
    request = command.EvalRequest(
        folder=source,
        key=key,
        planner=planner,
        jobs=jobs,
        output=output,
        repeat=repeat,
        limits=options.limits,
        model=None if planner == "offline" else wanted(options),
        record=options.record,
        replay=options.replay,
        only=only,
    )
    return command.run(request, as_json=options.json)


@evaluation.command("compare")
@click.argument("a", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("b", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--gate",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="How much worse B may be, as TOML; exit code 15 beyond it.",
)
def eval_compare(a: Path, b: Path, gate: Path | None) -> int:
    """Hold results B against results A of the same cases."""
    from opsleuth.evals import command

    return command.comparison(a, b, gate, as_json=given().json)


@evaluation.command("misses")
@click.argument("results", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@click.option("--runs", is_flag=True, help="Of the stored runs instead of an evaluation's results.")
@click.option("--since", metavar="T", help="Only runs that were started since then: now-30d.")
def eval_misses(results: Path | None, since: str | None, *, runs: bool) -> int:
    """What went wrong in RESULTS, by why and with the step; with --runs, what failed in stored runs."""
    from opsleuth.console.output import moment
    from opsleuth.evals import command

    options = given()
    if runs == (results is not None):
        raise click.UsageError("give the results of an evaluation, or --runs for the stored runs")
    if results is not None:
        return command.misses(results, as_json=options.json)
    after = moment(since, "--since")
    return command.run_failures(options.database, after, as_json=options.json)


@evaluation.command("add")
@click.argument("run_id", metavar="RUN")
@click.option("--expect", required=True, metavar="JSON", help="The right answer, as an entry of a key.")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("cases"),
    show_default=True,
    metavar="SET",
    help="The folder of cases that it joins.",
)
@click.option("--name", metavar="ID", help="What the case is called (default: the run's id).")
def eval_add(run_id: str, expect: str, folder: Path, name: str | None) -> int:
    """Make a case of a stored run: what it looked at, redacted, and what it should have said."""
    from opsleuth.evals import command

    return command.add(given().database, run_id, expect, folder, name)


COMMANDS: tuple[click.Command, ...] = (evaluation,)
