"""List all measurements in the order of the table.

A goal that cannot be measured yet has a row with the reason.
"""

from benchmarks import (
    beside_readers,
    caches,
    cancels,
    dialects,
    durable,
    events,
    http,
    kernel,
    live,
    loop,
    many,
    memory,
    render,
    start,
    turn,
    waking,
)
from benchmarks.figures import Extent, Figure, Measure, NotMeasured


def _unavailable(goal: str, question: str, why: str) -> Measure:
    """Return a measurement whose only row states `why` the goal cannot be measured."""

    def raise_reason(extent: Extent) -> list[Figure]:
        raise NotMeasured(why)

    return Measure(goal, question, raise_reason)


MEASURES: tuple[Measure, ...] = (
    *render.MEASURES,
    *dialects.MEASURES,
    *turn.MEASURES,
    *http.MEASURES,
    *live.MEASURES,
    *many.MEASURES,
    *events.MEASURES,
    *start.MEASURES,
    *memory.MEASURES,
    *waking.MEASURES,
    *durable.MEASURES,
    *beside_readers.MEASURES,
    *kernel.MEASURES,
    *caches.MEASURES,
    *loop.MEASURES,
    *cancels.MEASURES,
    _unavailable("G1", "overhead of a gateway on a streamed request", "there is no gateway yet"),
)
