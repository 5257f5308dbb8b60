"""Define the records of a dialect: the rules for its ids, turns, media, reasoning and requests.

The renderer, the independent check and the encoders read these records. Their fields cover all wire families;
`actors.core.dialects.dialect` narrows them for each family. docs/reference/rulebook.md explains rule ids such as
ANT-07, and lists every field with its description.
"""

from typing import Any, ClassVar, Literal, TypeAlias, dataclass_transform

from msgspec import Struct, StructMeta

IdStyle: TypeAlias = Literal["openai", "anthropic", "mistral", "kimi", "bedrock", "none"]
Role: TypeAlias = Literal["user", "assistant", "tool"]
Kind: TypeAlias = Literal["image", "document"]
Family: TypeAlias = Literal["openai_chat", "responses", "anthropic", "gemini", "converse"]
"""A wire format. Each family has one adapter, which encodes and decodes it."""


class _KeywordOnlyMeta(StructMeta):
    """The metaclass of structs whose fields are all keyword-only, subclasses included."""

    def __new__(mcls, *args: Any, **options: Any) -> "_KeywordOnlyMeta":  # Any: passed on to `type` unchanged
        # msgspec does not inherit this option
        return super().__new__(mcls, *args, **options, kw_only=True)


@dataclass_transform(frozen_default=True, kw_only_default=True)
class KeywordOnlyRecord(Struct, metaclass=_KeywordOnlyMeta, frozen=True):
    """The base class of the profiles and of their records. All fields are keyword-only."""


class Ids(KeywordOnlyRecord):
    """The rules for call ids and tool names.

    Args:
        style: The format of generated ids. With `none`, the protocol pairs calls and results by position, and only
            native ids are sent, if `native_passthrough` allows it.
        pattern: A regular expression that matches every generated id completely.
        max_len: The maximum length of a generated id, in characters.
        accepted: A regular expression for the ids that the host accepts, if it accepts more than `pattern`.
        unique_scope: The scope in which call ids must be unique.
        native_passthrough: Whether a call from the same provider keeps its native id.
        tool_name_pattern: A regular expression that matches every tool name completely, in `tools` and in the history.
    """

    style: IdStyle  # the formats of REQ-915-018 to -021
    pattern: str
    max_len: int
    tool_name_pattern: str
    accepted: str | None = None
    unique_scope: Literal["message", "transcript"] = "transcript"
    native_passthrough: bool = True


class TurnRules(KeywordOnlyRecord):
    """The rules for the order of roles, calls and results.

    Args:
        arguments: The encoding of a call's arguments: a JSON object, or a JSON object as a string.
        result_carrier: How results are sent: each in a `tool` message, as blocks at the start of one user message, or
            each as an item.
        error_prefix: A prefix that is added to the text of a failed result.
        empty_result: The text that replaces an empty result, if the host rejects blank text (BED-04) or rejects cache
            marks on blank text (ANT-33). None sends the empty result.
        first_roles: The roles with which a transcript may begin.
        last_roles: The roles with which a transcript may end.
        alternation: The treatment of neighbouring messages with the same role. `merge_same` merges them into one
            message, as a block list. `fill` inserts a constant message of the other role between them (CMP-01).
        user_after_tool: Whether a user message may follow a result. If not, a constant assistant text is inserted.
        calls_together: Whether an assistant message may contain several calls. If not, each call is sent with its own
            result (CMP-02).
        calls_last: Whether the text of a message is moved before its calls, so that the results follow directly
            (OAR-14). OpenAI's own host accepts any order, including reasoning between calls.
        drop_empty_text: Whether empty and whitespace-only texts are dropped.
        max_string: The maximum length of a string, in characters. Longer texts are split; results are truncated at
            ingestion.
        filler_first: The text of the message that is inserted where the protocol requires one at the start.
        filler_last: The text of the message that is inserted where the protocol requires one at the end.
        filler_between: The text of the message that is inserted where the protocol requires one between two messages.
    """

    arguments: ClassVar[Literal["object", "text"]]
    result_carrier: ClassVar[Literal["tool_message", "user_block", "item"]]
    first_roles: frozenset[Role] = frozenset({"user", "assistant"})
    last_roles: frozenset[Role] = frozenset({"user", "tool"})
    alternation: Literal["none", "merge_same", "fill"] = "none"
    user_after_tool: Literal["allowed", "filler"] = "allowed"
    calls_together: bool = True
    calls_last: bool = False
    drop_empty_text: bool = True
    max_string: int | None = None
    filler_first: str = "(The conversation so far follows.)"
    filler_last: str = "(Please continue.)"
    filler_between: str = "(Noted.)"


class MediaRules(KeywordOnlyRecord):
    """The rules for attachments.

    Args:
        result_kinds: The kinds of attachments that a result may contain.
        user_kinds: The kinds of attachments that a user message may contain.
        types: The accepted media types of these attachments.
        max_bytes: The maximum size of one image as base64, in bytes. Where the documentation is ambiguous, the stricter
            value is used (ANT-30). None if the provider states no limit.
        max_count: The maximum number of attachments in a request. Images and documents count together, even if the
            provider states a limit for images only. Further attachments are replaced by notes. None if the provider
            states no limit.
        max_documents: The maximum number of documents in a request (BED-16).
        named_documents: Whether each document needs a name that is unique in the request (BED-15).
        urls: Whether media may be sent as a URL that the provider fetches.
    """

    named_documents: ClassVar[bool] = False
    types: frozenset[str]
    user_kinds: frozenset[Kind] = frozenset({"image", "document"})
    max_bytes: int | None = None
    max_count: int | None = None
    max_documents: int | None = None
    urls: bool = True


