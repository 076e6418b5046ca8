"""The sources of an environment and the names of services, from the configuration files."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from opsleuth.configuration.config_file import ConfigFile, format_validation_errors
from opsleuth.configuration.database_settings import MySqlSettings, PostgresSettings, RedisSettings
from opsleuth.configuration.source_settings import (
    AlertmanagerSettings,
    ClusterFilesSettings,
    DeclaredTopologySettings,
    GitHubSettings,
    GitLabSettings,
    GitSettings,
    GrafanaSettings,
    JaegerSettings,
    JournalSettings,
    KubernetesSettings,
    LogFilesSettings,
    LokiSettings,
    MetricFilesSettings,
    PrometheusSettings,
    RecordFilesSettings,
    RunbookSettings,
    SearchSettings,
    TempoSettings,
    TraceFiles,
    Url,
)
from opsleuth.state.base import FrozenModel, Name
from opsleuth.state.errors import ConfigError
from opsleuth.state.json_types import JSON
from opsleuth.state.nearest_name import suggest_names

SourceSettings = Annotated[
    PrometheusSettings | PostgresSettings | GitSettings | JournalSettings | LogFilesSettings | MetricFilesSettings | TraceFiles | ClusterFilesSettings | RecordFilesSettings | SearchSettings | LokiSettings | JaegerSettings | TempoSettings | KubernetesSettings | GitHubSettings | GitLabSettings | GrafanaSettings | AlertmanagerSettings | RedisSettings | MySqlSettings | RunbookSettings | DeclaredTopologySettings, Field(discriminator="kind")
]  # fmt: skip
SETTINGS: TypeAdapter[SourceSettings] = TypeAdapter(SourceSettings)


class ServiceFacts(FrozenModel):
    """What people call a service besides its name, in any language, and whom it calls."""

    aliases: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    calls: Annotated[tuple[Name, ...], Field(max_length=1_000)] = ()


class ControlPlaneSettings(FrozenModel):
    """A control plane that changes are made through; `keys` says that it applies requests with one key once."""

    url: Url
    name: Name = "plane"
    environment: Name = "production"
    keys: bool = True


class EnvironmentSettings(FrozenModel):
    """The sources of one environment, by the name that reports call them, and what changes are made through."""

    sources: dict[Name, SourceSettings] = Field(default_factory=dict)
    platform: ControlPlaneSettings | None = None


class _ConfigDocument(BaseModel):
    """Our part of a configuration file; other tables (model profiles, prices) are read elsewhere."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, frozen=True)

    environments: dict[Name, EnvironmentSettings] = Field(default_factory=dict)
    services: dict[Name, ServiceFacts] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfiguredSources:
    """What is configured for one environment: source name to settings as JSON, service to its aliases, the platform.

    `layers` says which layer a source comes from, `files` what they are written in. `untrusted` is a project's file that
    names sources and that nobody trusts yet, `reaches` tells in words what that file would let opsleuth reach or run.
    What a file that nobody trusts says of services does not count: it would decide whom to blame.
    """

    environment: str | None
    sources: Mapping[str, Mapping[str, Any]]
    aliases: Mapping[str, tuple[str, ...]]
    layers: Mapping[str, str]
    files: tuple[Path, ...] = ()
    untrusted: Path | None = None
    reaches: tuple[str, ...] = ()
    platform: Mapping[str, Any] | None = None


