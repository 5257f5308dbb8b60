"""Define the rules, parameters, items and content parts of OpenAI Responses as tables.

`responses` and `responses_items` check requests against these tables. A test compares the shapes with the types of the
vendor's SDK. For items of provider tools, only the keys are checked, not the values.

The profiles and settings of a host are defined here too. A server stores the response to each request, unless the
request has `store: false` (`responses_store`). Without a server, nothing is stored, so a request cannot refer to
earlier responses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from actors.strict.rules.base import COPIES, DOC, RECALLED, ServerRule, rules_by_id

KEYS = frozenset(
    """access_programs background background_options client_metadata context_management conversation image include input
    instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls
    previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning
    safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs
    top_p truncation user""".split()  # noqa: SIM905  a list would fill a page
)
COUNTED_KEYS = frozenset(
    """conversation input instructions model parallel_tool_calls personality previous_response_id reasoning text
    tool_choice tools truncation""".split()  # noqa: SIM905  a list would fill a page
)
"""The keys that a request for a token count may have."""
COMPACTED_KEYS = frozenset(
    """image input instructions model previous_response_id prompt_cache_key prompt_cache_options
    prompt_cache_retention service_tier""".split()  # noqa: SIM905  a list would fill a page
)
"""The keys that a request to compact a conversation may have."""


@dataclass(frozen=True, slots=True)
class ResponsesProfile:
    """The features of a model on a host with the Responses API.

    Args:
        call_id_length: The maximum length of a `call_id`, in characters.
        adjacent: Whether outputs must directly follow their calls, as in DeepSeek's version of the API. The mode
            `strict` always requires this.
        encrypted: Whether the model supports encrypted reasoning.
        prefix_bound: Whether encrypted reasoning is refused if the prefix before it has changed. (In the mode `hosted`,
            the server silently ignores such reasoning instead, like the real host.)
        looks_up_items: Whether the host refuses every item with an id, because it looks up the item and does not find
            it. Some hosts were reported to do this for requests with `store: false`.
        has_item_ids: Whether the items of an answer have ids. Relays omit them.
        sampling: False for reasoning models, which refuse `temperature` and similar settings.
        context_tokens: The size of the context window in tokens; None means unlimited. Four bytes of the body count as
            one token.
    """

    call_id_length: int = 64
    adjacent: bool = False
    encrypted: bool = True
    prefix_bound: bool = False
    looks_up_items: bool = False
    has_item_ids: bool = True
    sampling: bool = True
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ResponsesSettings:
    """The settings of a host with the Responses API.

    Args:
        profile: The profile of every model if `models` is None.
        models: The models that exist, by name; None accepts any name.
        account: A label for the account; encrypted reasoning is bound to it.
        secret: The key for simulated encryption. Hosts with different secrets reject each other's reasoning.
        signatures: `trust` accepts any encrypted content, to validate bodies without a server.
    """

    profile: ResponsesProfile = ResponsesProfile()
    models: Mapping[str, ResponsesProfile] | None = None
    account: str = "account-1"
    secret: bytes = field(default=b"stand-in encryption secret", repr=False)
    signatures: Literal["verify", "trust"] = "verify"


_TOO_LONG = (
    "Invalid '{path}': string too long. Expected a string with maximum length {limit}, "
    "but got a string with length {length} instead."
)

RULES = rules_by_id(
    ServerRule("OAR-01", "No tool output found for {kind} call {id}."),
    ServerRule("OAR-02", "No tool call found for {kind} call output with call_id {id}."),
    ServerRule("OAR-03", "Item '{id}' of type 'reasoning' was provided without its required following item."),
    ServerRule(
        "OAR-04",
        "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{wanted}'.",
    ),
    ServerRule(
        "OAR-05",
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with "
        "`store` set to true, or remove this item from your input.",
        status=404,
    ),
    ServerRule(
        "OAR-06",
        "Invalid '{path}': '{id}'. Expected an ID that begins with '{prefix}'.",
        code="invalid_value",
    ),
    ServerRule(
        "OAR-07", "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
    ),
    ServerRule("OAR-08", _TOO_LONG, code="string_above_max_length"),
    ServerRule(
        "OAR-09",
        "The encrypted content for item {id} could not be verified. Reason: {why}",
        code="invalid_encrypted_content",
    ),
    ServerRule(
        "OAR-10",
        "Invalid type for '{path}': expected {expected}, but got {got} instead.",
        code="invalid_type",
    ),
    ServerRule("OAR-11", "Custom tool call output is missing for call id: {id}."),
    ServerRule("OAR-12", "The requested model '{model}' does not exist.", code="model_not_found"),
    ServerRule(
        "OAR-13",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
    ),
    ServerRule("OAR-14", "No tool output found for tool call {id}.", code="invalid_request_error"),
    ServerRule("OAR-S01", "We could not parse the JSON body of your request. ({why})", source=RECALLED),
    ServerRule(
        "OAR-S02", "Missing required parameter: '{path}'.", source=DOC, code="missing_required_parameter"
    ),
    ServerRule("OAR-S03", "Unknown parameter: '{path}'.", source=DOC, code="unknown_parameter"),
    ServerRule(
        "OAR-S04",
        "Invalid value: '{value}'. Supported values are: {values}.",
        source=DOC,
        code="invalid_value",
    ),
    ServerRule(
        "OAR-S05",
        "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern "
        "'{pattern}'.",
        source=DOC,
        code="invalid_value",
    ),
    ServerRule(
        "OAR-S06",
        "Invalid '{path}': empty {what}. Expected {what} with minimum length 1, but got an empty {what} "
        "instead.",
        source=RECALLED,
        code="empty_array",
    ),
    ServerRule("OAR-S07", _TOO_LONG, source=DOC, code="string_above_max_length"),
    ServerRule("OAR-S08", "Invalid schema for function '{name}': {why}", code="invalid_function_parameters"),
    ServerRule("OAR-S09", "Tool choice '{name}' not found in 'tools' parameter.", source=RECALLED),
    ServerRule(
        "OAR-S10",
        "Unsupported parameter: '{path}' is not supported with this model.",
        source=RECALLED,
        code="unsupported_parameter",
    ),
    ServerRule("OAR-S11", "Encrypted content is not supported with this model.", source=RECALLED),
    ServerRule(
        "OAR-S12",
        "Previous response with id '{id}' not found.",
        source=RECALLED,
        code="previous_response_not_found",
    ),
    ServerRule("OAR-S13", "Invalid value for '{path}'.", source=RECALLED, code="invalid_value"),
    ServerRule("OAR-S14", "Invalid schema for response_format '{name}': {why}"),
    ServerRule(
        "OAR-S15",
        "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
        "'json_object'.",
    ),
    ServerRule("OAR-S16", "Response with id '{id}' not found.", source=RECALLED, status=404),
    ServerRule("OAR-S17", "Cannot cancel a synchronous response.", source=RECALLED),
    ServerRule("OAR-S18", "Item with id '{id}' not found.", source=RECALLED, status=404),
    ServerRule(
        "OAR-S24",
        "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing "
        "one of them.",
        source=RECALLED,
        code="mutually_exclusive_parameters",
    ),
    ServerRule("OAR-S25", "Conversation with id '{id}' not found.", source=RECALLED, status=404),
    ServerRule("OAR-S20", "invalid tool call arguments", source=COPIES, strict_only=True),
    ServerRule("OAR-S21", "Duplicate tool call id {id}", source=COPIES, strict_only=True),
    ServerRule("OAR-S22", "The last item of the input is the assistant's.", source=COPIES, strict_only=True),
)


@dataclass(frozen=True, slots=True)
class ItemShape:
    """The required and optional keys of one type of item.

    Args:
        required: The required keys with their JSON types, without `type`.
        optional: The keys that may be absent or null.
    """

    required: Mapping[str, type]
    optional: frozenset[str]

    @property
    def keys(self) -> frozenset[str]:
        """All keys that the item may have."""
        return self.optional | self.required.keys() | _EVERYWHERE


_EVERYWHERE = frozenset({"type", "id", "status", "internal_chat_message_metadata_passthrough"})


def _item_shape(optional: str = "", **required: type) -> ItemShape:
    return ItemShape(required, frozenset(optional.split()))


ITEMS: Mapping[str, ItemShape] = {
    "message": _item_shape("content phase", role=str),
    "function_call": _item_shape("namespace caller async", call_id=str, name=str, arguments=str),
    "custom_tool_call": _item_shape("namespace caller async", call_id=str, name=str, input=str),
    "function_call_output": _item_shape("output name namespace caller", call_id=str),
    "custom_tool_call_output": _item_shape("output name caller", call_id=str),
    "computer_call": _item_shape("action actions pending_safety_checks", call_id=str),
    "computer_call_output": _item_shape("acknowledged_safety_checks", call_id=str, output=dict),
    "local_shell_call": _item_shape(call_id=str, action=dict),
    "local_shell_call_output": _item_shape("call_id", output=str),
    "shell_call": _item_shape("caller environment", call_id=str, action=dict),
    "shell_call_output": _item_shape("caller max_output_length", call_id=str, output=list),
    "apply_patch_call": _item_shape("caller", call_id=str, operation=dict),
    "apply_patch_call_output": _item_shape("caller output", call_id=str),
    "tool_search_call": _item_shape("arguments call_id execution"),
    "tool_search_output": _item_shape("call_id execution", tools=list),
    "tool_search_call_output": _item_shape("call_id execution output", tools=list),
    "program": _item_shape(call_id=str, code=str, fingerprint=str),
    "program_output": _item_shape(call_id=str, result=str),
    "reasoning": _item_shape("summary content encrypted_content"),
    "compaction": _item_shape("encrypted_content created_by"),
    "compaction_trigger": _item_shape(),
    "configuration_update": _item_shape("reasoning text"),
    "additional_tools": _item_shape("role", tools=list),
    "item_reference": _item_shape(id=str),
    "web_search_call": _item_shape("action"),
    "file_search_call": _item_shape("queries results"),
    "code_interpreter_call": _item_shape("container_id code outputs"),
    "image_generation_call": _item_shape(
        "result action background error output_format quality revised_prompt size svg_usage"
    ),
    "mcp_list_tools": _item_shape("error", server_label=str, tools=list),
    "mcp_call": _item_shape("output error approval_request_id", server_label=str, name=str, arguments=str),
    "mcp_approval_request": _item_shape(server_label=str, name=str, arguments=str),
    "mcp_approval_response": _item_shape("reason", approval_request_id=str, approve=bool),
}
"""The shape of each type of item."""

CALLS: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}
"""The types of calls that the client runs, with the key of their arguments."""
OUTPUTS: Mapping[str, str] = {
    "function_call_output": "function",
    "custom_tool_call_output": "custom tool",
    "computer_call_output": "computer",
    "local_shell_call_output": "local shell",
    "shell_call_output": "shell",
    "apply_patch_call_output": "apply patch",
}
"""The name of a call in error messages, by the type of its output."""
UNORDERED_ITEMS = frozenset(
    {"compaction_trigger", "additional_tools", "configuration_update", "mcp_approval_response"}
)
"""The types of the client's items that are neither messages nor outputs. They may occur between any other items."""
SEARCH_OUTPUTS = frozenset({"tool_search_output", "tool_search_call_output"})
"""The types of items that contain the results of a tool search. The client sends them if it runs the search."""

_BREAKPOINT = frozenset({"type", "prompt_cache_breakpoint"})
INPUT_PARTS: Mapping[str, frozenset[str]] = {
    "input_text": _BREAKPOINT | {"text"},
    "input_image": _BREAKPOINT | {"image_url", "file_id", "detail"},
    "input_file": _BREAKPOINT | {"file_id", "file_url", "file_data", "filename", "detail"},
}
ANSWER_PARTS: Mapping[str, frozenset[str]] = {
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
}

FUNCTION_KEYS = frozenset(
    """type name description parameters strict defer_loading allowed_callers output_schema
    async""".split()  # noqa: SIM905  a list would fill a page
)
