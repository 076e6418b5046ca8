"""`opsleuth case`: create a case folder, and check it before it is investigated."""

import shlex
import sys
from pathlib import Path

import click

from opsleuth.console import event_lines
from opsleuth.console.case_template import write_case_template
from opsleuth.console.options import CliCommand, CliGroup, current_options
from opsleuth.console.output import write_note
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
from opsleuth.state.run_status import ExitCode


@click.group("case", cls=CliGroup)
def case_group() -> None:
    """Create your own recorded incident, and check it."""


@case_group.command("new", cls=CliCommand, help="Write a case folder to start from; replace its rows with your own.\n\n\b\nopsleuth case new payments-fail --service payments")  # fmt: skip
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--service", default="my-service", show_default=True, help="The service that the alert is about."
)
@click.option(
    "--question", default="Why do requests fail?", show_default=True, help="The question to answer."
)
def write_new_case(folder: Path, service: str, question: str) -> int:
    if not service.strip() or not question.strip():
        raise UsageError("--service and --question must not be empty")
    made = write_case_template(folder, service.strip(), question.strip(), SystemClock().now())
    if current_options().json:
        event_lines.write_json(sys.stdout, {"case": str(folder), "files": [path.name for path in made]})
        return 0
    sys.stdout.writelines(f"{path}\n" for path in made)
    place = shlex.quote(str(folder))
    write_note(
        f"replace the rows with your own, then: opsleuth case check {place}   and   opsleuth run --case {place}"
    )
    return 0


@case_group.command("check", cls=CliCommand, help="Read a case folder whole, and say what is wrong with it and how to fix it.\n\n\b\nopsleuth case check payments-fail")  # fmt: skip
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def check_case_folder(folder: Path) -> int:
    """Exit code 0 for a case that is fit, 8 for one with problems. Raises NotACaseError."""
    from opsleuth.tools.sources.case_check import check_case, describe_table

    checked = check_case(folder)
    if current_options().json:
        tables = [table._asdict() for table in checked.tables]
        event_lines.write_json(
            sys.stdout, {"case": str(folder), "tables": tables, "problems": list(checked.problems)}
        )
    else:
        sys.stdout.writelines(f"{describe_table(table)}\n" for table in checked.tables)
        sys.stdout.writelines(f"problem: {text}\n" for text in checked.problems)
        if not checked.problems:
            write_note(f"fit: opsleuth run --case {shlex.quote(str(folder))}")
    return ExitCode.CONFIG if checked.problems else ExitCode.OK