def load_configured_sources(
    files: Sequence[ConfigFile], wanted: str | None = None, *, lenient: bool = False
) -> ConfiguredSources:
    """The sources of environment `wanted`, else of the only one; the stronger layer wins, name by name.

    `lenient` takes none where that leaves several. Raises ConfigError.
    """
    read = [(file, _validate_document(file)) for file in files]
    environments = list(dict.fromkeys(name for _, document in read for name in document.environments))
    several = lenient and len(environments) > 1 and not wanted
    chosen = None if several else _choose_environment(wanted, environments)
    merged: dict[str, Mapping[str, Any]] = {}
    layers: dict[str, str] = {}
    platform: ControlPlaneSettings | None = None
    for file, document in read:
        if environment := document.environments.get(chosen or ""):
            merged |= {
                name: _settings_with_absolute_paths(settings, file)
                for name, settings in environment.sources.items()
            }
            layers |= dict.fromkeys(environment.sources, file.layer)
            platform = environment.platform or platform
    facts = {
        name: entry for file, document in read if file.trusted for name, entry in document.services.items()
    }
    asking = next((file for file, _ in read if not file.trusted and describe_reach(file)), None)
    return ConfiguredSources(
        environment=chosen,
        sources={**merged, **_topology_source_settings(facts)} if merged else merged,
        aliases={service: entry.aliases for service, entry in facts.items()},
        layers=layers,
        files=tuple(file.path for file, _ in read if file.layer in layers.values()),
        untrusted=asking.path if asking else None,
        reaches=describe_reach(asking) if asking else (),
        platform=platform.model_dump(mode="json") if platform else None,
    )


def _validate_document(file: ConfigFile) -> _ConfigDocument:
    try:
        return _ConfigDocument.model_validate(file.document)
    except ValidationError as error:
        raise ConfigError(f"{file.path} cannot be used: {format_validation_errors(error)}") from None


def _choose_environment(wanted: str | None, known: Sequence[str]) -> str | None:
    if wanted is None:
        if len(known) > 1:
            raise ConfigError(
                f"which environment is meant? {', '.join(known)}: name one with --environment, "
                'or set environment = "…" under [options] of the configuration file'
            )
        return next(iter(known), None)
    if known and wanted not in known:
        raise ConfigError(f"there is no environment {wanted!r} ({suggest_names(wanted, known)})")
    return wanted


def _settings_with_absolute_paths(settings: SourceSettings, file: ConfigFile) -> Mapping[str, Any]:
    """The settings as JSON, with paths made absolute."""
    raw = settings.model_dump(mode="json", exclude_defaults=True) | {"kind": settings.kind}
    for key in ("path", "folder", "ca_file", "client_cert", "client_key", "kubeconfig"):
        if isinstance(raw.get(key), str):
            raw[key] = str(file.resolve_path(raw[key]))
    if "files" in raw:
        raw["files"] = [str(file.resolve_path(part)) for part in raw["files"]]
    return raw


def _topology_source_settings(facts: Mapping[str, ServiceFacts]) -> Mapping[str, Mapping[str, Any]]:
    """What the file says of services is a source of its own."""
    calls = {service: list(entry.calls) for service, entry in facts.items() if entry.calls}
    return {"configuration": {"kind": "declared", "calls": calls}} if calls else {}


def describe_reach(file: ConfigFile) -> tuple[str, ...]:
    """What the sources of this file would let opsleuth reach or run, in plain words. Raises ConfigError."""
    return tuple(_describe_document_reach(_validate_document(file)))


def _describe_document_reach(document: _ConfigDocument) -> Iterator[str]:
    for environment, entry in document.environments.items():
        for name, settings in entry.sources.items():
            yield f"{environment}.{name}: {settings.kind}{_describe_settings(settings)}"
        if entry.platform:
            yield f"{environment}: changes through {entry.platform.url}, each after a person's yes"


def _describe_settings(settings: SourceSettings) -> str:
    """All that is set, and which programs that runs: nobody can weigh anything that is not shown."""
    raw = settings.model_dump(mode="json", exclude_defaults=True, exclude={"kind"})
    told = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in raw.values()
    )
    kubeconfig = ", runs what its kubeconfig names" if settings.kind == "kubernetes" else ""
    return (
        "".join(f" {name}={value}" for name, value in zip(raw, told, strict=True))
        + _describe_commands(raw)
        + kubeconfig
    )


def _describe_commands(raw: JSON) -> str:
    if isinstance(raw, Mapping):
        own = f", runs {shlex.join(raw['command'])}" if raw.get("command") else ""
        return own + "".join(_describe_commands(value) for value in raw.values())
    return ""
