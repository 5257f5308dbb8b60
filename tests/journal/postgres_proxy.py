"""What stands between a program and its Postgres server and loses what a test tells it to."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

SOCKET = ".s.PGSQL.5432"
Loses = Literal["nothing", "requests", "answers"]


class Proxy:
    """Passes connections on to a server's socket.

    `lose` says what happens to the next request that is not one of libpq's own at the start of a connection: it is
    held back, or its answer is dropped; the program's connection is cut in both cases, the server's is not.
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
        """Set when something was lost."""
        self.port = int(self._listener.getsockname()[1])

    def lose(self, what: Loses, *, then_shut: bool = False) -> None:
        """Lose the next request or the answer to it; take no connection after that, if `then_shut`."""
        self.lost.clear()
        self._loses, self._then_shut = what, then_shut

    def fall_silent(self) -> None:
        """Take what is sent and connections that are made, and pass nothing on."""
        self._speaks.clear()

    def speak(self) -> None:
        """Pass everything on again."""
        self._speaks.set()

    def switch(self, to: Path, *, cuts: bool = True) -> None:
        """Pass new connections on to the server whose socket is in the folder `to`; cut the others, if it `cuts`."""
        self._to = to / SOCKET
        for end in [end for pair in self._pairs for end in pair] if cuts else ():
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def let_go(self) -> None:
        """Pass on what was held back, where the server still listens."""
        for server, data in self._held:
            with suppress(OSError):
                server.sendall(data)
        self._held.clear()

    def serve(self) -> None:
        """Take connections until it is closed."""
        with suppress(OSError):
            while True:
                program, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    if not self.is_open:
                        raise ConnectionRefusedError
                    server.connect(str(self._to))
                except OSError:  # nobody listens there, as when a server has died
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
        """Cut everything."""
        self.speak()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for pair in self._pairs:
            for end in pair:
                end.close()


@contextmanager
def proxied(to: Path) -> Iterator[Proxy]:
    """Give a proxy to the server whose socket is in the folder `to`."""
    proxy = Proxy(to / SOCKET)
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join(10)
