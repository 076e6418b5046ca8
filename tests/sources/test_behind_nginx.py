"""A real Prometheus behind a real nginx, as companies put it: client certificates, passwords, a path of its own, gzip."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
from certificates import certificates
from live_rig import SPAN, one

from opsleuth.tools.spec import NotPermittedError, ToolError, TransientError, UnavailableError


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nginx")
    certificates(folder)
    (folder / "users").write_text("oncall:{PLAIN}geheim-4711\n")
    return folder


@pytest.fixture(scope="module")
def front(keys: Path, prometheus: str) -> Iterator[str]:
    """The address of nginx, behind which Prometheus lies under /metrics-eu, and nobody under /gone."""
    with servers.nginx(
        keys,
        "ssl_client_certificate ca.pem; ssl_verify_client on;",
        "auth_basic oncall; auth_basic_user_file users;",
        "gzip on; gzip_types application/json; gzip_min_length 100;",
        f"location /metrics-eu/ {{ proxy_pass {prometheus}/; }}",
        f"location /gone/ {{ proxy_pass http://127.0.0.1:{servers.free_port()}/; }}",
    ) as url:
        yield url


def known(keys: Path) -> dict[str, Any]:
    """The settings of somebody who may ask."""
    return {"kind": "prometheus", "user": "oncall", "password": {"file": str(keys / "password")},
            "ca_file": str(keys / "ca.pem"), "client_cert": str(keys / "client.pem"), "client_key": str(keys / "client.key")}  # fmt: skip


async def test_the_rows_are_those_of_the_server_itself(front: str, keys: Path, prometheus: str) -> None:
    (keys / "password").write_text("geheim-4711")
    source = one(url=f"{front}/metrics-eu", **known(keys))
    direct = one(kind="prometheus", url=prometheus)
    through, itself = [(await s.read(["metrics"], SPAN)).metrics for s in (source, direct)]
    assert itself
    assert through == itself
    assert {check.state for check in await source.check()} == {"ok"}


@pytest.mark.parametrize(
    ("path", "changed", "error", "words"),
    [
        ("/metrics-eu", {"password": {"env": "PATH"}}, NotPermittedError, "does not accept the credentials"),
        (
            "/metrics-eu",
            {"user": None, "password": None},
            NotPermittedError,
            "does not accept the credentials",
        ),
        (
            "/metrics-eu",
            {"client_cert": None, "client_key": None},
            UnavailableError,
            "No required SSL certificate",
        ),
        ("/metrics-eu", {"ca_file": None}, UnavailableError, "cannot be trusted"),
        ("/metrics-eu", {"max_bytes": 10_000}, UnavailableError, "larger than 10,000 bytes"),
        ("/elsewhere", {}, UnavailableError, "answered 404"),
        ("/gone", {}, TransientError, "answered 502"),
    ],
)
async def test_what_the_front_refuses(
    front: str, keys: Path, path: str, changed: dict[str, Any], error: type[ToolError], words: str
) -> None:
    (keys / "password").write_text("geheim-4711")
    settings = {name: value for name, value in {**known(keys), **changed}.items() if value is not None}
    with pytest.raises(error, match=words):
        await one(url=f"{front}{path}", **settings).read(["metrics"], SPAN)
