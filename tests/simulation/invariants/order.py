"""Check resources: tools that write to one resource run one at a time, in the order of their calls."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from actors.core.values.identity import number_of
from tests.simulation.witness import Witness


class ResourceWriters:
    """Checks tools that write to a resource."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._seen = witness.seen
        self._writing: dict[tuple[str, str], str] = {}
        self._last: dict[tuple[str, str], tuple[int, float]] = {}
        self.counts = Counter[str](writers=0, writers_that_waited=0)

    @contextmanager
    def writing(self, session: str, key: str, resource: str) -> Iterator[None]:
        """Record a running tool until the tool itself ends."""
        place = session, resource
        if (other := self._writing.get(place)) is not None:
            self._problems.add(
                "two calls never write to one resource at once", f"{session}: {other} and {key}"
            )
        self._check_order(place, key)
        self._writing[place] = key
        try:
            yield
        finally:
            self._writing.pop(place, None)
            self._last[place] = self._last[place][0], anyio.current_time()

    def _check_order(self, place: tuple[str, str], key: str) -> None:
        call = self._seen[place[0]].keys.get(key)
        number = 0 if call is None else number_of(call) or 0
        before, ended = self._last.get(place, (0, -1.0))
        if number < before:
            self._problems.add("writers begin in the order of their calls", f"{place[0]}: {key}")
        self._last[place] = number, ended
        self.counts["writers"] += 1
        self.counts["writers_that_waited"] += ended == anyio.current_time()
