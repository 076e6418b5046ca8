"""What stands between a client and a server in companies: a front that speaks TLS, and a forward proxy."""

import asyncio
import contextlib
import ssl
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

OPENSSL = "openssl"


class Middleman:
    """A server on loopback in a thread of its own, while it is entered; `port` is where it listens."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.port = 0
        self._tls, self._loop, self._ready = tls, asyncio.new_event_loop(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join()
        self._loop.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        raise NotImplementedError

    def _run(self) -> None:
        self._main = self._loop.create_task(self._listen())
        self._loop.run_until_complete(asyncio.wait({self._main}))

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        try:
            async with server:
                await server.serve_forever()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self.serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()


class TlsFront(Middleman):
    """Takes TLS with the certificate in `folder`, and passes what it hears on to a port."""

    def __init__(self, folder: Path, target: int) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        super().__init__(context)
        self._target = target

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await joined(reader, writer, self._target)


class ForwardProxy(Middleman):
    """Forwards requests with whole addresses, and tunnels for CONNECT; `asked` holds their first lines."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first = head.decode("latin-1").split("\r\n")[0]
        self.asked.append(first)
        method, address, _ = first.split(" ")
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await joined(reader, writer, int(address.rpartition(":")[2]))
        else:
            await joined(reader, writer, urlsplit(address).port or 80, head)


class RefusingProxy(Middleman):
    """Answers every request, CONNECT included, with one status."""

    def __init__(self, status: str) -> None:
        super().__init__()
        self._status = status

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {self._status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()


class SocksProxy(Middleman):
    """Speaks SOCKS 5 without credentials; `asked` holds the host and port of each connection."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, int]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        if kind == 1:
            host = ".".join(map(str, await reader.readexactly(4)))
        else:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2))
        self.asked.append((host, port))
        writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01" + port.to_bytes(2))
        await joined(reader, writer, port)


async def joined(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, first: bytes = b""
) -> None:
    """Pass bytes both ways between a connection and a local port until either side ends."""
    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
    far_writer.write(first)
    both = [
        asyncio.create_task(_copied(reader, far_writer)),
        asyncio.create_task(_copied(far_reader, writer)),
    ]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        far_writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await far_writer.wait_closed()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


def authority(folder: Path) -> Path:
    """A certificate authority of our own, made by openssl, and a server's certificate by it; returns the authority's."""
    ca = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=A test authority"]
    _openssl(
        folder, "req", *ca, "-keyout", "ca.key", "-out", "ca.pem", "-addext", "keyUsage=critical,keyCertSign"
    )
    _openssl(
        folder,
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=127.0.0.1",
        "-keyout",
        "server.key",
        "-out",
        "server.csr",
    )
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
    _openssl(folder, "x509", "-req", "-in", "server.csr", *signing, "-out", "server.pem")
    return folder / "ca.pem"


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run([OPENSSL, *arguments], cwd=folder, check=True, capture_output=True)
