"""Sources are configured by name; mistakes are told without a value; a project's file counts once it is trusted."""

from pathlib import Path

import pytest
from stored_runs import Program

from opsleuth.configuration.config_file import read_config_file
from opsleuth.configuration.secret_references import Secret, Vault
from opsleuth.configuration.sources import load_configured_sources
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest, first_state, open_sources
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.sources.open_sources import KINDS, open_live_sources
from opsleuth.tools.spec import UnavailableError

PROMETHEUS = """
[environments.prod.sources.metrics]
kind = "prometheus"
url = "http://127.0.0.1:9"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / ".opsleuth" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_as_people_write_it(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        PROMETHEUS
        + """
token = { env = "PROM_TOKEN" }
[environments.prod.sources.repo]
kind = "git"
path = "."
[environments.prod.sources.logs]
kind = "logfiles"
files = ["logs/*.log", "/var/log/app.log"]
[services."orders-api"]
aliases = ["订单接口"]
""",
    )
    found = load_configured_sources([read_config_file("user", file)])
    assert found.environment == "prod"
    assert found.sources["metrics"]["token"]["env"] == "PROM_TOKEN"
    assert found.sources["repo"]["path"] == str(tmp_path)
    assert found.sources["logs"]["files"] == [f"{tmp_path}/logs/*.log", "/var/log/app.log"]
    assert found.aliases == {"orders-api": ("订单接口",)}
    opened = open_sources(RunSettings(sources=found.sources))
    assert list(opened.sources.by_name) == ["metrics", "repo", "logs"]


def test_the_file_in_the_documentation(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    found = load_configured_sources([read_config_file("user", written(tmp_path, text))])
    shown = {KINDS[settings["kind"]] for settings in found.sources.values()}  # a kind may have two names
    assert shown == set(KINDS.values())
    assert found.aliases["orders-api"] == ("orders", "订单接口")
    assert len(open_sources(RunSettings(sources=found.sources)).sources.by_name) == len(found.sources)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[environments.prod.sources.m]\nkind = 'prometheus'\nurl = 'ftp://x'", "url"),
        ("[environments.prod.sources.m]\nkind = 'prometheus'\nurl = 'http://u:geheim@x'", "url"),
        ("[environments.prod.sources.m]\nkind = 'postgres'\ndsn = 'host=x password=geheim'", "dsn holds a password"),
        ("[environments.prod.sources.m]\nkind = 'postgres'\ndsn = 'postgresql://u:geheim@x/y'", "dsn holds a password"),
        ("[environments.prod.sources.m]\nkind = 'prometheus'\nurl = 'http://x'\ntokn = 'geheim'", "tokn"),
        ("[environments.prod.sources.m]\nkind = 'prometheus'\nurl = 'http://x'\ntoken = 'geheim'", "token"),
        ("[environments.prod.sources.m]\nkind = 'prometheus'\nurl = 'http://x'\nuser = 'me'", "belong together"),
        ("[environments.prod.sources.m]\nkind = 'oracle'", "'prometheus', 'postgres'"),
        ("[environments.prod", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_without_its_value(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as error:
        load_configured_sources([read_config_file("user", written(tmp_path, text))])
    assert "geheim" not in str(error.value)


def test_which_environment(tmp_path: Path) -> None:
    two = PROMETHEUS + PROMETHEUS.replace("prod", "test")
    file = written(tmp_path, two)
    with pytest.raises(ConfigError, match="which environment is meant\\? prod, test"):
        load_configured_sources([read_config_file("user", file)])
    assert load_configured_sources([read_config_file("user", file)], "test").environment == "test"
    assert load_configured_sources([read_config_file("user", file)], lenient=True).sources == {}
    with pytest.raises(ConfigError, match="no environment 'tset' \\(nearest: test\\)"):
        load_configured_sources([read_config_file("user", file)], "tset")


def test_the_project_wins_name_by_name(tmp_path: Path) -> None:
    user = tmp_path / "user.toml"
    user.write_text(PROMETHEUS + PROMETHEUS.replace("sources.metrics", "sources.second"))
    project = written(tmp_path, PROMETHEUS.replace(":9", ":10"))
    found = load_configured_sources([read_config_file("user", user), read_config_file("project", project)])
    assert {name: s["url"][-3:] for name, s in found.sources.items()} == {"metrics": ":10", "second": "1:9"}
    assert found.reaches == ("prod.metrics: prometheus url=http://127.0.0.1:10",)


# --- secrets -------------------------------------------------------------------------------------------------


def test_a_password_that_is_the_user_s_name_hides_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD_HERE", "postgres")
    database = {"kind": "postgres", "dsn": "host=db user=postgres", "password": {"env": "PGPASSWORD_HERE"}}
    vault, heard = Vault(), list[str]()
    vault.listen(heard.append)
    open_live_sources({"db": database}, vault)
    assert vault.reveal(Secret(env="PGPASSWORD_HERE")) == "postgres"
    monkeypatch.setenv("OTHER_HERE", "another-password")
    vault.reveal(Secret(env="OTHER_HERE"))
    assert heard == ["another-password"]


def test_a_secret_is_read_once_and_told_to_the_redactor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_HERE", "from-variable\n")
    (tmp_path / "token").write_text("from-file\n")
    vault, heard = Vault(), list[str]()
    assert vault.reveal(Secret(env="TOKEN_HERE")) == "from-variable"
    vault.listen(heard.append)
    assert vault.reveal(Secret(file=str(tmp_path / "token"))) == "from-file"
    assert vault.reveal(Secret(command=("printf", "from command"))) == "from command"
    assert heard == ["from-variable", "from-file", "from command"]


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        (Secret(env="NO_SUCH_VARIABLE"), "variable NO_SUCH_VARIABLE is not set"),
        (Secret(file="/no/such/file"), "file /no/such/file cannot be read: No such file"),
        (Secret(command=("false",)), "command false that prints a secret ended with code 1"),
        (Secret(command=("no-such-program",)), "cannot be run: No such file"),
        (Secret(command=("printf", "a\nb")), "should hold the secret alone, on one line"),
        (Secret(command=("true",)), "should hold the secret alone, on one line"),
        (Secret(command=("printf", r"\377")), "printed no text"),
    ],
)
def test_a_secret_that_cannot_be_read(secret: Secret, told: str) -> None:
    with pytest.raises(UnavailableError, match=told):
        Vault().reveal(secret)


@pytest.mark.parametrize(
    "places", [{}, {"env": "A", "file": "b"}, {"keyring": "x"}, {"env": "A", "user": "u"}]
)
def test_a_secret_lies_in_one_place(places: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"one place|belong together"):
        Secret.model_validate(places)


# --- names ---------------------------------------------------------------------------------------------------


def placed(
    question: str, alert: dict[str, str] | None = None, **aliases: tuple[str, ...]
) -> tuple[str | None, str]:
    settings = RunSettings(
        sources={"m": {"kind": "prometheus", "url": "http://127.0.0.1:9"}},
        aliases={name.replace("_", "-"): words for name, words in aliases.items()},
    )
    request = StartRequest(run="inv-1", question=question, alert=alert, settings=settings)
    state = first_state(request, open_sources(settings), SystemClock())
    return state.alert.service if state.alert else None, state.unresolved


def test_a_service_is_found_by_its_alias() -> None:
    question = "排查订单接口最近半个小时突然变慢的原因，并给出处理建议"
    assert placed(question, orders_api=("订单接口",)) == ("orders-api", "")


def test_an_alert_may_call_the_service_by_its_alias() -> None:
    assert placed("slow", {"text": "slow", "service": "orders"}, orders_api=("orders",)) == ("orders-api", "")


def test_an_alias_of_two_services_is_asked_for_never_guessed() -> None:
    service, unresolved = placed("slow", {"text": "slow", "service": "shop"}, cart=("shop",), stock=("shop",))
    assert service is None
    assert "shop may be cart, stock" in unresolved


# --- the command line ----------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "db" / "opsleuth.db", tmp_path)


def test_no_source_says_the_ways_on(program: Program) -> None:
    ended = program("run", "cart is slow")
    assert ended.returncode == ExitCode.CONFIG
    assert "opsleuth init" in ended.stderr
    assert "opsleuth demo" in ended.stderr


def test_a_project_s_file_is_trusted_first(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, PROMETHEUS + 'token = { command = ["touch", "ran"] }\n')
    ended = program("run", "cart is slow")
    assert ended.returncode == ExitCode.CONFIG
    assert (
        'prod.metrics: prometheus url=http://127.0.0.1:9 token={"command": ["touch", "ran"]}, runs touch ran'
        in ended.stderr
    )
    assert program("trust").returncode == 0
    ended = program("run", "cart is slow", "--planner", "offline")
    assert ended.returncode != ExitCode.CONFIG
    file.write_text(file.read_text() + "# changed\n")
    assert program("run", "cart is slow").returncode == ExitCode.CONFIG
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_all_that_a_project_s_sources_reach_and_run_is_told(tmp_path: Path) -> None:
    text = """[environments.prod.sources]
