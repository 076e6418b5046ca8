"""The status of a read: wrong and refused requests are not tried again, only what may heal is."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from opsleuth.state.results import ResultStatus
from opsleuth.state.tool_errors import ToolError
from opsleuth.tools.effects.control_plane import ControlPlane
from opsleuth.tools.effects.http_outcomes import check_read_answered

CASES = [
    (400, ResultStatus.INVALID_ARGUMENTS),
    (422, ResultStatus.INVALID_ARGUMENTS),
    (401, ResultStatus.NOT_PERMITTED),
    (403, ResultStatus.NOT_PERMITTED),
    (409, ResultStatus.NOT_PERMITTED),
    (302, ResultStatus.UNAVAILABLE),
    (405, ResultStatus.UNAVAILABLE),
    (410, ResultStatus.UNAVAILABLE),
    (408, ResultStatus.TRANSIENT),
    (429, ResultStatus.TRANSIENT),
    (500, ResultStatus.TRANSIENT),
    (503, ResultStatus.TRANSIENT),
]


@pytest.mark.parametrize(("status", "result"), CASES)
def test_each_status_has_its_error_class(status: int, result: ResultStatus) -> None:
    with pytest.raises(ToolError, match=rf"the plane .*{status}.*: no such field") as raised:
        check_read_answered(status, "the plane", "no such field")
    assert raised.value.status is result


@pytest.mark.parametrize("status", [200, 204, 299])
def test_an_answer_is_an_answer(status: int) -> None:
    check_read_answered(status, "the plane", "")


class _AlwaysOneStatus(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing on the screen."""


@contextmanager
def answering(status: int) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _AlwaysOneStatus) as server:
        server.status = status  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "result"), CASES)
async def test_a_control_plane_that_answers_so(status: int, result: ResultStatus) -> None:
    with answering(status) as url, pytest.raises(ToolError) as raised:
        await ControlPlane(url).service("web")
    assert raised.value.status is result


async def test_a_control_plane_that_knows_no_such_service() -> None:
    with answering(404) as url:
        assert await ControlPlane(url).service("web") is None
