"""`init`, `doctor`, `tools`, `tools test`: from nothing to sources that answer, and what they say when they do not."""

import json
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from contract_server import Asked, Reply, contract_server
from servers import free_port
from stored_runs import Program

from opsleuth.state.run_status import ExitCode

HANG_GUARD = 60
"""Seconds for all sources together: ten times what they may take, and as long as the first of those that hang would."""
SOURCE_GUARD = 20
"""Seconds for one source: less than either of those that hang would wait by itself."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The command line, in a folder of its own that is no repository."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path / "db" / "opsleuth.db", tmp_path)


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield listening.getsockname()[1]


def configure(home: Path, **sources: str) -> None:
    """The user's configuration file with these sources."""
    file = home / ".config" / "opsleuth" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    parts = [
        f"[environments.shop.sources.{name.replace('_', '-')}]\n{text}\n" for name, text in sources.items()
    ]
    file.write_text("\n".join(parts))


def examined(program: Program, code: ExitCode) -> dict[str, dict[str, Any]]:
    ended = program("doctor", "--json")
    assert ended.returncode == code, ended.stderr
    return {source["name"]: source for source in json.loads(ended.stdout)["sources"]}


def test_all_is_well(
    program: Program, tmp_path: Path, prometheus: str, postgres: str, journal: Path, repository: Path
) -> None:
    configure(
        tmp_path,
        metrics=f'kind = "prometheus"\nurl = "{prometheus}"',
        orders_db=f'kind = "postgres"\ndsn = "{postgres}"',
        journal=f'kind = "journal"\nfiles = ["{journal}"]',
        changes=f'kind = "git"\npath = "{repository}"',
    )
    found = examined(program, ExitCode.OK)
    assert {check["state"] for source in found.values() for check in source["checks"]} == {"ok"}
    assert "services: 7: catalog" in program("doctor").stdout


@pytest.mark.slow
def test_eight_sources_of_which_two_hang(program: Program, tmp_path: Path, silent: int) -> None:
    hang = f'kind = "prometheus"\nurl = "http://127.0.0.1:{silent}"\ntimeout = 60'
    nowhere = f'url = "http://127.0.0.1:{free_port()}"'
    kinds = ("prometheus", "loki", "opensearch", "jaeger", "tempo", "alertmanager")
    hang_db = f'kind = "postgres"\ndsn = "host=127.0.0.1 port={silent} sslmode=disable"\nconnect_seconds = 30'
    down = {f"down_{kind}": f'kind = "{kind}"\n{nowhere}' for kind in kinds}
    configure(tmp_path, hang_1=hang, hang_2=hang_db, **down)
    began = monotonic()
    found = examined(program, ExitCode.CONFIG)
    assert monotonic() - began < HANG_GUARD
    assert max(source["seconds"] for source in found.values()) < SOURCE_GUARD
    assert "no answer" in found["hang-1"]["checks"][0]["text"]
    assert "no answer" in found["hang-2"]["checks"][0]["text"]
    for kind in kinds:
        assert "nothing answers" in found[f"down-{kind}"]["checks"][0]["text"]


@pytest.mark.slow
def test_the_platform_and_declared_commands_are_looked_at(
    program: Program, tmp_path: Path, silent: int
) -> None:
    """Each with what is wrong; no declared command is run."""

    def plane(asked: Asked) -> Reply:
        known = asked.path == "/services/orders-api"
        return Reply({"name": "orders-api", "revision": "7"} if known else {}, 200 if known else 404)

    policy = tmp_path / "policy.toml"
    policy.write_text(
        f'[command.depth]\nargv = ["touch", "{tmp_path}/ran"]\npurpose = "x"\nrisk = "read"\n'
        '[command.gone]\nargv = ["no-such-program"]\npurpose = "x"\nrisk = "read"\n'
    )
    with contract_server(plane) as server:
        for url in (server.url, f"http://127.0.0.1:{silent}"):
            configure(tmp_path, books=f'kind = "runbooks"\nfolder = "{tmp_path}"')
            file = tmp_path / ".config" / "opsleuth" / "config.toml"
            file.write_text(
                f'{file.read_text()}[environments.shop.platform]\nurl = "{url}"\nname = "shop"\n'
                '[services."orders-api"]\naliases = ["orders"]\n[services.ghost]\naliases = ["g"]\n'
            )
            ended = program("doctor", "--json", "--policy", str(policy))
            assert ended.returncode == ExitCode.CONFIG, ended.stderr
            found = {source["name"]: source["checks"] for source in json.loads(ended.stdout)["sources"]}
            if url == server.url:
                assert [check["state"] for check in found["shop"]] == ["ok", "warning"]
                assert "it knows no ghost" in found["shop"][1]["text"]
            else:
                assert "no answer within" in found["shop"][0]["text"]
    assert (found["depth"][0]["state"], found["gone"][0]["state"]) == ("ok", "failed")
    assert not (tmp_path / "ran").exists()


def test_secrets_are_named_by_their_place(program: Program, tmp_path: Path) -> None:
    text = f'kind = "prometheus"\nurl = "http://127.0.0.1:{free_port()}"\ntoken = {{ env = "PROM_TOKEN" }}'
    configure(tmp_path, metrics=text)
    ended = program("doctor", "--json", PROM_TOKEN="geheim-4711")
    assert json.loads(ended.stdout)["sources"][0]["secrets"] == ["token from variable PROM_TOKEN"]
    assert "geheim" not in ended.stdout + ended.stderr
    [missing] = examined(program, ExitCode.CONFIG)["metrics"]["checks"]
    assert "variable PROM_TOKEN is not set" in missing["text"]


