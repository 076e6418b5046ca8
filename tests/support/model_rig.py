"""A whole run with a model on loopback: the made-up world of the loop rig, decided by whatever the server says."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loop_rig import SINCE, UNTIL, World

from opsleuth.checkpoints.store import Store
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.graph.lifecycle.first_state import OpenedSources, RunSettings, StartRequest
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.models.server.chat_replies import ScriptedModel
from opsleuth.models.server.model_server import Model, ModelServer
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.base import to_json
from opsleuth.state.clock import SystemClock
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.tape import Tape

RUN = "inv-20240501-test"


def looks(*things: str | Mapping[str, Any], tool: str = "look", **more: Any) -> dict[str, Any]:
    """A decision that calls the tool once for each thing."""
    calls = [
        {"tool": tool, "arguments": {"thing": t} if isinstance(t, str) else dict(t), "why": "to see it"}
        for t in things
    ]
    return {"decision": {"reason": "look", "calls": calls, **more}}


def concludes(text: str, *evidence: str, **more: Any) -> dict[str, Any]:
    """A decision that concludes with one claim on this evidence."""
    claims = [{"id": "C1", "text": text, "evidence": list(evidence)}] if evidence else []
    conclusion = {"verdict": "answered" if evidence else "inconclusive", "answer": text, "claims": claims}
    return {"decision": {"reason": "enough", "conclusion": conclusion | more}}


ACCEPTED: Mapping[str, Any] = {"text": '{"accepted": true, "gaps": []}'}


class ModelLoop:
    """Runs of one world in this process, with a server of their own."""

    def __init__(self, folder: Path, base_url: str, tape: Tape | None = None, **settings: Any) -> None:
        given = {"model": "scripted", "base_url": base_url, "reviewer": "none", "tries": 1} | settings
        self.settings = ModelSettings.model_validate(given)
        self.store = Store.open(folder / "store.db", SystemClock(), Redactor())
        self.world = World(folder)
        self.events: list[Mapping[str, Any]] = []
        parts = AttemptParts(
            sources=lambda _: OpenedSources(RunSources()),
            specs=self.world.specs(),
            tape=tape,
            memory=folder / "modes.json",
        )
        self.runner = Runner(self.store, self.events.append, SystemClock(), parts)

    def start(
        self, run: str = RUN, question: str = "what is the matter", *, read_only: bool = False, **limits: Any
    ) -> AttemptOutcome:
        request = StartRequest(
            run=run,
            question=question,
            since=SINCE,
            until=UNTIL,
            limits=limits,
            settings=RunSettings(planner="model", model=to_json(self.settings), read_only=read_only),
        )
        return asyncio.run(self.runner.start(request))

    def resume(self, **limits: Any) -> AttemptOutcome:
        return asyncio.run(self.runner.resume(RUN, limits))

    def told(self, kind: str) -> list[Mapping[str, Any]]:
        """The data of the events of one type."""
        return [event["data"] for event in self.events if event["type"] == kind]

    def warnings(self, code: str) -> list[str]:
        return [data["message"] for data in self.told("warning") if data["code"] == code]


def serving(*entries: Mapping[str, Any]) -> ModelServer:
    """A server that follows this script."""
    return ModelServer(ScriptedModel(entries))


def answering(model: Model) -> ModelServer:
    """A server that follows this rule."""
    return ModelServer(model)


def words(request: Mapping[str, Any]) -> str:
    """All that was said in a request."""
    return "\n".join(str(message.get("content") or "") for message in request["messages"])


def sent(requests: Sequence[Mapping[str, Any]]) -> list[str]:
    return [words(request) for request in requests]
