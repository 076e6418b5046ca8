"""`opsleuth trace`: where a run's time went, as a waterfall or sent to an OpenTelemetry collector."""

import sys

import click

from opsleuth.checkpoints.trace.events import trace_id_of_run
from opsleuth.checkpoints.trace.spans import build_spans
from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.console import event_lines, waterfall
from opsleuth.console.argument_help import RUN_HELP
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.state.errors import ConfigError
from opsleuth.state.plurals import format_count


@click.command(
    "trace",
    cls=CliCommand,
    help=f"Where a run's time went: every node, model call and tool call on one axis.\n\n{RUN_HELP}",
)
@click.argument("run_id", metavar="RUN", default="-")
@click.option("--otlp", metavar="URL", help="Send it to a collector of OpenTelemetry traces instead.")
@click.option("--content", is_flag=True, help="With --otlp: also send questions and answers.")
def trace_run(run_id: str, otlp: str | None, *, content: bool) -> int:
    if otlp:
        return send_trace(current_options(), run_id, otlp, content=content)
    return print_waterfall(current_options(), run_id)


def print_waterfall(options: GlobalOptions, run_id: str) -> int:
    """The run's spans, each as a bar under its parent."""
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        found = build_spans(store.events.read(run.id))
    if options.json:
        document = {
            "run": run.id,
            "trace": trace_id_of_run(run.id),
            "spans": waterfall.waterfall_to_json(found),
        }
        event_lines.write_json(sys.stdout, document)
    elif found:
        screen = screen_for_options(options)
        screen.lines(waterfall.render_waterfall(found, trace_id_of_run(run.id), screen))
    else:
        write_note(f"{run.id} has no events yet")
    return 0


def send_trace(options: GlobalOptions, run_id: str, endpoint: str, *, content: bool) -> int:
    """`--otlp URL`: send the whole trace now. Raises ConfigError where the collector does not take it."""
    from pydantic import ValidationError

    from opsleuth.console.span_export import OtelSettings, SpanExportError, export_run_spans

    try:
        settings = OtelSettings(endpoint=endpoint, content=content)
    except ValidationError as error:
        raise ConfigError(
            f"--otlp {endpoint}: {format_validation_errors(error)}; write http://HOST:4318"
        ) from None
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        try:
            count = export_run_spans(store, run.id, settings)
        except SpanExportError as error:
            raise ConfigError(str(error)) from None
    write_note(f"{format_count(count, 'span')} of {run.id} sent to {endpoint}")
    return 0
