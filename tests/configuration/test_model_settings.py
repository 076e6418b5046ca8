"""Where a model's settings and key come from, and what is refused with which words."""

import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.configuration.config_file import read_config_file
from opsleuth.configuration.model_keys import read_key
from opsleuth.configuration.model_prices import TokenPrice, compute_call_cost
from opsleuth.configuration.model_settings import OPENAI, ModelSettings, load_model_settings
from opsleuth.models.request_modes import ModeLadder, RequestMode
from opsleuth.state.errors import ConfigError

FILE = """
[profiles.local]
base_url = "http://127.0.0.1:8080/v1"
model = "small"
context_tokens = 8000
max_tokens_field = "max_tokens"
[profiles.hosted]
model = "big"
key_env = "HOSTED_KEY"
reviewer = { model = "small" }
[prices.big]
input = 0.25
output = 2
cached = 0.025
date = 2026-11-01
[prices.small]
input = 0.1
output = 0.2
date = 2026-11-01
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    return path


def test_nothing_configured(tmp_path: Path) -> None:
    assert load_model_settings((), {}) is None


def test_variables_alone(tmp_path: Path) -> None:
    given = {"OPSLEUTH_BASE_URL": "http://x/v1", "OPSLEUTH_MODEL": "m", "OPSLEUTH_CONTEXT_TOKENS": "9000"}
    settings = load_model_settings((), given)
    assert settings is not None
    assert (settings.base_url, settings.model, settings.context_tokens) == ("http://x/v1", "m", 9000)


def test_flags_beat_variables_beat_the_file(file: Path) -> None:
    variables = {"OPSLEUTH_MODEL": "of-variable", "OPSLEUTH_MODEL_MODE": "tools"}
    settings = load_model_settings(
        [read_config_file("user", file)], variables, {"profile": "local", "model": "of-flag", "mode": None}
    )
    assert settings is not None
    assert (settings.model, settings.mode, settings.base_url) == (
        "of-flag",
        "tools",
        "http://127.0.0.1:8080/v1",
    )


def test_a_profile_with_its_reviewer_and_prices(file: Path) -> None:
    settings = load_model_settings([read_config_file("user", file)], {}, {"profile": "hosted"})
    assert settings is not None
    assert settings.base_url == OPENAI
    assert settings.price == TokenPrice(
        input=Decimal("0.25"), output=Decimal(2), cached=Decimal("0.025"), date=date(2026, 11, 1)
    )
    reviewer = settings.for_reviewer()
    assert reviewer is not None
    assert (reviewer.model, reviewer.key_env, reviewer.mode) == ("small", "HOSTED_KEY", "json")
    assert reviewer.price is not None
    assert reviewer.price.input == Decimal("0.1")


def test_another_address_gets_neither_the_key_nor_the_headers() -> None:
    settings = ModelSettings(
        model="big", key_env="KEY", headers={"X-Team": "a"}, organization="o", ca_file="ca.pem",
        price=TokenPrice(input=Decimal(1), output=Decimal(2), date=date(2026, 11, 1)),
        reviewer={"model": "small", "base_url": "http://other/v1"},
    )  # fmt: skip
    reviewer = settings.for_reviewer()
    assert reviewer is not None
    assert (reviewer.key_env, reviewer.headers, reviewer.organization, reviewer.price) == (
        None,
        {},
        None,
        None,
    )
    assert reviewer.ca_file == "ca.pem"


@pytest.mark.parametrize("name", ["openai", "local", "ollama", "vllm", "azure", "company"])
def test_the_profiles_of_the_documentation_can_be_used(tmp_path: Path, name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "config.toml").write_text("\n".join(b for b in blocks if "[profiles." in b), "utf-8")
    settings = load_model_settings(
        [read_config_file("user", tmp_path / "config.toml")], {}, {"profile": name}
    )
    assert settings is not None
    assert settings.model


def test_settings_survive_being_stored(file: Path) -> None:
    settings = load_model_settings([read_config_file("user", file)], {}, {"profile": "hosted"})
    assert settings is not None
    stored = settings.model_dump(mode="json")
    assert ModelSettings.model_validate(stored).model_dump(mode="json") == stored


@pytest.mark.parametrize(
    ("text", "flags", "says"),
    [
        ("profile = ", {}, "not valid TOML"),
        ("", {"profile": "x"}, "no profile 'x'.*the profiles are none"),
        ('[profiles.a]\nmodel = "m"\ncolour = 1', {"profile": "a"}, "profile a cannot be used: colour"),
        ('[profiles.a]\nbase_url = "http://x/v1"', {"profile": "a"}, "no model: set OPSLEUTH_MODEL"),
        ('[profiles.a]\nmodel = "m"\nbase_url = "x"', {"profile": "a"}, "base_url"),
        ('[profiles.a]\nmodel = "m"\nreviewer = { mdl = 1 }', {"profile": "a"}, "the profile's reviewer"),
        ("", {"mode": "json"}, "no model"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, flags: dict[str, str], says: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_model_settings([read_config_file("user", path)], {}, flags)


LOCAL = ModelSettings(model="m", base_url="http://127.0.0.1:1/v1")


def test_the_key_of_openai_goes_to_openai_alone() -> None:
    both = {"OPENAI_API_KEY": "sk-openai"}
    assert read_key(LOCAL, both) is None
    assert read_key(ModelSettings(model="m"), both) == "sk-openai"
    assert read_key(LOCAL, {"OPSLEUTH_API_KEY": " mine\n"}) == "mine"


def test_a_key_from_a_file_or_a_command(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("of-file\n")
    assert read_key(LOCAL.model_copy(update={"key_file": str(path)}), {}) == "of-file"
    assert read_key(LOCAL.model_copy(update={"key_command": f"cat {path}"}), {}) == "of-file"


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"key_env": "NOT_SET"}, "NOT_SET.*is not set or empty"),
        ({"key_file": "/nowhere/key"}, "/nowhere/key.*cannot be read"),
        ({"key_command": "false"}, "ended with code 1"),
        ({"key_command": "no-such-program-here"}, "cannot be run"),
        ({"key_command": "printf 'a\\nb'"}, "on one line"),
        ({"base_url": OPENAI}, "OpenAI needs a key"),
    ],
)
def test_a_missing_key_is_told_before_anything_starts(where: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_key(LOCAL.model_copy(update=where), {})


def test_money_by_the_table() -> None:
    price = TokenPrice(input=Decimal(2), output=Decimal(10), cached=Decimal("0.5"), date=date(2026, 11, 1))
    assert compute_call_cost(price, 1_000_000, 100_000, 0) == Decimal(3)
    assert compute_call_cost(price, 1_000_000, 100_000, 1_000_000) == Decimal("1.5")
    assert compute_call_cost(None, 10**9, 10**9, 0) == 0


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.data())
def test_cached_tokens_never_cost_more(sent: int, received: int, data: st.DataObject) -> None:
    price = TokenPrice(input=Decimal(2), output=Decimal(10), cached=Decimal("0.5"), date=date(2026, 11, 1))
    cached = data.draw(st.integers(0, sent))
    assert (
        0 <= compute_call_cost(price, sent, received, cached) <= compute_call_cost(price, sent, received, 0)
    )


def test_a_ladder_goes_down_and_is_remembered(tmp_path: Path) -> None:
    memory = tmp_path / "cache" / "modes.json"
    ladder = ModeLadder(LOCAL, memory)
    assert ladder.mode is RequestMode.TOOLS
    assert ladder.down()
    ladder.remember_mode()
    assert ModeLadder(LOCAL, memory).mode is RequestMode.SCHEMA
    assert ModeLadder(LOCAL.model_copy(update={"model": "other"}), memory).mode is RequestMode.TOOLS
    assert not ModeLadder(LOCAL.model_copy(update={"mode": "tools"})).down()


@pytest.mark.parametrize("damage", ["", "[]", '{"auto http://127.0.0.1:1/v1 m": "magic"}', "\x00"])
def test_a_damaged_memory_is_no_memory(tmp_path: Path, damage: str) -> None:
    memory = tmp_path / "modes.json"
    memory.write_text(damage)
    ladder = ModeLadder(LOCAL, memory)
    assert ladder.mode is RequestMode.TOOLS
    ladder.remember_mode()
    assert ModeLadder(LOCAL, memory).proven
