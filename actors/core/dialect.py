"""What a provider family demands of a transcript, as data.

One frozen record a profile. The renderer reads it, `actors.core.check` judges by it, and
docs/reference/rulebook.md is generated from it. The records are in `actors.core.profiles`: a vendor that
differs from a family in three rules is three fields there, by `derive`, and not a module. Rule ids such as
ANT-07 are explained in the rulebook.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from actors.core.caching import UNASKED, Caching
from actors.core.identity import Binding

Family: TypeAlias = Literal["openai_chat", "responses", "anthropic", "gemini", "converse"]
IdStyle: TypeAlias = Literal["openai", "anthropic", "mistral", "kimi", "bedrock", "none"]
ThinkingCarrier: TypeAlias = Literal[
    "none",
    "anthropic_blocks",
    "reasoning_item",
    "thought_signature",
    "thinking_chunk",
    "reasoning_content",
    "reasoning_details",
    "bedrock_reasoning",
]
Role: TypeAlias = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One profile. Field names are those of the rulebook.

    Args:
        name: The profile's name, as `dialect()` takes it.
        family: The wire family: which adapter encodes and decodes, which fold checks.
        rules: Prefix of the vendor's own rules (`MIS`, `KIM`, `DSK`), which the judge cites in place of the
            family's; empty where the vendor has no list of its own.
        id_style: How the ids we mint look (REQ-915-018 to -021). `none`: the protocol pairs by position, and
            only ids the provider gave go back, where `native_id_passthrough` allows.
        id_pattern: What every emitted id must match in full.
        id_max_len: Longest id emitted, in characters.
        id_accepted: What an id must match in full that somebody else emitted, where the host takes more than we do.
        id_unique_scope: Where a repeated call id is refused.
        native_id_passthrough: Whether a call made by the same binding keeps the id its provider gave it.
        tool_name_pattern: What a tool name must match in full, in `tools` and in history alike.
        arguments: How a call's arguments travel: as a JSON object, or as the text that the model wrote.
        calls_last: Whether what the model says in a message stands before what it calls, so that results follow
            directly (OAR-14). OpenAI's own host takes any order, and so the reasoning between them too.
        result_carrier: A `tool` message for each result, blocks at the head of one user message, or an item each.
        result_error_flag: How a failed result is marked: a flag, or a word before its text.
        error_prefix: That word.
        result_media, user_media: Media kinds (`image`, `document`) a result or a user message can hold.
        media_types: MIME types it takes, of those kinds.
        media_bytes: Most bytes of one image as base64, the stricter reading (ANT-30); None where no cap is stated.
        max_media: Most attachments a request holds, images and documents counted together, the stricter reading where a
            figure is stated for images alone; None where none is stated. Those that come later are noted in a text.
        max_documents: Most documents among them (BED-16); None where none is stated.
        named_documents: Whether each document has a name that no other document of the request has (BED-15).
        media_urls: Whether media may be given as an address that the provider fetches.
        empty_result: What is said for a result without words, where a blank text is refused (BED-04) or cannot be
            marked (ANT-33); None sends it as it is.
        developer_role: Whether the role `developer` exists beside `system`. We send `system`.
        first_roles, last_roles: Roles a transcript may begin and end with.
        alternation: `merge_same` puts neighbours of one role into one message, as a block list; `fill` puts a
            constant message of the other role between them (CMP-01).
        drop_empty_text: Whether empty and whitespace-only texts are left out.
        request_keys: Keys a request may have, where the vendor has a list of its own; empty for the family's.
        message_keys: Keys a message may have beside role, content and what calls and reasoning need: `name` in any
            but a result, the others in the assistant's.
        system_anywhere: Whether a system message may follow the assistant or a result (MIS-12).
        empty_answers: Whether an assistant message that calls nothing may be an empty text (KIM-04).
        empty_calls: Whether an assistant message may have a list of calls without one.
        custom_tools: Whether there are tools that take free text, and no object.
        user_files: Whether a user message may hold a `file` part, though we send what `user_media` names.
        max_tools: Most tools a request may declare.
        user_after_tool: Whether a user message may follow a result, or a constant assistant text goes between.
        calls_together: Whether an assistant message may hold several calls; where not, each goes with its own result
            (CMP-02).
        absent_content: What an assistant message with calls and no text says in `content`.
        max_tokens_field: Name of the field that bounds the answer.
        stream_usage: Whether a stream must be asked for its token figures.
        forced_choice: Whether a tool may be forced; where not, `auto` is sent and the loss is reported.
        required_choice: The word by which any tool is forced.
        sampling: Whether sampling settings are taken; where not, they are left out and the loss is reported.
        max_temperature: Highest temperature taken; a higher one is left out, and the loss reported.
        schema_subset: What a tool's JSON Schema is projected to.
        tools_required: Whether tools must be declared when the transcript has tool blocks (BED-03).
        thinking_carrier: How native thinking travels.
        thinking_binding: Who may open a sealed thinking block: nobody, the same model of the same account,
            the same behind the same upstream of a gateway, or only the same with an unchanged prefix.
        thinking_first: Whether a message that holds thinking must begin with it (ANT-39). The newest models write
            and take it in the middle; until a profile says so, thinking elsewhere is not sent.
        thinking_followed: Whether something of the same message must stand behind reasoning (OAR-03, ANT-52).
        thinking_once: Whether a reasoning item, told by the id inside it, may be sent once only (OAR-07).
        thinking_alone: Whether an assistant message may hold reasoning and nothing else.
        thinking_required: Which assistant messages must have some: those with calls (KIM-03, DSK-05), in front of
            their first call (GEM-04), or none.
        thinking_placeholder: What stands in where they have none of their own.
        thinking_switch: How a request asks for thinking.
        upstream_pin: How a request says which upstream of a gateway is to serve it and no other.
        models_path: Path below the endpoint under which the models stand, where the path of a request names
            its model.
        max_string: Longest string accepted, in characters. Longer texts are split; results are cut where they come in.
        filler_first, filler_last, filler_between: Constant texts where the protocol needs a message and there is none.
        max_tokens_default: What a request asks for where the field is required and nobody said.
        caching: How the host's prompt cache is asked for: `marks`, `models` that take them, `moving`, `keyed`, `long`
            (`actors.core.caching.Caching`).
        overflow_patterns: Regular expressions that recognise a context overflow in an error text.
        overflow_rule: The rule a context overflow breaks.
    """

    name: str
    family: Family
    rules: str = ""
    id_style: IdStyle
    id_pattern: str
    id_max_len: int
    id_accepted: str | None = None
    id_unique_scope: Literal["message", "transcript"] = "transcript"
    native_id_passthrough: bool = True
    tool_name_pattern: str
    arguments: Literal["object", "text"] = "object"
    calls_last: bool = False
    result_carrier: Literal["tool_message", "user_block", "item"]
    result_error_flag: Literal["text", "is_error", "status", "response_error"]
    error_prefix: str = "ERROR: "
    result_media: frozenset[str] = frozenset()
    user_media: frozenset[str] = frozenset({"image"})
    media_types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
    media_bytes: int | None = None
    max_media: int | None = None
    max_documents: int | None = None
    named_documents: bool = False
    media_urls: bool = True
    empty_result: str | None = None
    developer_role: bool = True
    first_roles: frozenset[Role] = frozenset({"user", "assistant"})
    last_roles: frozenset[Role] = frozenset({"user", "tool"})
    alternation: Literal["none", "merge_same", "fill"]
    drop_empty_text: bool = True
    request_keys: frozenset[str] = frozenset()
    message_keys: frozenset[str] = frozenset({"name", "refusal", "audio", "function_call"})
    system_anywhere: bool = True
    empty_answers: bool = True
    empty_calls: bool = False
    custom_tools: bool = True
    user_files: bool = False
    max_tools: int | None = None
    user_after_tool: Literal["allowed", "filler"] = "allowed"
    calls_together: bool = True
    absent_content: Literal["null", "omit", "empty"] = "null"
    max_tokens_field: Literal["max_completion_tokens", "max_tokens", "max_output_tokens"] = "max_tokens"
    stream_usage: bool = True
    forced_choice: Literal["yes", "no", "not_when_thinking"] = "yes"
    required_choice: str = "required"
    sampling: bool = True
    max_temperature: float = 2.0
    schema_subset: Literal["json_schema", "gemini", "moonshot"] = "json_schema"
    tools_required: bool = False
    thinking_carrier: ThinkingCarrier
    thinking_binding: Literal["none", "model", "upstream", "prefix"]
    thinking_first: bool = True
    thinking_followed: bool = False
    thinking_once: bool = False
    thinking_alone: bool = True
    thinking_required: Literal["no", "with_calls", "before_calls"] = "no"
    thinking_placeholder: str = ""
    thinking_switch: Literal[
        "none", "anthropic", "type", "effort", "reasoning", "gemini", "gemini_budget"
    ] = "none"
    upstream_pin: Literal["none", "provider"] = "none"
    models_path: str = ""
    max_string: int | None = None
    filler_first: str = "(The conversation so far follows.)"
    filler_last: str = "(Please continue.)"
    filler_between: str = "(Noted.)"
    max_tokens_default: int | None = None
    caching: Caching = UNASKED
    overflow_patterns: tuple[str, ...] = ()
    overflow_rule: str | None = None

    def derive(self, **changes: Any) -> "Dialect":  # Any: each field has its own type, checked by `replace`
        """Return this profile with some fields changed, for a vendor or by an operator's override."""
        return replace(self, **changes)

    def opens(self, sealed_by: Binding, reader: Binding | None) -> bool:
        """Say whether a block sealed by one binding may be replayed to `reader`.

        What is bound to its prefix goes back only to the very binding that has it in its lane: another backend with
        the same model may have been shown the conversation otherwise. A gateway's upstreams cannot read each other's.
        """
        if reader is None or self.thinking_carrier == "none" or self.thinking_binding == "none":
            return False
        if self.thinking_binding == "prefix":
            return sealed_by == reader
        if self.thinking_binding == "upstream" and sealed_by.upstream != reader.upstream:
            return False
        return (sealed_by.dialect, sealed_by.endpoint, sealed_by.account, sealed_by.model) == (
            reader.dialect,
            reader.endpoint,
            reader.account,
            reader.model,
        )
