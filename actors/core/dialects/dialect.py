"""What a provider demands of a transcript, as data: a record a wire family, made of small ones by concern.

The renderer reads it, `actors.core.check` judges by it, and docs/reference/rulebook.md is generated from it. What all
families say is in `actors.core.models.rules`; here each family narrows it to what it can write, so that a profile
which says more is refused: by the type checker where it is code, with one line where it is a table of `actors.toml`.
"""

from functools import lru_cache
from typing import ClassVar, Literal, TypeAlias, get_args

from actors.core.data.record import replace
from actors.core.models.facts import ModelFacts
from actors.core.models.row import Maker
from actors.core.models.rules import (
    Demands,
    Ids,
    Kind,
    MediaRules,
    ReasoningRules,
    RequestRules,
    Role,
    TurnRules,
)
from actors.core.values.identity import Binding, content_name

Cache: TypeAlias = Literal["off", "default", "long"]
"""What is asked of a prompt cache: nothing, to keep prefixes as long as it usually does, or as long as it can."""


class Caching(Demands):
    """How one host's prompt cache is asked for. The default asks for nothing.

    Args:
        marks: How the end of a prefix that is to be kept is marked: by `cache_control` on its last block, by a
            `cachePoint` behind it (`point`), or by `cache_control` on the last part of a message's content (`part`).
        moving: Whether one mark for the whole request, beside its messages, stands for one on its last block.
        keyed: Whether a request names its lane (`prompt_cache_key`), and so comes to the machine that has it.
        long: How a longer life is asked for: by a `ttl` on each mark, or by the field that the model accepts
            (`prompt_cache_retention`, `prompt_cache_options`).
    """

    marks: Literal["none", "block", "point", "part"] = "none"
    moving: bool = False
    keyed: bool = False
    long: Literal["none", "ttl", "retention"] = "none"

    def accepted(self, cache: Cache, model: ModelFacts) -> Cache:
        """Return how far a request may go in what it asks of the cache of this host, for one of its models."""
        has_marks = self.marks != "none" and model.cache == "host"
        if cache == "off" or not (has_marks or self.keyed):
            return "off"
        return "default" if self.long == "none" or model.cache == "automatic" else cache


@lru_cache(maxsize=16)
def lane_key(session: str, binding: Binding) -> str:
    """Return the name of a session's lane for a binding, the same in every process: 32 characters that tell nothing."""
    parts = (session, binding.dialect, binding.endpoint, binding.account, binding.model, binding.upstream)
    return content_name("\0".join((*parts, binding.backend)))[:32]


