"""The command line: which commands there are and where, and the exit code that each ends with.

Each command lies with all that it does in one file of `console/commands` or `service/commands`, imported when it is used.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

import click
from click.shell_completion import shell_complete

from opsleuth import __version__
from opsleuth.console.options import COMPLETION_VARIABLE, CommandEntry, LazyCommandGroup
from opsleuth.state.run_status import ExitCode

SECTIONS: Mapping[str, Sequence[CommandEntry]] = {
    "Investigate": (
        CommandEntry("run", "opsleuth.console.commands.run:run_investigation", "Investigate QUESTION, an alert, a recorded incident, or files: logs, metrics, traces, cluster dumps."),
        CommandEntry("demo", "opsleuth.console.commands.demo:run_demo", "Investigate the built-in incident, offline: an orders API that became slow."),
        CommandEntry("resume", "opsleuth.console.commands.resume:resume_chosen_run", "Continue a run from its last node; without RUN you are asked which."),
    ),
    "Sources": (
        CommandEntry("init", "opsleuth.console.commands.init:write_configuration", "Find what can be read from here, and write .opsleuth/config.toml for it."),
        CommandEntry("sources", "opsleuth.console.commands.sources:sources", "How files are read."),
        CommandEntry("doctor", "opsleuth.console.commands.doctor:check_configuration", "Try every configured source and the model: what works, what does not, and how to fix it."),
        CommandEntry("tools", "opsleuth.console.commands.tools:tools", "The available tools, and the configured source behind each."),
        CommandEntry("case", "opsleuth.console.commands.case:case_group", "Create your own recorded incident, and check it."),
        CommandEntry("mcp", "opsleuth.console.commands.serve_mcp:serve_mcp", "Offer the read-only tools to other programs, as an MCP server over stdin and stdout."),
        CommandEntry("trust", "opsleuth.console.commands.trust:trust_project", "Trust this project's .opsleuth/config.toml and policy.toml as they are now: what they configure may then be contacted, run and allowed."),
    ),
    "Look at a run": (
        CommandEntry("list", "opsleuth.console.commands.list_runs:list_runs", "List runs, newest first."),
        CommandEntry("show", "opsleuth.console.commands.show_run:show_run", "The status of a run, what it found and what it did last; at a checkpoint, the state there."),
        CommandEntry("log", "opsleuth.console.commands.log_events:log_events", "Every event of a run, as it was stored."),
        CommandEntry("trace", "opsleuth.console.commands.trace_run:trace_run", "Where a run's time went: every node, model call and tool call on one axis."),
        CommandEntry("evidence", "opsleuth.console.commands.show_evidence:show_evidence", "The evidence behind a claim: all of a run, or one piece of it."),
        CommandEntry("report", "opsleuth.console.commands.show_report:show_report", "What a run found."),
        CommandEntry("why", "opsleuth.console.commands.explain_run:explain_run", "Why a run blames what it blames."),
        CommandEntry("handover", "opsleuth.console.commands.handover:hand_over", "Hand over a shift, or draft the postmortem of a run."),
        CommandEntry("verdict", "opsleuth.console.commands.judge_run:judge_run", "Say whether a run was right, and what it was."),
        CommandEntry("ask", "opsleuth.console.commands.ask:ask_about_run", "Ask a question about a run that has ended."),
    ),
    "Step through it, change it": (
        CommandEntry("step", "opsleuth.console.commands.step:step_through_run", "Step through a run: node by node, back and forth, with edits that make branches."),
        CommandEntry("state", "opsleuth.console.commands.state:state", "Look at the state of a run at any checkpoint, and change it in a branch."),
        CommandEntry("fork", "opsleuth.console.commands.fork:fork_run", "Start a separate run from a checkpoint."),
        CommandEntry("diff", "opsleuth.console.commands.diff:compare_runs", "Where the states of two runs, or of two checkpoints, differ."),
    ),
    "Decide and steer": (
        CommandEntry("approvals", "opsleuth.console.commands.approvals:list_approvals", "What waits for a person: calls to confirm, and effects whose outcome nobody saw."),
        CommandEntry("approve", "opsleuth.console.commands.answer_approval:approve_call", "Let exactly one call run: the one with this digest."),
        CommandEntry("deny", "opsleuth.console.commands.answer_approval:deny_call", "Refuse a call, also one that was approved and has not run; the run goes on without it."),
        CommandEntry("resolve", "opsleuth.console.commands.answer_approval:resolve_effect", "Record the outcome of a change that nobody saw."),
        CommandEntry("policy", "opsleuth.console.commands.policy:policy", "The rules for what may run."),
        CommandEntry("pause", "opsleuth.console.commands.stop_run:pause_run", "Stop a run where it is; resume continues from there."),
        CommandEntry("cancel", "opsleuth.console.commands.stop_run:cancel_run", "End a run politely: a report of what was found, and it can still be resumed."),
        CommandEntry("terminate", "opsleuth.console.commands.stop_run:terminate_run", "End a run for good."),
        CommandEntry("retry", "opsleuth.console.commands.stop_run:retry_failed_calls", "Continue a run and repeat the failed look-ups of its last turn; never a change."),
    ),
    "Keep and configure": (
        CommandEntry("watch", "opsleuth.console.commands.watch:watch_run", "Follow a run in another process, with the output shown there."),
        CommandEntry("note", "opsleuth.console.commands.note:add_note", "Leave a note for a run's planner; - reads it from stdin."),
        CommandEntry("prune", "opsleuth.console.commands.prune:prune_runs", "Remove runs last changed longer ago than this, with everything stored for them."),
        CommandEntry("export", "opsleuth.console.commands.transfer:export_run", "Write a run, with the runs it was forked from, into one file."),
        CommandEntry("import", "opsleuth.console.commands.transfer:import_run", "Read a run that was exported."),
        CommandEntry("config", "opsleuth.console.commands.config:config", "What is configured."),
        CommandEntry("completion", "opsleuth.console.commands.completion:print_completion", "Print the shell completion script."),
    ),
    "Database": (
        CommandEntry("db", "opsleuth.console.commands.db:db", "The database that runs are kept in."),
    ),
    "Serve": (
        CommandEntry("serve", "opsleuth.service.commands.serve:serve_api", "Accept investigations over HTTP."),
        CommandEntry("worker", "opsleuth.service.commands.worker:work_on_queue", "Take runs from the queue, on this host and any other."),
        CommandEntry("alerts", "opsleuth.service.commands.alerts:list_alerts", "List the outcome of each received alert, and why; newest first."),
        CommandEntry("token", "opsleuth.service.commands.token:token_group", "Who may use the API."),
    ),
    "Measure": (
        CommandEntry("eval", "opsleuth.console.commands.evaluation:evaluation", "Run sets of cases and score them."),
    ),
    "Try it on a system that runs": (
        CommandEntry("lab", "opsleuth.console.commands.lab:lab_group", "A small shop of real processes on this machine, to break and to investigate."),
    ),
    "About opsleuth": (
        CommandEntry("graph", "opsleuth.console.commands.about:draw_graph", "Draw the loop of an investigation."),
        CommandEntry("exit-codes", "opsleuth.console.commands.about:list_exit_codes", "What each exit code means."),
        CommandEntry("help", "opsleuth.console.commands.about:show_help", "Show the help of a command."),
        CommandEntry("version", "opsleuth.console.commands.about:print_version", "The version of opsleuth and of its environment."),
        CommandEntry("dev", "opsleuth.console.commands.dev:dev", "Tools for trying and developing opsleuth."),
    ),
}  # fmt: skip
"""Every command by the title under which the help lists it, with the place of its code and its line of help.

