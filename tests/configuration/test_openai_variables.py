"""What the variables of OpenAI's and Azure's tools name: the address, and the key that belongs to it."""

from typing import Any

import pytest

from opsleuth.configuration.model_keys import read_key
from opsleuth.configuration.model_settings import OPENAI, ModelSettings, load_model_settings
from opsleuth.state.errors import ConfigError

GATEWAY = "https://gateway.example/llm/v1"
AZURE = {"AZURE_OPENAI_ENDPOINT": "https://ours.openai.azure.com/", "AZURE_OPENAI_API_KEY": "azure-key"}


def load(environment: dict[str, str], **flags: Any) -> ModelSettings:
    settings = load_model_settings((), environment, flags)
    assert settings is not None
    return settings


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_a_gateway_gets_the_incident_and_its_key(variable: str) -> None:
    environment = {variable: GATEWAY, "OPENAI_API_KEY": "gateway-key"}
    settings = load(environment, model="m")
    assert settings.base_url == GATEWAY
    assert read_key(settings, environment) == "gateway-key"


def test_our_own_variable_wins_and_is_not_sent_the_key_of_the_gateway() -> None:
    environment = {"OPENAI_BASE_URL": GATEWAY, "OPENAI_API_KEY": "k", "OPSLEUTH_BASE_URL": "http://x/v1"}
    settings = load(environment, model="m")
    assert settings.base_url == "http://x/v1"
    assert read_key(settings, environment) is None


def test_the_key_of_a_gateway_does_not_reach_openai() -> None:
    environment = {"OPENAI_BASE_URL": GATEWAY, "OPENAI_API_KEY": "gateway-key"}
    with pytest.raises(ConfigError, match="OPENAI_API_KEY belongs to OPENAI_BASE_URL"):
        read_key(ModelSettings(model="m", base_url=OPENAI), environment)


def test_a_local_server_needs_no_key() -> None:
    environment = {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1/"}
    assert read_key(load(environment, model="m"), environment) is None


def test_an_address_alone_configures_no_model() -> None:
    assert load_model_settings((), {"OPENAI_BASE_URL": GATEWAY, "OPENAI_API_KEY": "k"}) is None


@pytest.mark.parametrize(
    ("more", "address", "query"),
    [
        ({}, "https://ours.openai.azure.com/openai/v1", {}),
        (
            {"OPENAI_API_VERSION": "2024-10-21"},
            "https://ours.openai.azure.com/openai/deployments/m",
            {"api-version": "2024-10-21"},
        ),
    ],
)
def test_azure(more: dict[str, str], address: str, query: dict[str, str]) -> None:
    settings = load(AZURE | more, model="m")
    assert (settings.base_url, settings.query, settings.key_header) == (address, query, "api-key")
    assert read_key(settings, AZURE | more) == "azure-key"


def test_azure_names_its_deployment() -> None:
    more = {"AZURE_OPENAI_DEPLOYMENT": "small", "OPENAI_API_VERSION": "2024-10-21"}
    settings = load(AZURE | more)
    assert settings.model == "small"
    assert settings.base_url.endswith("/deployments/small")


def test_two_endpoints_are_not_guessed_between() -> None:
    with pytest.raises(ConfigError, match="Choose one with OPSLEUTH_BASE_URL"):
        load(AZURE | {"OPENAI_API_KEY": "k"}, model="m")


STORED = ModelSettings(
    model="small", base_url=GATEWAY, key_env="GATEWAY_KEY", headers={"X-Team": "a"}
).model_dump(mode="json")


def test_another_model_is_asked_at_the_endpoint_of_the_run() -> None:
    settings = load_model_settings((), {}, {"model": "large"}, STORED)
    assert settings is not None
    assert (settings.model, settings.base_url, settings.key_env) == ("large", GATEWAY, "GATEWAY_KEY")


def test_another_endpoint_gets_nothing_of_the_first() -> None:
    settings = load_model_settings((), {"OPSLEUTH_BASE_URL": "http://x/v1"}, {"model": "large"}, STORED)
    assert settings is not None
    assert (settings.base_url, settings.key_env, settings.headers) == ("http://x/v1", None, {})
