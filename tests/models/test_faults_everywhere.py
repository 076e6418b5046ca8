"""Every fault of the server at every place of a run, streamed or not: told in words, and healed by `resume`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from model_rig import ACCEPTED, ModelLoop, answering, concludes, looks, words
from nonempty import nonempty
from tiers import full_product

from opsleuth.models.server.fault_injection import FaultyModel
from opsleuth.models.server.reply_faults import FAULT_NAMES
from opsleuth.state.run_status import ExitCode

PLACES: Mapping[str, tuple[str, ...]] = {
    "first": ("{}@1",),
    "third": ("{}@3",),
    "reviewer": ("{}@4",),
    "after resume": ("server_error@2", "{}@3"),
}
STREAMED = ("third", "reviewer")
ONCE = ("unauthorized", "not_found", "quota", "html", "bad_request", "rate_limit_long")
"""What is not asked again before somebody has mended it."""


def looker(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Looks at a, then at b, then concludes; a reviewer accepts."""
    said = words(request)
    if "You review" in said:
        return ACCEPTED
    if "E2 ok" in said:
        return concludes("a and b were looked at.", "E1", "E2")
    return looks("b") if "E1 ok" in said else looks("a")


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "form"), full_product(FAULT_NAMES, ["whole", "stream"]))
def test_a_fault_anywhere(tmp_path: Path, fault: str, form: str) -> None:
    stream = form == "stream"
    for place in nonempty(STREAMED if stream else PLACES):
        faults = PLACES[place]
        folder = tmp_path / place
        folder.mkdir()
        spoiled = FaultyModel(looker, [text.format(fault) for text in faults])
        with answering(spoiled) as server:
            loop = ModelLoop(
                folder, server.base_url, reviewer="same", stream=stream,
                mode="json" if stream else "auto", timeout=0.5 if fault == "stall" else 20,
            )  # fmt: skip
            outcome = loop.start()
            asked = len(server.requests)
            while outcome.exit_code in (ExitCode.UNREACHABLE, ExitCode.CONFIG):
                assert "Stopped before a conclusion" in (outcome.report or {})["answer"], (fault, place)
                assert len(server.requests) < 12
                outcome = loop.resume()
        assert outcome.exit_code is ExitCode.OK, (fault, place, outcome)
        assert outcome.report is not None
        assert outcome.report["unsupported"] == 0
        assert loop.world.lines("looked") == ["a", "b"], (fault, place)
        if fault in ONCE and place in ("first", "third"):
            assert asked == {"first": 1, "third": 3}[place], (fault, place)
        loop.store.close()
