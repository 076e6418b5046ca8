"""Which model is asked, and how: from flags, `OPSLEUTH_*` variables and profiles of the configuration files.

```toml
[options]
profile = "local"                      # the one that is used unless --profile or OPSLEUTH_PROFILE names another

[profiles.local]
base_url = "http://127.0.0.1:8080/v1"
model = "qwen3-8b"
context_tokens = 16000

[profiles.hosted]
model = "gpt-5-mini"
key_env = "OPENAI_API_KEY"             # or key_file = "…", or key_command = "pass show openai"
fallback = "offline"
reviewer = { model = "gpt-5-nano" }    # what is not said is as in the profile itself

[prices."gpt-5-mini"]                  # US dollars for a million tokens, and as of when
input = 0.25
cached = 0.025
output = 2.00
date = "2026-11-01"
```
"""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from opsleuth.configuration.config_file import ConfigFile, format_validation_errors
from opsleuth.configuration.model_prices import TokenPrice
from opsleuth.configuration.openai_variables import endpoint_from_variables, model_from_variables
from opsleuth.state.base import FrozenModel, Name, Sentence
from opsleuth.state.errors import ConfigError

OPENAI = "https://api.openai.com/v1"
ModeChoice = Literal["auto", "tools", "json"]


def bound_reply(wanted: int, window: int) -> int:
    """The longest reply in a window: what was asked for, at most three sixteenths of it."""
    return min(wanted, window * 3 // 16)


class ModelSettings(FrozenModel):
    """One endpoint and one model. Holds where the key is found, never the key: it is stored with every run.

    `timeout` in seconds of one request, `context_tokens` the model's window, `output_tokens` the longest reply,
    at most three sixteenths of the window.
    `stream` is for gateways that cut requests without traffic; tool calls are never streamed.
    `max_tokens_field` names the field for the longest reply: OpenAI's newer models take only the first.
    """

    model: Name
    base_url: Annotated[str, Field(pattern=r"^https?://\S+$", max_length=2_000)] = OPENAI
    mode: ModeChoice = "auto"
    key_env: Name | None = None
    key_file: Name | None = None
    key_command: Sentence | None = None
    key_header: Name | None = None
    organization: Name | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    query: dict[str, str] = Field(default_factory=dict)
    proxy: Sentence | None = None
    ca_file: Name | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    timeout: Annotated[float, Field(gt=0, le=3_600)] = 120.0
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    context_tokens: Annotated[int, Field(ge=4_000, le=10_000_000)] = 32_000
    output_tokens: Annotated[int, Field(ge=128, le=1_000_000)] = 4_096
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    stream: bool = False
    fallback: Literal["none", "offline"] = "none"
    reviewer: Literal["same", "none"] | dict[str, Any] = "same"
    price: TokenPrice | None = None

    @property
    def longest_reply(self) -> int:
        """Tokens kept for a reply: a small window needs its room for evidence."""
        return bound_reply(self.output_tokens, self.context_tokens)

    def for_reviewer(self) -> "ModelSettings | None":
        """The endpoint and model that review, or None: by default the same, asked apart from the planner's talk.

        Another address is sent neither this one's key nor its headers; another model does not cost what this one does.
        """
        if self.reviewer == "none":
            return None
        own = self.reviewer if isinstance(self.reviewer, dict) else {}
        left_out = {"reviewer"}
        if own.get("base_url", self.base_url) != self.base_url:
            left_out |= _OF_THE_ADDRESS
        if own.get("model", self.model) != self.model:
            left_out |= {"price"}
        return _validate_settings(
            self.model_dump(exclude=left_out) | {"mode": "json"} | own,
            "the profile's reviewer",
        )


_OF_THE_ADDRESS = frozenset(
    {"key_env", "key_file", "key_command", "key_header", "organization", "headers", "query"}
)
"""What belongs to one endpoint and must not reach another one."""

VARIABLES: Mapping[str, str] = {
    "OPSLEUTH_BASE_URL": "base_url",
    "OPSLEUTH_MODEL": "model",
    "OPSLEUTH_MODEL_MODE": "mode",
    "OPSLEUTH_KEY_ENV": "key_env",
    "OPSLEUTH_KEY_FILE": "key_file",
    "OPSLEUTH_KEY_COMMAND": "key_command",
    "OPSLEUTH_CA_FILE": "ca_file",
    "OPSLEUTH_FALLBACK": "fallback",
    "OPSLEUTH_CONTEXT_TOKENS": "context_tokens",
    "OPSLEUTH_OUTPUT_TOKENS": "output_tokens",
    "OPSLEUTH_MODEL_TIMEOUT": "timeout",
    "OPSLEUTH_TEMPERATURE": "temperature",
    "OPSLEUTH_REVIEWER": "reviewer",
}


def load_model_settings(
    files: Sequence[ConfigFile],
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    stored: Mapping[str, Any] | None = None,
) -> ModelSettings | None:
    """The model to use, or None where none is configured: flags, then variables, then the files' profile.

    `flags` holds `profile` and overrides by field name, None where a flag was not given. `stored` are the settings of
    a run that goes on: what stands in place of a profile where none is named. OpenAI's and Azure's own variables name
    the endpoint where nothing else does. Raises ConfigError.
    """
    environment = os.environ if environment is None else environment
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    profile = given.pop("profile", None)
    over = {field: environment[name] for name, field in VARIABLES.items() if environment.get(name)} | given
    values = (
        _replace_settings(stored, over)
        if stored and profile is None
        else _find_profile(files, profile) | over
    )
    if not values.get("model") and (deployment := model_from_variables(environment, values)):
        values["model"] = deployment
    if not values.get("model"):
        if "base_url" in values or given:
            raise ConfigError(
                "a model endpoint is named but no model: set OPSLEUTH_MODEL, or `model` in the profile"
            )
        return None
    values = endpoint_from_variables(environment, values) | values
    prices = _trusted_entries(files, "prices")
    if values["model"] in prices:
        values["price"] = prices[values["model"]]
    if isinstance(own := values.get("reviewer"), dict) and own.get("model") in prices:
        values["reviewer"] = own | {"price": prices[own["model"]]}
    settings = _validate_settings(values, f"profile {profile}" if profile else "the model's configuration")
    settings.for_reviewer()
    return settings


def _replace_settings(stored: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Stored settings with some replaced; what belongs to the old address or model does not reach a new one."""
    left_out = frozenset[str]()
    if over.get("base_url", stored.get("base_url")) != stored.get("base_url"):
        left_out |= _OF_THE_ADDRESS
    if over.get("model", stored.get("model")) != stored.get("model"):
        left_out |= {"price"}
    return {key: value for key, value in stored.items() if key not in left_out} | dict(over)


def _trusted_entries(files: Sequence[ConfigFile], table: str) -> dict[str, Any]:
    """What `[TABLE.NAME]` says in each layer that is trusted, by name; the stronger layer wins."""
    return {name: entry for file in files if file.trusted for name, entry in file.table(table).items()}


def _find_profile(files: Sequence[ConfigFile], name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    profiles = _trusted_entries(files, "profiles")
    if isinstance(found := profiles.get(name), Mapping):
        return dict(found)
    for file in files:
        if not file.trusted and name in file.table("profiles"):
            raise ConfigError(
                f"profile {name!r} is in {file.path}, which is not trusted: it came with the folder, not from you. "
                "Read it, then trust it: opsleuth trust"
            )
    raise ConfigError(
        f"there is no profile {name!r}: the profiles are {', '.join(sorted(profiles)) or 'none'}"
    )


def _validate_settings(values: Mapping[str, Any], where: str) -> ModelSettings:
    try:
        return ModelSettings.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{where} cannot be used: {format_validation_errors(error)}") from None
