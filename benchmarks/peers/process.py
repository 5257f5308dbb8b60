"""A library as a process of its own, for as long as it is measured."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from benchmarks.by_hand import QUESTION
from benchmarks.canned import ANSWER
from benchmarks.figures import NotMeasured
from benchmarks.peers.environments import FOLDER, install, python_of, size
from benchmarks.peers.pins import Pinned
from benchmarks.start import child_cpu_ms
from benchmarks.turn import RESULT

_RESIDENT = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"


class Installed:
    """A library in its environment; see `benchmarks.figures.Library`.

    Installed at its first use. Its process begins at the first turn and ends with `close`.
    """

    def __init__(self, pinned: Pinned) -> None:
        self.name, self.note = pinned.title, pinned.note
        self._pinned = pinned
        self._process: subprocess.Popen[str] | None = None

    def turns(self, url: str, count: int, *, stream: bool, at_once: bool = False) -> float:
        """Have the program make turns; see `Library.turns`."""
        order = {"do": "turns", "url": url, "count": count, "stream": stream, "at_once": at_once}
        return float(self._told(order))

    def event_us(self, url: str, words: int) -> float:
        """Have the program read a streamed text; see `Library.event_us`."""
        return float(self._told({"do": "event", "url": url, "words": words}))

    def live_bytes(self, warm: str, url: str, count: int) -> float:
        """Have a fresh program hold conversations in mid-turn; see `Library.live_bytes`."""
        self.close()
        return float(self._told({"do": "live", "warm": warm, "url": url, "count": count}))

    def held(self, histories: Path) -> tuple[float, float, float]:
        """Have a fresh program hold histories; see `Library.held`."""
        self.close()
        resident, tracked, took = self._told({"do": "hold", "path": str(histories)})
        return resident, tracked, took

    def render_ms(self, history: Path, *, more: bool) -> float:
        """Have the program render; see `Library.render_ms`."""
        return float(self._told({"do": "render", "path": str(history), "more": more}))

    def _told(self, order: dict[str, object]) -> Any:  # Any: JSON
        """Return what the program says to an order."""
        install(self._pinned)
        orders, answers = self._pipes()
        try:
            orders.write(json.dumps(order) + "\n")
            orders.flush()
            line = answers.readline()
        except OSError as error:
            raise NotMeasured(f"its program ended: {error}") from error
        if not line:
            raise NotMeasured("its program ended without an answer")
        told: dict[str, Any] = json.loads(line)  # Any: JSON
        if "error" in told:
            raise NotMeasured(str(told["error"]))
        return told["value"]

    def import_ms(self) -> float:
        """Import what a turn needs; see `Library.import_ms`."""
        install(self._pinned)
        try:
            return child_cpu_ms((str(python_of(self._pinned)), "-c", self._pinned.imports))
        except subprocess.CalledProcessError as error:
            raise NotMeasured(f"cannot be imported: exit code {error.returncode}") from error

    def import_mb(self) -> float:
        """Import what a turn needs and weigh the process."""
        install(self._pinned)
        command = (python_of(self._pinned), "-c", f"{self._pinned.imports}; {_RESIDENT}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotMeasured(f"cannot be imported: exit code {done.returncode}")
        return float(done.stdout.split()[-1]) / 1024

    def size(self) -> tuple[int, float]:
        """Weigh the installation; see `Library.size`."""
        install(self._pinned)
        return size(self._pinned)

    def close(self) -> None:
        """End its process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self._process is None:
            program = FOLDER / "programs" / f"run_{self._pinned.name}.py"
            said = json.dumps([QUESTION, RESULT, ANSWER])
            self._process = subprocess.Popen(
                (python_of(self._pinned), program, said),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout


@contextmanager
def running(pinned: Sequence[Pinned]) -> Iterator[tuple[Installed, ...]]:
    """Give these libraries; their processes end with the block."""
    libraries = tuple(Installed(each) for each in pinned)
    try:
        yield libraries
    finally:
        for library in libraries:
            library.close()
