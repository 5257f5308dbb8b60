"""Run a library in a separate process while it is measured."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from benchmarks.by_hand import QUESTION
from benchmarks.canned import ANSWER
from benchmarks.figures import NotMeasured
from benchmarks.peers.environments import FOLDER, install, installation_size, python_of
from benchmarks.peers.pins import PinnedLibrary
from benchmarks.start import child_cpu_ms
from benchmarks.turn import RESULT

_RESIDENT = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"


class InstalledLibrary:
    """A library in its own environment; see `benchmarks.figures.Library`.

    The first use installs the library. Its process starts with the first request and ends with `close`.
    """

    def __init__(self, pinned: PinnedLibrary) -> None:
        self.name, self.note = pinned.title, pinned.note
        self._pinned = pinned
        self._process: subprocess.Popen[str] | None = None

    def turns(self, url: str, count: int, *, stream: bool, at_once: bool = False) -> float:
        """Run turns in the library's process; see `Library.turns`."""
        order = {"do": "turns", "url": url, "count": count, "stream": stream, "at_once": at_once}
        return float(self._request(order))

    def event_us(self, url: str, words: int) -> float:
        """Read a streamed text in the library's process; see `Library.event_us`."""
        return float(self._request({"do": "event", "url": url, "words": words}))

    def live_bytes(self, warm: str, url: str, count: int) -> float:
        """Hold conversations in the middle of a turn in a new process; see `Library.live_bytes`."""
        self.close()
        return float(self._request({"do": "live", "warm": warm, "url": url, "count": count}))

    def idle_memory(self, histories: Path) -> tuple[float, float, float]:
        """Hold idle conversations in a new process; see `Library.idle_memory`."""
        self.close()
        resident, tracked, took = self._request({"do": "hold", "path": str(histories)})
        return resident, tracked, took

    def render_ms(self, history: Path, *, more: bool) -> float:
        """Render a history in the library's process; see `Library.render_ms`."""
        return float(self._request({"do": "render", "path": str(history), "more": more}))

    def _request(self, order: dict[str, object]) -> Any:  # Any: parsed JSON
        """Send an order to the library's process, and return the value in its answer."""
        install(self._pinned)
        orders, answers = self._pipes()
        try:
            orders.write(json.dumps(order) + "\n")
            orders.flush()
            line = answers.readline()
        except OSError as error:
            raise NotMeasured(f"the program of the library ended: {error}") from error
        if not line:
            raise NotMeasured("the program of the library ended without an answer")
        answer: dict[str, Any] = json.loads(line)  # Any: parsed JSON
        if "error" in answer:
            raise NotMeasured(str(answer["error"]))
        return answer["value"]

    def import_ms(self) -> float:
        """Import the modules of a turn in a new process; see `Library.import_ms`."""
        install(self._pinned)
        try:
            return child_cpu_ms((str(python_of(self._pinned)), "-c", self._pinned.imports))
        except subprocess.CalledProcessError as error:
            raise NotMeasured(f"cannot be imported: exit code {error.returncode}") from error

    def import_mb(self) -> float:
        """Import the modules of a turn in a new process; see `Library.import_mb`."""
        install(self._pinned)
        command = (python_of(self._pinned), "-c", f"{self._pinned.imports}; {_RESIDENT}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotMeasured(f"cannot be imported: exit code {done.returncode}")
        return float(done.stdout.split()[-1]) / 1024

    def size(self) -> tuple[int, float]:
        """Return the size of the installation; see `Library.size`."""
        install(self._pinned)
        return installation_size(self._pinned)

    def close(self) -> None:
        """Kill the library's process, if it runs."""
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
def run_libraries(pinned: Sequence[PinnedLibrary]) -> Iterator[tuple[InstalledLibrary, ...]]:
    """Yield the libraries. Their processes are killed at the end of the block."""
    libraries = tuple(InstalledLibrary(each) for each in pinned)
    try:
        yield libraries
    finally:
        for library in libraries:
            library.close()
