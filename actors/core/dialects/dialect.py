"""Define a provider's rules for transcripts as data: one record for each wire family, composed of smaller records.

The renderer and the independent check (`actors.core.check`) read these records, and docs/reference/rulebook.md is
generated from them. `actors.core.models.rules` defines the base records of all families. Here, each family narrows the
base records to its own features. So a profile written in Python with an impossible combination fails type checking, and
a table in `actors.toml` with an impossible combination is rejected with a one-line message.
"""

from functools import lru_cache
from typing import ClassVar, Literal, TypeAlias, get_args

from actors.core.data.record import replace
from actors.core.models.facts import Maker, ModelFacts
from actors.core.models.rules import (
    Ids,
    KeywordOnlyRecord,
    Kind,
    MediaRules,
    ReasoningRules,
    RequestRules,
    Role,
    TurnRules,
)
from actors.core.values.identity import Binding, content_digest

Cache: TypeAlias = Literal["off", "default", "long"]
"""The requested lifetime of cached prefixes: `off`, the provider's default, or the longest lifetime (`long`)."""


class Caching(KeywordOnlyRecord):
    """The rules for a host's prompt cache. By default, requests contain no cache settings.

    Args:
        marks: The mark at the end of a prefix to cache: `cache_control` on its last block (`block`), a `cachePoint`
            after its last block (`point`), or `cache_control` on the last part of a message's content (`part`).
        moving: Whether one mark at the top level of the request replaces the mark on the last block.
        cache_key: Whether a request contains a key of its session and binding (`prompt_cache_key`), so that the host
            routes it to the machine with the cache.
        long_lifetime: How a longer lifetime is requested: by a `ttl` on each mark, or by the field that the model
            accepts (`prompt_cache_retention`, `prompt_cache_options`).
    """

    marks: Literal["none", "block", "point", "part"] = "none"
    moving: bool = False
    cache_key: bool = False
    long_lifetime: Literal["none", "ttl", "retention"] = "none"

    def accepted_cache(self, cache: Cache, model: ModelFacts) -> Cache:
        """Return `cache`, or the next shorter lifetime that the host accepts for this model."""
        has_marks = self.marks != "none" and model.cache == "host"
        if cache == "off" or not (has_marks or self.cache_key):
            return "off"
        return "default" if self.long_lifetime == "none" or model.cache == "automatic" else cache


@lru_cache(maxsize=16)
def lane_key(session: str, binding: Binding) -> str:
    """Return the prompt cache key of a session for a binding: a digest of 32 characters, the same in every process."""
    parts = (session, binding.dialect, binding.endpoint, binding.account, binding.model, binding.upstream)
    return content_digest("\0".join((*parts, binding.backend)))[:32]


class Profile(KeywordOnlyRecord):
    """The base class of all dialects: a name and the rules of one provider.

    Args:
        name: The profile's name, as passed to `dialect()`.
        rules: Prefix of the vendor's own rule ids (`MIS`, `KIM`, `DSK`); empty if the vendor has none. Violations are
            reported under the vendor's ids rather than the family's.
        family: The wire family, which selects the adapter and the rules of the independent check.
        makers: The makers whose models the host serves. Model facts are looked up under these makers.
        model: The features that the model accepts. In a built-in profile, these are the features of an unknown model. A
            profile that is narrowed to one model has the features of that model.
        narrowed_to: Name of the model to which the profile was narrowed; empty if the profile was not narrowed.
        ids: The rules for call ids and tool names.
        turns: The rules for the order of roles, calls and results.
        media: The rules for images and documents.
        reasoning: The rules for sending the model's reasoning back to it.
        request: The rules for all other fields of a request, and for recognising a context overflow.
        caching: The rules for the host's prompt cache.
    """

    name: str
    rules: str = ""
    makers: tuple[Maker, ...] = ("openai", "anthropic", "google")
    model: ModelFacts = ModelFacts()
    narrowed_to: str = ""
    ids: Ids
    turns: TurnRules
    media: MediaRules
    reasoning: ReasoningRules
    request: RequestRules
    caching: Caching

    def __hash__(self) -> int:  # must be cheap, because codecs are looked up by dialect
        return hash((self.name, self.narrowed_to))

    def can_replay(self, sealed_by: Binding, target: Binding | None) -> bool:
        """Return True if a block sealed by one binding may be replayed to `target`.

        A block that is bound to its prefix is replayed only to the same binding, because another backend may have
        received a different prefix. An upstream of a gateway cannot decrypt the blocks of another upstream.
        """
        if target is None or self.reasoning.carrier == "none" or self.reasoning.binding == "none":
            return False
        if sealed_by == target:  # the most common case
            return True
        if self.reasoning.binding != "prefix":
            target = replace(target, backend=sealed_by.backend)
        if self.reasoning.binding == "model":
            target = replace(target, upstream=sealed_by.upstream)
        return sealed_by == target


