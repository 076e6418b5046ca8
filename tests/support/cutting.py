"""A wire to a real server that breaks: after so many bytes of its answers it resets the connection, or says no more."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Self

_RESET = struct.pack("ii", 1, 0)


class Wire:
    """Takes connections for `port` of the server behind it; `cut` is the byte after which it breaks."""

    def __init__(self, upstream: int, cut: int, *, hang: bool) -> None:
        self._upstream, self._left, self._hang = upstream, cut, hang
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self.broken = threading.Event()

    @property
    def port(self) -> int:
        port: int = self._listening.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._over.is_set():
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream))
                for work in (self._to_server, self._to_client):
                    thread = threading.Thread(target=work, args=(client, server))
                    self._threads.append(thread)
                    thread.start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        for data in _read(client):
            with contextlib.suppress(OSError):
                server.sendall(data)
        _shut(server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, contextlib.suppress(OSError):
            for data in _read(server):
                client.sendall(data[: self._left])
                self._left = max(0, self._left - len(data))
                if self._left == 0:
                    self._break(client)
                    return
            _shut(client)

    def _break(self, client: socket.socket) -> None:
        self.broken.set()
        if self._hang:
            self._over.wait()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        _shut(client)


def _read(connection: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        while data := connection.recv(4_096):
            yield data


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
