"""Describe how a Chat Completions vendor differs from OpenAI, as data, and check required reasoning.

Theory of operation. All vendors share OpenAI's checks, which raise `RuleBroken` with OpenAI's rules. A `VendorHost`
contains the differences (keys, roles, ids, sequence, further checks) and the vendor's error messages.
`replacement_rules` maps a rule of OpenAI to the vendor's rule. If the vendor's message for a fault is unknown, OpenAI's
message is used, with the vendor's type, code and error body. So a vendor that differs in three rules takes three lines
of data.

Several vendors require reasoning in turns with calls. While thinking is on, Kimi and DeepSeek refuse an assistant
message with calls that has no `reasoning_content`. On their own hosts, the field may be empty. Compatible hosts and
relays require text in it, as does the mode `strict`. Google's version of Chat Completions requires the signature of a
model's first call in `extra_content`. (Google's own API has the signature in the part with the call.)
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from actors.strict.rules import gemini
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
    object_at,
)
from actors.strict.rules.gemini_rules import RULES, SENTINELS, GeminiSettings
from actors.strict.rules.reading import parse

Check: TypeAlias = Callable[[Json, "RequestContext"], None]


def accept_anything(*_: object) -> None:
    """Accept any arguments, and do nothing. Used in place of an OpenAI check that a vendor does not have."""


@dataclass(frozen=True, slots=True, eq=False)
class VendorHost:
    """A vendor of the Chat Completions family.

    Args:
        name: The name of the vendor's dialect.
        rules: The vendor's own rules, by id.
        replacement_rules: The vendor's rule that replaces a rule of the family, by the replaced rule's id. An entry for
            the rule id and the last key of the path (`OAC-07 content`) takes precedence.
        error_type, error_code: The type and code of a refusal for which the vendor has no message.
        kinds: The vendor's name for each JSON type, by OpenAI's name.
        keys: The keys that a request may have.
        unknown_keys: Whether unknown keys are refused, refused only in the mode `strict`, or ignored.
        message_keys: The keys that a message may have, by role; other roles do not exist.
        call_keys: The keys that a tool call may have in addition to `id`, `type` and the call itself.
        empty_calls: Whether an assistant message may have an empty list of calls.
        optional: The keys of calls and results that may be missing.
        parts: The types of content parts, by role; other roles accept only text.
        part_keys: The keys that a content part may have in addition to its type and its value.
        part_types: The JSON type of a part's value, by part type; other parts are objects.
        part_values: The key that contains a part's value, by part type, where the key differs from the part type; None
            if no single key contains the value.
        nullable: The roles whose content may be null.
        argument_types: The JSON types that a call's arguments may have.
        tool_types: The types of tools and calls.
        tool_keys: The keys that a tool may have in addition to its type and its value.
        own_tools: A pattern that matches the types of tools that the host runs itself. The keys of these tools are not
            checked.
        choices: The strings that `tool_choice` may be.
        efforts: The strings that `reasoning_effort` may be; None if the vendor does not document them.
        names: A pattern that tool names must match.
        enforced: Rules of strict compatible hosts (`ServerRule.strict_only`) that this host enforces in both modes.
        lacks: Rules of strict compatible hosts that this host does not enforce in any mode.
        fixed: The only accepted value of each sampling parameter, for models that accept no other value.
        schema: Checks a tool's parameters. Returns a description of a fault, or None.
        strict: Checks an answer schema with `strict`. Returns a description of a fault, or None.
        answer: Checks any answer schema. Returns a description of a fault, or None.
        identity: Checks the ids and names of all messages.
        sequence: Checks the pairing and the order of messages.
        checks: Further checks of the complete request, which run at the end.
        reasoning: The rule that is broken if a turn with calls has no reasoning while thinking is on.
        reasoning_scope: The turns whose reasoning the official host checks: `all` turns with calls, or only the `open`
            turn.
        forced: The rule that is broken by a forced tool choice while thinking is on.
        profile: The profile of models for which the settings contain none.
        finish: Adjusts a refusal, given the request and the values in the refusal's message.
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
    replacement_rules: Mapping[str, str] = field(default_factory=dict[str, str])
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
    tool_keys: frozenset[str] = frozenset()
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

    def runs_tool(self, tool: Json) -> bool:
        """Return True if the host itself runs this tool."""
        kind = tool.get("type")
        return self.own_tools is not None and isinstance(kind, str) and bool(self.own_tools.fullmatch(kind))

    def translate(self, refused: RuleBroken, request: Json) -> RuleBroken:
        """Return the refusal with this vendor's error message.

        A refusal with a `detail` is returned unchanged, because it comes from a gateway's upstream provider.
        """
        if refused.refusal.detail is not None:
            return refused
        refusal = self._vendor_refusal(refused)
        finish = self.finish
        return RuleBroken(refusal if finish is None else finish(refusal, request, refused.values))

    def _vendor_refusal(self, broken: RuleBroken) -> ServerRefusal:
        refusal = broken.refusal
        if refusal.rule in self.rules:
            return refusal
        last = (refusal.param or "").rpartition(".")[2]
        own = self.replacement_rules.get(f"{refusal.rule} {last}") or self.replacement_rules.get(refusal.rule)
        if own is None:
            return replace(refusal, type=self.error_type, code=self.error_code)
        values = {key: value for key, value in broken.values.items() if key != "param"}
        values["kind"] = self.kinds.get(str(values.get("kind")), values.get("kind"))
        return self.rules[own].refuse(refusal.param, **values).refusal


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The context in which one request is checked: the host, its mode and settings, and the model's profile."""

    host: VendorHost
    mode: Mode
    settings: CompatibleSettings | OpenAISettings
    profile: OpenAIProfile

    @property
    def model_profile(self) -> CompatibleProfile:
        """The model's profile. If the settings have only an OpenAI profile, this is the host's default profile."""
        return self.profile if isinstance(self.profile, CompatibleProfile) else self.host.profile

    def enforces(self, rule: ServerRule) -> bool:
        """Return True if this host enforces `rule`, which only some hosts of the family enforce."""
        if rule.id in self.host.lacks:
            return False
        return self.mode == "strict" or not rule.strict_only or rule.id in self.host.enforced

    def refuses_unknown_keys(self) -> bool:
        """Return True if this host refuses unknown keys in its current mode."""
        return self.host.unknown_keys == "refuse" or (
            self.host.unknown_keys == "strict" and self.mode == "strict"
        )


