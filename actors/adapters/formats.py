"""Check whether all messages of a transcript have the message format of a wire family.

`actors.adapters.importing` uses this module for transcripts without a named dialect. In these transcripts, a message
without a role, or with a part of an unknown kind, does not fit any family, because a reader would have to guess the
message's role or the meaning of the part.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from actors.adapters.wire import Fields, as_array, as_object, as_plain_data, as_string
from actors.core.data.jsonio import is_array
from actors.core.models.rules import Family


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CHAT_ROLES = _word_set("system developer user assistant tool function")
_CHAT_KEYS = _word_set(
    "role content name refusal annotations audio function_call tool_calls reasoning_content reasoning"
)
_CHAT_PARTS = _word_set(
    "text image_url input_audio video_url file refusal thinking document_url reference audio_url"
)
_ANTHROPIC_ROLES = _word_set("system user assistant")
_ANTHROPIC_BLOCKS = _word_set(
    "text image document tool_use tool_result thinking redacted_thinking container_upload "
    "search_result tool_reference compaction server_tool_use mcp_tool_use"
)
_CONVERSE_BLOCKS = _word_set(
    "text image document video audio toolUse toolResult reasoningContent cachePoint guardContent "
    "citationsContent searchResult"
)
_GEMINI_ROLES = _word_set("user model function")
_GEMINI_PARTS = _word_set(
    "text inlineData inline_data fileData file_data functionCall function_call functionResponse "
    "function_response executableCode executable_code codeExecutionResult code_execution_result "
    "toolCall tool_call toolResponse tool_response thoughtSignature thought_signature"
)
_GEMINI_EXTRAS = _word_set(
    "thought videoMetadata video_metadata mediaResolution media_resolution partMetadata part_metadata"
)
_RESPONSES_PARTS = _word_set(
    "text input_text output_text input_image input_file input_audio refusal summary_text"
)
_RESPONSES_ROLES = _word_set("system developer user assistant")
_ITEMS = _word_set(
    "reasoning item_reference function_call function_call_output custom_tool_call "
    "custom_tool_call_output computer_call computer_call_output local_shell_call "
    "local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output "
    "web_search_call file_search_call code_interpreter_call image_generation_call tool_search_call "
    "tool_search_call_output tool_search_output mcp_call mcp_list_tools mcp_approval_request "
    "mcp_approval_response compaction compaction_summary compaction_trigger configuration_update "
    "additional_tools"
)


def first_misfit(family: Family, messages: Sequence[object]) -> int | None:
    """Return the position of the first message that does not fit `family`, or None if all messages fit."""
    is_fit = FITS[family]
    return next(
        (at for at, message in enumerate(messages) if not is_fit(as_object(as_plain_data(message)))), None
    )


def has_only_text(message: Fields) -> bool:
    """Return True if a message contains only a role and text, which means the same in every format."""
    if not message.keys() <= _CHAT_KEYS or "role" not in message:
        return False
    content = message.get("content")
    return isinstance(content, str) or (_have_types(content, frozenset({"text"})) and bool(content))


def _is_chat_message(message: Fields) -> bool:
    calls, content = message.get("tool_calls"), message.get("content")
    if as_string(message.get("role")) not in _CHAT_ROLES or "parts" in message:
        return False
    if calls is not None and not (is_array(calls) and all(map(_is_chat_call, calls))):
        return False
    if message.get("role") == "tool":  # results may have content of any type
        return "content" in message and all(_has_type(part, _CHAT_PARTS | {""}) for part in as_array(content))
    has_content = isinstance(content, str) or _have_types(content, _CHAT_PARTS)
    return has_content or (content is None and message.get("role") == "assistant" and len(message) > 1)


def _is_chat_call(value: object) -> bool:
    call = as_object(as_plain_data(value))
    if isinstance(call.get("function"), dict) or isinstance(call.get("custom"), dict):
        return True
    return bool(as_string(call.get("name"))) and ("arguments" in call or "input" in call)


def _is_anthropic_message(message: Fields) -> bool:
    content = message.get("content")
    if as_string(message.get("role")) not in _ANTHROPIC_ROLES or message.keys() & {
        "tool_calls",
        "tool_call_id",
        "parts",
    }:
        return False
    if isinstance(content, str):
        return True
    return is_array(content) and all(map(_is_anthropic_block, content))


def _is_anthropic_block(value: object) -> bool:
    kind = as_string(as_object(as_plain_data(value)).get("type"))
    return kind in _ANTHROPIC_BLOCKS or kind.endswith("_tool_result")


def _is_converse_message(message: Fields) -> bool:
    content = message.get("content")
    if message.get("role") not in ("user", "assistant") or not is_array(content):
        return False
    return all(_has_keys(block, _CONVERSE_BLOCKS) for block in content)


def _is_gemini_message(message: Fields) -> bool:
    parts = message.get("parts")
    if as_string(message.get("role")) not in _GEMINI_ROLES or "content" in message or not is_array(parts):
        return False
    return all(_has_keys(part, _GEMINI_PARTS, _GEMINI_EXTRAS) for part in parts)


def _has_keys(value: object, kind_keys: frozenset[str], extra_keys: frozenset[str] = frozenset()) -> bool:
    part = as_object(as_plain_data(value))
    return bool(part.keys() & kind_keys) and part.keys() <= kind_keys | extra_keys


def _is_responses_item(item: Fields) -> bool:
    kind, content = item.get("type", "message"), item.get("content")
    if as_string(kind) in _ITEMS:
        return "role" not in item
    if kind != "message" or as_string(item.get("role")) not in _RESPONSES_ROLES or "tool_calls" in item:
        return False
    return isinstance(content, str) or _have_types(content, _RESPONSES_PARTS)


def _have_types(content: object, types: frozenset[str]) -> bool:
    return is_array(content) and all(_has_type(part, types) for part in content)


def _has_type(value: object, types: frozenset[str]) -> bool:
    part = as_plain_data(value)
    if isinstance(part, str):
        return True
    return as_string(as_object(part).get("type")) in types


FITS: Final[Mapping[Family, Callable[[Fields], bool]]] = {
    "openai_chat": _is_chat_message,
    "anthropic": _is_anthropic_message,
    "responses": _is_responses_item,
    "gemini": _is_gemini_message,
    "converse": _is_converse_message,
}
