"""`opsleuth ask`: a question on a run that has ended, answered in a read-only branch within the run's limits."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from opsleuth.console.argument_help import RUN_HELP
from opsleuth.console.follow_up_text import render_follow_up
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.report_output import write_report
from opsleuth.console.run_attempt import attempt_run, choose_new_model, print_headline
from opsleuth.console.store_access import find_run
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
from opsleuth.state.run_id import new_run_id
from opsleuth.state.run_status import StopReason
from opsleuth.state.text_input import read_stdin_text

HELP = f"""Ask a question about a run that has ended.

{RUN_HELP} Without RUN the newest.

The answer is a branch of the run: read-only, with all its evidence, and it spends what is left of the run's limits. Limits that are
given (--max-turns and the like) are new totals. `opsleuth show RUN` lists the answers.

\b
opsleuth ask "was it the cache?"
opsleuth ask inv-20261129-7k3f "what was changed before?"
opsleuth ask - < question.txt            the question from stdin
"""


@click.command("ask", cls=CliCommand, help=HELP)
@click.argument("words", metavar="[RUN] QUESTION|-", nargs=-1, required=True)
def ask_about_run(words: tuple[str, ...]) -> int:
    from opsleuth.graph.lifecycle.follow_ups import FollowUpRequest, require_ended

    options = current_options()
    named, question = split_words(words)
    if question == "-":
        question = read_question_from_stdin()
    run = find_run(options, named)
    require_ended(run)
    model = choose_new_model(options, run.settings.get("model"))
    asked = FollowUpRequest(run.id, question, options.limits, options.planner, model)
    print_headline(options, f"question on {run.id}  {question}")
    return attempt_run(options, lambda runner: runner.ask(asked, draw_run_id), write_answer)


def read_question_from_stdin() -> str:
    """The question that is piped in or typed. Raises UsageError for none."""
    if sys.stdin is not None and sys.stdin.isatty():
        write_note("type the question, then press Ctrl-D on a new line")
    question = read_stdin_text("the question").strip()
    if not question:
        raise UsageError('the question on stdin is empty: echo "was it the cache?" | opsleuth ask -')
    return question


def draw_run_id() -> str:
    return new_run_id(SystemClock().now())


def write_answer(document: Mapping[str, Any], options: GlobalOptions) -> None:
    """The answer with its evidence; the whole document with --json, the report where something stopped the run."""
    if document.get("stop_reason") != StopReason.CONCLUDED:
        write_report(document, options)
        return
    screen = screen_for_options(options)
    screen.lines(render_follow_up(document, screen))


def split_words(words: tuple[str, ...]) -> tuple[str, str]:
    """The run, the newest where none is named, and the question, `-` where it is on stdin. Raises UsageError."""
    run, question = words if len(words) == 2 else ("-", words[0])
    if len(words) > 2:
        raise UsageError('put the question in quotation marks: opsleuth ask RUN "was it the cache?"')
    question = question.strip()
    if not question or (len(words) == 1 and question.startswith("inv-") and " " not in question):
        raise UsageError(f'the question is missing: opsleuth ask {question or run} "was it the cache?"')
    return run, question