class Profile(Demands):
    """What every dialect has: its name, and its demands by concern.

    Args:
        name: The profile's name, as `dialect()` takes it.
        rules: Prefix of the vendor's own rules (`MIS`, `KIM`, `DSK`), which the judge cites in place of the
            family's; empty where the vendor has no list of its own.
        family: The wire family: which adapter encodes and decodes, which fold checks.
        makers: Makers of models whose rows of the table of model facts hold on this host.
        model: What the model accepts. In a profile, this describes a model of which nothing is known;
            `actors.core.dialects.narrow.for_model` narrows the profile to one model.
        narrowed_to: Name of the model that the profile was narrowed to; empty for the profile itself.
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

    def __hash__(self) -> int:  # cheap, because codecs are looked up by it
        return hash((self.name, self.narrowed_to))

    def opens(self, sealed_by: Binding, target: Binding | None) -> bool:
        """Say whether a block sealed by one binding may be replayed to `target`.

        What is bound to its prefix goes back only to the very binding that has it in its lane: another backend with
        the same model may have been shown the conversation otherwise. A gateway's upstreams cannot read each other's.
        """
        if target is None or self.reasoning.carrier == "none" or self.reasoning.binding == "none":
            return False
        if self.reasoning.binding != "prefix":
            target = replace(target, backend=sealed_by.backend)
        if self.reasoning.binding == "model":
            target = replace(target, upstream=sealed_by.upstream)
        return sealed_by == target


class ChatTurns(TurnRules):
    """Every message is whole, a result is one with the role `tool`.

    Args:
        developer_role: Whether the role `developer` exists beside `system`. We send `system`.
        system_anywhere: Whether a system message may follow the assistant or a result (MIS-12).
        message_keys: Keys a message may have beside role, content and what calls and reasoning need: `name` in any
            but a result, the others in the assistant's.
        empty_answers: Whether an assistant message that calls nothing may be an empty text (KIM-04).
        empty_calls: Whether an assistant message may have a list of calls without one.
        absent_content: What an assistant message with calls and no text says in `content`.
    """

    arguments = "text"
    result_carrier = "tool_message"
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
    """Images, in user messages alone.

    Args:
        user_files: Whether a user message may hold a `file` part, though we send none.
    """

    result_kinds: ClassVar[frozenset[Kind]] = frozenset()
    user_kinds: frozenset[Literal["image"]] = frozenset({"image"})
    types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
    user_files: bool = True


class ChatReasoning(ReasoningRules):
    carrier: Literal["none", "reasoning_content", "reasoning_details", "thinking_chunk", "extra_content"] = (
        "none"
    )
    field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    binding: Literal["none", "model", "upstream", "prefix"] = "none"
    first: bool = False
    alone: bool = False
    required: Literal["no", "with_calls", "before_calls", "every"] = "no"
    switch: Literal["none", "type", "effort", "reasoning"] = "none"


class ChatRequest(RequestRules):
    """The request of Chat Completions.

    Args:
        keys: Keys a request may have, where the vendor has a list of its own; empty for the family's.
        max_tokens_field: Name of the field that bounds the answer.
        seed_field: Name of the field with the seed of sampling.
        stream_usage: Whether a stream must be asked for its token figures.
        required_choice: The word by which any tool is forced.
        upstream_pin: How a request says which upstream of a gateway is to serve it and no other.
        untyped_functions: Whether tools and calls may leave out their type, which then is `function`, and calls may
            have an index.
    """

    keys: frozenset[str] = frozenset()
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    seed_field: Literal["seed", "random_seed"] = "seed"
    lacks: frozenset[str] = frozenset(
        {"top_k", "metadata"}
    )  # fields that OpenAI does not have, or only for what it stores
    max_tools: int | None = 128  # OAC-09
    stream_usage: bool = True
    required_choice: str = "required"
    schema_subset: Literal["json_schema", "moonshot"] = "json_schema"
    upstream_pin: Literal["none", "provider"] = "none"
    untyped_functions: bool = False
    overflow_rule: str | None = "OAC-15"


class ChatCaching(Caching):
    marks: Literal["none", "part"] = "none"


class ChatDialect(Profile):
    """OpenAI Chat Completions, and who speaks like it. The defaults are those of a host of which nothing is known."""

    family: ClassVar[Literal["openai_chat"]] = "openai_chat"
    ids: Ids = Ids(
        style="openai",
        pattern=r"[A-Za-z0-9_-]{1,40}",  # 40 by OAC-03; the character set is what we choose to emit
        max_len=40,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # OAC-10
    )
    turns: ChatTurns = ChatTurns()
    media: ChatMedia = ChatMedia()
    reasoning: ChatReasoning = ChatReasoning()
    request: ChatRequest = ChatRequest()
    caching: ChatCaching = ChatCaching()


PartType: TypeAlias = Literal["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"]


class PartMedia(MediaRules):
    result_kinds: frozenset[Kind] = frozenset({"image", "document"})
    types: frozenset[PartType] = frozenset(get_args(PartType))


class BlockTurns(TurnRules):
    """Turns whose results are blocks among the user's."""

    arguments = "object"
    result_carrier = "user_block"
    first_roles: frozenset[Role] = frozenset({"user"})
    last_roles: frozenset[Literal["user"]] = frozenset({"user"})
    alternation: Literal["merge_same", "fill"] = "merge_same"
    drop_empty_text: Literal[True] = True


class FunctionRequest(RequestRules):
    custom_tools: Literal[False] = False
    output: Literal["schema", "prompt"] = "prompt"


class ResponsesTurns(TurnRules):
    arguments = "text"
    result_carrier = "item"
    alternation: Literal["none", "fill"] = "none"
    drop_empty_text: Literal[True] = True
    error_prefix: str = "ERROR: "


class ResponsesReasoning(ReasoningRules):
    """Reasoning items, encrypted; an item of another kind must follow one (OAR-03).

    Args:
        replay_item_ids: Which items go back with their ids: none, or `all` of an answer from its reasoning on. Some
            hosts look up what has an id and find nothing (OAR-05): once its reasoning was refused, a lane sends none.
    """

    once = True
    carrier: Literal["none", "reasoning_item"] = "reasoning_item"
    replay_item_ids: Literal["none", "all"] = "none"
    followed: Literal[True] = True
    required: Literal["no"] = "no"
    switch: Literal["none", "reasoning"] = "reasoning"


class ResponsesRequest(RequestRules):
    namespaces = True
    output: Literal["schema", "prompt"] = "schema"
    output_beside_tools: bool = True
    custom_tools: Literal[True] = True
    max_stops: Literal[0] = 0


class ResponsesCaching(Caching):
    """Lane names alone: prefixes are kept unasked."""

    marks: Literal["none"] = "none"
    long: Literal["none", "retention"] = "none"


