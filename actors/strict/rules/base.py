"""What every rulebook of the strict servers is made of: rules as data, and one refusal.

A rule names the fault, the provider's answer to it and where that answer was seen. A validator walks a
request body in the provider's order of checks and raises `RuleBroken` at the first rule that is broken. The
refusal knows how to write itself in the provider's own error body.

Nothing here comes from the renderer, the judge or the adapters: a rule that was misread there must not
pass here for the same reason.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeGuard

import msgspec

Mode: TypeAlias = Literal["strict", "hosted"]
Json: TypeAlias = Any  # a parsed request body may be anything, and the validators are what finds out


def is_object(value: object) -> TypeGuard[dict[str, Json]]:
    """Return True for a dict. After `isinstance`, type checkers would not know of what."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Json]]:
    """Return True for a list, as `is_object`."""
    return isinstance(value, list)


def object_at(body: Json, key: str) -> dict[str, Json]:
    """Return the object under a key; an empty one if the key is absent or empty."""
    return body.get(key) or {}


def array_at(body: Json, key: str) -> list[Json]:
    """Return the list under a key; an empty one if the key is absent or empty."""
    return body.get(key) or []


# bool comes before int, which it is a kind of.
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
    """One demand of a provider, and its answer when the demand is broken.

    Args:
        id: Rulebook id, such as `ANT-05`. Ids with an `S` after the dash are shape rules of the same API
            for which the rulebook has no number.
        text: The provider's sentence as a `str.format` template.
        source: Where the sentence was seen.
        strict_only: The official host accepts this today; only the strict mode refuses it.
    """

    id: str
    text: str
    source: str = SEEN
    status: int = 400
    type: str = "invalid_request_error"
    code: str | None = None
    strict_only: bool = False

    def refuse(self, param: str | None = None, **values: object) -> "RuleBroken":
        """Return the exception that carries this rule's refusal, its template filled with `values`."""
        message = self.text.format(**values)
        refusal = ServerRefusal(self.id, self.status, self.type, self.code, param, message)
        return RuleBroken(refusal, {**values, "param": param})


@dataclass(frozen=True, slots=True)
class ServerRefusal:
    """A provider's answer to a request it will not take. `param` is None where the dialect has none.

    Args:
        detail: What the provider's error body repeats of the request, as JSON; not part of a comparison.
    """

    rule: str
    status: int
    type: str
    code: str | None
    param: str | None
    message: str
    detail: Json = field(default=None, compare=False)


class RuleBroken(Exception):
    """Leaves a validator at the first fault. Never leaves this package.

    `values` is what the rule's sentence was made of: a vendor with its own wording needs them.
    """

    def __init__(self, refusal: ServerRefusal, values: Mapping[str, object] | None = None) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.values = values or {}


def refusal_of(walk: Callable[[], None]) -> ServerRefusal | None:
    """Return the refusal of the first rule that a walk finds broken, or None."""
    try:
        walk()
    except RuleBroken as broken:
        return broken.refusal
    return None