def does_model_think(request: Json, profile: CompatibleProfile) -> bool:
    """Return True if the model thinks before it answers this request."""
    if profile.thinking == "always":
        return True
    asked = request.get("thinking")
    kind = asked.get("type") if is_object(asked) else None
    return kind == "enabled" if kind in ("enabled", "disabled") else profile.thinking == "on"


def check_reasoning_present(request: Json, context: RequestContext) -> None:
    """Refuse a turn that has calls but no reasoning, if the host requires reasoning and thinking is on."""
    rule = context.host.reasoning
    if rule is None or not does_model_think(request, context.model_profile):
        return
    messages: list[Json] = request["messages"]
    turns = [at for at, message in enumerate(messages) if message.get("tool_calls")]
    if context.mode == "hosted" and context.host.reasoning_scope == "open":
        turns = turns[-1:] if messages[-1]["role"] == "tool" else []
    for at in turns:
        text = messages[at].get("reasoning_content")
        if not isinstance(text, str) or (context.mode == "strict" and not text.strip()):
            raise context.host.rules[rule].refuse(f"messages[{at}].reasoning_content", at=at)


def check_call_signatures(request: Json, context: RequestContext) -> None:
    """Refuse a message whose first call has no signature, and any call with a wrong signature."""
    if not context.model_profile.signed_calls or not isinstance(context.settings, CompatibleSettings):
        return
    for at, message in enumerate(request["messages"]):
        for number, call in enumerate(message.get("tool_calls") or ()):
            given = object_at(object_at(call, "extra_content"), "google").get("thought_signature")
            if not number and not given:
                raise RULES["GEM-04"].refuse(name=call.get("function", {}).get("name"), position=at + 1)
            own = signature(call, request["model"], context.settings)
            if (
                context.settings.signatures == "verify"
                and given
                and given != own
                and (number or given not in SENTINELS)
            ):
                raise RULES["GEM-05"].refuse()


def signature(call: Json, model: str, settings: CompatibleSettings) -> str:
    """Return the simulated signature for a call by `model`."""
    try:
        given = parse(call["function"]["arguments"].encode())
    except (KeyError, ValueError):  # the call is not a function call, or its arguments are invalid
        given = dict[str, Json]()
    arguments: dict[str, Json] = given if is_object(given) else {}
    part = {"functionCall": {"args": arguments}}
    return gemini.sign(part, GeminiSettings(model=model, secret=settings.secret))
