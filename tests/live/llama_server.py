"""A llama.cpp server that runs for the duration of some tests.

It reports its address in its log. A thread reads the log to the end, so that the server never blocks on it.
"""

import re
import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

_LISTENS = re.compile(r"listening on (http://\S+)")
_SECONDS = 300.0
"""The longest time, in seconds, for loading a model and for stopping a server."""


@contextmanager
def run_server(binary: Path, model: Path, options: Sequence[str] = ()) -> Iterator[str]:
    """Run a server on a free loopback port and yield its address; stop it with the context.

    Raises:
        RuntimeError: The server did not start to listen. The message contains the end of its log.
    """
    command = [str(binary), "-m", str(model), "--host", "127.0.0.1", "--port", "0", "--jinja", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    log = _Log(process)
    try:
        yield log.address()
    finally:
        process.terminate()
        process.wait(_SECONDS)
        log.close()


class _Log:
    """Reads the log of a server in a thread until it ends."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._known, self._address = Event(), ""
        self._last: deque[str] = deque(maxlen=20)
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def address(self) -> str:
        """Wait until the server listens; return its address."""
        if not self._known.wait(_SECONDS) or not self._address:
            raise RuntimeError(f"{self._process.args!r} does not listen:\n{''.join(self._last)}")
        return self._address

    def close(self) -> None:
        """Wait for the end of the log."""
        self._thread.join(_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._last.append(line)
            if not self._known.is_set() and (found := _LISTENS.search(line)):
                self._address = found[1]
                self._known.set()
        self._known.set()
