"""`incident.json`, the one file that every case has: question, alert, window, services."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from opsleuth.analysis.records import AlertFacts, Span
from opsleuth.state.base import Utc
from opsleuth.state.calls import ResultStatus
from opsleuth.state.investigation import Alert, Window
from opsleuth.state.words import counted
from opsleuth.tools.nearest import nearest
from opsleuth.tools.spec import ToolError

FILE = "incident.json"


class NotACase(ToolError):
    """The folder is no case: `path`, and `why` in words with the remedy."""

    status = ResultStatus.UNAVAILABLE

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is no case: {why}")
        self.path = path
        self.why = why


@dataclass(frozen=True, slots=True)
class Incident:
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
    def span(self) -> Span:
        return Span(self.window.start.timestamp(), self.window.end.timestamp())

    @property
    def alert_facts(self) -> AlertFacts:
        return alert_facts(self.alert, self.question)


def alert_facts(alert: Alert | None, question: str = "") -> AlertFacts:
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


def _text_time(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A bare number would be read as an epoch in seconds or milliseconds by its size: that is a guess."""
    if value is not None and not isinstance(value, str):
        raise ValueError("write an RFC 3339 time such as 2024-05-01T14:00:00Z")
    return value


_Time = Annotated[Utc, BeforeValidator(_text_time)]


class _Part(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)


class _Window(_Part):
    start: _Time
    end: _Time
    step_seconds: float | None = None


class _Alert(_Part):
    text: str
    service: str | None = None
    metric: str | None = None
    severity: str | None = None
    fired_at: _Time | None = None


class _Document(_Part):
    id: str
    question: str | None = None
    alert: _Alert | None = None
    alert_start_utc: _Time | None = None
    window: _Window
    services: Annotated[tuple[str, ...], Field(strict=False)] = ()
    application: str | None = None
    sampling: str | None = None


def read_incident(folder: Path) -> Incident:
    """The facts of the case in `folder`. Raises NotACase if there are none, or they cannot be read."""
    document = _load(folder)
    try:
        return replace(_facts(_Document.model_validate(document)), notes=tuple(_slips(document)))
    except ValidationError as error:
        raise NotACase(folder, f"{FILE}: {_first_problem(error)}") from None


def _slips(document: Mapping[str, Any]) -> Iterator[str]:
    """Keys that nobody reads and that are almost one that is read."""
    for part, model in (("", _Document), ("alert", _Alert), ("window", _Window)):
        row = document.get(part) if part else document
        for key in sorted((row or {}).keys() - model.model_fields.keys()):
            if near := nearest(key, model.model_fields.keys() - (row or {}).keys(), 1):
                yield f"{FILE}: {f'{part}.' if part else ''}{key} is not read; is it meant to be {near[0]}?"


def _load(folder: Path) -> Mapping[str, Any]:
    try:
        _check_place(folder)
        document = json.loads((folder / FILE).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise NotACase(folder, f"it has no {FILE}; {_holds(folder)}") from None
    except OSError as error:
        raise NotACase(
            folder, f"{FILE} cannot be read ({error.strerror}): check its path and permissions"
        ) from None
    except (ValueError, RecursionError) as error:
        raise NotACase(folder, f"{FILE} is no JSON ({error}): repair it") from None
    if not isinstance(document, dict):
        raise NotACase(folder, f"{FILE} holds a JSON {type(document).__name__}, not an object")
    return document


def _check_place(folder: Path) -> None:
    """Raises NotACase for what is no folder, or holds a pipe or device where a file should be; OSError."""
    if not folder.exists():
        raise NotACase(folder, "there is no such folder: give the path of a folder with an incident.json")
    if not folder.is_dir():
        raise NotACase(folder, "it is a file: give the folder that holds incident.json")
    if (folder / FILE).exists() and not (folder / FILE).is_file():
        raise NotACase(folder, f"its {FILE} is no file: put a file in its place")


def _holds(folder: Path) -> str:
    cases = sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))
    if not cases:
        return "a case is a folder with an incident.json that has id and window {start, end}"
    shown = ", ".join(cases[:3]) + (", …" if len(cases) > 3 else "")
    return f"it holds {counted(len(cases), 'case')} ({shown}): name one of them"


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the document"
    if first["type"] == "timezone_aware":
        return f"{field} has no zone: end it with Z if it is UTC, else with its offset such as +08:00"
    return f"{field}: {first['msg'].removeprefix('Value error, ')}"


def _facts(document: _Document) -> Incident:
    window = document.window
    return Incident(
        id=document.id,
        question=document.question
        or (document.alert.text if document.alert else f"What is wrong in {document.id}?"),
        window=Window(start=window.start, end=window.end, origin="case"),
        alert=_alert(document),
        services=document.services,
        application=document.application,
        sampling=document.sampling,
        step_seconds=window.step_seconds,
    )


def _alert(document: _Document) -> Alert | None:
    part = document.alert
    if part is None:
        return None
    return Alert(
        text=part.text,
        service=part.service or None,
        metric=part.metric or None,
        severity=part.severity or None,
        fired_at=part.fired_at,
        onset=document.alert_start_utc,
    )
