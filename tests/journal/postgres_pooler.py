"""A connection pooler like PgBouncer in transaction mode: programs share connections between transactions."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Stream:
    """The messages of one direction, split from its bytes.

    Args:
        has_start: Whether the first message has no type, as the first message of a client.
    """

    def __init__(self, *, has_start: bool = False) -> None:
        self._left, self._has_start = b"", has_start

    def messages(self, data: bytes) -> Iterator[bytes]:
        """Yield the complete messages, each with its type."""
        self._left += data
        while True:
            head = 0 if self._has_start else 1
            size = head + int.from_bytes(self._left[head : head + 4], "big")
            if len(self._left) < max(size, head + 4):
                return
            message, self._left = self._left[:size], self._left[size:]
            yield b"" if self._has_start else message
            self._has_start = False


class Pooler:
    """Lends a client the most recently freed connection to the server for one transaction.

    Args:
        to: The server's socket.
    """

    def __init__(self, to: Path) -> None:
        self._to = to
        self._free: list[socket.socket] = []
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def serve(self) -> None:
        """Accept clients until the pooler is closed."""
        with suppress(OSError):
            while True:
                program, _ = self._listener.accept()
                threading.Thread(target=self._attend, args=(program,), daemon=True).start()

    def _attend(self, program: socket.socket) -> None:
        asked = Stream(has_start=True)
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._to))
        with program, suppress(OSError):
            self._pass(program, server, asked, b"", waits=1)  # until the client is authenticated
            while (data := program.recv(65536)) and data[:1] != b"X":
                self._pass(program, self._take(), asked, data, waits=0)

    def _pass(
        self, program: socket.socket, server: socket.socket, asked: Stream, data: bytes, waits: int
    ) -> None:
        """Forward messages until the server has answered and no transaction is open.

        The connection is returned before the client receives the answer, so its next query finds it free.
        """
        answers, is_idle = Stream(), False
        while data or waits or not is_idle:
            if data:
                server.sendall(data)
                waits += sum(message[:1] in (b"Q", b"S") for message in asked.messages(data))
            ready, _, _ = select.select([program, server], [], [], 60)
            data = program.recv(65536) if program in ready else b""
            if program in ready and not data:
                raise OSError("the program has gone")
            if server in ready:
                answer = server.recv(65536)
                for message in answers.messages(answer):
                    if message[:1] == b"Z":
                        waits, is_idle = waits - 1, message[-1:] == b"I"
                if not (data or waits) and is_idle:
                    self._give_back(server)
                program.sendall(answer)

    def _take(self) -> socket.socket:
        with self._changed:
            if not self._changed.wait_for(lambda: self._free, 60):
                raise OSError("no connection came free")
            return self._free.pop()

    def _give_back(self, server: socket.socket) -> None:
        with self._changed:
            self._free.append(server)
            self._changed.notify()

    def close(self) -> None:
        """Accept no more clients and close the free connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for server in self._free:
            server.close()


@contextmanager
def run_pooler(to: Path) -> Iterator[Pooler]:
    """Yield a pooler of the server with its socket in the folder `to`."""
    pooler = Pooler(to / ".s.PGSQL.5432")
    thread = threading.Thread(target=pooler.serve, daemon=True)
    thread.start()
    try:
        yield pooler
    finally:
        pooler.close()
        thread.join(10)
