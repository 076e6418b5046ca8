"""Sending traces to a collector after each attempt, where the configuration names one.

```toml
[otel]
endpoint = "http://127.0.0.1:4318"
headers = { authorization = "OTEL_AUTHORIZATION" }   # names of variables, never values
content = false
```
"""

from pydantic import ValidationError

from opsleuth.checkpoints.store import Store
from opsleuth.configuration.config_file import format_validation_errors, load_config_layers
from opsleuth.console.output import write_note
from opsleuth.console.span_export import OtelSettings, SpanExportError, export_run_spans
from opsleuth.state.errors import ConfigError


def read_collector_settings() -> OtelSettings | None:
    """The collector that the strongest trusted file names, or None. Raises ConfigError."""
    named = [file for file in load_config_layers() if file.trusted and "otel" in file.document]
    if not named:
        return None
    try:
        return OtelSettings.model_validate(named[-1].document["otel"])
    except ValidationError as error:
        raise ConfigError(f"{named[-1].path}, [otel]: {format_validation_errors(error)}") from None


def export_newest_attempt(store: Store, run: str, settings: OtelSettings | None) -> None:
    """Send what the newest attempt added. A collector that does not answer costs a warning and nothing else."""
    if settings is None:
        return
    row = store.runs.get(run)
    try:
        export_run_spans(store, run, settings, attempt=row.attempt if row else None)
    except SpanExportError as error:
        write_note(f"warning: {error}")
