"""The proxy on the way to an address: the configured one, else the environment's, unless NO_PROXY names the address.

The client libraries read the environment too, but take neither `socks://` nor every spelling of NO_PROXY.
"""

import ipaddress
import re
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from opsleuth.state.errors import ConfigError

_SCHEMES = ("http", "https", "socks5", "socks5h")
_PORTS = {"http": 80, "https": 443}


class ChosenProxy(NamedTuple):
    """A proxy as a client takes it, and what named it: a setting or a variable."""

    url: str
    origin: str

    @property
    def shown(self) -> str:
        """The address without user and password, and what named it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]} (from {self.origin})"


def choose_proxy(url: str, configured: str | None) -> ChosenProxy | None:
    """The proxy for this address, None where it is asked directly. Raises ConfigError for a proxy that cannot be used."""
    if configured:
        return ChosenProxy(_normalize_proxy(configured, "proxy"), "proxy")
    found = getproxies()
    scheme = urlsplit(url).scheme
    name = scheme if found.get(scheme) else "all"
    if not found.get(name) or is_excluded(url, found.get("no", "")):
        return None
    origin = f"{name.upper()}_PROXY"
    return ChosenProxy(_normalize_proxy(found[name], origin), origin)


def is_excluded(url: str, no_proxy: str) -> bool:
    """Whether a NO_PROXY names the host of this address: as *, a name, .name, *.name, an IP address or network, with or without a port."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower().rstrip(".")
    port = parts.port or _PORTS.get(parts.scheme)
    return any(_entry_matches(entry, host, port) for entry in re.split(r"[\s,;]+", no_proxy.lower()) if entry)


def _entry_matches(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    name, wanted = _split_port(entry.rpartition("://")[2].rstrip("/") if "://" in entry else entry)
    if wanted is not None and wanted != port:
        return False
    if (address := _parse_address(host)) is not None:
        network = _parse_network(name)
        return network is not None and address.version == network.version and address in network
    name = name.removeprefix("*").removeprefix(".").rstrip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _split_port(entry: str) -> tuple[str, int | None]:
    """The host of an entry and its port. A bare IPv6 address is not a host with a port."""
    if found := re.fullmatch(r"\[([^\]]*)\](/\d+)?(?::(\d+))?", entry):
        return found[1] + (found[2] or ""), int(found[3]) if found[3] else None
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, int(port) if port.isdigit() else None
    return entry, None


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _parse_network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError:
        return None


def _normalize_proxy(value: str, origin: str) -> str:
    """The address in a form that the client libraries take. Raises ConfigError."""
    value = value.strip()
    scheme, rest = value.split("://", 1) if "://" in value else ("http", value)
    scheme = {"socks": "socks5"}.get(scheme.lower(), scheme.lower())
    shown = ChosenProxy(f"{scheme}://{rest}", origin).shown
    if scheme not in _SCHEMES:
        raise ConfigError(
            f"cannot use the proxy {shown}: its scheme is one of {', '.join(_SCHEMES)}, socks. "
            "Correct it, or name the hosts that need no proxy in NO_PROXY"
        )
    if scheme.startswith("socks") and find_spec("socksio") is None:
        raise ConfigError(
            f"the SOCKS proxy {shown} needs the extra socks: pip install 'opsleuth[socks]'. "
            "Or name the hosts that need no proxy in NO_PROXY"
        )
    return f"{scheme}://{rest}"
