"""Runs that are accepted now and begun later, by another process: what was asked is kept in the run's row.

The row holds a state from the start, made without asking any source, so that a queued run can be shown, cancelled
and exported like every other. Whoever begins it asks the sources and makes the state again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from opsleuth import __version__
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph import build
from opsleuth.graph.lifecycle.first_state import OpenedSources, RunSettings, StartRequest, first_state
from opsleuth.state.base import to_json
from opsleuth.state.clock import Clock, format_timestamp
from opsleuth.state.errors import ConfigError
from opsleuth.state.investigation import Demand, Investigation
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import Status
from opsleuth.tools.sources.source_protocols import RunSources

LIMITS = "limits"
"""In the settings of a run that is to go on: new totals, for whoever takes it up."""
_TIMES = ("since", "until")


_OUTWARD = ("sources", "model", "platform")
"""The settings that say what is reached, and how."""


def row_of(
    store: Store, request: StartRequest, state: Mapping[str, Any], status: Status = Status.RUNNING
) -> RunRow:
    """The row of a run that begins with this state. Raises ConfigError for settings that hold a secret themselves."""
    settings = request.settings.to_json()
    _refuse_secrets(store, {name: settings[name] for name in _OUTWARD})
    return RunRow(
        id=request.run,
        question=state["question"],
        name=request.name,
        project=request.project or "",
        status=status,
        graph_revision=build.graph_revision(),
        app_version=__version__,
        settings=settings | {"state": state},
    )


def queue_run(store: Store, request: StartRequest, clock: Clock) -> RunRow:
    """Accept a run. Nothing outside is asked.

    Raises UsageError for what can never begin, ConflictError for a taken id, ConfigError as `row_of` does.
    """
    state = redact_first_state(store, first_state(request, OpenedSources(RunSources()), clock))
    row = row_of(store, request, state, Status.QUEUED)
    asked = store.redactor(_to_json(request)).value
    return store.runs.create(_with_settings(row, {"request": asked}))


def redact_first_state(store: Store, state: Investigation) -> dict[str, Any]:
    """The first state without the secrets in its question and its alert: checkpoints hold what is given here."""
    plain = to_json(state)
    clean: dict[str, Any] = store.redactor(plain).value
    return plain if clean == plain else to_json(Investigation.model_validate(clean))


def request_of(row: RunRow) -> StartRequest:
    """What was asked, out of the row of a queued run."""
    asked = dict(row.settings["request"])
    times = {name: datetime.fromisoformat(asked[name]) if asked[name] else None for name in _TIMES}
    demands = tuple(Demand.model_validate(demand) for demand in asked["demands"])
    settings = RunSettings.of(row.settings)
    return StartRequest(**asked | times | {"run": row.id, "demands": demands, "settings": settings})


def with_limits(row: RunRow, limits: Mapping[str, Any]) -> RunRow:
    """The row of a run that goes on later, with these new totals."""
    return _with_settings(row, {LIMITS: dict(limits)})


def taken_limits(row: RunRow) -> tuple[RunRow, Mapping[str, Any]]:
    """The row without its new totals, and those totals."""
    settings = {name: value for name, value in row.settings.items() if name != LIMITS}
    return replace(row, settings=settings), row.settings.get(LIMITS, {})


def with_first_state(row: RunRow, state: Mapping[str, Any], services: tuple[str, ...]) -> RunRow:
    """The row with the state that its sources made of the request, and the services that they know."""
    return _with_settings(row, {"state": state, "services": list(services)})


def _refuse_secrets(store: Store, settings: Mapping[str, Any]) -> None:
    """A secret is not stored, so that whoever reads the settings again would ask with its mark instead."""
    kept = store.redactor.settings(settings).value
    if kept != settings and (place := next(_differing_paths(settings, kept), None)):
        raise ConfigError(
            f"the setting {place} holds a secret itself, and a run is stored without secrets: name the place where the "
            'secret lies instead, as in secret_headers = { X-Api-Key = { env = "NAME" } } (docs/sources.md)'
        )


def _differing_paths(one: JSON, other: JSON, place: str = "") -> Iterator[str]:
    """Where two values of the same shape differ, as dotted names."""
    if isinstance(one, Mapping):
        for (name, value), (same, kept) in zip(one.items(), other.items(), strict=True):
            below = f"{place}.{same}" if place else same
            yield from _differing_paths(value, kept, below) if name == same else (below,)
    elif isinstance(one, list | tuple):
        for at, (value, kept) in enumerate(zip(one, other, strict=True), start=1):
            yield from _differing_paths(value, kept, f"{place}.{at}")
    elif one != other:
        yield place


def _with_settings(row: RunRow, more: Mapping[str, Any]) -> RunRow:
    return replace(row, settings={**row.settings, **more})


def _to_json(request: StartRequest) -> dict[str, Any]:
    plain = {
        f.name: getattr(request, f.name)
        for f in fields(request)
        if f.name not in ("run", "settings", "local")
    }
    times = {name: format_timestamp(plain[name]) if plain[name] else None for name in _TIMES}
    return plain | times | {"limits": dict(request.limits), "demands": [to_json(d) for d in request.demands]}
