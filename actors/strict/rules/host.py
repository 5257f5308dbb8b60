"""What one vendor of the Chat Completions family does otherwise than OpenAI, as data.

Theory of operation. There is one walk over a request, OpenAI's, and it raises OpenAI's rules. A `VendorHost` says
where a vendor's walk differs (keys, roles, ids, sequence, further checks) and in which words it refuses: `words`
leads from a rule of the family to the vendor's own rule. A fault for which the vendor has no known words keeps
OpenAI's sentence, under the vendor's type and code and in the vendor's error body. So a vendor that differs in
three rules is three lines of data.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from actors.strict.rules.base import (
    CompatibleProfile,
    CompatibleSettings,
    Json,
    Mode,
    OpenAIProfile,
    OpenAISettings,
    RuleBroken,
    ServerRefusal,
    ServerRule,
    is_object,
)

Check: TypeAlias = Callable[[Json, "RequestContext"], None]


def accept(*_: object) -> None:
    """Check nothing: a vendor without the demand."""


@dataclass(frozen=True, slots=True, eq=False)
class VendorHost:
    """One vendor.

    Args:
        rules: The vendor's own rules.
        words: From a rule of the family to the vendor's own, by rule id, or by rule id and the last key of
            the place (`OAC-07 content`), which goes first.
        error_type: Of a fault without words of its own, and `error_code` its code.
        kinds: From a JSON type, as OpenAI's messages name it, to its name in the vendor's.
        keys: Of a request.
        unknown_keys: Keys beyond the known ones are refused, refused by the strict mode alone, or ignored.
        message_keys: Keys of a message by role; other roles do not exist.
        call_keys: Keys of a tool call besides `id`, `type` and the call itself.
        empty_calls: An assistant message may have an empty list of calls.
        optional: Keys of calls and results that may be absent for all the shape rules care.
        parts: Types of content parts by role; other roles hold text only.
        part_keys: Keys of a content part besides its type and its value.
        part_types: JSON type of a part's value; other parts are objects.
        part_values: Key of a part's value, where it is not the part's type, and None where there is no one such key.
        nullable: Roles whose content may be null.
        argument_types: JSON types of a call's arguments.
        tool_types: Types of tools and calls.
        tool_marks: Keys of a tool besides its type and its value.
        own_tools: Types of the tools that the host itself runs; their keys are its own.
        choices: Words of `tool_choice`.
        efforts: Words of `reasoning_effort`; None where the vendor does not say.
        names: What a tool name must match.
        enforced: Rules of strict copies (`ServerRule.strict_only`) that this host has in both modes.
        lacks: Rules of strict copies that this host has in neither.
        fixed: The only value of each sampling parameter on models that take no other.
        schema: Says what is wrong with a tool's parameters, or None.
        strict: Says what is wrong with a schema that an answer is to conform to strictly, or None.
        answer: Says what is wrong with the schema of any answer, or None.
        identity: Checks the ids and names of all messages.
        sequence: Checks who answers whom, and in which order.
        checks: What else is checked, on the whole request, at the end.
        reasoning: The rule of a call turn that lacks its reasoning while thinking is on.
        reasoning_scope: What the official host checks: `all` call turns, or the `open` one alone.
        forced: The rule of a forced tool choice while thinking is on.
        profile: Of a model, where the settings have none.
        finish: The vendor's last word on a refusal, given the request and what its sentence was made of.
    """

    name: str
    rules: Mapping[str, ServerRule]
    keys: frozenset[str]
    message_keys: Mapping[str, frozenset[str]]
    parts: Mapping[str, frozenset[str]]
    names: re.Pattern[str]
    schema: Callable[[Json], str | None]
    identity: Callable[[list[Json], "RequestContext"], None]
    sequence: Callable[[list[Json], "RequestContext"], None]
    strict: Callable[[Json, Mode], str | None] = lambda schema, mode: None
    answer: Callable[[dict[str, Json]], str | None] = lambda schema: None
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    error_type: str = "invalid_request_error"
    error_code: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict[str, str])
    unknown_keys: Literal["refuse", "strict", "ignore"] = "refuse"
    call_keys: frozenset[str] = frozenset()
    empty_calls: bool = False
    optional: frozenset[str] = frozenset()
    part_keys: frozenset[str] = frozenset()
    part_types: Mapping[str, type] = field(default_factory=lambda: {"text": str, "refusal": str})
    part_values: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    nullable: frozenset[str] = frozenset({"function"})
    argument_types: tuple[type, ...] = (str,)
    tool_types: tuple[str, ...] = ("function",)
    tool_marks: frozenset[str] = frozenset()
    own_tools: re.Pattern[str] | None = None
    choices: tuple[str, ...] = ("none", "auto", "required")
    efforts: tuple[str, ...] | None = None
    enforced: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    fixed: Mapping[str, float] = field(default_factory=dict[str, float])
    checks: tuple[Check, ...] = ()
    reasoning: str | None = None
    reasoning_scope: Literal["all", "open"] = "all"
    forced: str | None = None
    profile: CompatibleProfile = field(default_factory=CompatibleProfile)
    finish: Callable[[ServerRefusal, Json, Mapping[str, object]], ServerRefusal] | None = None

    def runs(self, tool: Json) -> bool:
        """Return True for a tool that the host itself runs."""
        kind = tool.get("type")
        return self.own_tools is not None and isinstance(kind, str) and bool(self.own_tools.fullmatch(kind))

    def reword(self, refused: RuleBroken, request: Json) -> RuleBroken:
        """Return the refusal in this vendor's own words. An upstream's words, which have a detail, stay."""
        if refused.refusal.detail is not None:
            return refused
        refusal = self._own_wording(refused)
        finish = self.finish
        return RuleBroken(refusal if finish is None else finish(refusal, request, refused.values))

    def _own_wording(self, refused: RuleBroken) -> ServerRefusal:
        refusal = refused.refusal
        if refusal.rule in self.rules:
            return refusal
        last = (refusal.param or "").rpartition(".")[2]
        own = self.words.get(f"{refusal.rule} {last}") or self.words.get(refusal.rule)
        if own is None:
            return replace(refusal, type=self.error_type, code=self.error_code)
        values = {key: value for key, value in refused.values.items() if key != "param"}
        values["kind"] = self.kinds.get(str(values.get("kind")), values.get("kind"))
        return self.rules[own].refuse(refusal.param, **values).refusal


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Under which terms one request is judged: the host, its mode, its settings and the model's profile."""

    host: VendorHost
    mode: Mode
    settings: CompatibleSettings | OpenAISettings
    profile: OpenAIProfile

    @property
    def model(self) -> CompatibleProfile:
        """The model's profile, with what only compatible vendors' models have."""
        return self.profile if isinstance(self.profile, CompatibleProfile) else self.host.profile

    def holds(self, rule: ServerRule) -> bool:
        """Say whether a rule of the family that not every host has is checked here."""
        if rule.id in self.host.lacks:
            return False
        return self.mode == "strict" or not rule.strict_only or rule.id in self.host.enforced

    def refuses_unknown_keys(self) -> bool:
        """Say whether a key beyond the known ones is refused."""
        return self.host.unknown_keys == "refuse" or (
            self.host.unknown_keys == "strict" and self.mode == "strict"
        )


def thinks(request: Json, profile: CompatibleProfile) -> bool:
    """Say whether the model thinks before it answers this request."""
    if profile.thinking == "always":
        return True
    asked = request.get("thinking")
    kind = asked.get("type") if is_object(asked) else None
    return kind == "enabled" if kind in ("enabled", "disabled") else profile.thinking == "on"