class ChatTurns(TurnRules):
    """The rules for turns in Chat Completions, where each result is a message with the role `tool`.

    Args:
        developer_role: Whether the host accepts the role `developer` in addition to `system`. We send `system`.
        system_anywhere: Whether a system message may follow an assistant message or a result (MIS-12).
        message_keys: Keys that a message may have in addition to role, content, calls and reasoning. `name` is accepted
            in every message except results, the other keys only in assistant messages.
        empty_answers: Whether an assistant message without calls may be an empty string (KIM-04).
        empty_calls: Whether an assistant message may have an empty list of calls.
        absent_content: The `content` of an assistant message with calls and no text.
    """

    arguments: ClassVar[Literal["object", "text"]] = "text"
    result_carrier: ClassVar[Literal["tool_message", "user_block", "item"]] = "tool_message"
    alternation: Literal["none", "fill"] = "none"
    error_prefix: str = "ERROR: "
    empty_result: str | None = None
    developer_role: bool = True
    system_anywhere: bool = True
    message_keys: frozenset[str] = frozenset({"name", "refusal", "audio", "function_call"})
    empty_answers: bool = True
    empty_calls: bool = False
    absent_content: Literal["null", "omit", "empty"] = "null"


class ChatMedia(MediaRules):
    """The rules for media in Chat Completions: images in user messages only.

    Args:
        user_files: Whether the host accepts `file` parts in user messages. We never send them.
    """

    result_kinds: ClassVar[frozenset[Kind]] = frozenset()
    user_kinds: frozenset[Literal["image"]] = frozenset({"image"})
    types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
    user_files: bool = True


class ChatReasoning(ReasoningRules):
    """The rules for sending reasoning back in Chat Completions. By default, no reasoning is sent back."""

    carrier: Literal["none", "reasoning_content", "reasoning_details", "thinking_chunk", "extra_content"] = (
        "none"
    )
    field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    binding: Literal["none", "model", "upstream", "prefix"] = "none"
    must_be_first: bool = False
    may_be_alone: bool = False
    required: Literal["no", "with_calls", "before_calls", "every"] = "no"
    switch: Literal["none", "type", "effort", "reasoning"] = "none"


class ChatRequest(RequestRules):
    """The rules for the fields of a Chat Completions request other than its messages.

    Args:
        keys: The keys that a request may have. If this set is empty, the family's list applies.
        max_tokens_field: Name of the field that limits the tokens of the answer.
        seed_field: Name of the field for the random seed.
        stream_usage: Whether a streaming request must ask for token usage (`stream_options.include_usage`).
        required_choice: The tool choice that forces the model to call at least one tool.
        upstream_pin: The field that pins a request to one upstream of a gateway.
        untyped_functions: Whether tools and calls without a type count as functions, and whether calls may have an
            index.
    """

    keys: frozenset[str] = frozenset()
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    seed_field: Literal["seed", "random_seed"] = "seed"
    # OpenAI does not have `top_k`, and accepts `metadata` only for stored completions
    unsupported_settings: frozenset[str] = frozenset({"top_k", "metadata"})
    max_tools: int | None = 128  # the limit of OAC-09
    stream_usage: bool = True
    required_choice: str = "required"
    schema_subset: Literal["json_schema", "moonshot"] = "json_schema"
    upstream_pin: Literal["none", "provider"] = "none"
    untyped_functions: bool = False
    overflow_rule: str | None = "OAC-15"


class ChatCaching(Caching):
    """The rules for the prompt cache of Chat Completions hosts. Cache marks, if any, are on content parts."""

    marks: Literal["none", "part"] = "none"


