"""Learned facts: what refusals have taught of each binding, for the life of a runtime.

A parameter that a provider does not support is left out of every later request to that binding. Of a parameter whose
value it rejects, that value is. Nothing is learned for another binding, be it another account of the same model.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from actors.adapters.request import Settings
from actors.adapters.settings import setting_value
from actors.core.log.events import Omission
from actors.core.policy.learned import models_entry
from actors.core.stats.stats import LearnedFact
from actors.core.values.identity import Binding

BINDINGS: Final = 1024
"""Bindings that are remembered; of more, those that were used longest ago are forgotten."""
VALUES: Final = 64
"""Rejected values that are remembered of one binding; of more, the oldest are forgotten."""


class BindingFacts(Struct):
    """What refusals have taught of one binding.

    Args:
        unsupported: Parameters that the provider does not support, each with its words.
        values: Values that it rejects, as (parameter, value), each with its words.
    """

    unsupported: dict[str, str] = field(default_factory=dict)
    values: dict[tuple[str, str], str] = field(default_factory=dict)

    def omissions(self, settings: Settings) -> tuple[Omission, ...]:
        """Return what a request with these settings leaves out."""
        if not (self.unsupported or self.values):
            return ()
        rejected = dict.fromkeys(
            name for name, value in self.values if setting_value(settings, name) == value
        )
        omitted = [Omission(name) for name in self.unsupported]
        return (*omitted, *(Omission(name, True) for name in rejected if name not in self.unsupported))

    def learn(self, omissions: Iterable[Omission], settings: Settings, why: str) -> None:
        """Remember what a request with these settings was refused for."""
        for omission in omissions:
            if not omission.is_value:
                self.unsupported[omission.name] = why
                continue
            self.values[omission.name, setting_value(settings, omission.name)] = why
            if len(self.values) > VALUES:
                del self.values[next(iter(self.values))]


class LearnedFacts:
    """What refusals have taught, by binding. A runtime has one."""

    def __init__(self) -> None:
        self._facts: dict[Binding, BindingFacts] = {}

    def of(self, binding: Binding) -> BindingFacts:
        """Return what is known of a binding, to be added to."""
        known = self._facts.pop(binding, None)
        facts = self._facts[binding] = BindingFacts() if known is None else known
        if len(self._facts) > BINDINGS:
            del self._facts[next(iter(self._facts))]
        return facts

    def stats(self) -> tuple[LearnedFact, ...]:
        """Return the parameters that are not supported, by binding."""
        known: Mapping[Binding, BindingFacts] = self._facts
        return tuple(
            LearnedFact(binding, dict(facts.unsupported), models_entry(binding, facts.unsupported))
            for binding, facts in known.items()
            if facts.unsupported
        )
