"""Build requests to one backend, from its binding, adapter and settings.

The resolver (`actors.provider.resolver`) creates these values, and sessions use them.

A runtime remembers which parameters the provider of each binding rejected, until the runtime exits. Unsupported
parameters are omitted from every later request to the binding. If only one value of a parameter was rejected, only that
value is omitted. Nothing is inferred for other bindings, not even for the same model with a different account.

To make this permanent, a user can declare rejected parameters in a `[models."PROVIDER:GLOB"]` table of `actors.toml`.
`model_overrides` returns the fields of this table, and `models_entry` the table as text. If no field can declare a
parameter as unsupported, the text has a comment instead.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from actors.adapters.adapter import Adapter, PreparedRequest
from actors.adapters.outputs import output_means
from actors.adapters.request import Request, Settings
from actors.adapters.settings import can_force_tool, setting_value
from actors.core.data.jsonio import quote
from actors.core.dialects.dialect import lane_key
from actors.core.lanes.lane import Rendered
from actors.core.log.events import OmittedParameter
from actors.core.schemas.property_keys import PLAIN_KEYS
from actors.core.settings.asking import StoredAskSettings
from actors.core.settings.table import SETTINGS
from actors.core.settings.values import ToolChoiceSetting
from actors.core.stats.stats import LearnedFact, ToolCounts
from actors.core.transcript.transcript import NO_FACTS
from actors.core.values.identity import Binding

Override = str | bool | tuple[str, ...]
"""The value of a field in a `[models]` table."""
FIELDS: Mapping[str, Mapping[str, Override]] = {
    "effort": {"efforts": ()},
    "temperature": {"sampling": "never"},
    "top_p": {"sampling": "never"},
    **{name: {setting.fact: False} for name, setting in SETTINGS.items() if setting.fact},
    "stop": {"stops": False},
    "thinking": {"thinking": ()},
    "tool_choice": {"forced_choice": "never"},
    "cache": {"cache": "none"},
    "cache_life": {"cache": "automatic"},
    "output": {"schema_output": False},
    "schema_keys": {"property_keys": PLAIN_KEYS},
}
"""The fields that mark a parameter as unsupported, by the parameter's name."""
MAX_BINDINGS: Final = 1024
"""Maximum number of bindings. The least recently used binding is dropped first."""
MAX_VALUES: Final = 64
"""Maximum number of rejected values per binding. The oldest value is dropped first."""


def model_overrides(names: Iterable[str]) -> dict[str, Override]:
    """Return the fields of a `[models]` table that mark these parameters as unsupported."""
    return {field: value for name in names for field, value in FIELDS.get(name, {}).items()}


def models_entry(binding: Binding, names: Iterable[str]) -> str:
    """Return a `[models]` table, as text, that marks these parameters as unsupported by the binding's model."""
    known = tuple(names)
    model = re.sub(r"([*?\[])", r"[\1]", binding.model)
    lines = [f"[models.{_toml_value(f'{binding.backend}:{model}')}]"]
    lines += [f"{field} = {_toml_value(value)}" for field, value in model_overrides(known).items()]
    lines += [f"# {name} was rejected, but no field can express that" for name in known if name not in FIELDS]
    return "\n".join(lines)


def _toml_value(value: Override) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quote(value).decode()  # TOML's basic strings use the escapes of JSON
    return f"[{', '.join(map(_toml_value, value))}]"


class BindingFacts(Struct):
    """The rejected parameters of one binding.

    Args:
        unsupported: The provider's error messages, by the name of the unsupported parameter.
        rejected_values: The provider's error messages, by the name of the parameter and the rejected value.
    """

    unsupported: dict[str, str] = {}
    rejected_values: dict[tuple[str, str], str] = {}

    def omissions(self, settings: Settings) -> tuple[OmittedParameter, ...]:
        """Return the parameters that a request with these settings must omit."""
        if not (self.unsupported or self.rejected_values):
            return ()
        rejected = dict.fromkeys(
            name for name, value in self.rejected_values if setting_value(settings, name) == value
        )
        omitted = [OmittedParameter(name) for name in self.unsupported]
        return (
            *omitted,
            *(OmittedParameter(name, True) for name in rejected if name not in self.unsupported),
        )

    def learn(self, omissions: Iterable[OmittedParameter], settings: Settings, message: str) -> None:
        """Record which parameters the provider rejected in a request with these settings. `message` is the provider's
        error message.
        """
        for omission in omissions:
            if not omission.only_value:
                self.unsupported[omission.name] = message
                continue
            self.rejected_values[omission.name, setting_value(settings, omission.name)] = message
            if len(self.rejected_values) > MAX_VALUES:
                del self.rejected_values[next(iter(self.rejected_values))]


