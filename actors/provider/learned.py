"""Remember which parameters providers rejected, per binding, for the life of a runtime.

The resolver uses it. Unsupported parameters are omitted from every later request to the binding; of a parameter whose
value was rejected, only that value is omitted. Nothing is inferred for other bindings, not even for another account
of the same model.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from actors.adapters.request import Settings
from actors.adapters.settings import setting_value
from actors.core.log.events import OmittedParameter
from actors.core.policy.learned import models_entry
from actors.core.stats.stats import LearnedFact
from actors.core.values.identity import Binding

BINDINGS: Final = 1024
"""Most bindings that are remembered, least recently used first out."""
VALUES: Final = 64
"""Most rejected values that are remembered per binding; the oldest are dropped."""


class BindingFacts(Struct):
    """The rejected parameters of one binding.

    Args:
        unsupported: Parameters that the provider does not support, each with the provider's message.
        values: Rejected values, as (parameter, value), each with the provider's message.
    """

    unsupported: dict[str, str] = {}
    values: dict[tuple[str, str], str] = {}

    def omissions(self, settings: Settings) -> tuple[OmittedParameter, ...]:
        """Return the parameters that a request with these settings omits."""
        if not (self.unsupported or self.values):
            return ()
        rejected = dict.fromkeys(
            name for name, value in self.values if setting_value(settings, name) == value
        )
        omitted = [OmittedParameter(name) for name in self.unsupported]
        return (
            *omitted,
            *(OmittedParameter(name, True) for name in rejected if name not in self.unsupported),
        )

    def learn(self, omissions: Iterable[OmittedParameter], settings: Settings, why: str) -> None:
        """Record why a request with these settings was rejected."""
        for omission in omissions:
            if not omission.only_value:
                self.unsupported[omission.name] = why
                continue
            self.values[omission.name, setting_value(settings, omission.name)] = why
            if len(self.values) > VALUES:
                del self.values[next(iter(self.values))]


class LearnedFacts:
    """The rejected parameters, by binding. A runtime has one."""

    def __init__(self) -> None:
        self._facts: dict[Binding, BindingFacts] = {}

    def of(self, binding: Binding) -> BindingFacts:
        """Return the mutable facts about a binding."""
        known = self._facts.pop(binding, None)
        facts = self._facts[binding] = BindingFacts() if known is None else known
        if len(self._facts) > BINDINGS:
            del self._facts[next(iter(self._facts))]
        return facts

    def stats(self) -> tuple[LearnedFact, ...]:
        """Return the unsupported parameters, by binding."""
        known: Mapping[Binding, BindingFacts] = self._facts
        return tuple(
            LearnedFact(binding, dict(facts.unsupported), models_entry(binding, facts.unsupported))
            for binding, facts in known.items()
            if facts.unsupported
        )