class ReasoningRules(KeywordOnlyRecord):
    """The rules for replaying native thinking.

    Args:
        carrier: The encoding of native thinking. With `extra_content` (Google's version of Chat Completions), only the
            signature of a call is replayed, in the call.
        field: The field that contains the text if the carrier is `reasoning_content`. Both spellings are decoded.
        binding: The condition for replaying a sealed block. `none`: it is never replayed. `model`: the model and the
            account are the same. `upstream`: the gateway's upstream is the same as well. `prefix`: the binding is the
            same and the prefix is unchanged.
        must_be_first: Whether thinking must come first in its message (ANT-39). The newest models also accept
            thinking later in a message; if the profile does not allow this, later thinking is not sent.
        must_be_followed: Whether thinking must be followed by other content in the same message (OAR-03, ANT-52).
        id_once: Whether a reasoning item, identified by its id, may be sent only once (OAR-07).
        may_be_alone: Whether an assistant message may consist of thinking only.
        required: The assistant messages that need thinking: none (`no`), those with calls (`with_calls`, KIM-03), those
            with calls, directly before the first call (`before_calls`, GEM-04), or `every` message (DSK-05).
        placeholder: The text that is sent if thinking is required but missing.
        switch: The request field that turns thinking on.
    """

    id_once: ClassVar[bool] = False
    carrier: str
    binding: Literal["none", "model", "upstream", "prefix"]
    must_be_first: bool = True
    must_be_followed: bool = False
    may_be_alone: bool = True
    required: Literal["no", "with_calls", "before_calls", "every"] = "no"
    placeholder: str = ""
    switch: Literal["none", "anthropic", "type", "effort", "reasoning", "gemini", "gemini_budget"] = "none"

    @property
    def is_fixed_in_loop(self) -> bool:
        """True if a tool loop that began without thinking must also end without thinking (ANT-40)."""
        return self.switch == "anthropic"


OVERFLOW = (
    r"context_length_exceeded",
    r"prompt is too long",
    r"input length and .max_tokens. exceed context limit",
    r"input token count .* exceeds the maximum",
    r"maximum context length is",
    r"exceeds the context window",
    r"maximum prompt length is",
    r"Input is too long for requested model",
    r"exceeded model token limit",
    r"too large for model with .* maximum context length",
    r"exceeds the available context size",
    r"exceed_context_size_error",
    r"context window exceeds limit",
    r"reduce the length of the messages",
    r"greater than the context length",
)
"""Regular expressions for the errors that report that a prompt is too long. They are searched in the string `type code
message`, ignoring case.
"""


OutputMeans: TypeAlias = Literal["schema", "tool", "prompt"]
Patterns: TypeAlias = Literal["any", "plain", "none"]


class RequestRules(KeywordOnlyRecord):
    """The rules for the fields of a request other than messages, and for recognising a context overflow.

    Args:
        namespaces: Whether tools may be declared in named groups.
        custom_tools: Whether tools may take free text instead of an object.
        schema_subset: The JSON Schema subset to which a tool's schema is reduced.
        patterns: The regular expressions that a schema may contain: `any`, `none`, or only `plain` ones. A plain
            expression has no lookarounds, named groups or flags, so that a grammar can be built from it (CMP-03).
        max_tokens_default: The `max_tokens` of a request that does not set it (Anthropic requires the field); None for
            the model's default.
        max_tools: The maximum number of tools in a request; None if there is no limit.
        forced_choice: Whether the tool choice may force a tool; otherwise `auto` is sent and the loss is reported.
        named_choice: Whether one tool may be forced by its name; otherwise any tool is forced and the loss is reported.
        sampling: Whether sampling settings are accepted; otherwise they are omitted and the loss is reported.
        max_temperature: The maximum temperature; a higher temperature is omitted and the loss is reported.
        top_p: `beside` if `top_p` may be sent together with a temperature. `alone` if only one of the two may be sent;
            `top_p` is then omitted and the loss is reported.
        output: The best way to require an output format: a schema in the request, a forced output tool, or an
            instruction.
        output_beside_tools: Whether a request may combine an output schema with tools; otherwise an instruction is
            used.
        output_schema: Requirements on an output schema. With `closed`, the schema must close every object and may not
            contain bounds, recursion or open objects. With `filled`, each object must also have properties.
        unsupported_settings: Settings for which the wire family has a field, but which the host does not accept. They
            are omitted and the loss is reported.
        max_stops: The maximum number of stop sequences; 0 if the setting does not exist. Further sequences are omitted
            and the loss is reported.
        overflow_patterns: Regular expressions that recognise a context overflow in an error text.
        overflow_rule: The id of the rule that a context overflow breaks.
    """

    namespaces: ClassVar[bool] = False
    custom_tools: bool = False
    patterns: Patterns = "any"
    max_tools: int | None = None
    forced_choice: Literal["yes", "no", "not_when_thinking"] = "yes"
    named_choice: bool = True
    sampling: bool = True
    max_temperature: float = 2.0
    top_p: Literal["beside", "alone"] = "beside"
    unsupported_settings: frozenset[str] = frozenset()
    max_stops: int = 4
    output: OutputMeans = "prompt"
    output_beside_tools: bool = False
    output_schema: Literal["any", "closed", "filled"] = "any"
    overflow_patterns: tuple[str, ...] = OVERFLOW
    overflow_rule: str | None = None
