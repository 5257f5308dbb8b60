"""Random walks over hosts with prompt caches: measure the share of an ideal cache's reads that is actually read.

Each host has a stand-in cache with its provider's rules (`actors.strict.cache`). The walk moves the cache's clock: time
passes between requests, sometimes enough for cached content to expire. In a shell, for a line per dialect:

    python -m tests.commands.cache_walks --count 400
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from msgspec.structs import replace

from actors.adapters.request import Settings
from actors.core.data.jsonio import quote
from actors.core.log.call_events import Returned, Scheduled, Started
from actors.core.log.events import AskStarted
from actors.core.values.content import Message, Text, ToolCall
from actors.core.values.identity import Binding
from actors.core.values.packed import pack
from actors.strict.rules.prompts import AUTOMATIC
from actors.strict.script import Call, Redacted, Say, Think, Turn
from actors.testing import PromptCache
from tests.commands.walks import MODELS, TOOLS, Walk

MARKED = ("anthropic", "bedrock", "openrouter")
CACHED = (*MARKED, *sorted(AUTOMATIC - {"openrouter"}))
"""Dialects with prompt caches on their hosts. OpenRouter is measured with Anthropic's models."""
_MODELS = {
    "bedrock": ("eu.anthropic.claude-sonnet-5-v1:0", "anthropic.claude-haiku-4-5-v1:0"),
    "openrouter": ("anthropic/claude-sonnet-5", "anthropic/claude-haiku-4.5"),
}


class CacheWalk(Walk):
    """A random walk without changes of tools inside a turn, which no runtime makes.

    Hosts with cache marks are more frequent, because hosts with automatic caches hardly ever miss.
    """

    dialects: ClassVar[tuple[str, ...]] = (*MARKED, *CACHED)
    rounds: ClassVar[int] = 25
    now = 0.0

    def model_of(self, name: str) -> str:
        return self.random.choice(_MODELS.get(name, MODELS))

    def binding(self) -> Binding:
        found = super().binding()
        self.hosts[found].cache = PromptCache(clock=lambda: self.now)
        return found

    def settings(self, binding: Binding) -> Settings:
        return replace(super().settings(binding), tool_choice="none" if self.last_round else "auto")

    def say(self) -> None:
        """A user sends a short or a long message, and a turn begins."""
        self.last_round = False
        if self.rarely(2):
            return super().say()
        self.number += 1
        words = Text("word " * self.random.randrange(600))
        return self.session.write(AskStarted(self.number, pack(Message("user", [words], self.number))))

    def next_answer(self, binding: Binding, tools: Sequence[str]) -> Turn:
        """Rarely return an empty answer or a last one with calls; models with a thinking budget start with thinking."""
        manual, silent = self.thinking[binding] == "manual", self.rarely(20)
        while True:
            turn = super().next_answer(binding, tools)
            says = any(
                isinstance(part, Call) or (isinstance(part, Say) and part.text.strip()) for part in turn.parts
            )
            thinks = bool(turn.parts) and isinstance(turn.parts[0], Think | Redacted)
            if (says or silent) and (thinks or not (manual and turn.calls)) and self.fits(turn):
                return turn

    def fits(self, turn: Turn) -> bool:
        """Return True if the model may give this answer in this round."""
        return not (self.last_round and turn.calls)

    def exchange(self, binding: Binding) -> bool:
        self.now += 600 if self.rarely(20) else self.random.randrange(60)
        return super().exchange(binding)


class TirelessWalk(CacheWalk):
    """A walk in which every model calls tools until they are turned off: each turn reaches its round limit."""

    steps: ClassVar[int] = 4
    failover: ClassVar[int] = 1000
    cut: ClassVar[int] = 1000

    def end(self, call: ToolCall, *, ran: bool) -> None:
        """Return a result with content."""
        if ran and call.raw is None and call.name in {tool.name for tool in TOOLS}:
            for event in (Scheduled(call.id, call.name, call.json), Started(call.id)):
                self.session.write(event)
            return self.session.write(Returned(call.id, quote("told " * self.random.randrange(60)), ()))
        return super().end(call, ran=ran)

    def fits(self, turn: Turn) -> bool:
        return bool(turn.calls) != self.last_round


@dataclass
class Counts:
    """Prompt tokens that walks sent, by dialect: all, those read, and those that an ideal cache would have read."""

    prompt: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    ideal: Counter[str] = field(default_factory=Counter)

    def add(self, walk: CacheWalk) -> None:
        """Add the counts of a walk's hosts."""
        for binding, host in walk.hosts.items():
            self.prompt[binding.dialect] += host.cache.prompt_tokens
            self.read[binding.dialect] += host.cache.read_tokens
            self.ideal[binding.dialect] += host.cache.ideal_tokens

    def share(self, name: str) -> float:
        """Return the share of the ideal cache's reads that was read."""
        return self.read[name] / max(self.ideal[name], 1)


@cache
def count_tokens(seeds: Sequence[int], kind: type[CacheWalk] = CacheWalk) -> Counts:
    """Make these walks and count; the result is cached."""
    counts = Counts()
    for seed in seeds:
        walk = kind(seed)
        walk.run()
        counts.add(walk)
    return counts


def main() -> int:
    """Print a line for each dialect."""
    parser = argparse.ArgumentParser(prog="python -m tests.commands.cache_walks")
    parser.add_argument("--count", type=int, default=100, help="how many walks")
    parser.add_argument("--seed", type=int, default=0, help="the first one's")
    parser.add_argument(
        "--tireless", action="store_true", help="only walks with turns that reach their limit"
    )
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    counts = count_tokens(seeds, TirelessWalk if options.tireless else CacheWalk)
    for name in CACHED:
        told = f"{counts.prompt[name]:>10} {counts.ideal[name]:>10} {counts.read[name]:>10}"
        sys.stdout.write(f"{name:18}{told} {counts.share(name):8.2%}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
