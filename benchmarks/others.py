"""Measure other libraries in the same passes, each in a separate process and environment.

The libraries come from `Extent.libraries`; `benchmarks.peers` provides eight.
"""

from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.figures import Library, NotMeasured, Peer


class OtherLibraries:
    """The figures of other libraries for one row, over several passes."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self._libraries = libraries
        self._figures: dict[str, list[float]] = {library.name: [] for library in libraries}
        self._missing: dict[str, str] = {}

    def measure_each(self, measure: Callable[[Library], float]) -> None:
        """Measure each library once. A library for which `measure` raises `NotMeasured` is skipped in later passes."""
        for library in self._libraries:
            if library.name not in self._missing:
                try:
                    self._figures[library.name].append(measure(library))
                except NotMeasured as error:
                    self._missing[library.name] = str(error)

    def peers(self) -> tuple[Peer, ...]:
        """Return the median of each library, or the reason why there is none."""
        return tuple(
            [
                Peer(name, None, self._missing[name])
                if (name := library.name) in self._missing
                else Peer(name, median(self._figures[name]), library.note)
                for library in self._libraries
            ]
        )
