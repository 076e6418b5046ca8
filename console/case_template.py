"""A case folder to begin with: an incident of an hour ago, with rows that show what each file looks like."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from opsleuth.state.clock import format_timestamp
from opsleuth.state.errors import UsageError

LENGTH = timedelta(hours=1)
"""From the start of the window to its end; the trouble begins in the middle."""
_SAMPLES = 30


def write_case_template(folder: Path, service: str, question: str, end: datetime) -> list[Path]:
    """Write the files of a new case, and return them. Raises UsageError where the folder holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} is not empty: name a new folder, or check this one with `opsleuth case check {folder}`"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in list_template_files(folder.name, service, question, end):
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}; name another folder") from None
    return sorted(folder.iterdir())


def list_template_files(name: str, service: str, question: str, end: datetime) -> Iterator[tuple[str, str]]:
    """Name and text of each file."""
    end = end.replace(second=0, microsecond=0)
    start, onset = end - LENGTH, end - LENGTH / 2
    alert = {"text": question, "service": service, "fired_at": format_timestamp(onset + timedelta(minutes=5))}
    window = {"start": format_timestamp(start), "end": format_timestamp(end)}
    yield (
        "incident.json",
        json.dumps({"id": name, "question": question, "alert": alert, "window": window}, indent=1) + "\n",
    )
    yield "metrics.csv", write_metrics(service, start, onset)
    change = {
        "kind": "deploy",
        "version": "1.2.3",
        "summary": f"{service} 1.2.3: replace this with what was changed",
    }
    yield (
        "changes.jsonl",
        json.dumps(
            {"timestamp": format_timestamp(onset - timedelta(minutes=2)), "service": service, **change}
        )
        + "\n",
    )
    yield "logs.jsonl", "".join(write_log_lines(service, start, onset))


def write_metrics(service: str, start: datetime, onset: datetime) -> str:
    """A failure rate that rises at the onset."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["timestamp", "service", "metric", "value", "unit"])
    for number in range(_SAMPLES):
        at = start + LENGTH / _SAMPLES * number
        value = 20 + number % 3 if at >= onset else 0.2 + number % 3 / 10
        writer.writerow([format_timestamp(at), service, "error_rate", f"{value:g}", "percent"])
    return file.getvalue()


def write_log_lines(service: str, start: datetime, onset: datetime) -> Iterator[str]:
    """Lines of work, and lines of failure after the onset."""
    for number in range(_SAMPLES):
        at = start + LENGTH / _SAMPLES * number
        failed = at >= onset
        message = (
            f"request {1000 + number} failed: replace this with your own lines"
            if failed
            else f"request {1000 + number} done"
        )
        row = {
            "timestamp": format_timestamp(at),
            "service": service,
            "level": "error" if failed else "info",
            "message": message,
        }
        yield json.dumps(row) + "\n"
