"""A proxy in every spelling on the way to a model; and the proxy is blamed where it is the proxy."""

from collections.abc import Iterator

import pytest
from endpoint_rig import ask
from middlemen import RefusingProxy, SocksProxy
from model_rig import serving
from servers import free_port

from opsleuth.configuration import proxies
from opsleuth.configuration.proxies import choose_proxy, is_excluded
from opsleuth.models.planner import ModelRefusedError, ModelUnavailableError
from opsleuth.models.server.model_server import ModelServer
from opsleuth.state.errors import ConfigError

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving({"text": "well"}) as server:
        yield server


@pytest.mark.parametrize(
    ("url", "no_proxy", "excluded"),
    [
        ("http://[::1]:8080/v1", "[::1]", True),
        ("http://[::1]:8080/v1", "::1", True),
        ("http://[::1]:8080/v1", "[::1]:8080", True),
        ("http://[::1]:8080/v1", "[::1]:81", False),
        ("http://[fd00::7]/", "fd00::/8", True),
        ("http://127.0.0.1:8080", "localhost 127.0.0.0/8", True),
        ("http://10.1.2.3", "10.0.0.0/8,x", True),
        ("http://10.1.2.3", "11.0.0.0/8", False),
        ("https://api.example.com", "example.com", True),
        ("https://api.example.com", ".Example.com", True),
        ("https://api.example.com", "*.example.com", True),
        ("https://notexample.com", "example.com", False),
        ("https://api.example.com", "api.example.com:443", True),
        ("https://api.example.com", "api.example.com:8443", False),
        ("https://api.example.com", "https://api.example.com/", True),
        ("https://api.example.com", "*", True),
        ("https://api.example.com", "", False),
        ("https://api.example.com", ",;[, ]:x,://,", False),
    ],
)
def test_no_proxy_in_every_spelling(url: str, no_proxy: str, excluded: bool) -> None:
    assert is_excluded(url, no_proxy) is excluded


@pytest.mark.parametrize(
    ("variable", "value", "made"),
    [
        ("HTTPS_PROXY", "proxy:3128", "http://proxy:3128"),
        ("all_proxy", "socks://proxy:1080", "socks5://proxy:1080"),
        ("ALL_PROXY", "socks5h://proxy:1080", "socks5h://proxy:1080"),
        ("HTTP_PROXY", "http://proxy:3128", None),
    ],
)
def test_a_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, made: str | None
) -> None:
    monkeypatch.setenv(variable, value)
    chosen = choose_proxy("https://api.example.com/v1", None)
    assert (chosen.url if chosen else None) == made


def test_a_scheme_that_no_client_speaks() -> None:
    with pytest.raises(ConfigError, match=r"socks4://proxy:1080 \(from proxy\).* socks5h, socks"):
        choose_proxy("http://x", "socks4://me:secret@proxy:1080")


def test_a_missing_extra_has_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'opsleuth\[socks\]'") as raised:
        choose_proxy("http://x", "socks://me:secret@proxy:1080")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["socks", "socks5", "socks5h"])
def test_a_model_through_socks(monkeypatch: pytest.MonkeyPatch, server: ModelServer, scheme: str) -> None:
    with SocksProxy() as proxy:
        monkeypatch.setenv("ALL_PROXY", f"{scheme}://127.0.0.1:{proxy.port}")
        assert ask(server.base_url).text == "well"
    assert len(proxy.asked) == 1


def test_a_model_beside_the_proxy(monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "[::1],127.0.0.0/8")
    assert ask(server.base_url).text == "well"


def test_a_proxy_that_is_not_there_is_blamed(monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{free_port()}")
    with pytest.raises(
        ModelUnavailableError, match=r"the proxy http://127\.0\.0\.1:\d+ \(from HTTP_PROXY\)"
    ) as raised:
        ask(server.base_url, tries=1)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("url", ["http://far.example/v1", "https://far.example/v1"])
def test_a_proxy_that_wants_credentials(url: str) -> None:
    with (
        RefusingProxy("407 Proxy Authentication Required") as proxy,
        pytest.raises(ModelRefusedError, match="asks for credentials"),
    ):
        ask(url, proxy=f"http://127.0.0.1:{proxy.port}")


def test_a_proxy_that_does_not_connect() -> None:
    with (
        RefusingProxy("403 Forbidden") as proxy,
        pytest.raises(ModelUnavailableError, match=r"does not connect \(403 Forbidden\)"),
    ):
        ask("https://far.example/v1", proxy=f"http://127.0.0.1:{proxy.port}", tries=1)
