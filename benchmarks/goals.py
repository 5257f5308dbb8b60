"""The measurements there are, in the order of the table; what cannot be measured has a row that says why."""

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


def _later(goal: str, question: str, why: str) -> Measure:
    """Return the measurement of what cannot be measured yet, or not here."""

    def refused(extent: Extent) -> list[Figure]:
        raise NotMeasured(why)

    return Measure(goal, question, refused)


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
    _later("G1", "what a gateway adds to a streamed request", "there is no gateway yet"),
)
