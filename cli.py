"""The command line: parse, call, exit code. No logic, and nothing heavy is imported before it is needed.

`run`, `demo` and `resume` investigate; `list`, `show`, `log`, `evidence` and `report` read what is stored;
`step`, `state`, `fork` and `diff` look into a run's past and make branches of it;
`init`, `doctor`, `tools` and `trust` are about what can be looked at;
`graph`, `exit-codes` and `version` tell of opsleuth itself; `eval` measures it.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from opsleuth import __version__
from opsleuth.console.commands import branching, deciding, keeping, sourcing
from opsleuth.console.options import Group, given
from opsleuth.state.outcome import ExitCode, Status

RUN = "RUN is a run's id, the beginning of it or of its last part, or - for the newest."


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="opsleuth %(version)s")
def cli() -> None:
    """Investigate incidents: every step is kept, and every claim points at stored evidence."""


@cli.command()
@click.argument("question", required=False)
@click.option(
    "--case", type=click.Path(path_type=Path), metavar="DIR", help="A recorded incident to look into."
)
@click.option(
    "--alert", type=click.File(encoding="utf-8"), metavar="FILE|-", help="The alert, as JSON or as text."
)
@click.option("--since", metavar="T", help="Start of the window: 2026-11-29T13:40Z, 13:40Z or now-30m.")
@click.option("--until", metavar="T", help="End of the window (default: now).")
@click.option("--name", help="A name for the run, for you to recognise it.")
@click.option(
    "--pause-at",
    type=click.Choice(["approve", "act", "observe", "verify"]),
    metavar="NODE",
    help="Stop before NODE for the first time; opsleuth step goes on from there.",
)
def run(
    question: str | None,
    case: Path | None,
    alert: TextIO | None,
    since: str | None,
    until: str | None,
    name: str | None,
    pause_at: str | None,
) -> int:
    """Investigate QUESTION, an alert, or a recorded incident."""
    from opsleuth.console import running

    asked = running.Asked(
        question=question, case=case, since=since, until=until, name=name, pause_at=pause_at
    )
    return running.run(asked, alert, given())


@cli.command()
@click.option(
    "--act", is_flag=True, help="Against a small system that runs: go on to the approval of the fix."
)
def demo(*, act: bool) -> int:
    """Investigate the built-in incident, offline: an orders API that became slow."""
    from opsleuth.console import running

    return running.demo(given(), act=act)


@cli.command()
@click.argument("run_id", metavar="[RUN|-]", required=False)
def resume(run_id: str | None) -> int:
    """Go on with a run from its last node; without RUN you are asked which.

    Limits that are given (--max-turns and the like) are new totals.
    """
    from opsleuth.console import running

    return running.resume(run_id, given())


@cli.command("list")
@click.option(
    "--status",
    type=click.Choice([s.value for s in Status]),
    metavar="STATUS",
    help="Only runs that stand like this, such as waiting or interrupted.",
)
@click.option(
    "--since", metavar="T", help="Only runs that were started since then: now-7d, 2026-11-29T13:40Z."
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=50,
    show_default=True,
    metavar="N",
    help="At most so many.",
)
@click.option("--tree", is_flag=True, help="Forks under the run they were made from.")
def list_runs(status: str | None, since: str | None, limit: int, *, tree: bool) -> int:
    """List runs, newest first."""
    from opsleuth.console import reading

    return reading.runs(given(), status=status, since=since, limit=limit, tree=tree)


@cli.command(
    help=f"How a run stands, what it found and what it did last; at a checkpoint, the state there.\n\n{RUN}"
)
@click.argument("run_id", metavar="RUN[@C]")
@click.option("--full", is_flag=True, help="All lines of the run's course.")
@click.option("--snapshot", is_flag=True, help="What the model was shown there, and what it said.")
def show(run_id: str, *, full: bool, snapshot: bool) -> int:
    if snapshot or "@" in run_id:
        from opsleuth.console import looking

        return looking.show_point(given(), run_id, snapshot=snapshot)
    from opsleuth.console import reading

    return reading.show(given(), run_id, full=full)


@cli.command(help=f"Every event of a run, as it was stored.\n\n{RUN}")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only these, such as tool.completed or tool."
)
@click.option(
    "--after", type=click.IntRange(0, 2**53), default=0, metavar="SEQ", help="Only events after this number."
)
@click.option("--follow", is_flag=True, help="Go on as the run does, to its end.")
@click.option("--verify", is_flag=True, help="Check that no stored event was changed.")
@click.option("--slowest", type=click.IntRange(1), metavar="N", help="The N that took longest.")
@click.option("--costliest", type=click.IntRange(1), metavar="N", help="The N model calls that cost most.")
@click.option("--repeated", is_flag=True, help="Calls that were made again, alike or with other numbers.")
def log(run_id: str, *, follow: bool, verify: bool, repeated: bool, **sifted: Any) -> int:  # noqa: ANN401 - what is asked of the rest
    from opsleuth.console import reading

    if verify:
        return reading.verify(given(), run_id)
    if repeated:
        return reading.repeated(given(), run_id)
    if follow:
        return reading.follow(given(), run_id, types=sifted["types"], after=sifted["after"])
    return reading.log(given(), run_id, **sifted)


@cli.command(help=f"Where a run's time went: every node, model call and tool call on one axis.\n\n{RUN}")
@click.argument("run_id", metavar="RUN", default="-")
@click.option("--otlp", metavar="URL", help="Send it to a collector of OpenTelemetry traces instead.")
@click.option("--content", is_flag=True, help="With --otlp: send what was asked and answered too.")
def trace(run_id: str, otlp: str | None, *, content: bool) -> int:
    from opsleuth.console import reading

    if otlp:
        from opsleuth.console import telemetry

        return telemetry.send(given(), run_id, otlp, content=content)
    return reading.trace(given(), run_id)


@cli.command(help=f"What lies behind a claim: all evidence of a run, or one piece of it.\n\n{RUN}")
@click.argument("run_id", metavar="RUN")
@click.argument("evidence_id", metavar="[E7]", required=False)
@click.option("--raw", is_flag=True, help="The stored bytes alone.")
@click.option("--query", is_flag=True, help="The query alone.")
def evidence(run_id: str, evidence_id: str | None, *, raw: bool, query: bool) -> int:
    from opsleuth.console import reading

    if evidence_id is None:
        return reading.evidence_list(given(), run_id)
    return reading.evidence(given(), run_id, evidence_id, form="raw" if raw else "query" if query else "all")


@cli.command(help=f"What a run found.\n\n{RUN}")
@click.argument("run_id", metavar="RUN", default="-")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "md", "html"]),
    help="Default: text, with --json json.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to a file."
)
@click.option("--full", is_flag=True, help="With all claims, hypotheses and sources.")
def report(run_id: str, form: str | None, output: Path | None, *, full: bool) -> int:
    from opsleuth.console import reading

    return reading.report(given(), run_id, form=form, output=output, full=full)


for command in (*branching.COMMANDS, *deciding.COMMANDS, *keeping.COMMANDS, *sourcing.COMMANDS):
    cli.add_command(command)


@cli.command()
@click.option("--format", "form", type=click.Choice(["ascii", "mermaid"]), default="ascii", show_default=True)
def graph(form: str) -> int:
    """Draw the loop of an investigation."""
    from opsleuth.console import about

    return about.graph(form)


@cli.command("exit-codes")
def exit_codes() -> int:
    """What each exit code means."""
    from opsleuth.console import about

    return about.exit_codes(given())


@cli.command()
def version() -> int:
    """The version of opsleuth and of what it runs on."""
    from opsleuth.console import about

    return about.version(given())


@cli.group("eval", cls=Group)
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
    from opsleuth.console.modeling import wanted
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
    from opsleuth.console import reading
    from opsleuth.evals import command

    options = given()
    if runs == (results is not None):
        raise click.UsageError("give the results of an evaluation, or --runs for the stored runs")
    if results is not None:
        return command.misses(results, as_json=options.json)
    after = reading.moment(since, "--since")
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


@cli.group(cls=Group)
def dev() -> None:
    """Tools for trying and developing opsleuth."""


@dev.command("model-server")
@click.option(
    "--rule",
    type=click.Choice(["investigator", "looper", "obedient", "confabulator"]),
    default="investigator",
    show_default=True,
    help="How it answers.",
)
@click.option(
    "--script",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="Answer by a script instead: a JSON list of entries, the last repeats.",
)
@click.option(
    "--fault", "faults", multiple=True, metavar="NAME[@N]", help="Spoil every answer, or the N-th one."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N", help="Default: a free one.")
def model_server(rule: str, script: Path | None, faults: tuple[str, ...], port: int) -> int:
    """A model server on loopback that answers as it is told to, with every fault there is."""
    from opsleuth.console import developing

    return developing.model_server(rule, script, faults, port)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with one of the documented codes."""
    _open_streams()
    if asked := os.environ.get(keeping.COMPLETE):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(cli, {}, "opsleuth", keeping.COMPLETE, asked))
    sys.exit(_guarded(sys.argv[1:] if arguments is None else arguments))


def _open_streams() -> None:
    """A closed stdout or stderr leads nowhere, and never into a file that is opened later; no character is an error."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _newest(argument: str) -> str:
    """`-@c4` begins like an option: `@c4` means the same checkpoint of the newest run."""
    return argument[1:] if argument.startswith("-@") else argument


def _guarded(arguments: Sequence[str]) -> int:
    """The exit code of a command, whatever it ends with: the outermost of the three borders of errors."""
    try:
        with cli.make_context("opsleuth", [_newest(a) for a in arguments]) as context:
            code = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.SIGINT
    except Exception as error:  # noqa: BLE001 - nothing may end in a traceback on the screen
        from opsleuth.console.failure import told

        return told(error)
    return int(code)
