"""Random walks over hosts with prompt caches, and how much of what an ideal cache could have read is read.

Each host has a stand-in cache by its provider's rules (`actors.testing.cache`), whose clock the walk moves: time passes
between requests, now and then so much that what was cached is gone. In a shell, for a line per dialect:

    python -m tests.cache_walks --count 400
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from actors.adapters.request import Settings
from actors.core.content import Message, Text
from actors.core.events import Submitted
from actors.core.identity import Binding
from actors.core.packed import pack
from actors.testing import PromptCache
from actors.testing.rules.prompts import AUTOMATIC
from actors.testing.script import Call, Redacted, Say, Think, Turn
from tests.walks import MODELS, Walk

MARKED = ("anthropic", "bedrock", "openrouter")
CACHED = (*MARKED, *sorted(AUTOMATIC - {"openrouter"}))
"""Dialects whose hosts have a prompt cache. OpenRouter is measured with Anthropic's models."""
_MODELS = {
    "bedrock": ("eu.anthropic.claude-sonnet-5-v1:0", "anthropic.claude-haiku-4-5-v1:0"),
    "openrouter": ("anthropic/claude-sonnet-5", "anthropic/claude-haiku-4.5"),
}


class CacheWalk(Walk):
    """A walk that sends what a runtime would: the tools of a turn stay on, and each lane has its name.

    Args:
        seed: Its number.
        rewrites: Whether lanes start over.
        manual: Whether models may have a budget for thinking. In a tool loop that somebody else began, its host takes
            none (ANT-40), and so that request is read anew.
    """

    dialects: ClassVar[tuple[str, ...]] = CACHED
    steps: ClassVar[int] = 8
    rounds: ClassVar[int] = 10
    failover: ClassVar[int] = 50
    cut: ClassVar[int] = 20
    now = 0.0

    def __init__(self, seed: int, *, rewrites: bool = False, manual: bool = False) -> None:
        super().__init__(seed)
        self._rewrites = rewrites
        if not manual:
            self.thinking = {
                binding: "default" if mode == "manual" else mode for binding, mode in self.thinking.items()
            }

    def named(self, name: str) -> str:
        return self.random.choice(_MODELS.get(name, MODELS))

    def binding(self) -> Binding:
        found = super().binding()
        self.hosts[found].cache = PromptCache(clock=lambda: self.now)
        return found

    def settings(self, binding: Binding) -> Settings:
        return replace(super().settings(binding), tool_choice="auto")

    def say(self) -> None:
        """A user says little, or much."""
        if self.rarely(2):
            return super().say()
        self.number += 1
        words = Text("word " * self.random.randrange(600))
        return self.session.write(Submitted(self.number, pack(Message("human", [words], self.number))))

    def rewrite(self) -> None:
        if self._rewrites:
            super().rewrite()

    def spoken(self, binding: Binding, tools: Sequence[str]) -> Turn:
        """Models rarely say nothing at all, and those that have a budget for thinking begin with it (ANT-40)."""
        manual, silent = self.thinking[binding] == "manual", self.rarely(20)
        while True:
            turn = super().spoken(binding, tools)
            says = any(
                isinstance(part, Call) or (isinstance(part, Say) and part.text.strip()) for part in turn.parts
            )
            thinks = bool(turn.parts) and isinstance(turn.parts[0], Think | Redacted)
            if (says or silent) and (thinks or not (manual and turn.calls)):
                return turn

    def exchange(self, binding: Binding) -> bool:
        self.now += 600 if self.rarely(20) else self.random.randrange(60)
        return super().exchange(binding)


@dataclass
class Counts:
    """Tokens of the prompts that walks sent, by dialect: all, those read, and those that an ideal cache had read."""

    prompt: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    ideal: Counter[str] = field(default_factory=Counter)

    def add(self, walk: CacheWalk) -> None:
        """Add what the hosts of a walk counted."""
        for binding, host in walk.hosts.items():
            self.prompt[binding.dialect] += host.cache.prompt_tokens
            self.read[binding.dialect] += host.cache.read_tokens
            self.ideal[binding.dialect] += host.cache.ideal_tokens

    def share(self, name: str) -> float:
        """How much of what could have been read is read."""
        return self.read[name] / max(self.ideal[name], 1)


def counted(seeds: Iterable[int], *, rewrites: bool = False, manual: bool = False) -> Counts:
    """Go these walks and count."""
    counts = Counts()
    for seed in seeds:
        walk = CacheWalk(seed, rewrites=rewrites, manual=manual)
        walk.run()
        counts.add(walk)
    return counts


def main() -> int:
    """Print a line for each dialect."""
    parser = argparse.ArgumentParser(prog="python -m tests.cache_walks")
    parser.add_argument("--count", type=int, default=100, help="how many walks")
    parser.add_argument("--seed", type=int, default=0, help="the first one's")
    parser.add_argument("--rewrites", action="store_true", help="let lanes start over, too")
    parser.add_argument("--manual", action="store_true", help="let models have a budget for thinking, too")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    counts = counted(seeds, rewrites=options.rewrites, manual=options.manual)
    for name in CACHED:
        told = f"{counts.prompt[name]:>10} {counts.ideal[name]:>10} {counts.read[name]:>10}"
        sys.stdout.write(f"{name:18}{told} {counts.share(name):8.2%}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
