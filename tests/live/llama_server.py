"""A llama.cpp server of one's own, for the time of some tests.

It says when it listens, in its log. Its starter reads that log to the end, so that it never waits for a reader.
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
"""How long a model may take to be loaded, and a server to end."""


@contextmanager
def running(binary: Path, model: Path, options: Sequence[str] = ()) -> Iterator[str]:
    """Run a server on a free port of the loopback and give its address; it ends with the context.

    Raises:
        RuntimeError: It did not come to listen. The text holds the end of its log.
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
    """Reads what a server writes, in a thread, until it ends."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._known, self._address = Event(), ""
        self._last: deque[str] = deque(maxlen=20)
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def address(self) -> str:
        """Wait until the server listens; return where."""
        if not self._known.wait(_SECONDS) or not self._address:
            raise RuntimeError(f"{self._process.args!r} does not listen:\n{''.join(self._last)}")
        return self._address

    def close(self) -> None:
        """Wait for the log's end."""
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
