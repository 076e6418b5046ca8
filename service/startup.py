"""What `serve` and `worker` both need before they start."""

from collections.abc import Mapping

from opsleuth.checkpoints.database_urls import Place, PostgresServer
from opsleuth.configuration.secret_references import Secret, Vault
from opsleuth.state.errors import ConfigError
from opsleuth.tools.spec import UnavailableError


def require_server(place: Place) -> PostgresServer:
    """The database as a server. Raises ConfigError for a file: many machines cannot share it."""
    if isinstance(place, PostgresServer):
        return place
    raise ConfigError(
        f"{place} is a file of this machine: many workers need PostgreSQL, --db postgresql://USER@HOST/DATABASE"
    )


def reveal_secrets(secrets: Mapping[str, Secret]) -> dict[str, str]:
    """The secrets, read once at the start. Raises ConfigError for one that is not there."""
    vault = Vault()
    try:
        return {name: vault.reveal(secret) for name, secret in secrets.items()}
    except UnavailableError as error:
        raise ConfigError(f"[service]: {error}") from None