class ChatDialect(Profile):
    """The rules of OpenAI Chat Completions and compatible hosts. The defaults describe an unknown host.

    `Profile` describes the fields.
    """

    family: ClassVar[Literal["openai_chat"]] = "openai_chat"
    ids: Ids = Ids(
        style="openai",
        pattern=r"[A-Za-z0-9_-]{1,40}",  # OAC-03 sets the length; the set of characters is our choice
        max_len=40,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # required by OAC-10
    )
    turns: ChatTurns = ChatTurns()
    media: ChatMedia = ChatMedia()
    reasoning: ChatReasoning = ChatReasoning()
    request: ChatRequest = ChatRequest()
    caching: ChatCaching = ChatCaching()


PartType: TypeAlias = Literal["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"]


class PartMedia(MediaRules):
    """The rules for media of families that accept images and documents in user messages and in results."""

    result_kinds: frozenset[Kind] = frozenset({"image", "document"})
    types: frozenset[PartType] = frozenset(get_args(PartType))


class BlockTurns(TurnRules):
    """The rules for turns in families that send results as blocks of a user message."""

    arguments: ClassVar[Literal["object", "text"]] = "object"
    result_carrier: ClassVar[Literal["tool_message", "user_block", "item"]] = "user_block"
    first_roles: frozenset[Role] = frozenset({"user"})
    last_roles: frozenset[Literal["user"]] = frozenset({"user"})
    alternation: Literal["merge_same", "fill"] = "merge_same"
    drop_empty_text: Literal[True] = True


class FunctionRequest(RequestRules):
    """The rules for request fields in families whose tools are all functions that take an arguments object."""

    custom_tools: Literal[False] = False
    output: Literal["schema", "prompt"] = "prompt"


class ResponsesTurns(TurnRules):
    """The rules for turns in Responses, where calls and results are separate items."""

    arguments: ClassVar[Literal["object", "text"]] = "text"
    result_carrier: ClassVar[Literal["tool_message", "user_block", "item"]] = "item"
    alternation: Literal["none", "fill"] = "none"
    drop_empty_text: Literal[True] = True
    error_prefix: str = "ERROR: "


class ResponsesReasoning(ReasoningRules):
    """The rules for sending reasoning back in Responses, as encrypted items.

    An item of another type must follow each reasoning item (OAR-03).

    Args:
        replay_item_ids: The items that are replayed with their ids: none, or `all` items of an answer from its first
            reasoning item on. Some hosts look up items with ids and find nothing (OAR-05), so once the provider has
            refused a session's reasoning, no more item ids are sent.
    """

    id_once = True
    carrier: Literal["none", "reasoning_item"] = "reasoning_item"
    replay_item_ids: Literal["none", "all"] = "none"
    must_be_followed: Literal[True] = True
    required: Literal["no"] = "no"
    switch: Literal["none", "reasoning"] = "reasoning"


class ResponsesRequest(RequestRules):
    """The rules for the fields of a Responses request other than its input items."""

    namespaces = True
    output: Literal["schema", "prompt"] = "schema"
    output_beside_tools: bool = True
    custom_tools: Literal[True] = True
    max_stops: Literal[0] = 0


class ResponsesCaching(Caching):
    """The rules for the prompt cache of Responses.

    Requests contain only a cache key, because the host caches prefixes automatically.
    """

    marks: Literal["none"] = "none"
    long_lifetime: Literal["none", "retention"] = "none"


class ResponsesDialect(Profile):
    """The rules of OpenAI Responses. `Profile` describes the fields."""

    family: ClassVar[Literal["responses"]] = "responses"
    turns: ResponsesTurns
    media: PartMedia
    reasoning: ResponsesReasoning
    request: ResponsesRequest
    caching: ResponsesCaching = ResponsesCaching()


class AnthropicReasoning(ReasoningRules):
    """The rules for sending reasoning back in Messages, as thinking blocks.

    The blocks have no signature if a compatible host does not sign them.
    """

    carrier: Literal["none", "anthropic_blocks"] = "anthropic_blocks"
    required: Literal["no", "with_calls"] = "no"
    switch: Literal["none", "anthropic"] = "anthropic"


class AnthropicRequest(FunctionRequest):
    """The rules for the fields of a Messages request other than its messages.

    Args:
        route: The API operation to call. With `messages`, Anthropic's own operation, the model is in the body and the
            API version in a header. With `raw_predict` (Vertex AI) and `invoke_model` (Bedrock), the model is in the
            path and the version in the body (ANT-60). Bedrock streams binary frames.
    """

    route: Literal["messages", "raw_predict", "invoke_model"] = "messages"
    max_tokens_default: int = 8192
    top_p: Literal["beside", "alone"] = "alone"
    output_schema: Literal["closed"] = "closed"


