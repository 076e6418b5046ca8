"""The ways to ask a server for a decision, best first, and what is remembered of which one a server knows."""

import json
from enum import StrEnum
from pathlib import Path

from opsleuth.models.settings import ModelSettings
from opsleuth.state.canonical import from_json


class Mode(StrEnum):
    """How the decision comes back: as tool calls, as JSON held to a schema, as any JSON, or as text that holds it."""

    TOOLS = "tools"
    SCHEMA = "json_schema"
    OBJECT = "json_object"
    TEXT = "text"


LADDERS = {
    "auto": (Mode.TOOLS, Mode.SCHEMA, Mode.OBJECT, Mode.TEXT),
    "tools": (Mode.TOOLS,),
    "json": (Mode.SCHEMA, Mode.OBJECT, Mode.TEXT),
}


class Ladder:
    """Where on its ladder a model stands. `memory` is a file that keeps what was found out, or None."""

    def __init__(self, settings: ModelSettings, memory: Path | None = None) -> None:
        self._rungs = list(LADDERS[settings.mode])
        self._memory = memory
        self._name = f"{settings.mode} {settings.base_url} {settings.model}"
        self.proven = False
        known = self._recall()
        if known in self._rungs:
            self._rungs, self.proven = self._rungs[self._rungs.index(known) :], True

    @property
    def mode(self) -> Mode:
        return self._rungs[0]

    def down(self) -> bool:
        """Take the next rung; False if there is none."""
        if len(self._rungs) == 1:
            return False
        self._rungs.pop(0)
        return True

    def works(self) -> None:
        """A decision came back this way: remember it."""
        if self.proven:
            return
        self.proven = True
        if self._memory is not None:
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            self._memory.write_text(
                json.dumps(_table(self._memory) | {self._name: self.mode}), encoding="utf-8"
            )

    def _recall(self) -> Mode | None:
        found = _table(self._memory).get(self._name) if self._memory else None
        return Mode(found) if found in list(Mode) else None


def _table(memory: Path) -> dict[str, str]:
    """What is remembered; nothing where the file is absent or unreadable, since it is a cache."""
    try:
        found = from_json(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
