"""`incident.json`, the one file that every case has: question, alert, window, services."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from opsleuth.alerts.labels import behind_exporter
from opsleuth.analysis.records import AlertFacts, TimeRange
from opsleuth.state.base import Utc
from opsleuth.state.calls import ResultStatus
from opsleuth.state.investigation import Alert, Window
from opsleuth.state.json_types import JSON
from opsleuth.state.nearest_name import find_nearest_names
from opsleuth.state.plurals import format_count
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.spec import ToolError

INCIDENT_FILE = "incident.json"


class NotACaseError(ToolError):
    """The folder is not a case: `path`, and `why` in words with the remedy."""

    exit_code = ExitCode.CONFIG

    status = ResultStatus.UNAVAILABLE

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is not a case: {why}")
        self.path = path
        self.why = why


@dataclass(frozen=True, slots=True)
class RecordedIncident:
    """The facts of a recorded incident. `services` is not exhaustive, `step_seconds` the usual sample distance."""

    id: str
    question: str
    window: Window
    alert: Alert | None = None
    services: tuple[str, ...] = ()
    application: str | None = None
    sampling: str | None = None
    step_seconds: float | None = None
    notes: tuple[str, ...] = ()
    """What in the file is most likely a slip."""

    @property
    def span(self) -> TimeRange:
        return TimeRange(*self.window.seconds)

    @property
    def alert_facts(self) -> AlertFacts:
        return alert_facts_from_alert(self.alert, self.question)


def alert_facts_from_alert(alert: Alert | None, question: str = "") -> AlertFacts:
    """The alert as detectors read it; without one, the question's text alone."""
    if alert is None:
        return AlertFacts(text=question)
    return AlertFacts(
        text=alert.text,
        service=alert.service,
        metric=alert.metric,
        severity=alert.severity,
        onset=alert.onset.timestamp() if alert.onset else None,
        fired=alert.fired_at.timestamp() if alert.fired_at else None,
    )


def _require_text_time(value: JSON) -> JSON:
    """A bare number would be read as an epoch in seconds or milliseconds by its size: that is a guess."""
    if value is not None and not isinstance(value, str):
        raise ValueError("write an RFC 3339 time such as 2024-05-01T14:00:00Z")
    return value


_Time = Annotated[Utc, BeforeValidator(_require_text_time)]


class _IncidentPart(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)


class _IncidentWindow(_IncidentPart):
    start: _Time
    end: _Time
    step_seconds: float | None = None


class _IncidentAlert(_IncidentPart):
    text: str
    service: str | None = None
    metric: str | None = None
    severity: str | None = None
    fired_at: _Time | None = None
    labels: dict[str, JsonValue] = Field(default_factory=dict)


class _IncidentDocument(_IncidentPart):
    id: str
    question: str | None = None
    alert: _IncidentAlert | None = None
    alert_start_utc: _Time | None = None
    window: _IncidentWindow
    services: Annotated[tuple[str, ...], Field(strict=False)] = ()
    application: str | None = None
    sampling: str | None = None


def read_incident(folder: Path) -> RecordedIncident:
    """The facts of the case in `folder`. Raises NotACaseError if there are none, or they cannot be read."""
    document = _load_document(folder)
    try:
        return replace(
            _incident_from_document(_IncidentDocument.model_validate(document)),
            notes=tuple(_find_misspelled_keys(document)),
        )
    except ValidationError as error:
        raise NotACaseError(folder, f"{INCIDENT_FILE}: {_describe_first_problem(error)}") from None


def _find_misspelled_keys(document: Mapping[str, Any]) -> Iterator[str]:
    """Keys that nobody reads and that are almost one that is read."""
    for part, model in (("", _IncidentDocument), ("alert", _IncidentAlert), ("window", _IncidentWindow)):
        row = document.get(part) if part else document
        for key in sorted((row or {}).keys() - model.model_fields.keys()):
            if near := find_nearest_names(key, model.model_fields.keys() - (row or {}).keys(), 1):
                yield f"{INCIDENT_FILE}: {f'{part}.' if part else ''}{key} is not read; is it meant to be {near[0]}?"


def _load_document(folder: Path) -> Mapping[str, Any]:
    try:
        _check_folder(folder)
        document = json.loads((folder / INCIDENT_FILE).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise NotACaseError(folder, f"it has no {INCIDENT_FILE}; {_describe_case_folders(folder)}") from None
    except OSError as error:
        raise NotACaseError(
            folder, f"{INCIDENT_FILE} cannot be read ({error.strerror}): check its path and permissions"
        ) from None
    except (ValueError, RecursionError) as error:
        raise NotACaseError(folder, f"{INCIDENT_FILE} is not JSON ({error}): repair it") from None
    if not isinstance(document, dict):
        raise NotACaseError(folder, f"{INCIDENT_FILE} holds a JSON {type(document).__name__}, not an object")
    return document


def _check_folder(folder: Path) -> None:
    """Raises NotACaseError for anything that is not a folder, or holds a pipe or device where a file should be; OSError."""
    if not folder.exists():
        raise NotACaseError(
            folder, "there is no such folder: give the path of a folder with an incident.json"
        )
    if not folder.is_dir():
        raise NotACaseError(folder, "it is a file: give the folder that holds incident.json")
    if (folder / INCIDENT_FILE).exists() and not (folder / INCIDENT_FILE).is_file():
        raise NotACaseError(folder, f"its {INCIDENT_FILE} is not a file: put a file in its place")


def _describe_case_folders(folder: Path) -> str:
    cases = sorted(path.parent.name for path in folder.glob(f"*/{INCIDENT_FILE}"))
    if not cases:
        return "a case is a folder with an incident.json that has id and window {start, end}"
    shown = ", ".join(cases[:3]) + (", …" if len(cases) > 3 else "")
    return f"it holds {format_count(len(cases), 'case')} ({shown}): name one of them"


def _describe_first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the document"
    if first["type"] == "timezone_aware":
        return f"{field} has no zone: end it with Z if it is UTC, else with its offset such as +08:00"
    return f"{field}: {first['msg'].removeprefix('Value error, ')}"


def _incident_from_document(document: _IncidentDocument) -> RecordedIncident:
    window = document.window
    return RecordedIncident(
        id=document.id,
        question=document.question
        or (document.alert.text if document.alert else f"What is wrong in {document.id}?"),
        window=Window(start=window.start, end=window.end, origin="case"),
        alert=_alert_from_document(document),
        services=document.services,
        application=document.application,
        sampling=document.sampling,
        step_seconds=window.step_seconds,
    )


def _alert_from_document(document: _IncidentDocument) -> Alert | None:
    part = document.alert
    if part is None:
        return None
    return Alert(
        text=part.text,
        service=behind_exporter(part.service, part.labels) or None,
        metric=part.metric or None,
        severity=part.severity or None,
        fired_at=part.fired_at,
        onset=document.alert_start_utc,
        labels=part.labels,
    )