class LearnedFacts:
    """The rejected parameters of a runtime's bindings."""

    def __init__(self) -> None:
        self._facts: dict[Binding, BindingFacts] = {}

    def facts_of(self, binding: Binding) -> BindingFacts:
        """Return the rejected parameters of a binding, and mark the binding as recently used.

        The caller records further rejections in the returned object.
        """
        known = self._facts.pop(binding, None)
        facts = self._facts[binding] = BindingFacts() if known is None else known
        if len(self._facts) > MAX_BINDINGS:
            del self._facts[next(iter(self._facts))]
        return facts

    def stats(self) -> tuple[LearnedFact, ...]:
        """Return the unsupported parameters of each binding, and the configuration entry that declares them."""
        known: Mapping[Binding, BindingFacts] = self._facts
        return tuple(
            LearnedFact(binding, dict(facts.unsupported), models_entry(binding, facts.unsupported))
            for binding, facts in known.items()
            if facts.unsupported
        )


class ResolvedBackend(Struct):
    """A backend with the settings, tools and system prompt of the sessions that send requests to it."""

    binding: Binding
    adapter: Adapter
    settings: Settings
    counts: ToolCounts = field(default_factory=ToolCounts)
    facts: BindingFacts = field(default_factory=BindingFacts)
    _prepared: tuple[object, PreparedRequest] | None = None

    def request(
        self,
        rendered: Rendered,
        session: str,
        choice: ToolChoiceSetting | None = None,
        ask_settings: StoredAskSettings | None = None,
        omitted: Sequence[OmittedParameter] = (),
    ) -> Request:
        """Return the request for a session's rendered transcript, with the settings of the ask.

        `omitted` lists the parameters to omit because the provider rejected them (`omissions`).
        """
        facts = rendered._facts._replace(lane=lane_key(session, self.binding))
        wanted = choice, ask_settings, omitted, NO_FACTS.tools if self.settings.tools else facts.tools
        # most requests have the settings of the previous request, so its prepared part is reused
        if self._prepared is None or self._prepared[0] != wanted:
            settings = self.asked_settings(choice, ask_settings)
            if omitted:
                settings = replace(settings, omitted=tuple([omission.name for omission in omitted]))
            self._prepared = wanted, self.adapter.prepare(settings, facts.tools)
        return self._prepared[1].request(rendered._segments, facts)

    def needs_output_instruction(self, ask_settings: StoredAskSettings | None) -> bool:
        """Return True if an ask needs structured output, and only an instruction in the prompt can request it."""
        if ask_settings is None or ask_settings.output is None:
            return False
        settings = self.asked_settings(ask_settings.tool_choice, ask_settings)
        if any(omission.name == "output" for omission in self.facts.omissions(settings)):
            return True
        return output_means(settings, self.adapter.dialect) == "prompt"

    def instructed_tool_choice(self, ask_settings: StoredAskSettings | None) -> ToolChoiceSetting | None:
        """Return the ask's tool choice if no request parameter can force it, so that an instruction in the prompt must
        express it.

        Return None if a parameter can force the choice, or if the ask has none. Removing all other tools from the
        request is no alternative, because it would invalidate reasoning that is bound to the tool list.
        """
        if (
            ask_settings is None
            or ask_settings.tool_choice in (None, "auto", "none")
            or not self.settings.tools
        ):
            return None
        settings = self.asked_settings(ask_settings.tool_choice, ask_settings)
        is_refused = any(omission.name == "tool_choice" for omission in self.facts.omissions(settings))
        return (
            ask_settings.tool_choice
            if is_refused or not can_force_tool(settings, self.adapter.dialect)
            else None
        )

    def omissions(
        self, choice: ToolChoiceSetting | None, ask_settings: StoredAskSettings | None
    ) -> tuple[OmittedParameter, ...]:
        """Return the parameters that a request omits because the provider rejected them before."""
        return self.facts.omissions(self.asked_settings(choice, ask_settings))

    def asked_settings(
        self, choice: ToolChoiceSetting | None, ask_settings: StoredAskSettings | None
    ) -> Settings:
        """Return the backend's settings, overridden by the settings of an ask."""
        changes = {} if ask_settings is None else ask_settings.of_request
        if choice is not None:
            changes["tool_choice"] = choice
        return replace(self.settings, **changes) if changes else self.settings