Written down, so that `--help` and a mistyped command import nothing; a test holds each line against the command's own help.
"""


@click.group(
    cls=LazyCommandGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "-V", "--version", message="opsleuth %(version)s")
def cli() -> None:
    """Investigate incidents: every step is kept, and every claim points at stored evidence.

    \b
    opsleuth demo                            try it on the built-in incident
    opsleuth init                            find your own systems, then:
    opsleuth run "orders are slow since 14:00Z"
    opsleuth run app.log                     files: logs, metrics, traces, a folder, an archive
    opsleuth run --case DIR                  a recorded incident
    opsleuth resume -                        continue with the newest run
    """  # noqa: D301 - the sign by which click keeps lines as they are


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with one of the documented codes."""
    _open_streams()
    if asked := os.environ.get(COMPLETION_VARIABLE):
        sys.exit(shell_complete(cli, {}, "opsleuth", COMPLETION_VARIABLE, asked))
    sys.exit(_run_guarded(sys.argv[1:] if arguments is None else arguments))


def _open_streams() -> None:
    """A closed stdout or stderr leads nowhere, and never into a file that is opened later; no character is an error."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _expand_newest_run(argument: str) -> str:
    """`-@c4` begins like an option: `@c4` means the same checkpoint of the newest run."""
    return argument[1:] if argument.startswith("-@") else argument


def _run_guarded(arguments: Sequence[str]) -> int:
    """The exit code of a command, whatever it ends with: the outermost border of errors."""
    try:
        with cli.make_context("opsleuth", [_expand_newest_run(a) for a in arguments]) as context:
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
        from opsleuth.console.error_reporting import report_error  # noqa: PLC0415 - most commands end without an error

        return report_error(error)
    return int(code)