orders = { kind = "mysql", host = "db.elsewhere", user = "eve" }
cluster = { kind = "kubernetes", kubeconfig = "kube.yaml" }
metrics = { kind = "prometheus", url = "http://127.0.0.1:9", proxy = "http://elsewhere:3128" }
"""
    orders, cluster, metrics = load_configured_sources(
        [read_config_file("project", written(tmp_path, text))]
    ).reaches
    assert "host=db.elsewhere" in orders
    assert cluster == "prod.cluster: kubernetes kubeconfig=kube.yaml, runs what its kubeconfig names"
    assert "proxy=http://elsewhere:3128" in metrics


def test_services_of_a_file_that_nobody_trusts_do_not_count(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, '[services.web]\naliases = ["shop"]\ncalls = ["db"]\n')
    assert load_configured_sources([read_config_file("project", file)]).aliases == {}
    assert "what it says of services does not count" in program("list").stderr
    assert program("trust").returncode == 0
    assert "does not count" not in program("list").stderr


def test_a_platform_stands_beside_the_sources_and_is_named_to_whoever_trusts_the_file(tmp_path: Path) -> None:
    text = PROMETHEUS + '[environments.prod.platform]\nurl = "http://127.0.0.1:8"\nname = "shop"\n'
    file = read_config_file("project", written(tmp_path, text))
    found = load_configured_sources((file,))
    assert found.platform == {
        "url": "http://127.0.0.1:8",
        "name": "shop",
        "environment": "production",
        "keys": True,
    }
    assert "prod: changes through http://127.0.0.1:8, each after a person's yes" in found.reaches
    assert (
        load_configured_sources((read_config_file("user", written(tmp_path / "x", PROMETHEUS)),)).platform
        is None
    )
