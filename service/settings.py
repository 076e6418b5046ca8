"""What the operator configures of the service: table `[service]` of the configuration files.

```toml
[service.webhooks.oncall]             # told when a run needs a person, and when it ends
url = "https://chat.example.com/hook"
secret = { env = "ONCALL_SECRET" }    # signs every message
teams = ["shop"]                      # empty: all teams

[service.senders.pages]               # who may send alerts with a signature instead of a token
kind = "pagerduty"                    # grafana, opsleuth
team = "shop"
secret = { file = "~/.secrets/pagerduty" }

[service.model]                       # shared by all workers
requests_per_minute = 300
tokens_per_minute = 400_000
```
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from opsleuth.state.base import Frozen, Name
from opsleuth.state.configfile import config_files, problems
from opsleuth.state.errors import ConfigError
from opsleuth.tools.sources.secrets import Secret

Rate = Annotated[float, Field(gt=0, le=1e9)]
Url = Annotated[str, Field(pattern=r"^https?://[^\s@]+$", max_length=2_000)]


class Webhook(Frozen):
    """A place that is told of runs. `secret` signs; without `teams` it hears of every team."""

    url: Url
    secret: Secret
    teams: tuple[Name, ...] = ()


class Sender(Frozen):
    """A system that sends alerts and signs them. `kind` is how it signs."""

    kind: Literal["pagerduty", "grafana", "opsleuth"]
    team: Name
    secret: Secret


class ModelRates(Frozen):
    """What all workers together may ask of the model's server."""

    requests_per_minute: Rate | None = None
    tokens_per_minute: Rate | None = None


class Service(Frozen):
    """The whole table. Rates are of one token and one process; times in seconds or days as named."""

    requests_per_minute: Rate = 600
    body_bytes: Annotated[int, Field(ge=1_000, le=100_000_000)] = 1_000_000
    retention_days: Annotated[int, Field(ge=1, le=3_650)] = 30
    most_strikes: Annotated[int, Field(ge=1, le=100)] = 5
    """Attempts in a row that got no node further; then a run is set aside."""
    heartbeat_seconds: Annotated[float, Field(ge=0.1, le=60)] = 5.0
    stalled_seconds: Annotated[float, Field(ge=0.5, le=600)] = 20.0
    """A worker that was not heard of for so long is taken for dead, and its runs go on elsewhere."""
    hung_seconds: Annotated[float, Field(ge=1, le=3_600)] = 120.0
    """So is one whose loop has not come round for so long: no work takes that, and what hangs must not hold its runs."""
    webhooks: Mapping[Name, Webhook] = Field(default_factory=dict)
    senders: Mapping[Name, Sender] = Field(default_factory=dict)
    model: ModelRates = ModelRates()


def read_service() -> Service:
    """The table of the configuration files, what is nearer wins; defaults where there is none. Raises ConfigError.

    Webhooks and senders of all files hold, by name; one that is nearer replaces the whole one of its name.

    A project's file that nobody trusted says nothing here: it could name whom to tell.
    """
    merged: dict[str, Any] = {}
    files = [file for file in config_files() if file.trusted]
    for file in files:
        for name, value in file.table("service").items():
            both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
            merged[name] = {**merged[name], **value} if both else value
    return service_of(merged, ", ".join(str(file.path) for file in files) or "no file")


def service_of(table: Any, where: str) -> Service:  # noqa: ANN401 - any TOML value
    """The settings in a table. Raises ConfigError, which names what is wrong and never a value."""
    try:
        return Service.model_validate(table)
    except ValidationError as error:
        raise ConfigError(f"[service] in {where} cannot be used: {problems(error)}") from None
