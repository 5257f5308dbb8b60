"""M: what prompt caches are worth.

M1   of the tokens that an ideal cache had read over random walks, how many are not read, by the strict servers' count
"""

from actors.testing.bench.figures import Extent, Figure, Measure
from tests.cache_walks import CACHED, counted

_QUESTION = "tokens not read from the prompt cache, of those that an ideal one had read"
_WALKS = (32, 200)
"""How many walks: quickly, and else."""
_LIMIT = 1.0


def _m1(options: Extent) -> list[Figure]:
    walks = _WALKS[0] if options.quick else _WALKS[1]
    counts = counted(range(walks))
    return [
        Figure(
            "M1",
            _QUESTION,
            name,
            "%",
            _LIMIT,
            100 * (1 - counts.share(name)) if counts.ideal[name] else None,
            note=f"{counts.read[name]:,} of {counts.ideal[name]:,} tokens, {walks} walks",
        )
        for name in CACHED
    ]


MEASURES = (Measure("M1", _QUESTION, _m1),)
