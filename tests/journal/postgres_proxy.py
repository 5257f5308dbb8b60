"""A proxy between a client and its Postgres server that loses messages on demand."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

SOCKET = ".s.PGSQL.5432"
Loses = Literal["nothing", "requests", "answers"]


class Proxy:
    """Forwards connections to a server's socket.

    `lose` chooses the fate of the next request (libpq's own requests at the start of a connection excluded): the
    request is held back, or its answer is dropped. In both cases the client's connection is cut and the server's is
    not.
    """

    def __init__(self, to: Path) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._loses: Loses = "nothing"
        self._then_shut = False
        self._held: list[tuple[socket.socket, bytes]] = []
        self._speaks = threading.Event()
        self._speaks.set()
        self.is_open = True
        self.lost = threading.Event()
        """Set when a message was lost."""
        self.port = int(self._listener.getsockname()[1])

    def lose(self, what: Loses, *, then_shut: bool = False) -> None:
        """Lose the next request or its answer. With `then_shut`, accept no connection after that."""
        self.lost.clear()
        self._loses, self._then_shut = what, then_shut

    def fall_silent(self) -> None:
        """Accept connections and data, and forward nothing."""
        self._speaks.clear()

    def speak(self) -> None:
        """Forward everything again."""
        self._speaks.set()

    def switch(self, to: Path, *, cuts: bool = True) -> None:
        """Forward new connections to the server in the folder `to`. With `cuts`, cut existing connections."""
        self._to = to / SOCKET
        for end in [end for pair in self._pairs for end in pair] if cuts else ():
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def let_go(self) -> None:
        """Forward the messages that were held back, if the server still listens."""
        for server, data in self._held:
            with suppress(OSError):
                server.sendall(data)
        self._held.clear()

    def serve(self) -> None:
        """Accept connections until the proxy is closed."""
        with suppress(OSError):
            while True:
                program, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    if not self.is_open:
                        raise ConnectionRefusedError
                    server.connect(str(self._to))
                except OSError:  # no server listens there, as after a crash
                    program.close()
                    server.close()
                    continue
                self._pairs.append((program, server))
                for way in ((program, server, True), (server, program, False)):
                    threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_asking: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._speaks.wait(120)
                if is_asking and self._loses == "requests":
                    self._loses = "nothing"
                    self._held.append((sink, data))
                    self._cut(source)
                    return
                if not is_asking and self._loses == "answers":
                    self._loses = "nothing"
                    self._cut(sink)
                    return
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _cut(self, program: socket.socket) -> None:
        self.is_open = not self._then_shut
        with suppress(OSError):
            program.shutdown(socket.SHUT_RDWR)
        self.lost.set()

    def close(self) -> None:
        """Cut all connections."""
        self.speak()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for pair in self._pairs:
            for end in pair:
                end.close()


@contextmanager
def run_proxy(to: Path) -> Iterator[Proxy]:
    """Yield a proxy to the server with its socket in the folder `to`."""
    proxy = Proxy(to / SOCKET)
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join(10)
