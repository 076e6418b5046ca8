"""Every way in which an HTTP backend fails has its own error class, and nothing large is ever held."""

import ssl
import tracemalloc

import pytest
from live_rig import SPAN, ask, one
from rude_server import RudeServer
from servers import free_port

from opsleuth.state.calls import ResultStatus
from opsleuth.tools.spec import NotPermittedError, TransientError, UnavailableError


def source_at(url: str, **more: object):  # type: ignore[no-untyped-def]  # noqa: ANN201
    return one(kind="prometheus", url=url, **more)


@pytest.mark.parametrize(
    ("manner", "error", "words"),
    [
        ("denied", NotPermittedError, "does not accept the credentials"),
        ("forbidden", NotPermittedError, "no access to this tenant"),
        ("busy", TransientError, "429"),
        ("broken", TransientError, "upstream is gone"),
        ("reset", TransientError, "broke off"),
        ("html", UnavailableError, "not JSON.*Sign in.*is this the API's address"),
        ("moved", UnavailableError, "leads elsewhere.*login.example.com"),
        ("missing", UnavailableError, "no such path"),
        ("strange", UnavailableError, "not a valid Prometheus response"),
    ],
)
async def test_each_failure_is_told_apart(
    rude: RudeServer, manner: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await source_at(f"{rude.url}/{manner}").read(["metrics"], SPAN)


async def test_the_wait_that_a_server_asks_for_is_passed_on(rude: RudeServer) -> None:
    with pytest.raises(TransientError) as told:
        await source_at(f"{rude.url}/busy").read(["metrics"], SPAN)
    assert told.value.retry_after == 7


async def test_a_plain_address_reads_no_certificates(
    rude: RudeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ssl.SSLError("certificates were read")

    monkeypatch.setattr(ssl, "create_default_context", refuse)
    with pytest.raises(NotPermittedError):
        await source_at(f"{rude.url}/denied").read(["metrics"], SPAN)
    with pytest.raises(UnavailableError, match="ca_file"):
        await source_at("https://127.0.0.1:1").read(["metrics"], SPAN)


async def test_nobody_there() -> None:
    with pytest.raises(UnavailableError, match=r"nothing answers at http://127\.0\.0\.1"):
        await source_at(f"http://127.0.0.1:{free_port()}").read(["metrics"], SPAN)


async def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(UnavailableError, match=r"nothing answers at http://no-such-host\.invalid"):
        await source_at("http://no-such-host.invalid").read(["metrics"], SPAN)


async def test_a_hang_is_cut_at_the_source_s_own_limit(rude: RudeServer) -> None:
    with pytest.raises(TimeoutError, match="no answer in time"):
        await source_at(f"{rude.url}/hang", timeout=0.2).read(["metrics"], SPAN)


async def test_fifty_megabytes_are_not_held(rude: RudeServer) -> None:
    tracemalloc.start()
    with pytest.raises(UnavailableError, match="larger than 1,000,000 bytes"):
        await source_at(f"{rude.url}/huge", max_bytes=1_000_000).read(["metrics"], SPAN)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 40_000_000  # eight requests side by side, a megabyte each, and their buffers


async def test_no_data_is_no_error(rude: RudeServer) -> None:
    result = await ask([source_at(f"{rude.url}/empty")], "metrics_anomalies")
    assert result.status is ResultStatus.NOT_RECORDED


async def test_what_can_heal_is_tried_again_by_the_executor(rude: RudeServer) -> None:
    result = await ask([source_at(f"{rude.url}/broken")], "metrics_list", tries=2)
    assert (result.status, result.tries) == (ResultStatus.TRANSIENT, 2)


async def test_a_source_that_is_down_is_left_alone_for_a_while(rude: RudeServer) -> None:
    source = source_at(f"{rude.url}/html")
    for _ in range(2):
        with pytest.raises(UnavailableError):
            await source.read(["metrics"], SPAN)
    asked = len(rude.asked)
    with pytest.raises(UnavailableError, match="left alone"):
        await source.read(["events"], SPAN)
    assert len(rude.asked) == asked
