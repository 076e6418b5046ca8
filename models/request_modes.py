"""The ways to ask a server for a decision, best first, and what is remembered of which one a server knows."""

import contextlib
import json
from enum import StrEnum
from pathlib import Path

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.state.canonical_json import parse_json_text


class RequestMode(StrEnum):
    """How the decision comes back: as tool calls, as JSON held to a schema, as any JSON, or as text that holds it."""

    TOOLS = "tools"
    SCHEMA = "json_schema"
    OBJECT = "json_object"
    TEXT = "text"


MODE_LADDERS = {
    "auto": (RequestMode.TOOLS, RequestMode.SCHEMA, RequestMode.OBJECT, RequestMode.TEXT),
    "tools": (RequestMode.TOOLS,),
    "json": (RequestMode.SCHEMA, RequestMode.OBJECT, RequestMode.TEXT),
}


class ModeLadder:
    """Where on its ladder a model stands. `memory` is a file that keeps what was found out, or None."""

    def __init__(self, settings: ModelSettings, memory: Path | None = None) -> None:
        self._rungs = list(MODE_LADDERS[settings.mode])
        self._memory = memory
        self._name = f"{settings.mode} {settings.base_url} {settings.model}"
        self.proven = False
        known = self._recall()
        if known in self._rungs:
            self._rungs, self.proven = self._rungs[self._rungs.index(known) :], True

    @property
    def mode(self) -> RequestMode:
        return self._rungs[0]

    def down(self) -> bool:
        """Take the next rung; False if there is none."""
        if len(self._rungs) == 1:
            return False
        self._rungs.pop(0)
        return True

    def remember_mode(self) -> None:
        """A decision came back this way: remember it."""
        if self.proven:
            return
        self.proven = True
        if self._memory is None:
            return
        with contextlib.suppress(
            OSError
        ):  # a cache: a folder that nobody may write costs one more question next time
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            self._memory.write_text(
                json.dumps(_load_remembered_modes(self._memory) | {self._name: self.mode}), encoding="utf-8"
            )

    def _recall(self) -> RequestMode | None:
        found = _load_remembered_modes(self._memory).get(self._name) if self._memory else None
        return RequestMode(found) if found in list(RequestMode) else None


def _load_remembered_modes(memory: Path) -> dict[str, str]:
    """What is remembered; nothing where the file is absent or unreadable, since it is a cache."""
    try:
        found = parse_json_text(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
