"""What `kubectl describe` printed, as a file."""

from pathlib import Path

import pytest

from opsleuth.analysis.records import ObjectState, PlatformEvent
from opsleuth.tools.sources.described_dumps import is_description, read_descriptions
from opsleuth.tools.sources.file_kinds import recognize_file

CAPTURED = 1_795_960_800.0
EVENTS = """Events:
  Type     Reason   Age                 From     Message
  ----     ------   ----                ----     -------
  Warning  Failed   25m (x4 over 27m)   kubelet  Failed to pull image "shop/tills:9": not found
"""
DESCRIBED = {
    "Pod": "Name:             {}\nNamespace:        shop\nStatus:           Pending\nContainers:\n  tills:\n    Image:  shop/tills:9\n",
    "Deployment": "Name:                   {}\nNamespace:              shop\nStrategyType:           Recreate\nPod Template:\n  Labels:  app=tills\n",
    "Service": "Name:              {}\nNamespace:         shop\nType:              ClusterIP\nSession Affinity:  None\n",
    "Node": "Name:               {}\nRoles:              worker\nAllocatable:\n  cpu:  4\nSystem Info:\n  Kernel:  6\n",
    "CronJob": "Name:                 {}\nNamespace:            shop\nSchedule:             0 2 * * *\nConcurrency Policy:   Forbid\n",
}


@pytest.mark.parametrize("kind", list(DESCRIBED))
def test_description_is_an_object_with_its_events(tmp_path: Path, kind: str) -> None:
    text = DESCRIBED[kind].format("tills-1") + EVENTS
    assert is_description(text)
    state, event = list(read_descriptions(text, CAPTURED))
    assert isinstance(state, ObjectState)
    assert (state.kind, state.name) == (kind, "tills-1")
    assert isinstance(event, PlatformEvent)
    assert (event.object, event.reason, event.count) == (f"{kind}/tills-1", "Failed", 4)
    assert (event.time, event.first_time) == (CAPTURED - 25 * 60, CAPTURED - 27 * 60)
    path = tmp_path / "tills.txt"
    path.write_text(text)
    assert recognize_file(path).holds == "kubernetes"


def test_several_descriptions_in_one_text() -> None:
    text = "\n\n".join(DESCRIBED["Pod"].format(f"tills-{number}") + EVENTS for number in range(3))
    names = [row.name for row in read_descriptions(text, CAPTURED) if isinstance(row, ObjectState)]
    assert names == ["tills-0", "tills-1", "tills-2"]


@pytest.mark.parametrize(
    "text", ["Name: Ann\nAge: 7\n", "2026-11-29 14:00:02 INFO Name:   x\n", "Name:   tills\nfoo bar\n"]
)
def test_other_text_is_no_description(text: str) -> None:
    assert not is_description(text)
