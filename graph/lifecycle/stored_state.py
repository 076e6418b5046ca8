"""What is stored of a run: its state at a checkpoint, and its settings under new limits."""

from collections.abc import Mapping
from typing import Any

from langgraph.types import StateSnapshot
from pydantic import ValidationError

from opsleuth import __version__
from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.graph import build
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.graph.lifecycle.restrictions import Restrictions
from opsleuth.state.base import to_json
from opsleuth.state.budget import RunLimits
from opsleuth.state.investigation import Investigation
from opsleuth.state.limit_caps import LimitCaps


def settings_with_limits(row: RunRow, limits: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with these new totals: the executor takes its limits there, and a run that never began its state."""
    if not limits:
        return {}
    first = row.settings["state"]
    merged = RunLimits.model_validate(first["budget"]["limits"] | dict(limits))
    return {"state": first | {"budget": first["budget"] | {"limits": to_json(merged)}}}


def caps_of_run(row: RunRow, restrictions: Restrictions) -> LimitCaps:
    """The caps of an attempt of this run under these restrictions."""
    return LimitCaps.model_validate(restrictions.tighten_caps(RunSettings.of(row.settings)) or {})


def cut_to_caps(row: RunRow, limits: Mapping[str, Any], caps: LimitCaps) -> dict[str, Any]:
    """The new totals, those of a limit that is capped at most the cap; none where nothing changes.

    Totals that were stored with the run, by a version or a service that allowed more, are cut as well.
    """
    stored = row.settings["state"]["budget"]["limits"]
    wanted = RunLimits.model_validate(stored | dict(limits))
    cut = to_json(caps.cut_limits(wanted))
    return {name: value for name, value in cut.items() if name in limits or value != to_json(wanted)[name]}


def read_stored_state(row: RunRow, snapshot: StateSnapshot) -> Investigation:
    """The stored state. Raises UnreadableStoreError if another version's graph or schema wrote it."""
    stored = (snapshot.metadata or {}).get("revision")
    if stored not in (build.graph_revision(), *build.ACCEPTED_REVISIONS):
        raise UnreadableStoreError(
            f"run {row.id} was stored by graph revision {stored} (opsleuth {row.app_version}); this is {build.graph_revision()} "
            f"(opsleuth {__version__}). Nothing was changed: resume it with the version that wrote it"
        )
    try:
        return Investigation.model_validate(snapshot.values)
    except ValidationError as error:
        what = format_validation_errors(error)
        raise UnreadableStoreError(
            f"the stored state of run {row.id} does not fit this version ({what}). Nothing was changed: "
            f"resume it with opsleuth {row.app_version}"
        ) from None
