"""The certificates that a model's client trusts."""

import os
import ssl
from functools import lru_cache

import httpx2

from opsleuth.state.errors import ConfigError


def load_tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Whom a client trusts: the authorities in this file, else the environment's.

    A process that drives many runs reads them once, and again when the file has changed: it takes as long as ten
    turns of a run. Raises ConfigError.
    """
    environment = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    try:
        changed = os.stat(ca_file).st_mtime_ns if ca_file else 0  # noqa: PTH116 - a path as the operator wrote it
        return _cached_tls_context(ca_file, changed, environment)
    except (OSError, ssl.SSLError) as error:
        where = ca_file or next(filter(None, environment), "the system's store")
        raise ConfigError(f"the certificates in {where} cannot be read: {error}") from None


@lru_cache(maxsize=8)
def _cached_tls_context(
    ca_file: str | None,
    changed: int,  # noqa: ARG001 - part of the cache key
    environment: tuple[str | None, ...],  # noqa: ARG001 - as above
) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file) if ca_file else httpx2.create_ssl_context()
