"""The measurements there are, in the order of the table."""

from actors.testing.bench import cancels, dialects, events, http, kernel, live, memory, render, start, turn
from actors.testing.bench.figures import Measure

MEASURES: tuple[Measure, ...] = (
    *render.MEASURES,
    *dialects.MEASURES,
    *turn.MEASURES,
    *http.MEASURES,
    *live.MEASURES,
    *events.MEASURES,
    *cancels.MEASURES,
    *start.MEASURES,
    *memory.MEASURES,
    *kernel.MEASURES,
)
