"""A recording that somebody edited: it is told at its line, before the run hears it."""

import json
from pathlib import Path
from typing import Any

import pytest

from opsleuth.state.errors import ConfigError
from opsleuth.tools.tape import VERSION, Tape

RESULT = {"call_id": "r/t1c1", "status": "ok", "record": {}, "headline": "a"}
TOOL = {"kind": "tool", "call": "t1c1 run 00", "result": RESULT}


@pytest.mark.parametrize(
    "entry",
    [
        1,
        None,
        [],
        {},
        {"kind": "x"},
        {"kind": "model", "asked": "0", "status": "many", "headers": {}, "body": ""},
        {**TOOL, "call": [1]},
        {**TOOL, "result": 1},
        {**TOOL, "result": {**RESULT, "status": "bogus"}},
        {**TOOL, "result": {**RESULT, "spark": ["x"]}},
        {**TOOL, "result": {**RESULT, "more": 1}},
    ],
)
def test_an_entry_that_no_recording_holds(tmp_path: Path, entry: Any) -> None:
    lines = ({"kind": "tape", "version": VERSION}, TOOL, entry)
    (tmp_path / "tape").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(ConfigError, match="line 3 was changed"):
        Tape.playing(tmp_path / "tape")