class ResponsesDialect(Profile):
    """OpenAI Responses."""

    family: ClassVar[Literal["responses"]] = "responses"
    turns: ResponsesTurns
    media: PartMedia
    reasoning: ResponsesReasoning
    request: ResponsesRequest
    caching: ResponsesCaching = ResponsesCaching()


class AnthropicReasoning(ReasoningRules):
    """Thinking blocks with a signature, or without where a copy signs nothing."""

    carrier: Literal["none", "anthropic_blocks"] = "anthropic_blocks"
    required: Literal["no", "with_calls"] = "no"
    switch: Literal["none", "anthropic"] = "anthropic"


class AnthropicRequest(FunctionRequest):
    """The request of Messages.

    Args:
        route: The operation that takes the request. `messages` is Anthropic's own: the body names the model, a header
            the version. `raw_predict` is Vertex AI's and `invoke_model` Bedrock's: the path names the model, the body
            the version (ANT-60), and Bedrock streams binary frames.
    """

    route: Literal["messages", "raw_predict", "invoke_model"] = "messages"
    max_tokens_default: int = 8192
    top_p: Literal["beside", "alone"] = "alone"
    output_schema: Literal["closed"] = "closed"


class AnthropicCaching(Caching):
    """Marks on blocks, and one for the whole request."""

    marks: Literal["none", "block"] = "none"
    keyed: Literal[False] = False
    long: Literal["none", "ttl"] = "none"


class AnthropicDialect(Profile):
    """Anthropic Messages, and who speaks like it."""

    family: ClassVar[Literal["anthropic"]] = "anthropic"
    turns: BlockTurns
    media: PartMedia
    reasoning: AnthropicReasoning
    request: AnthropicRequest
    caching: AnthropicCaching = AnthropicCaching()


class GeminiTurns(BlockTurns):
    first_roles: frozenset[Literal["user"]] = frozenset({"user"})  # GEM-02


class GeminiMedia(MediaRules):
    """Attachments by value: only addresses of files that were uploaded there are sure to be taken."""

    result_kinds: frozenset[Kind] = frozenset({"image"})
    types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"})
    urls: Literal[False] = False


class GeminiReasoning(ReasoningRules):
    """Thought signatures, each the property of a part."""

    carrier: Literal["thought_signature"] = "thought_signature"
    first: bool = False
    required: Literal["no", "before_calls"] = "no"
    switch: Literal["none", "gemini", "gemini_budget"] = "none"


class GeminiRequest(FunctionRequest):
    """The request of generateContent.

    Args:
        models_path: Path below the endpoint under which the models stand, since the path names the model.
    """

    models_path: str
    max_tokens_default: int | None = None
    schema_subset: Literal["json_schema", "gemini"] = "gemini"
    output_schema: Literal["filled"] = "filled"


class GeminiCaching(Caching):
    """Nothing: prefixes are kept unasked."""

    marks: Literal["none"] = "none"
    keyed: Literal[False] = False
    long: Literal["none"] = "none"


class GeminiDialect(Profile):
    """Google's generateContent."""

    family: ClassVar[Literal["gemini"]] = "gemini"
    turns: GeminiTurns
    media: GeminiMedia
    reasoning: GeminiReasoning
    request: GeminiRequest
    caching: GeminiCaching = GeminiCaching()


ConverseType: TypeAlias = Literal[PartType, "text/csv", "text/html", "text/markdown", "text/plain"]


class ConverseTurns(BlockTurns):
    empty_result: str | None = None


class ConverseMedia(MediaRules):
    """Attachments by value, each document with a name (BED-15)."""

    named_documents = True
    result_kinds: frozenset[Kind] = frozenset({"image", "document"})
    types: frozenset[ConverseType] = frozenset(get_args(ConverseType))
    urls: Literal[False] = False


class ConverseReasoning(ReasoningRules):
    """Reasoning blocks with the signature of the model behind them."""

    carrier: Literal["none", "bedrock_reasoning"] = "bedrock_reasoning"
    required: Literal["no"] = "no"
    switch: Literal["none", "anthropic"] = "anthropic"


class ConverseRequest(FunctionRequest):
    output_schema: Literal["closed"] = "closed"


class ConverseCaching(Caching):
    """Points behind blocks."""

    marks: Literal["none", "point"] = "none"
    keyed: Literal[False] = False
    long: Literal["none", "ttl"] = "none"


class ConverseDialect(Profile):
    """AWS Bedrock Converse."""

    family: ClassVar[Literal["converse"]] = "converse"
    turns: ConverseTurns
    media: ConverseMedia
    reasoning: ConverseReasoning
    request: ConverseRequest
    caching: ConverseCaching = ConverseCaching()


Dialect: TypeAlias = ChatDialect | ResponsesDialect | AnthropicDialect | GeminiDialect | ConverseDialect
