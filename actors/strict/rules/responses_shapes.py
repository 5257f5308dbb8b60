"""Define the parameters, items and content parts of OpenAI Responses as tables.

`responses` and `responses_items` check requests against these tables. A test compares them with the types of the
vendor's SDK. For items of provider tools, only the keys are checked, not the values.
"""

from collections.abc import Mapping
from dataclasses import dataclass

KEYS = frozenset(
    """access_programs background background_options client_metadata context_management conversation image include input
    instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls
    previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning
    safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs
    top_p truncation user""".split()  # noqa: SIM905  a list fills a page
)
COUNTED_KEYS = frozenset(
    """conversation input instructions model parallel_tool_calls personality previous_response_id reasoning text
    tool_choice tools truncation""".split()  # noqa: SIM905  a list fills a page
)
"""The keys that a request for a token count may have."""
COMPACTED_KEYS = frozenset(
    """image input instructions model previous_response_id prompt_cache_key prompt_cache_options
    prompt_cache_retention service_tier""".split()  # noqa: SIM905  a list fills a page
)
"""The keys that a request to compact a conversation may have."""


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
OUTSIDE = frozenset(
    {"compaction_trigger", "additional_tools", "configuration_update", "mcp_approval_response"}
)
"""The types of client items without output or text, which are allowed between any other items."""
SEARCH_OUTPUTS = frozenset({"tool_search_output", "tool_search_call_output"})
"""The types of items that contain the results of a tool search. The client sends them if it runs the search."""

_BREAKPOINT = frozenset({"type", "prompt_cache_breakpoint"})
INPUT_PARTS: Mapping[str, frozenset[str]] = {
    "input_text": _BREAKPOINT | {"text"},
    "input_image": _BREAKPOINT | {"image_url", "file_id", "detail"},
    "input_file": _BREAKPOINT | {"file_id", "file_url", "file_data", "filename", "detail"},
}
SAID_PARTS: Mapping[str, frozenset[str]] = {
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
}

FUNCTION_KEYS = frozenset(
    """type name description parameters strict defer_loading allowed_callers output_schema
    async""".split()  # noqa: SIM905  a list fills a page
)
