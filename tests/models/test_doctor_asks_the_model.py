"""`opsleuth doctor` asks the configured model one cheap question."""

import json
from pathlib import Path

import pytest
from model_cli import opsleuth
from model_rig import serving


@pytest.mark.parametrize(
    ("fault", "code", "state", "says"),
    [
        (None, 0, "ok", "ready"),
        ("unauthorized", 8, "failed", "refused the key"),
        ("html", 8, "failed", "web page"),
    ],
)
def test_the_model_is_asked_once(tmp_path: Path, fault: str | None, code: int, state: str, says: str) -> None:
    with serving({"text": "ready", "fault": fault}) as server:
        done = opsleuth(tmp_path, "doctor", "--json", OPSLEUTH_BASE_URL=server.base_url, OPSLEUTH_MODEL="m")
    assert done.returncode == code, done.stdout + done.stderr
    (checked,) = json.loads(done.stdout)["sources"]
    assert (checked["kind"], checked["name"], checked["checks"][0]["state"]) == ("model", "m", state)
    assert says in checked["checks"][0]["text"]
    (asked,) = server.requests
    assert asked["max_completion_tokens"] <= 128
    assert "tools" not in asked
