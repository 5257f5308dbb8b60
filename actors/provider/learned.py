"""Remember, until the runtime exits, which parameters the provider of each binding rejected.

The resolver uses this module. Unsupported parameters are omitted from every later request to the binding. If only a
value of a parameter was rejected, only that value is omitted. Nothing is inferred for other bindings, not even for the
same model with a different account.
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

MAX_BINDINGS: Final = 1024
"""Maximum number of bindings. The least recently used binding is dropped first."""
MAX_VALUES: Final = 64
"""Maximum number of rejected values per binding. The oldest value is dropped first."""


class BindingFacts(Struct):
    """The rejected parameters of one binding.

    Args:
        unsupported: Parameters that the provider does not support: maps the parameter to the provider's message.
        values: Rejected values: maps (parameter, value) to the provider's message.
    """

    unsupported: dict[str, str] = {}
    values: dict[tuple[str, str], str] = {}

    def omissions(self, settings: Settings) -> tuple[OmittedParameter, ...]:
        """Return the parameters that a request with these settings must omit."""
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

    def learn(self, omissions: Iterable[OmittedParameter], settings: Settings, message: str) -> None:
        """Record which parameters the provider rejected in a request with these settings. `message` is its error
        message.
        """
        for omission in omissions:
            if not omission.only_value:
                self.unsupported[omission.name] = message
                continue
            self.values[omission.name, setting_value(settings, omission.name)] = message
            if len(self.values) > MAX_VALUES:
                del self.values[next(iter(self.values))]


class LearnedFacts:
    """The rejected parameters of a runtime's bindings."""

    def __init__(self) -> None:
        self._facts: dict[Binding, BindingFacts] = {}

    def facts_of(self, binding: Binding) -> BindingFacts:
        """Return the rejected parameters of a binding, and mark the binding as recently used. The caller may change the
        returned object.
        """
        known = self._facts.pop(binding, None)
        facts = self._facts[binding] = BindingFacts() if known is None else known
        if len(self._facts) > MAX_BINDINGS:
            del self._facts[next(iter(self._facts))]
        return facts

    def stats(self) -> tuple[LearnedFact, ...]:
        """Return the unsupported parameters of each binding, each with the configuration entry to declare it."""
        known: Mapping[Binding, BindingFacts] = self._facts
        return tuple(
            LearnedFact(binding, dict(facts.unsupported), models_entry(binding, facts.unsupported))
            for binding, facts in known.items()
            if facts.unsupported
        )
