"""Measure other libraries in the same passes, each in a separate process and environment.

The libraries come from `Extent.libraries`; `benchmarks.peers` provides eight.
"""

from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.figures import Library, NotMeasured, Peer


class Others:
    """The figures of other libraries over several passes."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self._libraries = libraries
        self._taken: dict[str, list[float]] = {library.name: [] for library in libraries}
        self._missing: dict[str, str] = {}

    def take(self, measure: Callable[[Library], float]) -> None:
        """Measure each library once. A library that raises `NotMeasured` is skipped from then on."""
        for library in self._libraries:
            if library.name not in self._missing:
                try:
                    self._taken[library.name].append(measure(library))
                except NotMeasured as error:
                    self._missing[library.name] = str(error)

    def peers(self) -> tuple[Peer, ...]:
        """Return the median per library, or the reason why there is none."""
        return tuple(
            [
                Peer(name, None, self._missing[name])
                if (name := library.name) in self._missing
                else Peer(name, median(self._taken[name]), library.note)
                for library in self._libraries
            ]
        )
