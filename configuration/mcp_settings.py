"""Settings of an MCP server: how it is reached, which of its tools may be offered, and how far each is trusted.

    [mcp.shop-git]
    command = ["mcp-server-git", "--repository", "/srv/shop"]
    tools = { git_log = "read", git_show = "read", git_commit = "high" }

    [mcp.tickets]
    url = "https://tickets.example.com/mcp"
    token = { env = "TICKETS_TOKEN" }
    tools = ["create_ticket"]                    # without a word on the risk each is high

A tool that is not named is never offered, whatever the server lists.
"""

import hashlib
import re
from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from opsleuth.configuration.secret_references import Secret
from opsleuth.configuration.source_settings import Url
from opsleuth.state.base import FrozenModel, Name, Sentence
from opsleuth.state.calls import Risk
from opsleuth.state.json_types import JSON

LONGEST_NAME = 64
"""Characters of a tool's name that every model's server takes."""


class McpServerSettings(FrozenModel):
    """One server: a program of ours that speaks over its pipes (`command`), or an address (`url`, streamable HTTP).

    `environment` names variables that the program sees besides HOME, LOGNAME, PATH, SHELL, TERM and USER; `variables`
    are secrets for it. `seconds` may a call take, `start_seconds` the server until it has said what it can do.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[\w-]{1,40}$")]
    command: Annotated[tuple[Sentence, ...], Field(max_length=200)] = ()
    url: Url | None = None
    tools: Annotated[dict[Name, Risk], Field(min_length=1, max_length=100)]
    environment: tuple[Name, ...] = ()
    variables: dict[Name, Secret] = Field(default_factory=dict)
    token: Secret | None = None
    headers: dict[Name, Sentence] = Field(default_factory=dict)
    secret_headers: dict[Name, Secret] = Field(default_factory=dict)
    seconds: Annotated[float, Field(gt=0, le=600)] = 20.0
    start_seconds: Annotated[float, Field(gt=0, le=120)] = 15.0
    output_bytes: Annotated[int, Field(ge=500, le=60_000)] = 30_000

    @field_validator("tools", mode="before")
    @classmethod
    def _high(cls, given: JSON) -> JSON:
        """Names alone: a person confirms every call."""
        return dict.fromkeys(given, Risk.HIGH) if isinstance(given, list | tuple) else given

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.command) is (self.url is not None):
            raise ValueError("a server has either a command or a url")
        return self

    def tool_name(self, tool: str) -> str:
        """What the server's tool is called here: letters, digits and underscores, at most 64, no two alike."""
        name = "_".join(filter(None, re.split(r"[^a-z0-9]+", f"mcp_{self.name}_{tool}".casefold())))
        if len(name) <= LONGEST_NAME:
            return name
        return f"{name[: LONGEST_NAME - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"

    @property
    def place(self) -> str:
        """How it is reached, for a person."""
        return self.url or " ".join(self.command)