class AnthropicCaching(Caching):
    """The rules for the prompt cache of Messages, with marks on blocks or one mark for the complete request."""

    marks: Literal["none", "block"] = "none"
    cache_key: Literal[False] = False
    long_lifetime: Literal["none", "ttl"] = "none"


class AnthropicDialect(Profile):
    """The rules of Anthropic Messages and compatible hosts. `Profile` describes the fields."""

    family: ClassVar[Literal["anthropic"]] = "anthropic"
    turns: BlockTurns
    media: PartMedia
    reasoning: AnthropicReasoning
    request: AnthropicRequest
    caching: AnthropicCaching = AnthropicCaching()


class GeminiTurns(BlockTurns):
    """The rules for turns in generateContent, where results are parts of a `Content` with the role `user`."""

    # a call must follow a user content (GEM-02)
    first_roles: frozenset[Literal["user"]] = frozenset({"user"})


class GeminiMedia(MediaRules):
    """The rules for media in generateContent.

    Media are sent as bytes, because URLs work reliably only for Google's own files.
    """

    result_kinds: frozenset[Kind] = frozenset({"image"})
    types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"})
    urls: Literal[False] = False


class GeminiReasoning(ReasoningRules):
    """The rules for sending reasoning back in generateContent, as thought signatures on parts."""

    carrier: Literal["thought_signature"] = "thought_signature"
    must_be_first: bool = False
    required: Literal["no", "before_calls"] = "no"
    switch: Literal["none", "gemini", "gemini_budget"] = "none"


class GeminiRequest(FunctionRequest):
    """The rules for the fields of a generateContent request other than its contents.

    Args:
        models_path: The URL path before the model's name, relative to the endpoint.
    """

    models_path: str
    max_tokens_default: int | None = None
    schema_subset: Literal["json_schema", "gemini"] = "gemini"
    output_schema: Literal["filled"] = "filled"


class GeminiCaching(Caching):
    """The rules for the prompt cache of generateContent.

    Requests contain no cache settings, because the host caches prefixes automatically.
    """

    marks: Literal["none"] = "none"
    cache_key: Literal[False] = False
    long_lifetime: Literal["none"] = "none"


class GeminiDialect(Profile):
    """The rules of Google's generateContent. `Profile` describes the fields."""

    family: ClassVar[Literal["gemini"]] = "gemini"
    turns: GeminiTurns
    media: GeminiMedia
    reasoning: GeminiReasoning
    request: GeminiRequest
    caching: GeminiCaching = GeminiCaching()


ConverseType: TypeAlias = Literal[PartType, "text/csv", "text/html", "text/markdown", "text/plain"]


class ConverseTurns(BlockTurns):
    """The rules for turns in Converse, where results are blocks of a user message."""

    empty_result: str | None = None


class ConverseMedia(MediaRules):
    """The rules for media in Converse. Media are sent as bytes, and each document has a name (BED-15)."""

    named_documents = True
    result_kinds: frozenset[Kind] = frozenset({"image", "document"})
    types: frozenset[ConverseType] = frozenset(get_args(ConverseType))
    urls: Literal[False] = False


class ConverseReasoning(ReasoningRules):
    """The rules for sending reasoning back in Converse, as blocks with the signature of the underlying model."""

    carrier: Literal["none", "bedrock_reasoning"] = "bedrock_reasoning"
    required: Literal["no"] = "no"
    switch: Literal["none", "anthropic"] = "anthropic"


class ConverseRequest(FunctionRequest):
    """The rules for the fields of a Converse request other than its messages."""

    output_schema: Literal["closed"] = "closed"


class ConverseCaching(Caching):
    """The rules for the prompt cache of Converse, with cache points after blocks."""

    marks: Literal["none", "point"] = "none"
    cache_key: Literal[False] = False
    long_lifetime: Literal["none", "ttl"] = "none"


class ConverseDialect(Profile):
    """The rules of AWS Bedrock Converse. `Profile` describes the fields."""

    family: ClassVar[Literal["converse"]] = "converse"
    turns: ConverseTurns
    media: ConverseMedia
    reasoning: ConverseReasoning
    request: ConverseRequest
    caching: ConverseCaching = ConverseCaching()


Dialect: TypeAlias = ChatDialect | ResponsesDialect | AnthropicDialect | GeminiDialect | ConverseDialect
"""The rules of one provider, as a record of its wire family."""
