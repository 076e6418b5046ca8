"""From settings to sources: each kind's code is loaded when a source of that kind is opened."""

import asyncio
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from pydantic import ValidationError

from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.configuration.secret_references import Vault, words_in_settings
from opsleuth.state.clock import Clock, SystemClock
from opsleuth.state.errors import ConfigError
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.sources.live_source import LiveSource, SourceRuntime
from opsleuth.tools.sources.source_protocols import Source
from opsleuth.tools.spec import ToolError

KINDS: Mapping[str, tuple[str, str]] = {
    "prometheus": ("opsleuth.tools.sources.prometheus", "PrometheusSource"),
    "postgres": ("opsleuth.tools.sources.postgres", "PostgresSource"),
    "git": ("opsleuth.tools.sources.git", "GitSource"),
    "journal": ("opsleuth.tools.sources.journal", "JournalSource"),
    "declared": ("opsleuth.tools.sources.declared_topology", "DeclaredSource"),
    "elasticsearch": ("opsleuth.tools.sources.opensearch", "SearchSource"),
    "opensearch": ("opsleuth.tools.sources.opensearch", "SearchSource"),
    "loki": ("opsleuth.tools.sources.loki", "LokiSource"),
    "jaeger": ("opsleuth.tools.sources.jaeger", "JaegerSource"),
    "tempo": ("opsleuth.tools.sources.tempo", "TempoSource"),
    "github": ("opsleuth.tools.sources.github", "GitHubSource"),
    "gitlab": ("opsleuth.tools.sources.gitlab", "GitLabSource"),
    "grafana": ("opsleuth.tools.sources.grafana", "GrafanaSource"),
    "alertmanager": ("opsleuth.tools.sources.alertmanager", "AlertmanagerSource"),
    "kubernetes": ("opsleuth.tools.sources.kubernetes", "KubernetesSource"),
    "mysql": ("opsleuth.tools.sources.mysql", "MySqlSource"),
    "mariadb": ("opsleuth.tools.sources.mysql", "MySqlSource"),
    "redis": ("opsleuth.tools.sources.redis", "RedisSource"),
    "runbooks": ("opsleuth.tools.sources.runbook_source", "RunbookSource"),
    "logfiles": ("opsleuth.tools.sources.logfiles", "LogFilesSource"),
    "tracefiles": ("opsleuth.tools.sources.tracefiles", "TraceFilesSource"),
    "clusterfiles": ("opsleuth.tools.sources.clusterfiles", "ClusterFilesSource"),
    "recordfiles": ("opsleuth.tools.sources.recordfiles", "RecordFilesSource"),
    "metricfiles": ("opsleuth.tools.sources.metricfiles", "MetricFilesSource"),
}


def open_live_sources(
    configured: Mapping[str, Mapping[str, Any]], vault: Vault, clock: Clock | None = None
) -> list[LiveSource]:
    """The sources by their settings as stored with a run; nothing is sent yet. Raises ConfigError."""
    surroundings = SourceRuntime(vault, clock or SystemClock())
    vault.shown.update(words_in_settings(configured))
    return [open_source(name, stored, surroundings) for name, stored in configured.items()]


def open_source(name: str, stored: Mapping[str, Any], surroundings: SourceRuntime) -> LiveSource:
    """The source of these settings; nothing is sent yet. Raises ConfigError, ToolError."""
    from opsleuth.configuration.sources import SETTINGS  # a schema of every kind: a case needs none

    try:
        settings = SETTINGS.validate_python(stored)
    except ValidationError as error:
        raise ConfigError(f"source {name} cannot be used: {format_validation_errors(error)}") from None
    module, kind = KINDS[settings.kind]
    source: LiveSource = getattr(import_module(module), kind)(name, settings, surroundings)
    return source


async def discover_services(sources: Iterable[Source], seconds: float) -> None:
    """Let the sources learn the names of services, side by side; those that take longer or fail are not waited for."""
    live = [source for s in sources if isinstance(source := getattr(s, "source", s), LiveSource)]
    await gather_or_cancel(_discover_within(source, seconds) for source in live)


async def _discover_within(source: LiveSource, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await source.discover()
    except (ToolError, TimeoutError):
        return  # the first call that needs the source says so
