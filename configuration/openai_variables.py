"""The endpoint that the variables of OpenAI's and Azure's own tools name, where nothing of ours names one."""

from collections.abc import Mapping
from typing import Any

from opsleuth.state.errors import ConfigError

BASE_URL_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
"""The address that OpenAI's tools ask, the older name last."""
AZURE_ENDPOINT, AZURE_KEY = "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"
_AZURE_VERSIONS = ("OPENAI_API_VERSION", "AZURE_OPENAI_API_VERSION")
_AZURE_DEPLOYMENTS = ("AZURE_OPENAI_DEPLOYMENT", "AZURE_OPENAI_DEPLOYMENT_NAME")
_KEY_FIELDS = ("key_env", "key_file", "key_command")


def endpoint_from_variables(environment: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    """The address, and what belongs to it, for settings that name no address. Empty where no variable names one.

    Raises ConfigError where OpenAI and Azure are both meant.
    """
    if values.get("base_url"):
        return {}
    if address := _first_set(environment, BASE_URL_VARIABLES):
        return {"base_url": address}
    if not (endpoint := environment.get(AZURE_ENDPOINT, "").strip()):
        return {}
    if environment.get("OPENAI_API_KEY") or any(values.get(name) for name in _KEY_FIELDS):
        if environment.get(AZURE_KEY):
            raise ConfigError(
                "two endpoints are named: OpenAI by its key, Azure by AZURE_OPENAI_ENDPOINT. "
                "Choose one with OPSLEUTH_BASE_URL, or with base_url in a profile"
            )
        return {}
    return _azure_endpoint(endpoint.rstrip("/"), environment, values)


def named_base_url(environment: Mapping[str, str]) -> str | None:
    """The address that OpenAI's own variables name, None where they name none."""
    return _first_set(environment, BASE_URL_VARIABLES)


def model_from_variables(environment: Mapping[str, str], values: Mapping[str, Any]) -> str | None:
    """The deployment that Azure's variables name, where Azure is the endpoint."""
    named = values.get("base_url") or named_base_url(environment) or not environment.get(AZURE_ENDPOINT)
    return None if named else _first_set(environment, _AZURE_DEPLOYMENTS)


def _azure_endpoint(
    endpoint: str, environment: Mapping[str, str], values: Mapping[str, Any]
) -> dict[str, Any]:
    """With a version the path of a deployment; without one Azure's v1 API, which takes the deployment as the model."""
    about: dict[str, Any] = {"key_header": "api-key", "key_env": AZURE_KEY}
    version = _first_set(environment, _AZURE_VERSIONS)
    if version is None:
        return about | {"base_url": f"{endpoint}/openai/v1"}
    deployment = _first_set(environment, _AZURE_DEPLOYMENTS) or values["model"]
    return about | {
        "base_url": f"{endpoint}/openai/deployments/{deployment}",
        "query": {"api-version": version, **values.get("query", {})},
    }


def _first_set(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := environment.get(name, "").strip())), None)
