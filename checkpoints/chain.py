"""Hashes that link the stored rows: SHA-256, or HMAC with the operator's key, which makes a chain that nobody else can forge."""

import hashlib
import hmac
import os

LOG_KEY = "OPSLEUTH_LOG_KEY"
"""The variable with the key. It is read where a hash is made, and stored nowhere."""

FIRST = "0" * 64
"""What stands before the first link."""

_KEYED = "hmac:"


def read_log_key() -> str:
    """The operator's key, or nothing."""
    return os.environ.get(LOG_KEY, "")


def digest_link(before: str, text: str, key: str = "") -> str:
    """The hash of a link: 64 hex digits, with `hmac:` before them when there is a key."""
    raw = f"{before}{text}".encode("utf-8", "surrogatepass")
    if key:
        return _KEYED + hmac.new(key.encode(), raw, hashlib.sha256).hexdigest()
    return hashlib.sha256(raw).hexdigest()


def is_keyed(stored: str) -> bool:
    """Whether a stored hash was made under a key."""
    return stored.startswith(_KEYED)


def describe_misfit(stored: str, before: str, text: str, key: str) -> str:
    """What is wrong with a stored hash; empty when it fits.

    Under a key every link has to be keyed: else whoever rewrites the whole without the key would pass.
    """
    if is_keyed(stored) and not key:
        return f"was written under {LOG_KEY}, which is not set: set it to check this run"
    if key and not is_keyed(stored):
        return f"was not written under {LOG_KEY}: unset it to check by the plain chain, which anybody with write access to the database can forge"
    if not hmac.compare_digest(
        digest_link(before, text, key).encode(), stored.encode("utf-8", "surrogatepass")
    ):
        return "was changed: its hash does not fit"
    return ""
