"""Describe the differences of a Chat Completions vendor from OpenAI, as data.

Theory of operation. All vendors share OpenAI's walk, which raises OpenAI's rules. A `VendorHost` contains the
differences (keys, roles, ids, sequence, further checks) and the vendor's messages: `words` maps a rule of the family to
the vendor's own rule. A fault without a known message of the vendor keeps OpenAI's message, with the vendor's type,
code and error body. So a vendor that differs in three rules takes three lines of data.
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
    """A vendor of the Chat Completions family.

    Args:
        rules: The vendor's own rules.
        words: The vendor's rule for a rule of the family, by rule id, or with precedence by rule id and the last key of
            the path (`OAC-07 content`).
        error_type, error_code: The type and code of a fault without a message of the vendor.
        kinds: The vendor's name of each JSON type, by OpenAI's name.
        keys: The keys of a request.
        unknown_keys: Whether unknown keys are refused, refused only in strict mode, or ignored.
        message_keys: The keys of a message by role; other roles do not exist.
        call_keys: The keys of a tool call besides `id`, `type` and the call itself.
        empty_calls: Whether an assistant message may have an empty list of calls.
        optional: The optional keys of calls and results, as far as the shape rules are concerned.
        parts: The types of content parts by role; other roles have only text.
        part_keys: The keys of a content part besides its type and its value.
        part_types: The JSON type of a part's value; other parts are objects.
        part_values: The key of a part's value, if it differs from the part's type; None if there is no single key.
        nullable: The roles whose content may be null.
        argument_types: The JSON types of a call's arguments.
        tool_types: The types of tools and calls.
        tool_marks: The keys of a tool besides its type and its value.
        own_tools: The types of the tools that the host runs; their keys are not checked.
        choices: The strings of `tool_choice`.
        efforts: The strings of `reasoning_effort`; None if the vendor does not document them.
        names: The pattern of tool names.
        enforced: Rules of strict copies (`ServerRule.strict_only`) that this host has in both modes.
        lacks: Rules of strict copies that this host has in neither mode.
        fixed: The only accepted value of each sampling parameter on models that accept no other.
        schema: Describes a fault of a tool's parameters, or returns None.
        strict: Describes a fault of a strict answer schema, or returns None.
        answer: Describes a fault of any answer schema, or returns None.
        identity: Checks the ids and names of all messages.
        sequence: Checks the pairing and order of messages.
        checks: Further checks of the complete request, at the end.
        reasoning: The rule of a turn with calls that lacks its reasoning while thinking is on.
        reasoning_scope: The turns that the official host checks: `all` turns with calls, or only the `open` one.
        forced: The rule of a forced tool choice while thinking is on.
        profile: The profile of a model if the settings have none.
        finish: Adjusts a refusal, given the request and the values in its message.
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
        """Return True for a tool that the host runs."""
        kind = tool.get("type")
        return self.own_tools is not None and isinstance(kind, str) and bool(self.own_tools.fullmatch(kind))

    def translate(self, refused: RuleBroken, request: Json) -> RuleBroken:
        """Return the refusal with this vendor's message. An upstream's refusal, which has a detail, stays unchanged."""
        if refused.refusal.detail is not None:
            return refused
        refusal = self._vendor_rule(refused)
        finish = self.finish
        return RuleBroken(refusal if finish is None else finish(refusal, request, refused.values))

    def _vendor_rule(self, refused: RuleBroken) -> ServerRefusal:
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
    """The context of the checks of one request: the host, its mode, its settings and the model's profile."""

    host: VendorHost
    mode: Mode
    settings: CompatibleSettings | OpenAISettings
    profile: OpenAIProfile

    @property
    def model(self) -> CompatibleProfile:
        """The model's profile as one of a compatible vendor."""
        return self.profile if isinstance(self.profile, CompatibleProfile) else self.host.profile

    def holds(self, rule: ServerRule) -> bool:
        """Return True if this host has an optional rule of the family."""
        if rule.id in self.host.lacks:
            return False
        return self.mode == "strict" or not rule.strict_only or rule.id in self.host.enforced

    def refuses_unknown_keys(self) -> bool:
        """Return True if unknown keys are refused."""
        return self.host.unknown_keys == "refuse" or (
            self.host.unknown_keys == "strict" and self.mode == "strict"
        )


def thinks(request: Json, profile: CompatibleProfile) -> bool:
    """Return True if the model thinks before its answer to this request."""
    if profile.thinking == "always":
        return True
    asked = request.get("thinking")
    kind = asked.get("type") if is_object(asked) else None
    return kind == "enabled" if kind in ("enabled", "disabled") else profile.thinking == "on"
