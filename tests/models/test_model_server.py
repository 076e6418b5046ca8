"""The model server as a program, and the command line with a model behind it."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from model_cli import environment, opsleuth
from model_rig import answering

from opsleuth.models.server.model_server import ModelServer
from opsleuth.models.server.reply_faults import FAULT_NAMES
from opsleuth.models.server.rule_models import RULES

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with answering(RULES["investigator"]) as server:
        yield server


def post(url: str, body: Mapping[str, Any]) -> str:
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as reply:
        text: str = reply.read().decode()
        return text


def test_the_program_says_where_it_listens_and_ends_on_interrupt(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "one"}, {"text": "two"}]))
    program = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "opsleuth",
            "dev",
            "model-server",
            "--script",
            str(script),
            "--fault",
            "no_end@2",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
    )
    assert program.stdout is not None
    url = program.stdout.readline().strip()
    replies = [json.loads(post(url, ASKED))["choices"][0] for _ in range(3)]
    program.send_signal(signal.SIGINT)
    assert program.wait(10) == 0
    program.stdout.close()
    assert [r["message"]["content"] for r in replies] == ["one", "two", "two"]
    assert [r["finish_reason"] for r in replies] == ["stop", None, "stop"]


def test_server_sent_events(server: ModelServer) -> None:
    events = post(server.base_url, {**ASKED, "stream": True}).strip().split("\n\n")
    assert events[-1] == "data: [DONE]"
    pieces = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    assert pieces[-1]["usage"]["total_tokens"] > 0
    assert pieces[-2]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "arguments",
    [["--fault", "nonsense"], ["--script", "/nowhere"], ["--rule", "genius"], ["--fault", "quota@x"]],
)
def test_wrong_usage_of_the_program(tmp_path: Path, arguments: list[str]) -> None:
    done = opsleuth(tmp_path, "dev", "model-server", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken(tmp_path: Path, server: ModelServer) -> None:
    port = server.base_url.rpartition(":")[2].partition("/")[0]
    done = opsleuth(tmp_path, "dev", "model-server", "--port", port)
    assert (done.returncode, "choose another with --port" in done.stderr) == (8, True)


def test_demo_with_a_model_finds_what_the_offline_planner_finds(tmp_path: Path, server: ModelServer) -> None:
    done = opsleuth(tmp_path, "demo", OPSLEUTH_BASE_URL=server.base_url, OPSLEUTH_MODEL="scripted")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("orders-db: ")
    assert "unsupported" not in done.stdout


@pytest.mark.slow
def test_record_and_replay_from_the_command_line(tmp_path: Path, server: ModelServer) -> None:
    tape = str(tmp_path / "demo.tape")
    model = {"OPSLEUTH_BASE_URL": server.base_url, "OPSLEUTH_MODEL": "scripted"}
    first = opsleuth(tmp_path / "a", "demo", "-q", "--record", tape, **model)
    asked = len(server.requests)
    second = opsleuth(tmp_path / "b", "demo", "-q", "--replay", tape, **model)
    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert len(server.requests) == asked
    said = [re.sub(r"inv-\S+", "RUN", done.stdout.partition("turns ")[0]) for done in (first, second)]
    assert "replay of a recording" in " ".join(said[1].split())
    # The mark makes the conclusion longer, and with it what is cut: what follows it is the same.
    assert (
        said[0].partition("CAUSES")[2].partition("EVIDENCE")[0]
        == said[1].partition("CAUSES")[2].partition("EVIDENCE")[0]
    )
    both = opsleuth(tmp_path, "demo", "--record", tape, "--replay", tape, **model)
    assert both.returncode == 2
    assert opsleuth(tmp_path, "demo", "--replay", __file__).returncode == 8


def test_what_is_missing_is_told_before_a_run_is_stored(tmp_path: Path) -> None:
    for more, says in (
        ({"OPSLEUTH_MODEL": "gpt"}, "OpenAI needs a key"),
        ({"OPSLEUTH_BASE_URL": "http://127.0.0.1:9/v1"}, "no model"),
        ({"OPSLEUTH_MODEL": "m", "OPSLEUTH_KEY_ENV": "MY_KEY"}, "MY_KEY"),
    ):
        done = opsleuth(tmp_path, "demo", **more)
        assert (done.returncode, says in done.stderr) == (8, True), done.stderr
    assert opsleuth(tmp_path, "demo", "--planner", "model").returncode == 8
    limited = opsleuth(
        tmp_path, "demo", "--max-cost", "1", OPSLEUTH_MODEL="m", OPSLEUTH_BASE_URL="http://x/v1"
    )
    assert (limited.returncode, "needs the price of m" in limited.stderr) == (8, True)
    assert json.loads(opsleuth(tmp_path, "list", "--json").stdout or '{"runs": []}')["runs"] == []


def test_offline_asks_no_model(tmp_path: Path, server: ModelServer) -> None:
    model = {"OPSLEUTH_BASE_URL": server.base_url, "OPSLEUTH_MODEL": "scripted"}
    assert opsleuth(tmp_path, "demo", "-q", "--planner", "offline", **model).returncode == 0
    assert server.requests == []


def test_a_model_is_loaded_only_where_one_decides(tmp_path: Path) -> None:
    code = (
        "import sys; from opsleuth.graph.lifecycle.session import Runner; from opsleuth.models.offline_planner import OfflinePlanner;"
        "print(*({'openai', 'langchain_openai', 'tiktoken'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment(tmp_path)
    )
    assert done.stdout.strip() == ""


def test_every_fault_has_one_name() -> None:
    assert len(set(FAULT_NAMES)) == len(FAULT_NAMES)
