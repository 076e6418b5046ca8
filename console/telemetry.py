"""Sending traces to a collector: after an attempt where the configuration names one, or when asked to.

```toml
[otel]
endpoint = "http://127.0.0.1:4318"
headers = { authorization = "OTEL_AUTHORIZATION" }   # names of variables, never values
content = false
```
"""

from pydantic import ValidationError

from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.console.options import Options
from opsleuth.console.output import note
from opsleuth.graph.otel import NotExported, OtelSettings, export
from opsleuth.state.clock import SystemClock
from opsleuth.state.configfile import config_files, problems
from opsleuth.state.errors import ConfigError
from opsleuth.state.words import counted


def settings() -> OtelSettings | None:
    """The collector that the strongest trusted file names, or None. Raises ConfigError."""
    named = [file for file in config_files() if file.trusted and "otel" in file.document]
    if not named:
        return None
    try:
        return OtelSettings.model_validate(named[-1].document["otel"])
    except ValidationError as error:
        raise ConfigError(f"{named[-1].path}, [otel]: {problems(error)}") from None


def after(store: Store, run: str, wanted: OtelSettings | None) -> None:
    """Send what the newest attempt added. A collector that is not there is told, and ends nothing."""
    if wanted is None:
        return
    row = store.runs.get(run)
    try:
        export(store, run, wanted, attempt=row.attempt if row else None)
    except NotExported as error:
        note(f"warning: {error}")


def send(options: Options, run_id: str, endpoint: str, *, content: bool) -> int:
    """`trace RUN --otlp URL`: the whole trace, now. Raises ConfigError where the collector does not take it."""
    try:
        wanted = OtelSettings(endpoint=endpoint, content=content)
    except ValidationError as error:
        raise ConfigError(f"--otlp {endpoint}: {problems(error)}; write http://HOST:4318") from None
    with Store.open(options.database, SystemClock(), Redactor(), read_only=True) as store:
        run = store.runs.find(run_id)
        try:
            count = export(store, run.id, wanted)
        except NotExported as error:
            raise ConfigError(str(error)) from None
    note(f"{counted(count, 'span')} of {run.id} sent to {endpoint}")
    return 0
