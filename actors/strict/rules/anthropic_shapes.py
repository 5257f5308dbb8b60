"""Define the parameters, content blocks and tools of Anthropic Messages as tables, and the shape checks that use them.

The tables contain the stable API and its betas. The strict server accepts parameters and tools of a beta even if the
request does not enable the beta. A test compares the tables with the types of the vendor's SDK.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.base import Json, RuleBroken
from actors.strict.rules.shapes import Fields, Maybe, Shape, ShapeChecker, Tagged, Word

COUNTED_KEYS = frozenset(
    """billing_policy cache_control compaction context_management mcp_servers messages model output_config
    output_format speed system thinking tool_choice tools user_profile_id workspace_id""".split()  # noqa: SIM905  a list fills a page
)
"""The keys that a request for a token count may have."""
OUTPUT_KEYS = frozenset(
    """container diagnostics fallback_credit_token fallbacks inference_geo max_tokens metadata service_tier
    stop_sequences stream temperature thread top_k top_p""".split()  # noqa: SIM905  a list fills a page
)
"""The keys that a request for an answer may have, in addition to `COUNTED_KEYS`."""

_USER = frozenset({"user"})
_ASSISTANT = frozenset({"assistant"})
_BOTH = _USER | _ASSISTANT


@dataclass(frozen=True, slots=True)
class BlockShape:
    """The required and optional keys of one type of content block.

    Args:
        required: The required keys with their JSON types, without `type`.
        optional: The optional keys.
        roles: The roles of messages that may contain the block.
    """

    required: Mapping[str, type]
    optional: frozenset[str] = frozenset({"cache_control"})
    roles: frozenset[str] = _BOTH

    @property
    def keys(self) -> frozenset[str]:
        """All keys that the block may have."""
        return self.optional | self.required.keys() | {"type"}


def _optional_keys(names: str) -> frozenset[str]:
    return frozenset({"cache_control", *names.split()})


_CALL = {"id": str, "name": str, "input": dict}
_RESULT = BlockShape({"tool_use_id": str}, _optional_keys("content is_error caller"), _ASSISTANT)

SERVER_CALLS: Mapping[str, tuple[str, ...]] = {
    "server_tool_use": (
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
    ),
    "mcp_tool_use": ("mcp_tool_result",),
}
"""The types of calls that the provider runs, each with the types of the blocks that answer the call."""
SERVER_RESULTS: Mapping[str, str] = {
    result: call for call, results in SERVER_CALLS.items() for result in results
}
"""The type of call that each type of result answers."""

BLOCKS: Mapping[str, BlockShape] = {
    "text": BlockShape({"text": str}, _optional_keys("citations"), _BOTH | {"system"}),
    "image": BlockShape({"source": dict}, _optional_keys("transformations"), _USER),
    "document": BlockShape({"source": dict}, _optional_keys("title context citations")),
    "search_result": BlockShape(
        {"source": str, "title": str, "content": list}, _optional_keys("citations"), _USER
    ),
    "thinking": BlockShape({"thinking": str, "signature": str}, frozenset(), _ASSISTANT),
    "redacted_thinking": BlockShape({"data": str}, frozenset(), _ASSISTANT),
    "tool_use": BlockShape(_CALL, _optional_keys("caller toolset_name"), _ASSISTANT),
    "tool_result": BlockShape({"tool_use_id": str}, _optional_keys("content is_error toolset_name"), _USER),
    "server_tool_use": BlockShape(_CALL, _optional_keys("caller"), _ASSISTANT),
    "mcp_tool_use": BlockShape({**_CALL, "server_name": str}, _optional_keys(""), _ASSISTANT),
    **dict.fromkeys(SERVER_RESULTS, _RESULT),
    "container_upload": BlockShape({"file_id": str}),
    "compaction": BlockShape({}, _optional_keys("content encrypted_content signature tool_changes")),
    "tool_addition": BlockShape({"tool": dict}, roles=_USER | {"system"}),
    "tool_removal": BlockShape({"tool": dict}, roles=_USER | {"system"}),
    "mcp_tool_listing": BlockShape({"mcp_server_name": str, "tools": list}, frozenset()),
    "fallback": BlockShape({"from": dict, "to": dict}, frozenset({"trigger"}), _ASSISTANT),
    "tool_reference": BlockShape({"tool_name": str}, roles=frozenset({"tool_result"})),
    "browser_state": BlockShape({"tabs": list}, _optional_keys("state_changes"), frozenset({"tool_result"})),
}
"""The content blocks, by type. A block with the role `tool_result` may occur only inside a tool result."""
IN_RESULT = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
"""The types of content blocks that a tool result may contain."""
AHEAD = frozenset({"compaction", "fallback", "mcp_tool_listing"})
"""The types of blocks that the provider may put at the beginning of an answer, before thinking (ANT-39, ANT-40)."""

MESSAGE_KEYS: Mapping[str, frozenset[str]] = {
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content"}),
    "system": frozenset({"role", "content", "clear_at", "output_config"}),
}

CUSTOM_TOOL_KEYS = frozenset(
    """type name description input_schema cache_control strict defer_loading allowed_callers input_examples
    eager_input_streaming""".split()  # noqa: SIM905  a list fills a page
)
TOOLSETS: Mapping[str, str | None] = {
    "mcp_toolset": "mcp_server_name",
    "browser_toolset_20260801": None,
    "computer_toolset_20260801": None,
}
"""The types of toolsets, which represent several tools and have no name, with their required key, if any."""
_UNDATED = ("tool_search_tool_bm25", "tool_search_tool_regex")
_DATED = re.compile(
    r"(?:bash|code_execution|memory|computer|text_editor|web_search|web_fetch|advisor|browser_toolset|computer_toolset"
    r"|tool_search_tool_bm25|tool_search_tool_regex)_20\d{6}"
)


_TYPE_NAMES = {str: "string", int: "integer", bool: "boolean", list: "list", dict: "dictionary"}


class MessagesShapeChecker(ShapeChecker):
    """The shape checks with Anthropic's paths and error messages. The path of a block contains its type."""

    def item_path(self, path: str, index: int) -> str:
        return f"{path}.{index}"

    def tagged_path(self, path: str, tag: str) -> str:
        return f"{path}.{tag}"

    def wrong_type_refusal(self, path: str, expected_type: type, value: Json) -> RuleBroken:
        return RULES["ANT-S02"].refuse(path=path, kind=_TYPE_NAMES[expected_type])

    def wrong_word_refusal(self, path: str, value: Json, shape: Word) -> RuleBroken:
        return RULES["ANT-S03"].refuse(path=path, values=" or ".join(map(repr, shape.values)))

    def wrong_tag_refusal(self, path: str, value: Json, shape: Tagged) -> RuleBroken:
        return RULES["ANT-S04"].refuse(path=path, tag=value, tags=", ".join(map(repr, shape.listed)))

    def missing_key_refusal(self, path: str, key: str) -> RuleBroken:
        return RULES["ANT-S01"].refuse(path=self.key_path(path, key))

    def unknown_key_refusal(self, path: str, key: str) -> RuleBroken:
        return RULES["ANT-28"].refuse(path=self.key_path(path, key))


WALK = MessagesShapeChecker()


def optional_fields(names: str, **shapes: Shape | Maybe) -> dict[str, Shape | Maybe]:
    """Return the fields in `shapes`, followed by an optional field of any type for each word in `names`."""
    return {**shapes, **dict.fromkeys(names.split(), Maybe(object))}


_MARK = Fields({"type": Word("ephemeral"), "ttl": Maybe(Word("5m", "1h"))})


def check_cache_mark(value: Mapping[str, Json], path: str) -> None:
    """Refuse an invalid `cache_control` in a block or tool."""
    if value.get("cache_control") is not None:
        WALK.check(value["cache_control"], _MARK, WALK.key_path(path, "cache_control"))


def is_provider_tool(kind: str) -> bool:
    """Return True if `kind` is the type of a provider-defined tool, in any version."""
    return kind in TOOLSETS or kind in _UNDATED or _DATED.fullmatch(kind) is not None
