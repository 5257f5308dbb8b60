"""Define rules as data, refusals, profiles and settings, which the strict servers of all providers use.

A rule contains the provider's response to a violation, and states where that response is documented. A validator checks
a request body in the provider's order and raises `RuleBroken` at the first broken rule. A refusal contains the fields
of the provider's error body.

This package shares no code with the renderer, the independent check or the adapters. So if one of them misreads a rule,
the tests against the strict servers detect it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeGuard

import msgspec

Mode: TypeAlias = Literal["strict", "hosted"]
Json: TypeAlias = Any  # Any: request bodies may contain any JSON, and the validators check the types


def is_object(value: object) -> TypeGuard[dict[str, Json]]:
    """Return True for a dict. Unlike `isinstance`, this function tells type checkers the types of keys and values."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Json]]:
    """Return True for a list. Unlike `isinstance`, this function tells type checkers the type of the items."""
    return isinstance(value, list)


def object_at(body: Json, key: str) -> dict[str, Json]:
    """Return the object under a key. If the key is absent or its value is empty, return an empty object."""
    return body.get(key) or {}


def array_at(body: Json, key: str) -> list[Json]:
    """Return the list under a key. If the key is absent or its value is empty, return an empty list."""
    return body.get(key) or []


# `bool` must come before `int`, because `bool` is a subclass of `int`.
_KINDS = (
    (type(None), "null"),
    (bool, "boolean"),
    (int, "integer"),
    (float, "decimal"),
    (str, "string"),
    (dict, "object"),
)

DOC = "docs"
SEEN = "seen from the provider"
COPIES = "strict copies of the API"
RECALLED = "recalled, unconfirmed"


@dataclass(frozen=True, slots=True)
class ServerRule:
    """A provider's requirement for requests, and its response to a violation.

    Args:
        id: The rulebook id, such as `ANT-05`. Rules about shapes are not in the rulebook, and their ids have an `S`
            after the dash.
        text: The provider's error message, as a `str.format` template.
        source: Where the message is documented or was observed.
        status: The HTTP status of the response.
        type: The error type in the response.
        code: The error code in the response, if any.
        strict_only: True if the official host accepts the request today, so that only the mode `strict` refuses it.
    """

    id: str
    text: str
    source: str = SEEN
    status: int = 400
    type: str = "invalid_request_error"
    code: str | None = None
    strict_only: bool = False

    def refuse(self, param: str | None = None, **values: object) -> "RuleBroken":
        """Return the exception for a violation.

        `values` are inserted into the message; `param` is the refused parameter, if any.
        """
        message = self.text.format(**values)
        refusal = ServerRefusal(self.id, self.status, self.type, self.code, param, message)
        return RuleBroken(refusal, {**values, "param": param})


@dataclass(frozen=True, slots=True)
class ServerRefusal:
    """A provider's refusal of a request.

    Args:
        rule: The id of the broken rule.
        status: The HTTP status of the response.
        type: The error type in the response.
        code: The error code in the response, if any.
        param: The refused parameter; None if the provider does not name it.
        message: The error message in the response.
        detail: The part of the request that the provider repeats in the error body, as JSON; ignored in comparisons.
    """

    rule: str
    status: int
    type: str
    code: str | None
    param: str | None
    message: str
    detail: Json = field(default=None, compare=False)


class RuleBroken(Exception):
    """Raised by a validator for the first broken rule. Users of this package never receive it.

    `values` are the values that were inserted into the rule's message. A vendor that has its own message for the rule
    inserts the same values.
    """

    def __init__(self, refusal: ServerRefusal, values: Mapping[str, object] | None = None) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.values: Mapping[str, object] = values or {}


def refusal_of(validator: Callable[[], None]) -> ServerRefusal | None:
    """Run a validator, and return the refusal of the first broken rule; None if no rule is broken."""
    try:
        validator()
    except RuleBroken as broken:
        return broken.refusal
    return None


@dataclass(frozen=True, slots=True)
class OpenAIProfile:
    """The features of an OpenAI model.

    Args:
        id_length: The maximum length of a tool call id, in characters; None means unlimited.
        system_role: False for models that accept neither system nor developer messages.
        sampling: False for reasoning models, which refuse `temperature` and similar settings.
        context_tokens: The size of the context window in tokens; None means unlimited. Four bytes of the body count as
            one token.
    """

    id_length: int | None = 40
    system_role: bool = True
    sampling: bool = True
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CompatibleProfile(OpenAIProfile):
    """The features of a model on a host that is compatible with Chat Completions.

    Args:
        thinking: `on` and `off` are defaults that a request may change; with `always`, thinking cannot be turned off.
        generation: The tokenizer generation (Mistral): 3, 7, 11, 13 or 15.
        template: The role order that the chat template of a self-hosted model requires (vLLM): `free`, `alternate`, or
            `alternate_around_tools` (alternating except for calls and results).
        tools: False for models without tools (OpenRouter), or servers started without tools (llama.cpp).
        parallel: False for chat templates that accept only one call per message (llama.cpp).
        images: False for models without image input (llama.cpp).
        signed_calls: Whether the first call of an answer needs its signature in `extra_content` (Google's version of
            the API).
    """

    thinking: Literal["on", "off", "always"] = "off"
    generation: int = 11
    template: Literal["free", "alternate", "alternate_around_tools"] = "free"
    tools: bool = True
    parallel: bool = True
    images: bool = True
    signed_calls: bool = False


Thinking: TypeAlias = Literal["adaptive", "enabled", "disabled", "between_tools"]


