"""Long runs through the loopback server: bounded bytes a turn, linear in sum, and nothing asked twice for being forgotten."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from model_rig import ModelLoop, answering, concludes, looks, words

from opsleuth.models.server.model_server import Model
from opsleuth.models.token_estimate import BYTES_A_TOKEN
from opsleuth.state.run_status import ExitCode

OPENING = {"hypotheses": [{"text": "a thing is the cause"}], "plan": [{"text": "look at all"}]}
THING = re.compile(r"\bt(\d+)\b")


def forgetful(things: int) -> Model:
    """Knows nothing but its request: looks at the first thing that this does not name, 20 kB and more each."""

    def model(request: Mapping[str, Any]) -> Mapping[str, Any]:
        named = {int(number) for number in THING.findall(json.dumps(request["messages"]))}
        missing = next((i for i in range(1, things + 1) if i not in named), None)
        if missing is None:
            return concludes("all was looked at")
        asked = looks({"thing": f"t{missing}", "behave": "big"})
        return asked if named else {"decision": {**asked["decision"], **OPENING}}

    return model


@pytest.mark.slow
@pytest.mark.parametrize(
    ("things", "window"), [pytest.param(100, 32_000, marks=pytest.mark.exhaustive), (30, 8_000)]
)
@pytest.mark.parametrize("mode", ["tools", "json"])
def test_no_call_is_made_again_because_it_was_folded(
    tmp_path: Path, things: int, window: int, mode: str
) -> None:
    with answering(forgetful(things)) as server:
        loop = ModelLoop(tmp_path, server.base_url, context_tokens=window, output_tokens=1_000, mode=mode)
        outcome = loop.start(turns=things + 10, tokens=10**9, seconds=10_000)
    assert outcome.exit_code is ExitCode.INCONCLUSIVE
    assert loop.world.lines("looked") == [f"t{i}" for i in range(1, things + 1)]
    assert len(server.requests) == things + 1
    assert max(server.sizes) <= window * BYTES_A_TOKEN
    half = things // 2
    assert sum(server.sizes[half:]) <= 1.5 * sum(server.sizes[:half]), "bytes in sum grow faster than turns"
    last = words(server.requests[-1])
    assert "H1 open: a thing is the cause" in last
    assert "P1 pending: look at all" in last
    assert f"E{things} ok" in last