def test_a_password_in_a_connection_string_never_comes_out(program: Program, tmp_path: Path) -> None:
    configure(tmp_path, db='kind = "postgres"\ndsn = { env = "DATABASE_URL" }')
    url = f"postgresql://me:geheim-4711@127.0.0.1:{free_port()}/shop"
    ended = program("tools", "test", "database_statements", "--json", DATABASE_URL=url)
    assert ended.returncode == ExitCode.UNREACHABLE
    assert "Connection refused" in json.loads(ended.stdout)["record"]["error"]
    assert "geheim" not in ended.stdout + ended.stderr


def test_init_finds_what_is_there_and_never_writes_a_secret(
    program: Program, tmp_path: Path, prometheus: str
) -> None:
    subprocess.run(["git", "init", "--quiet", "."], check=True, cwd=tmp_path)
    url = "postgresql://me:geheim-4711@127.0.0.1/shop"
    ended = program("init", PROMETHEUS_URL=prometheus, DATABASE_URL=url)
    assert ended.returncode == 0, ended.stderr
    written = (tmp_path / ".opsleuth" / "config.toml").read_text()
    assert f'url = "{prometheus}"' in written
    assert 'dsn = { env = "DATABASE_URL" }' in written
    assert 'kind = "git"' in written
    assert "geheim" not in written + ended.stdout
    assert (tmp_path / ".opsleuth" / "config.toml").stat().st_mode & 0o077 == 0
    found = json.loads(program("doctor", "--json", DATABASE_URL=url).stdout)
    assert found["environment"] == "default"
    assert {s["name"] for s in found["sources"]} >= {"metrics", "database", "changes"}
    assert program("init").returncode == ExitCode.USAGE


def test_init_knows_the_variables_of_other_tools(program: Program, tmp_path: Path) -> None:
    """Each address that is found is a source; one with a password in it is passed over."""
    url = f"http://127.0.0.1:{free_port()}"
    kube = tmp_path / "kubeconfig"
    kube.write_text("current-context: none\n")
    addresses = {"LOKI_ADDR": url, "OPENSEARCH_URL": url, "JAEGER_URL": url, "TEMPO_URL": url, "GRAFANA_URL": url,
                 "ALERTMANAGER_URL": url.replace("//", "//me:geheim-4711@"), "GITHUB_REPOSITORY": "shop/orders",
                 "GITHUB_TOKEN": "geheim-4711", "KUBECONFIG": str(kube)}  # fmt: skip
    ended = program("init", **addresses)
    assert ended.returncode == 0, ended.stderr
    written = (tmp_path / ".opsleuth" / "config.toml").read_text()
    assert "geheim" not in written + ended.stdout
    sources = tomllib.loads(written)["environments"]["default"]["sources"]
    kinds = {name: settings["kind"] for name, settings in sources.items()}
    assert kinds.items() >= {
        "loki": "loki", "search": "opensearch", "traces": "jaeger", "tempo": "tempo", "notes": "grafana",
        "github": "github", "cluster": "kubernetes",
    }.items()  # fmt: skip
    assert "alerts" not in kinds


@pytest.mark.slow
def test_init_where_there_is_nothing(program: Program, tmp_path: Path) -> None:
    ended = program("init", PATH="/nowhere", PYTHONHASHSEED="0")
    assert ended.returncode == 0, ended.stderr
    assert "opsleuth doctor" in ended.stderr
    assert (tmp_path / ".opsleuth" / "config.toml").exists()


def test_tools_say_which_source_is_behind_them(program: Program, tmp_path: Path) -> None:
    configure(tmp_path, metrics='kind = "prometheus"\nurl = "http://127.0.0.1:9"')
    rows = {tool["name"]: tool for tool in json.loads(program("tools", "--json").stdout)["tools"]}
    assert rows["metrics_query"]["sources"] == ["metrics"]
    assert rows["logs_search"]["sources"] == []
    assert rows["metrics_query"]["arguments"]["properties"]["service"]
    assert "metrics_query" in program("tools").stdout


def test_one_call(program: Program, tmp_path: Path, prometheus: str) -> None:
    configure(tmp_path, metrics=f'kind = "prometheus"\nurl = "{prometheus}"\nstep = 60')
    window = ("--since", "2026-03-03T13:00:00Z", "--until", "2026-03-03T14:30:00Z")
    arguments = ("--args", '{"service": "orders-api", "metric": "latency_p95"}')
    told = json.loads(program("tools", "test", "metrics_query", *arguments, *window, "--json").stdout)
    assert (told["status"], told["source"], told["record"]["samples"]) == ("ok", "metrics", 90)
    assert "query_range" in told["query"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("metrics_qery",), "nearest: metrics_query"),
        (("metrics_query", "--args", '{"servic": "x"}'), "servic"),
        (("metrics_query", "--args", "[1]"), "write an object"),
        (("metrics_query", "--args", "{"), "not JSON"),
    ],
)
def test_a_call_that_is_none(
    program: Program, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    configure(tmp_path, metrics='kind = "prometheus"\nurl = "http://127.0.0.1:9"')
    ended = program("tools", "test", *arguments)
    assert ended.returncode == ExitCode.USAGE
    assert words in ended.stderr


def test_a_call_to_a_case(program: Program, case: Path) -> None:
    ended = program("tools", "test", "changes_list", "--case", str(case))
    assert ended.returncode == 0
    assert "2.14.0" in ended.stdout