@dataclass(frozen=True, slots=True)
class AnthropicProfile:
    """The features of an Anthropic model.

    Args:
        prefill: Whether the last message may be an assistant message.
        thinking: The accepted values of `thinking.type`; `enabled` is manual thinking.
        interleaved: Whether thinking may occur anywhere in an assistant message, not only first.
        prefix_bound: Whether a thinking block is valid only after exactly the prefix with which it was produced.
        mid_system: Whether `messages` may contain `system` messages.
        forced_tool_choice: Whether `tool_choice` may be `any` or `tool`.
        efforts: The accepted values of `output_config.effort`.
        max_output_tokens: The maximum value of `max_tokens`.
        context_tokens: The size of the context window in tokens; None means unlimited. Four bytes of the body count as
            one token.
        window_counts_output: Whether the prompt plus `max_tokens` must fit into the window, as on older models.
        media: The maximum number of images and documents in a request; None means unlimited.
        cache_minimum: The minimum number of tokens of a cached prompt; 4,096 on some models.
        reasoning: Whether every message with calls must begin with thinking, as on some compatible hosts. The thinking
            may be unsigned.
        sampling: Whether `temperature`, `top_p` and `top_k` are accepted, as up to generation 4.6.
        one_sampling: Whether a request may have only one of `temperature` and `top_p`, as since generation 4.5.
        thinks_by_default: Whether the model thinks when the request does not mention thinking.
        is_known: Whether the strict servers know the facts about this model. Only then do they refuse sampling settings
            and a forced tool whenever the model thinks.
        schemas: Whether `output_config.format` is accepted.
    """

    prefill: bool = False
    thinking: frozenset[Thinking] = frozenset({"adaptive", "enabled", "disabled", "between_tools"})
    interleaved: bool = False
    prefix_bound: bool = False
    mid_system: bool = True
    forced_tool_choice: bool = True
    efforts: frozenset[str] = frozenset({"low", "medium", "high", "xhigh", "max"})
    max_output_tokens: int = 300_000
    context_tokens: int | None = None
    window_counts_output: bool = False
    media: int | None = 100
    cache_minimum: int = 1024
    reasoning: bool = False
    sampling: bool = True
    one_sampling: bool = True
    thinks_by_default: bool = False
    is_known: bool = False
    schemas: bool = True


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """The settings of a host with OpenAI's API.

    Args:
        profile: The profile of every model if `models` is None.
        models: The models that exist, by name; None accepts any name.
    """

    profile: OpenAIProfile = OpenAIProfile()
    models: Mapping[str, OpenAIProfile] | None = None


@dataclass(frozen=True, slots=True)
class CompatibleSettings:
    """The settings of a host that is compatible with Chat Completions.

    Args:
        profile: The profile of every model if `models` is None. None selects the vendor's default profile.
        models: The models that exist, by name; None accepts any name.
        upstream: The upstream of a gateway (OpenRouter), to which signatures are bound.
        upstream_vendor: The vendor whose rules the upstream applies.
        secret: The key with which simulated signatures are created.
        signatures: `trust` accepts any signature and any id that a host could have created, to validate bodies without
            a server.
    """

    profile: CompatibleProfile | None = None
    models: Mapping[str, CompatibleProfile] | None = None
    upstream: str = "Anthropic"
    upstream_vendor: str = "openai_chat"
    secret: bytes = field(default=b"stand-in signing secret", repr=False)
    signatures: Literal["verify", "trust"] = "verify"


@dataclass(frozen=True, slots=True)
class AnthropicSettings:
    """The settings of a host with Anthropic's API.

    Args:
        profile: The profile of every model if `models` is None.
        models: The models that exist, by name; None accepts any name.
        account: A label for the account; signatures are bound to it.
        secret: The key for simulated signatures. Hosts with different secrets reject each other's signatures.
        signatures: `trust` accepts any non-empty signature, to validate bodies without a server.
        betas: The values of the request's `anthropic-beta` header.
    """

    profile: AnthropicProfile = AnthropicProfile()
    models: Mapping[str, AnthropicProfile] | None = None
    account: str = "account-1"
    secret: bytes = field(default=b"stand-in signing secret", repr=False)
    signatures: Literal["verify", "trust"] = "verify"
    betas: frozenset[str] = frozenset()


def rules_by_id(*rules: ServerRule) -> dict[str, ServerRule]:
    """Return rules as a dict by id.

    Raises:
        ValueError: Two rules have the same id.
    """
    by_id = {rule.id: rule for rule in rules}
    if len(by_id) != len(rules):
        raise ValueError("Two rules of a table have the same id; give each rule its own id.")
    return by_id


def unknown_key(value: Mapping[str, Json], allowed: frozenset[str]) -> str | None:
    """Return the first key of `value` that is not in `allowed`, in the order of the request.

    Return None if all keys are allowed.
    """
    if value.keys() <= allowed:
        return None
    return next(key for key in value if key not in allowed)


def json_type_name(value: Json) -> str:
    """Return the name that OpenAI's error messages use for the type of a JSON value."""
    for named, name in _KINDS:
        if isinstance(value, named):
            return name
    holds_objects = bool(value) and is_object(value[0])
    return "array of objects" if holds_objects else "array"


def strings_inside(value: Json) -> Iterable[tuple[str, str]]:
    """Yield (path, string) for every string inside `value`. Paths look like `[0].content`."""
    stack: list[tuple[str, Json]] = [("", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str):
            yield path, item
        elif is_object(item):
            stack.extend((f"{path}.{key}", inner) for key, inner in item.items())
        elif is_array(item):
            stack.extend((f"{path}[{at}]", inner) for at, inner in enumerate(item))


def dump(value: Json) -> bytes:
    """Return compact UTF-8 JSON with the keys in their original order."""
    return _write(value)


_write = msgspec.json.Encoder().encode  # created once, because it is used for every block
