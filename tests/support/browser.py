"""A headless Chromium, spoken to over two pipes in its own protocol. Needs nothing but the browser."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from servers import lacking

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _installed() -> str:
    """The browser's program. Skips the test where none is installed; with CI=true the test fails."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or lacking("no Chromium is installed: .ci/servers installs what the tests need")


class Page:
    """One tab. Every request that it makes is kept in `requests`."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in = os.fdopen(reading, "rb")
        self._out = os.fdopen(writing, "wb")
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []

    def open(self) -> None:
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Accessibility"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its result; events that come before it are looked at."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def close(self) -> None:
        self._in.close()
        with contextlib.suppress(BrokenPipeError):
            self._out.close()

    def go(self, address: str) -> None:
        """Load a page to its end."""
        self("Page.navigate", url=address)
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        """What an expression gives in the page."""
        result = self("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def size(self, width: int, height: int = 900, *, scheme: str = "light", media: str = "screen") -> None:
        """The window's size, the colours that are preferred, and screen or print."""
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self("Emulation.setEmulatedMedia", media=media, features=features)

    def _read(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self._in.read(1)) != b"\0":
            if not byte:
                raise EOFError("the browser has ended")
            data += byte
        message: dict[str, Any] = json.loads(data)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message


_SHIM = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3])
os.dup2(reading, 3)
os.dup2(writing, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser reads commands from descriptor 3 and writes answers to 4."""


@contextlib.contextmanager
def browser(home: Path, *, reaches: str | None = None) -> Iterator[Page]:
    """A fresh browser with one tab, that can reach nothing but this host."""
    rules = "MAP * ~NOTFOUND" + (f", EXCLUDE {reaches}" if reaches else "")
    program = _installed()
    to_read, we_write = os.pipe()
    we_read, to_write = os.pipe()
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        f"--user-data-dir={home}", f"--host-resolver-rules={rules}", "--remote-debugging-pipe",
    ]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", _SHIM, str(to_read), str(to_write), *command],
        pass_fds=(to_read, to_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
    ) as process:
        os.close(to_read)
        os.close(to_write)
        page = Page(we_read, we_write)
        try:
            page.open()
            yield page
        finally:
            process.kill()
            page.close()
