"""M1: what prompt caches are worth to sessions that switch, cancel, fail over and are configured anew.

Of the tokens that an ideal cache had read, how many are not read, by the strict servers' own count. The sessions are
those of a simulation, in virtual time, over hosts whose caches expire as their providers' do. Of what a simulation can
do, that happens which a cache outlives. A request that forbids tools or asks for another form than the last is not
among it (a turn at its limit of rounds, a tool called wrongly until it is taken away, settings of one ask): Anthropic
reads no messages then, which nobody can help.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import ClassVar

import anyio

from actors.config.settings import RuntimeLimits
from actors.strict.cache import PromptCache
from actors.strict.server import LoopbackServer
from actors.testing.simulation.plan import Odds, planned
from actors.testing.simulation.report import played_in
from actors.testing.simulation.world import TARGETS, World
from benchmarks.figures import Extent, Figure, Measure

_QUESTION = "tokens not read from the prompt cache, of those that an ideal one had read"
_LIMIT = 1.0
"""Per cent."""
_TURNS = 12
_HAPPENS = frozenset({"fault", "switch", "cancel", "abandon", "crash", "busy", "compact", "configure"})
ODDS = replace(Odds(), **{each.name: 0.0 for each in fields(Odds) if each.name not in _HAPPENS})
"""As a simulation has them, but for what is not named above."""


class CachedWorld(World):
    """A world whose hosts have prompt caches."""

    limits = RuntimeLimits(max_rounds=25, max_queued_asks=2)
    models: ClassVar[Mapping[str, str]] = {
        **World.models,
        "anthropic": "claude-sonnet-5",
        "bedrock": "eu.anthropic.claude-sonnet-5-v1:0",
    }

    def prompts(self, server: LoopbackServer) -> None:
        """Give the host a cache on virtual time."""
        server.cache = PromptCache(clock=anyio.current_time)


def counted(seeds: int, sessions: int) -> tuple[Counter[str], Counter[str]]:
    """Return by dialect the tokens that were read, and those that an ideal cache had read."""
    read, ideal = Counter[str](), Counter[str]()
    for seed in range(seeds):
        world = CachedWorld(planned(seed, sessions, _TURNS, TARGETS, (), "safety", ODDS))
        report = played_in(world)
        assert not report.problems, report
        for name, server in world.servers.items():
            read[name] += server.cache.read_tokens
            ideal[name] += server.cache.ideal_tokens
    return read, ideal


def _m1(extent: Extent) -> list[Figure]:
    seeds, sessions = (1, 10) if extent.quick else (6, 20)
    read, ideal = counted(seeds, sessions)
    rows = []
    for name in ideal:
        value = 100 * (1 - read[name] / ideal[name]) if ideal[name] else None
        note = f"{read[name]:,} of {ideal[name]:,} tokens; {seeds * sessions} sessions of {_TURNS} asks"
        rows.append(Figure("M1", _QUESTION, name, "%", _LIMIT, value, note=note))
    return rows


MEASURES = (Measure("M1", _QUESTION, _m1),)
