"""What a provider demands of a transcript, as data: a record a wire family, made of small ones by concern.

The renderer reads it, `actors.core.check` judges by it, and docs/reference/rulebook.md is generated from it. What all
families say is in `actors.core.concerns`; here each family narrows it to what it can write, so that a profile which
says more is refused: by the type checker where it is code, with one line where it is a table of `actors.toml`. A
vendor is a profile (`actors.core.profiles`) that differs from another in a few fields, by `dataclasses.replace`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from actors.core.caching import Caching
from actors.core.concerns import Ids, Kind, MediaRules, ReasoningRules, RequestRules, Role, TurnRules
from actors.core.identity import Binding

Family: TypeAlias = Literal["openai_chat", "responses", "anthropic", "gemini", "converse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What every dialect has.

    Args:
        name: The profile's name, as `dialect()` takes it.
        rules: Prefix of the vendor's own rules (`MIS`, `KIM`, `DSK`), which the judge cites in place of the
            family's; empty where the vendor has no list of its own.
        family: The wire family: which adapter encodes and decodes, which fold checks.
        ids, turns, media, reasoning, request: Its demands by concern, as the family narrows them.
        caching: How the host's prompt cache is asked for. The default asks for nothing.
    """

    name: str
    rules: str = ""
    ids: Ids
    turns: TurnRules
    media: MediaRules
    reasoning: ReasoningRules
    request: RequestRules
    caching: Caching

    def __hash__(self) -> int:  # cheap, because codecs are looked up by it
        return hash(self.name)

    def opens(self, sealed_by: Binding, target: Binding | None) -> bool:
        """Say whether a block sealed by one binding may be replayed to `target`.

        What is bound to its prefix goes back only to the very binding that has it in its lane: another backend with
        the same model may have been shown the conversation otherwise. A gateway's upstreams cannot read each other's.
        """
        if target is None or self.reasoning.carrier == "none" or self.reasoning.binding == "none":
            return False
        if self.reasoning.binding == "prefix":
            return sealed_by == target
        if self.reasoning.binding == "upstream" and sealed_by.upstream != target.upstream:
            return False
        return (sealed_by.dialect, sealed_by.endpoint, sealed_by.account, sealed_by.model) == (
            target.dialect,
            target.endpoint,
            target.account,
            target.model,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurns(TurnRules):
    """Turns of Chat Completions: every message is whole, a result is one with the role `tool`.

    Args:
        error_prefix: The word before the text of a failed result.
        empty_result: What is said for a result without words, where a blank text cannot be marked (ANT-33); None
            sends it as it is.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMedia(MediaRules):
    """Attachments of Chat Completions: images, in user messages alone.

    Args:
        user_files: Whether a user message may hold a `file` part, though we send none.
    """

    result_kinds: ClassVar[frozenset[Kind]] = frozenset()
    user_kinds: frozenset[Literal["image"]] = frozenset({"image"})
    user_files: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReasoning(ReasoningRules):
    """Reasoning beside or in the content of an assistant message, as the vendor has it.

    Args:
        field: Under which name the words go back where the carrier is `reasoning_content`. Read are all.
    """

    field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    carrier: Literal["none", "reasoning_content", "reasoning_details", "thinking_chunk", "extra_content"] = (
        "none"
    )
    binding: Literal["none", "model", "upstream", "prefix"] = "none"
    required: Literal["no", "with_calls", "before_calls"] = "no"
    switch: Literal["none", "type", "effort", "reasoning"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest(RequestRules):
    """The request of Chat Completions.

    Args:
        keys: Keys a request may have, where the vendor has a list of its own; empty for the family's.
        max_tokens_field: Name of the field that bounds the answer.
        stream_usage: Whether a stream must be asked for its token figures.
        required_choice: The word by which any tool is forced.
        schema_subset: What a tool's JSON Schema is projected to.
        upstream_pin: How a request says which upstream of a gateway is to serve it and no other.
    """

    keys: frozenset[str] = frozenset()
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    stream_usage: bool = True
    required_choice: str = "required"
    schema_subset: Literal["json_schema", "moonshot"] = "json_schema"
    upstream_pin: Literal["none", "provider"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCaching(Caching):
    """Marks on the last part of a message's content, where a gateway has a host that asks for them, and lane names."""

    marks: Literal["none", "part"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDialect(Profile):
    """OpenAI Chat Completions, and who speaks like it."""

    family: ClassVar[Literal["openai_chat"]] = "openai_chat"
    turns: ChatTurns
    media: ChatMedia
    reasoning: ChatReasoning
    request: ChatRequest
    caching: ChatCaching = ChatCaching()
    __hash__ = Profile.__hash__


PartType: TypeAlias = Literal["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartMedia(MediaRules):
    """Attachments in user messages and in results."""

    result_kinds: frozenset[Kind] = frozenset({"image", "document"})
    user_kinds: frozenset[Kind] = frozenset({"image", "document"})
    types: frozenset[PartType] = frozenset(get_args(PartType))


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTurns(TurnRules):
    """Turns whose messages are lists of blocks, results among them in the user's."""

    arguments = "object"
    result_carrier = "user_block"
    first_roles: frozenset[Role] = frozenset({"user"})
    last_roles: frozenset[Literal["user"]] = frozenset({"user"})
    alternation: Literal["merge_same", "fill"] = "merge_same"
    drop_empty_text: Literal[True] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesTurns(TurnRules):
    """Turns of OpenAI Responses: an item for whatever is said, called or answered.

    Args:
        error_prefix: The word before the text of a failed result.
    """

    arguments = "text"
    result_carrier = "item"
    alternation: Literal["none", "fill"] = "none"
    drop_empty_text: Literal[True] = True
    error_prefix: str = "ERROR: "


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesReasoning(ReasoningRules):
    """Reasoning items, encrypted; an item of another kind must follow one (OAR-03)."""

    once = True
    carrier: Literal["none", "reasoning_item"] = "reasoning_item"
    followed: Literal[True] = True
    required: Literal["no"] = "no"
    switch: Literal["none", "reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesRequest(RequestRules):
    """The request of OpenAI Responses."""

    namespaces = True
    custom_tools: Literal[True] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesCaching(Caching):
    """Lane names alone: prefixes are kept unasked."""

    marks: Literal["none"] = "none"
    long: Literal["none", "retention"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesDialect(Profile):
    """OpenAI Responses."""

    family: ClassVar[Literal["responses"]] = "responses"
    turns: ResponsesTurns
    media: PartMedia
    reasoning: ResponsesReasoning
    request: ResponsesRequest
    caching: ResponsesCaching = ResponsesCaching()
    __hash__ = Profile.__hash__


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicReasoning(ReasoningRules):
    """Thinking blocks with a signature, or without where a copy signs nothing."""

    carrier: Literal["none", "anthropic_blocks"] = "anthropic_blocks"
    required: Literal["no", "with_calls"] = "no"
    switch: Literal["none", "anthropic"] = "anthropic"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicRequest(RequestRules):
    """The request of Anthropic Messages.

    Args:
        max_tokens_default: Most tokens of an answer where nobody said, since the field is required.
    """

    custom_tools: Literal[False] = False
    max_tokens_default: int = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicCaching(Caching):
    """Marks on blocks, and one for the whole request."""

    marks: Literal["none", "block"] = "none"
    moving: bool = False
    keyed: Literal[False] = False
    long: Literal["none", "ttl"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicDialect(Profile):
    """Anthropic Messages, and who speaks like it."""

    family: ClassVar[Literal["anthropic"]] = "anthropic"
    turns: BlockTurns
    media: PartMedia
    reasoning: AnthropicReasoning
    request: AnthropicRequest
    caching: AnthropicCaching = AnthropicCaching()
    __hash__ = Profile.__hash__


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiTurns(BlockTurns):
    """Turns of generateContent, which begin with the user (GEM-02)."""

    first_roles: frozenset[Literal["user"]] = frozenset({"user"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiMedia(MediaRules):
    """Attachments of generateContent, by value."""

    result_kinds: frozenset[Kind] = frozenset({"image"})
    user_kinds: frozenset[Kind] = frozenset({"image", "document"})
    types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"})
    urls: Literal[False] = False  # only addresses of files that were uploaded there are sure to be taken


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiReasoning(ReasoningRules):
    """Thought signatures, each the property of a part."""

    carrier: Literal["thought_signature"] = "thought_signature"
    required: Literal["no", "before_calls"] = "no"
    switch: Literal["none", "gemini", "gemini_budget"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiRequest(RequestRules):
    """The request of generateContent.

    Args:
        models_path: Path below the endpoint under which the models stand, since the path names the model.
        max_tokens_default: Most tokens of an answer where nobody said (Anthropic requires the field); None for the
            model's own.
        schema_subset: What a tool's JSON Schema is projected to.
    """

    custom_tools: Literal[False] = False
    models_path: str
    max_tokens_default: int | None = None
    schema_subset: Literal["json_schema", "gemini"] = "gemini"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiCaching(Caching):
    """Nothing: prefixes are kept unasked."""

    marks: Literal["none"] = "none"
    keyed: Literal[False] = False
    long: Literal["none"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiDialect(Profile):
    """Google's generateContent."""

    family: ClassVar[Literal["gemini"]] = "gemini"
    turns: GeminiTurns
    media: GeminiMedia
    reasoning: GeminiReasoning
    request: GeminiRequest
    caching: GeminiCaching = GeminiCaching()
    __hash__ = Profile.__hash__


ConverseType: TypeAlias = Literal[PartType, "text/csv", "text/html", "text/markdown", "text/plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverseTurns(BlockTurns):
    """Turns of Bedrock Converse.

    Args:
        empty_result: What is said for a result without words, where a blank text is refused (BED-04); None sends it
            as it is.
    """

    empty_result: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverseMedia(MediaRules):
    """Attachments of Bedrock Converse, by value, each document with a name (BED-15)."""

    named_documents = True
    result_kinds: frozenset[Kind] = frozenset({"image", "document"})
    user_kinds: frozenset[Kind] = frozenset({"image", "document"})
    types: frozenset[ConverseType] = frozenset(get_args(ConverseType))
    urls: Literal[False] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverseReasoning(ReasoningRules):
    """Reasoning blocks with the signature of the model behind them."""

    carrier: Literal["none", "bedrock_reasoning"] = "bedrock_reasoning"
    required: Literal["no"] = "no"
    switch: Literal["none", "anthropic"] = "anthropic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverseRequest(RequestRules):
    """The request of Bedrock Converse."""

    custom_tools: Literal[False] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverseCaching(Caching):
    """Points behind blocks."""

    marks: Literal["none", "point"] = "none"
    keyed: Literal[False] = False
    long: Literal["none", "ttl"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverseDialect(Profile):
    """AWS Bedrock Converse."""

    family: ClassVar[Literal["converse"]] = "converse"
    turns: ConverseTurns
    media: ConverseMedia
    reasoning: ConverseReasoning
    request: ConverseRequest
    caching: ConverseCaching = ConverseCaching()
    __hash__ = Profile.__hash__


Dialect: TypeAlias = ChatDialect | ResponsesDialect | AnthropicDialect | GeminiDialect | ConverseDialect
