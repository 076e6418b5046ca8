"""Whole investigations of a case full of planted secrets: none of them is stored, shown, exported, or sent to a model."""

import base64
import contextlib
import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from package_path import PACKAGE_PATH
from planted_secrets import PlantedSecret, plant_all
from planted_unseen_forms import UNSEEN_FORMS
from planted_vendor_forms import VENDOR_FORMS
from planted_written_forms import WRITTEN_FORMS

from opsleuth.models.server.chat_replies import ScriptedModel
from opsleuth.models.server.model_server import ModelServer
from opsleuth.models.server.rule_models import reply_as_investigator
from opsleuth.scenarios.orders_incident import QUESTION, write_case
from opsleuth.state.run_status import ExitCode

TOP = Path(__file__).resolve().parent.parent.parent
SERVICE = "orders-api"
LONGEST_PIECE = 12
"""Characters of a secret between two digits that give it away."""
SHORTEST_WORD = 3
"""Letters in a row: single ones between digits, as in hexadecimal, occur by chance in the digests that a run stores."""
FEWEST_LETTERS = 10
"""Characters besides digits that a secret has to have to be looked for without them."""
INVISIBLE = re.compile(
    "[\x1b\x85\xad\u200b\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
DIGITS = re.compile(r"[0-9]+")


class PlantedCase:
    """The built-in incident with a secret in every kind of text that a case can hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = write_case(folder)
        self.planted = list(plant_all([*VENDOR_FORMS, *WRITTEN_FORMS, *UNSEEN_FORMS], seed=5))
        places = (self._log, self._log, self._change, self._object, self._event, self._runbook)
        for number, planted in enumerate(self.planted):
            places[number % len(places)](number, planted)
        self._alert(self.planted[0])
        self.question = f"{QUESTION} It logs in with password={self.planted[-1].needles[0]}"

    def _append(self, name: str, row: Mapping[str, Any]) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _log(self, number: int, planted: PlantedSecret) -> None:
        for repeat in range(1 + number % 3):
            stamp = f"2026-03-03T14:{3 + number % 20:02}:{number % 50:02}.{repeat}00Z"
            row = {
                "timestamp": stamp,
                "service": SERVICE,
                "pod": f"{SERVICE}-a",
                "level": "ERROR",
                "message": planted.text,
            }
            self._append("logs.jsonl", row)

    def _change(self, number: int, planted: PlantedSecret) -> None:
        row = {
            "timestamp": f"2026-03-03T13:{number % 60:02}:00Z",
            "service": SERVICE,
            "kind": "config",
            "summary": planted.text,
            "diff": f"+ {planted.text}",
        }
        self._append("changes.jsonl", row)

    def _object(self, number: int, planted: PlantedSecret) -> None:
        annotations = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"note": planted.text})}
        container = {
            "name": "app",
            "args": [planted.text] if "\n" in planted.text else planted.text.split(),
            "env": [{"name": "NOTE", "value": planted.text}],
        }
        row = {
            "captured_at": "2026-03-03T14:10:00Z",
            "kind": "Pod",
            "name": f"{SERVICE}-{number}",
            "namespace": "shop",
            "status": {"phase": "Failed", "message": planted.text},
            "spec": {"containers": [container]},
            "metadata": {"name": f"{SERVICE}-{number}", "annotations": annotations},
        }
        self._append("objects.jsonl", row)

    def _event(self, number: int, planted: PlantedSecret) -> None:
        row = {
            "timestamp": f"2026-03-03T14:05:{number % 60:02}Z",
            "source": "kubernetes",
            "object": f"Pod/{SERVICE}-a",
            "type": "Warning",
            "reason": "Failed",
            "message": planted.text,
        }
        self._append("events.jsonl", row)

    def _runbook(self, number: int, planted: PlantedSecret) -> None:
        with (self.folder / "runbooks" / f"login-{number}.md").open("w", encoding="utf-8") as file:
            file.write(f"# {SERVICE} is slow: log in\n\n{planted.text}\n")

    def _alert(self, planted: PlantedSecret) -> None:
        path = self.folder / "incident.json"
        incident = json.loads(path.read_text("utf-8"))
        incident["alert"]["text"] += f" {planted.text}"
        path.write_text(json.dumps(incident), "utf-8")


class CommandLine:
    """The command line on a data folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "o.db"

    def run(self, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "opsleuth", "--db", str(self.database), *arguments],
            env=os.environ | {"PYTHONPATH": str(PACKAGE_PATH)} | environment,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode in (0, ExitCode.INCONCLUSIVE), done.stdout + done.stderr
        return done.stdout + done.stderr

    def stored(self) -> Iterator[str]:
        """Every value of the database as text, what is compressed as well."""
        connection = sqlite3.connect(self.database)
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        for table in tables:
            for row in connection.execute(f"SELECT * FROM {table}"):
                yield from (_as_text(value) for value in row if isinstance(value, str | bytes))
        connection.close()


def _as_text(value: str | bytes) -> str:
    if isinstance(value, str):
        return value
    with contextlib.suppress(zlib.error):
        value = zlib.decompress(value)
    return value.decode("utf-8", "replace")


def gives_away(planted: PlantedSecret, text: str) -> bool:
    """Whether a text holds a spelling of the secret, also one with other signs in the place of its digits, as the pattern of a log line has."""
    pieces = [
        piece for needle in planted.needles for piece in DIGITS.split(needle) if len(piece) >= LONGEST_PIECE
    ]
    if any(part in text for part in (*planted.needles, *pieces)):
        return True
    return any(_find_without_digits(needle, text) for needle in planted.needles)


def _find_without_digits(needle: str, text: str) -> bool:
    pieces = DIGITS.split(needle)
    longest = max(pieces, key=len)
    if sum(map(len, pieces)) < FEWEST_LETTERS or len(longest) < SHORTEST_WORD or longest not in text:
        return False
    return re.search(r"[^\s\"]{1,6}".join(map(re.escape, pieces)), text) is not None


def leaked_forms(case: PlantedCase, texts: Iterator[str]) -> list[str]:
    whole = "\n".join(texts)
    return [planted.form for planted in case.planted if gives_away(planted, whole)]


def ask_for_everything(case: PlantedCase) -> list[dict[str, Any]]:
    """A script for a model that looks at every place where something was planted."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for minute in range(3, 23):
        window = {"since": f"2026-03-03T14:{minute:02}:00Z", "until": f"2026-03-03T14:{minute:02}:59Z"}
        calls.append(("logs_search", {**window, "service": SERVICE, "level": "error", "limit": 100}))
    calls += [
        (
            "events_list",
            {
                "since": f"2026-03-03T14:05:{second:02}Z",
                "until": f"2026-03-03T14:05:{second + 9:02}Z",
                "limit": 100,
            },
        )
        for second in range(0, 60, 10)
    ]
    calls += [
        (
            "changes_list",
            {
                "since": f"2026-03-03T13:{minute:02}:00Z",
                "until": f"2026-03-03T13:{minute + 9:02}:59Z",
                "limit": 100,
            },
        )
        for minute in range(0, 60, 10)
    ]
    calls += [
        ("objects_get", {"kind": "Pod", "name": f"{SERVICE}-{number}", "limit": 5})
        for number in range(3, len(case.planted), 6)
    ]
    calls.append(("runbooks_find", {}))
    decisions = [
        {
            "decision": {
                "reason": "look",
                "calls": [
                    {"tool": tool, "arguments": given, "why": "to see it"}
                    for tool, given in calls[at : at + 6]
                ],
            }
        }
        for at in range(0, len(calls), 6)
    ]
    end = {"verdict": "inconclusive", "answer": "Everything was looked at.", "claims": []}
    return [*decisions, {"decision": {"reason": "enough", "conclusion": end}}]


def investigate(case: PlantedCase, command: CommandLine, planner: str) -> tuple[str, list[Any]]:
    """What the run shows, and what the model was sent."""
    arguments = ("run", case.question, "--case", str(case.folder), "--max-turns", "60")
    if planner == "offline":
        return command.run(*arguments), []
    script = ScriptedModel(ask_for_everything(case))
    with ModelServer(reply_as_investigator if planner == "model" else script) as server:
        settings = {"OPSLEUTH_BASE_URL": server.base_url, "OPSLEUTH_MODEL": "m", "OPSLEUTH_REVIEWER": "none"}
        shown = command.run(*arguments, **settings)
        assert server.requests
        return shown, list(server.requests)


@pytest.mark.slow
@pytest.mark.parametrize("planner", ["offline", "model", "curious model"])
def test_no_planted_secret_leaves_the_case(tmp_path: Path, planner: str) -> None:
    case, command = PlantedCase(tmp_path / "case"), CommandLine(tmp_path)
    first, requests = investigate(case, command, planner)
    shown = [
        first,
        *(command.run("report", "-", "--format", form, "--full") for form in ("text", "json", "md", "html")),
    ]
    shown += [
        command.run("log", "-"),
        command.run("--json", "log", "-"),
        command.run("show", "-"),
        command.run("trace", "-"),
    ]
    command.run("export", "-", "--with-evidence", "-o", str(tmp_path / "run.gz"))
    stored = list(command.stored())
    assert leaked_forms(case, iter(stored)) == []
    assert leaked_forms(case, iter(shown)) == []
    assert leaked_forms(case, exported(tmp_path / "run.gz")) == []
    assert leaked_forms(case, (json.dumps(request, ensure_ascii=False) for request in requests)) == []
    assert not INVISIBLE.search("\n".join(shown))
    assert "unchanged since they were written" in command.run("log", "-", "--verify")
    if planner == "curious model":
        assert len(re.findall(r"\[redacted:", "\n".join(stored))) > len(case.planted)


def exported(path: Path) -> Iterator[str]:
    """Every value of an export as text."""
    for line in gzip.decompress(path.read_bytes()).decode().splitlines()[1:]:
        for value in json.loads(line)[1].values():
            yield _as_text(base64.b64decode(value["base64"])) if isinstance(value, dict) else str(value)
