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

[service.senders.cloudwatch]          # Amazon SNS signs with a certificate
kind = "sns"
team = "shop"
topics = ["arn:aws:sns:eu-central-1:123456789012:alarms"]

[service.model]                       # shared by all workers
requests_per_minute = 300
tokens_per_minute = 400_000

[service.budget]                      # of each team and day; 50 US dollars unless it is said
cost = 50
[service.budget.teams.shop]
cost = 10
```
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from opsleuth.configuration.config_file import format_validation_errors, load_config_layers
from opsleuth.configuration.secret_references import Secret
from opsleuth.state.base import FrozenModel, Name
from opsleuth.state.budget import Money, Positive
from opsleuth.state.errors import ConfigError
from opsleuth.state.json_types import JSON

Rate = Annotated[float, Field(gt=0, le=1e9)]
Url = Annotated[str, Field(pattern=r"^https?://[^\s@]+$", max_length=2_000)]


class WebhookSettings(FrozenModel):
    """A place that is notified of runs. `secret` signs; without `teams` it hears of every team."""

    url: Url
    secret: Secret
    teams: tuple[Name, ...] = ()


class SenderSettings(FrozenModel):
    """A system that sends alerts and signs them. `kind` is how it signs: with a secret, or, as Amazon SNS, with a certificate."""

    kind: Literal["pagerduty", "grafana", "opsleuth", "sns"]
    team: Name
    secret: Secret | None = None
    topics: tuple[Name, ...] = ()
    """Of SNS: the topics whose messages are taken, and whose subscriptions are confirmed."""

    @model_validator(mode="after")
    def _require_way_to_check(self) -> Self:
        if self.kind == "sns" and (self.secret is not None or not self.topics):
            raise ValueError("a sender of kind sns needs topics (the ARN of each), and no secret")
        if self.kind != "sns" and (self.secret is None or self.topics):
            raise ValueError(f"a sender of kind {self.kind} needs a secret, and no topics")
        return self


class ModelRates(FrozenModel):
    """What all workers together may ask of the model's server."""

    requests_per_minute: Rate | None = None
    tokens_per_minute: Rate | None = None


class TeamBudget(FrozenModel):
    """What the runs of one team may spend on a day in UTC: US dollars, and tokens of models. None: no limit."""

    cost: Money | None = Decimal(50)
    tokens: Positive | None = None


class DayBudgets(TeamBudget):
    """The budget of every team; a team that is named has one of its own."""

    teams: Mapping[Name, TeamBudget] = Field(default_factory=dict)

    def budget_of(self, team: str) -> TeamBudget:
        """The budget of this team. A named one that leaves a limit out has that of all."""
        common = TeamBudget(cost=self.cost, tokens=self.tokens)
        own = self.teams.get(team)
        return common if own is None else common.model_copy(update=own.model_dump(exclude_unset=True))


class ServiceSettings(FrozenModel):
    """The whole table. Rates are of one token and one process; times in seconds or days as named."""

    requests_per_minute: Rate = 600
    body_bytes: Annotated[int, Field(ge=1_000, le=100_000_000)] = 1_000_000
    body_seconds: Annotated[float, Field(ge=0.1, le=600)] = 30.0
    """So long may a client take to send a body."""
    proxies: tuple[Name, ...] = ()
    """Addresses or networks of reverse proxies: only these are trusted to report the client's address."""
    retention_days: Annotated[int, Field(ge=1, le=3_650)] = 30
    approval_days: Annotated[int, Field(ge=1, le=365)] = 7
    """A call unanswered for this long is given up, and its run continues without it."""
    most_strikes: Annotated[int, Field(ge=1, le=100)] = 5
    """Attempts in a row that got no node further; then a run is set aside."""
    heartbeat_seconds: Annotated[float, Field(ge=0.1, le=60)] = 5.0
    stalled_seconds: Annotated[float, Field(ge=0.5, le=600)] = 20.0
    """A worker that was not heard from for this long is considered dead, and its runs go on elsewhere."""
    hung_seconds: Annotated[float, Field(ge=1, le=3_600)] = 120.0
    """So is one whose loop has not come round for this long: no work takes that, and what hangs must not hold its runs."""
    webhooks: Mapping[Name, WebhookSettings] = Field(default_factory=dict)
    senders: Mapping[Name, SenderSettings] = Field(default_factory=dict)
    model: ModelRates = ModelRates()
    budget: DayBudgets = DayBudgets()


def read_service_settings() -> ServiceSettings:
    """The table of the configuration files, what is nearer wins; defaults where there is none. Raises ConfigError.

    Webhooks and senders of all files hold, by name; one that is nearer replaces the whole one of its name.

    A project's file that nobody trusted says nothing here: it could name whom to tell.
    """
    merged: dict[str, Any] = {}
    files = [file for file in load_config_layers() if file.trusted]
    for file in files:
        for name, value in file.table("service").items():
            both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
            merged[name] = {**merged[name], **value} if both else value
    return parse_service_settings(merged, ", ".join(str(file.path) for file in files) or "no file")


def parse_service_settings(table: JSON, where: str) -> ServiceSettings:
    """The settings in a table. Raises ConfigError, which names what is wrong and never a value."""
    try:
        return ServiceSettings.model_validate(table)
    except ValidationError as error:
        raise ConfigError(f"[service] in {where} cannot be used: {format_validation_errors(error)}") from None
