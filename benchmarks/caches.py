"""Measure prompt cache misses of sessions that switch, cancel, fail over and change their configuration (M1).

The figure is the share of tokens that an ideal cache would have read but the simulated cache did not, counted by the
strict servers. The sessions run in a simulation with virtual time, and cache entries expire as at the real providers.
The simulation excludes actions after which even an ideal client loses the cache: requests that forbid tools or change
the output format (a turn at its round limit, a disabled tool, settings of one ask), because Anthropic then drops cached
messages.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import ClassVar

import anyio

from actors.config.settings import RuntimeLimits
from actors.strict.cache import PromptCache
from actors.strict.server import LoopbackServer
from actors.testing.simulation import play_in_world
from actors.testing.simulation.plan import Odds, make_plan
from actors.testing.simulation.world import TARGETS, World
from benchmarks.figures import Extent, Figure, Measure

_QUESTION = "tokens an ideal prompt cache would have read, but not read"
_LIMIT = 1.0
"""The goal, in per cent."""
_TURNS = 12
_ENABLED_ACTIONS = frozenset(
    {"fault", "switch", "cancel", "abandon", "crash", "busy", "compact", "configure"}
)
ODDS = replace(Odds(), **{each.name: 0.0 for each in fields(Odds) if each.name not in _ENABLED_ACTIONS})
"""The default odds of a simulation, except that actions outside `_ENABLED_ACTIONS` never occur."""


class CachedWorld(World):
    """A simulated world whose hosts have prompt caches."""

    limits = RuntimeLimits(max_rounds=25, max_queued_asks=2)
    models: ClassVar[Mapping[str, str]] = {
        **World.models,
        "anthropic": "claude-sonnet-5",
        "bedrock": "eu.anthropic.claude-sonnet-5-v1:0",
    }

    def disable_prompt_cache(self, server: LoopbackServer) -> None:
        """Give a host a prompt cache that uses virtual time."""
        server.cache = PromptCache(clock=anyio.current_time)


def count_tokens(seeds: int, sessions: int) -> tuple[Counter[str], Counter[str]]:
    """Run simulations, and count the tokens that were read from caches and that ideal caches would have read.

    Both counts are by dialect.
    """
    read, ideal = Counter[str](), Counter[str]()
    for seed in range(seeds):
        world = CachedWorld(make_plan(seed, sessions, _TURNS, TARGETS, (), "safety", ODDS))
        report = play_in_world(world)
        assert not report.problems, report
        for name, server in world.servers.items():
            read[name] += server.cache.read_tokens
            ideal[name] += server.cache.ideal_tokens
    return read, ideal


def _measure_m1(extent: Extent) -> list[Figure]:
    seeds, sessions = (1, 10) if extent.quick else (6, 20)
    read, ideal = count_tokens(seeds, sessions)
    rows = []
    for name in ideal:
        value = 100 * (1 - read[name] / ideal[name]) if ideal[name] else None
        note = f"{read[name]:,} of {ideal[name]:,} tokens; {seeds * sessions} sessions of {_TURNS} asks"
        rows.append(Figure("M1", _QUESTION, name, "%", _LIMIT, value, note=note))
    return rows


MEASURES = (Measure("M1", _QUESTION, _measure_m1),)
