"""A report document on a stream: as a screen, as Markdown or as JSON."""

import sys
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from opsleuth.console import event_lines
from opsleuth.console import report_text as reports
from opsleuth.console.options import GlobalOptions
from opsleuth.console.screen import open_screen
from opsleuth.console.time_formats import TimeDisplay


def write_report(
    document: Mapping[str, Any],
    options: GlobalOptions,
    *,
    form: str | None = None,
    full: bool = False,
    stream: Any = None,  # noqa: ANN401 - a text stream
) -> None:
    """Write the document as `text`, `md` or `json`, by default to stdout and as `--json` says."""
    stream = stream or sys.stdout
    times = TimeDisplay(options.tz or UTC)
    form = form or ("json" if options.json else "text")
    if form == "json":
        event_lines.write_json(stream, document)
    elif form == "md":
        stream.write(reports.format_report_markdown(document, times))
    else:
        screen = open_screen(stream, color=options.color, plain=options.plain, times=times)
        screen.lines(reports.format_report_lines(document, screen, full=full))
