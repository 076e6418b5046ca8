"""A source behind a proxy: through SOCKS, by the environment, and the proxy is blamed where it is the proxy."""

import pytest
from live_rig import SPAN, one
from middlemen import ForwardProxy, RefusingProxy, SocksProxy
from rude_server import RudeServer
from servers import free_port

from opsleuth.tools.spec import NotPermittedError, TransientError, UnavailableError


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def test_a_source_through_socks(rude: RudeServer) -> None:
    with SocksProxy() as proxy:
        source = one(kind="prometheus", url=f"{rude.url}/denied", proxy=f"socks://127.0.0.1:{proxy.port}")
        with pytest.raises(NotPermittedError, match="does not accept the credentials"):
            await source.read(["metrics"], SPAN)
    assert len(proxy.asked) >= 1


async def test_a_source_blames_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(UnavailableError, match=r"the proxy .*ALL_PROXY\) cannot be reached"):
        await one(kind="prometheus", url="http://metrics.example").read(["metrics"], SPAN)


async def test_a_source_behind_a_proxy_that_wants_credentials() -> None:
    with RefusingProxy("407 Proxy Authentication Required") as proxy:
        source = one(kind="prometheus", url="https://metrics.example", proxy=f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(UnavailableError, match="asks for credentials"):
            await source.read(["metrics"], SPAN)


async def test_a_source_reads_the_environment_s_proxy(
    monkeypatch: pytest.MonkeyPatch, rude: RudeServer
) -> None:
    with ForwardProxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(
            TransientError
        ):  # this server does not take the whole address that a proxy passes on
            await one(kind="prometheus", url=f"{rude.url}/denied").read(["metrics"], SPAN)
    assert f"GET {rude.url}/denied/" in proxy.asked[0]
