"""An endpoint as companies have them: behind TLS with a CA of their own, behind a proxy, in Azure's form."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from middlemen import ForwardProxy, TlsFront, authority
from model_cli import opsleuth
from model_rig import serving

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.models.chat_endpoint import ModelEndpoint
from opsleuth.models.model_reply import ModelReply, ModelRequest
from opsleuth.models.planner import ModelRefusedError
from opsleuth.models.server.model_server import ModelServer
from opsleuth.scenarios.orders_incident import write_case
from opsleuth.state.errors import ConfigError

KEY = "key-1234567890"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving({"text": "well"}) as server:
        yield server


@pytest.fixture
def proxy() -> Iterator[ForwardProxy]:
    with ForwardProxy() as proxy:
        yield proxy


def port(server: ModelServer) -> int:
    return int(server.base_url.rpartition(":")[2].partition("/")[0])


def ask(**settings: Any) -> ModelReply:
    made = ModelSettings.model_validate({"model": "m", "timeout": 20, "tries": 1} | settings)

    async def once() -> ModelReply:
        endpoint = ModelEndpoint(made, KEY)
        try:
            return await endpoint.ask(ModelRequest([{"role": "user", "content": "hello"}]), 60.0)
        finally:
            await endpoint.aclose()

    return asyncio.run(once())


def test_a_ca_of_ones_own(tmp_path: Path, server: ModelServer) -> None:
    ca = authority(tmp_path)
    with TlsFront(tmp_path, port(server)) as front:
        url = f"https://127.0.0.1:{front.port}/v1"
        assert ask(base_url=url, ca_file=str(ca)).text == "well"
        with pytest.raises(ModelRefusedError, match=r"certificate that is not trusted.* ca_file"):
            ask(base_url=url)
    assert len(server.requests) == 1
    with pytest.raises(ConfigError, match="cannot be read"):
        ask(base_url=url, ca_file=str(tmp_path / "none.pem"))


def test_a_forward_proxy(server: ModelServer, proxy: ForwardProxy) -> None:
    assert ask(base_url=server.base_url, proxy=f"http://127.0.0.1:{proxy.port}").text == "well"
    assert proxy.asked == [f"POST {server.base_url}/chat/completions HTTP/1.1"]


def test_a_proxy_that_the_environment_names(
    server: ModelServer, proxy: ForwardProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", "")
    assert ask(base_url=server.base_url).text == "well"
    assert len(proxy.asked) == 1


def test_azure(server: ModelServer, proxy: ForwardProxy) -> None:
    """A deployment in the path, the version in the query, the key in a header of its own."""
    url = server.base_url.removesuffix("/v1") + "/openai/deployments/small"
    ask(
        base_url=url,
        key_header="api-key",
        query={"api-version": "2024-10-21"},
        proxy=f"http://127.0.0.1:{proxy.port}",
    )
    assert proxy.asked == [f"POST {url}/chat/completions?api-version=2024-10-21 HTTP/1.1"]
    assert server.headers[0]["api-key"] == KEY
    assert KEY not in server.headers[0].get("authorization", "")


def test_headers_of_an_organisation(server: ModelServer) -> None:
    ask(base_url=server.base_url, organization="org-7", headers={"X-Team": "on-call"})
    assert server.headers[0]["openai-organization"] == "org-7"
    assert server.headers[0]["x-team"] == "on-call"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_whole_run_through_a_proxy_to_a_ca_of_ones_own(
    tmp_path: Path, server: ModelServer, proxy: ForwardProxy
) -> None:
    ca, case = authority(tmp_path), write_case(tmp_path / "incident")
    file = tmp_path / "XDG_CONFIG_HOME" / "opsleuth" / "config.toml"
    file.parent.mkdir(parents=True)
    with TlsFront(tmp_path, port(server)) as front:
        file.write_text(
            f'[profiles.company]\nbase_url = "https://127.0.0.1:{front.port}/v1"\nmodel = "m"\nmode = "tools"\n'
            f'ca_file = "{ca}"\nproxy = "http://127.0.0.1:{proxy.port}"\nfallback = "offline"\nreviewer = "none"\n'
        )
        done = opsleuth(tmp_path, "run", "--case", str(case), "-q", OPSLEUTH_PROFILE="company")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(server.requests) == 2, "words alone are no decision: the offline planner took over"
    assert proxy.asked[0] == f"CONNECT 127.0.0.1:{front.port} HTTP/1.1"