@dataclass(frozen=True, slots=True)
class OpenAIProfile:
    """What one OpenAI model takes.

    Args:
        id_length: Longest tool call id, in characters; None is unlimited.
        system_role: False for models that take neither system nor developer messages.
        sampling: False for reasoning models, which refuse `temperature` and its kin.
        context_tokens: Window in tokens, estimated at four bytes of body each. None is unlimited.
    """

    id_length: int | None = 40
    system_role: bool = True
    sampling: bool = True
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CompatibleProfile(OpenAIProfile):
    """What one model of a vendor of the Chat Completions family takes.

    Args:
        thinking: `on` and `off` hold where the request does not say; `always` cannot be switched off.
        generation: Of the tokenizer (Mistral): 3, 7, 11, 13 or 15.
        template: What the chat template of a self-hosted model demands (vLLM): `free`, roles that
            `alternate`, or roles that alternate except for calls and results (`alternate_around_tools`).
        tools: False for models that take no tools (OpenRouter), or servers started without (llama.cpp).
        parallel: False for chat templates that take one call a message (llama.cpp).
        images: False for models without eyes (llama.cpp).
        signed_calls: The first call of an answer is signed in its `extra_content`, and wanted back so (Google's copy).
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
    """What one Anthropic model takes.

    Args:
        prefill: The last message may be the assistant's.
        thinking: Values of `thinking.type` this model knows; `enabled` is manual thinking.
        interleaved: Thinking may stand anywhere in an assistant message, not only first.
        prefix_bound: A thinking block is valid only behind the exact prefix it was made for.
        mid_system: `system` messages may stand inside `messages`.
        forced_tool_choice: `tool_choice` may be `any` or `tool`.
        efforts: Values of `output_config.effort`.
        max_output_tokens: Largest `max_tokens`.
        context_tokens: Window in tokens, estimated at four bytes of body each. None is unlimited.
        window_counts_output: `max_tokens` must fit into the window too, as on older models.
        media: Most images and documents of a request. None is unlimited.
        cache_minimum: Fewest tokens of a prompt that is cached; 4,096 on some models.
        reasoning: Every message with calls must begin with thinking, signed or not, as copies of the API want it.
        sampling: `temperature`, `top_p` and `top_k` are taken, as up to generation 4.6.
        one_sampling: `temperature` and `top_p` are not taken together, as since generation 4.5.
        thinks: The model thinks when the request does not mention thinking.
        is_exact: The model is known: sampling and a forced tool are refused whenever it thinks.
        schemas: `output_config.format` is accepted.
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
    thinks: bool = False
    is_exact: bool = False
    schemas: bool = True


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """One OpenAI-shaped host: its models by name, or None for any name under `profile`."""

    profile: OpenAIProfile = OpenAIProfile()
    models: Mapping[str, OpenAIProfile] | None = None


@dataclass(frozen=True, slots=True)
class CompatibleSettings:
    """One host of the Chat Completions family.

    Args:
        profile: Used for every model when `models` is None; None is the vendor's own.
        models: The models that exist, by name.
        upstream: Who serves the request behind a gateway (OpenRouter); its signatures are bound to it.
        upstream_vendor: Whose rules the upstream has.
        secret: Key of the stand-in signatures.
        signatures: `trust` takes any signature, and any id as one the host itself made: for judging bodies
            that no host has answered.
    """

    profile: CompatibleProfile | None = None
    models: Mapping[str, CompatibleProfile] | None = None
    upstream: str = "Anthropic"
    upstream_vendor: str = "openai_chat"
    secret: bytes = field(default=b"stand-in signing secret", repr=False)
    signatures: Literal["verify", "trust"] = "verify"


@dataclass(frozen=True, slots=True)
class AnthropicSettings:
    """One Anthropic-shaped host.

    Args:
        profile: Used for every model when `models` is None.
        models: The models that exist, by name.
        account: Label of the account; signatures are bound to it.
        secret: Key of the stand-in signatures. Hosts with different secrets are foreign to each other.
        signatures: `trust` takes any non-empty signature: for judging bodies that no host has answered.
        betas: Values of the `anthropic-beta` header of the request.
    """

    profile: AnthropicProfile = AnthropicProfile()
    models: Mapping[str, AnthropicProfile] | None = None
    account: str = "account-1"
    secret: bytes = field(default=b"stand-in signing secret", repr=False)
    signatures: Literal["verify", "trust"] = "verify"
    betas: frozenset[str] = frozenset()


def table(*rules: ServerRule) -> dict[str, ServerRule]:
    """Return the rules by id.

    Raises:
        ValueError: Two rules share an id.
    """
    by_id = {rule.id: rule for rule in rules}
    if len(by_id) != len(rules):
        raise ValueError("Two rules of one table share an id; give each its own.")
    return by_id


def unknown_key(value: Mapping[str, Json], allowed: frozenset[str]) -> str | None:
    """Return the first key of `value` that is not allowed, in the order they were sent."""
    if value.keys() <= allowed:
        return None
    return next(key for key in value if key not in allowed)


def kind(value: Json) -> str:
    """Return the name OpenAI's messages use for the type of a JSON value."""
    for named, name in _KINDS:
        if isinstance(value, named):
            return name
    holds_objects = bool(value) and is_object(value[0])
    return "array of objects" if holds_objects else "array"


def strings(value: Json) -> Iterable[tuple[str, str]]:
    """Yield (path, string) for every string inside `value`, paths in the form `[0].content`."""
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
    """Return compact UTF-8 JSON, keys in their own order."""
    return _write(value)


_write = msgspec.json.Encoder().encode  # made once: it is called for every block
