"""Check the messages and fields of Anthropic Messages requests, block by block.

The provider merges adjacent messages with the same role, but some compatible hosts reject such messages. This module
reports the second message as a fault, and then treats both as one message, so that one mistake causes only one fault.
"""

import re
from collections.abc import Callable
from typing import Any

from actors.core.check.json_values import excerpt, kind_of, shape, value_at
from actors.core.check.usual_blocks import UsualBlocksState
from actors.core.data.jsonio import JsonValue
from actors.core.dialects.dialect import AnthropicDialect

_TOP = shape(
    """billing_policy cache_control compaction container context_management diagnostics fallback_credit_token fallbacks
    inference_geo max_tokens mcp_servers messages metadata model output_config output_format service_tier speed
    stop_sequences stream system temperature thinking thread tool_choice tools top_k top_p user_profile_id
    workspace_id"""
)
_VERSIONS = {
    "raw_predict": ("vertex-2023-10-16", "2026-10-21"),
    "invoke_model": ("bedrock-2023-05-31", "2026-10-21"),
}
"""The accepted values of `anthropic_version` in a body, by route. These routes name the model in the URL path."""
_HOSTED = (_TOP.keys() - {"model"}) | {"anthropic_version", "anthropic_beta"}
_KEYS = {"messages": _TOP.keys(), "raw_predict": _HOSTED, "invoke_model": _HOSTED - {"stream"}}
"""The accepted keys of a request, by route."""
_TOOL = shape(
    """name description input_schema type cache_control strict defer_loading allowed_callers
    eager_input_streaming input_examples"""
)
_BLOCKS = {
    "text": shape("type text cache_control citations"),
    "thinking": shape("type thinking signature cache_control"),
    "redacted_thinking": shape("type data cache_control"),
    "tool_use": shape("type id name input cache_control caller toolset_name"),
    "tool_result": shape("type tool_use_id content is_error cache_control toolset_name"),
    "image": shape("type source cache_control transformations"),
    "document": shape("type source cache_control citations context title"),
    "search_result": shape("type source title content citations cache_control"),
}
_PROVIDERS = {
    "container_upload": shape("type file_id cache_control"),
    "compaction": shape("type content encrypted_content signature tool_changes cache_control"),
    "mcp_tool_listing": shape("type mcp_server_name tools"),
    "fallback": shape("type from to trigger"),
}
"""The keys of provider-specific blocks that are neither a call nor a result, by type."""
_AHEAD = frozenset({"compaction", "mcp_tool_listing", "fallback"})
"""Types of blocks that the provider may put at the beginning of an answer, before thinking."""
_CLIENTS = frozenset({"container_upload"})
"""Types of provider-specific blocks that a user message may contain."""
_SYSTEM_BLOCKS = frozenset({"text", "tool_addition", "tool_removal"})
_SYSTEM = shape("role content clear_at output_config")
_SOURCE = {
    "base64": shape("type media_type data"),
    "url": shape("type url"),
    "text": shape("type media_type data"),
    "content": shape("type content"),
    "file": shape("type file_id"),
}
_IMAGE_BYTES = 5 * 1024 * 1024
_MIN_BUDGET = 1024
_SERVER_IDS = {
    "server_tool_use": re.compile(r"srvtoolu_[a-zA-Z0-9_]+"),
    "mcp_tool_use": re.compile(r"mcptoolu_[a-zA-Z0-9_]+"),
}


class Anthropic(UsualBlocksState):
    """The check state of the family `anthropic`.

    Attributes:
        request_mark: The cache mark of the complete request. It applies to the last block of the request.
        is_pausable: Whether the last message uses the provider's tools, so that the provider may have paused the
            answer.
        ends_with_system: Whether the last message is a system message.
    """

    may_end_empty = True

    begins_with_thinking: bool
    ends_with_thinking: bool
    ends_with_whitespace: bool
    is_pausable: bool = False
    ends_with_system: bool = False
    leading_block_count: int
    loop_thinks: bool | None
    pending_server_calls: frozenset[str]
    request_mark: JsonValue = None
    block_count: int
    has_other_blocks: bool
    follows_unanswered: bool
    answered_calls: dict[str, None]

    def begin_message(self, role: str) -> None:
        if role == "assistant":
            if self.open_calls and self.role == "user":
                self.report_unanswered("in the next message")
            elif self.open_calls:
                ids, path = tuple(self.open_calls), f"messages[{self.message_count}]"
                what = f"a user message with results of {', '.join(map(excerpt, ids))} is missing here"
                self.fault("ANT-04", path, what, *ids)
            if self.has_other_blocks or not self.answered_calls:
                self.loop_thinks = None
            if self.role == "user":
                self.is_pausable = False
            if self.answered_calls:
                self.answered_calls = {}
        elif self.role == "user":
            self.follows_unanswered = bool(self.open_calls)
        else:
            if self.ends_with_thinking:
                self.fault("ANT-52", self.message_path, "the message must not end with thinking")
            self.has_other_blocks = self.follows_unanswered = False
        if self.ends_with_system and role != "assistant":
            self.fault(
                "ALL-02 role", self.message_path, "a system message must be followed by an assistant message"
            )
        self.begins_with_thinking = self.ends_with_whitespace = self.ends_with_thinking = (
            self.ends_with_system
        ) = False
        self.leading_block_count = 0

    def check_end(self, *, manual_thinking: bool) -> None:
        if self.request_mark is not None:
            self.check_mark(self.request_mark, "request")
        self.ends_with_whitespace = self.ends_with_whitespace and not self.is_pausable
        super().check_end(manual_thinking=manual_thinking)
        if self.ends_with_whitespace and self.role == "assistant":
            self.fault("ANT-23", self.message_path, "the final assistant message must not end in whitespace")
        if manual_thinking and self.role == "user" and self.answered_calls and not self.loop_thinks:
            what = "the message that opened this tool loop does not begin with thinking"
            self.fault("ANT-40", self.message_path, what)

    def check_content(self, content: JsonValue) -> None:
        if type(content) is str:
            content = [{"type": "text", "text": content}] if content else []
        if type(content) is not list:
            return super().check_content(content)
        checks = _CHECKS[str(self.role)]
        for block in content:
            self.ends_with_thinking = self.ends_with_whitespace = False
            try:
                reader = checks[block["type"]]  # type: ignore[call-overload,index]  # these errors are caught below
            except (KeyError, IndexError, TypeError):
                reader = Anthropic._check_other_block
            reader(self, block)
            if (
                self.loop_thinks is None
                and self.block_count == self.leading_block_count
                and self.role == "assistant"
            ):
                self.loop_thinks = self.ends_with_thinking
            self.block_count += 1
        return None

    def read_other_role(self, message: dict[str, JsonValue], role: JsonValue) -> bool:
        """Check a system message between turns. It must follow a user message or a call of a provider's tool (ANT-S07).

        Return False for any other role.
        """
        if role != "system":
            return False
        self.allow_only(self.message_path, message, _SYSTEM)
        if self.open_calls or self.ends_with_system or not (self.role == "user" or self.is_pausable):
            self.fault("ALL-02 role", self.message_path, "a system message must follow a user message")
        self.ends_with_system = True
        content = message.get("content")
        for path, block in (
            self.checked_items(content, self.message_path, "blocks") if type(content) is list else ()
        ):
            if value_at(block, "type") not in _SYSTEM_BLOCKS:
                self.fault(
                    "ALL-08", path, f"a block of type {excerpt(value_at(block, 'type'))} in a system message"
                )
        return True

    def is_paused(self) -> bool:
        """Return True if the provider may have paused the last message, so that another message may continue it."""
        return self.is_pausable and self.role == "assistant"

    def continues_turn(self, role: str) -> bool:
        return self.is_paused()

    def _with_defaults(self, block: dict[str, JsonValue], kind: str, path: str = "") -> dict[str, JsonValue]:
        """Check the keys and the cache mark of a block, and return the block with default values for missing keys."""
        self.allow_only(path, block, _BLOCKS[kind])
        if (mark := block.get("cache_control")) is not None:
            self.check_mark(mark, path)
        return _BLOCKS[kind] | block

    def _record_other_block(self) -> None:
        """Record a block other than a result, a call or thinking.

        In a user message, such a block is a fault while a server tool call is pending.
        """
        if self.pending_server_calls and self.role == "user":
            pending = ", ".join(map(excerpt, sorted(self.pending_server_calls)))
            self.fault("ANT-10", "", f"only results are allowed here while server tool {pending} is pending")
        self.has_other_blocks = True

    def _check_text_block(self, block: dict[str, JsonValue]) -> None:
        text = block["text"] if "text" in block else None
        self.ends_with_whitespace = type(text) is str and text[-1:].isspace()
        if len(block) != 2 or self.ends_with_whitespace or not text or type(text) is not str:
            self._check_text(block, "")
        if self.pending_server_calls:
            self._record_other_block()
        self.has_other_blocks = True

    def _check_text(self, block: dict[str, JsonValue], path: str) -> None:
        text = self._with_defaults(block, "text", path)["text"]
        if type(text) is not str:
            self.reject_type("text must be a string", path, text)
        elif not text:
            self.fault("ANT-20", path, "the text block is empty")
            if "cache_control" in block:
                self.fault("ANT-33", path, "an empty text block must not have cache_control")
        elif text.isspace():
            self.fault("ANT-21", path, "the text block is only whitespace")

    def _check_thinking(self, block: dict[str, JsonValue]) -> None:
        kind, text, data = str(block["type"]), block.get("thinking"), block.get("data")
        rules = self.dialect.reasoning
        if "cache_control" in block:
            self.fault("ANT-34", "", "a thinking block must not have cache_control")
        self.allow_only("", block, _BLOCKS[kind])
        if kind == "thinking":
            if type(text) is not str:
                self.reject_type("thinking must be a string", "", text)
            signature = block.get("signature")
            if type(signature) is not str or not (signature or rules.required == "with_calls"):
                self.fault("ANT-43", "", f"the thinking block has no signature ({excerpt(signature)})")
        elif type(data) is not str or not data:
            self.fault("ALL-02", "", f"data must be a non-empty string, not {excerpt(data)}")
        if self.block_count == self.leading_block_count:
            self.begins_with_thinking = True
        elif not self.begins_with_thinking and rules.must_be_first:
            self.fault("ANT-39", "", "a message with thinking must begin with thinking")
        if rules.carrier == "none":
            self.fault("ALL-08", "", "this dialect does not accept thinking")
        self.ends_with_thinking = True

    def _check_tool_use(self, block: dict[str, JsonValue]) -> None:
        if len(block) != 4 or not ("id" in block and "name" in block and "input" in block):
            block = self._with_defaults(block, "tool_use")
        if type(block["input"]) is not dict:
            self.fault("ALL-06", ".input", f"arguments must be an object, not {kind_of(block['input'])}")
        if not self.begins_with_thinking and self.dialect.reasoning.required == "with_calls":
            self.fault("ALL-02", "", "a message with tool calls must begin with thinking")
        name = block["name"]
        if type(name) is not str or not self.is_name(name):
            self.check_tool_name(name)
        self.open_call(block["id"])

    def _check_result(self, block: dict[str, JsonValue]) -> None:
        if len(block) != 1 + ("tool_use_id" in block) + ("content" in block) + ("is_error" in block):
            self._with_defaults(block, "tool_result")
        call_id = block["tool_use_id"] if "tool_use_id" in block else None
        content = block["content"] if "content" in block else ""
        failed = block["is_error"] if "is_error" in block else False
        if type(failed) is not bool:
            self.reject_type("is_error must be a boolean", "", failed)
        if type(content) is not str:
            self._check_result_content(content, failed=failed is True)
        elif failed is True and not content.strip():
            self.fault("ANT-53", "", "the result of a failed tool is blank")
        if (
            type(call_id) is str
            and call_id in self.open_calls
            and not (self.has_other_blocks or self.follows_unanswered)
        ):
            # the same as `close_call`, but without a function call per result, for speed
            del self.open_calls[call_id]
            self.answered_calls[call_id] = None
        else:
            self.close_call(call_id, "tool_use_id")

    def _check_result_content(self, content: JsonValue, *, failed: bool) -> None:
        if type(content) is not list:
            return self.reject_type("must be a string or a list of blocks", ".content", content)
        path = f"{self.block_path}.content"
        if not content:
            self.fault("ANT-29", path, "the list of blocks is empty")
        for part in content:
            kind = part.get("type") if type(part) is dict else None
            if failed and kind != "text":
                what = (
                    f"the result of a failed tool must contain only text, not a block of type {excerpt(kind)}"
                )
                self.fault("ANT-51", path, what)
            if type(part) is dict and kind == "text":
                self._check_text(part, path)
            elif type(part) is dict and (kind == "image" or kind == "document"):
                self._check_media(part, str(kind), self.dialect.media.result_kinds)
            elif kind not in ("search_result", "tool_reference", "browser_state"):
                self.fault("ALL-08", path, f"a tool_result must not contain a block of type {excerpt(kind)}")
        return None

    def _check_other_block(self, block: JsonValue) -> None:
        kind = block.get("type") if type(block) is dict else None
        if type(block) is not dict:
            self.reject_type("a block must be an object", "", block)
        elif self.role == "user" and kind in ("image", "document", "search_result"):
            if kind == "search_result":
                self._with_defaults(block, kind)
            else:
                self._check_media(block, str(kind), self.dialect.media.user_kinds)
            self._record_other_block()
        elif self.role == "assistant" and type(kind) is str and kind in _SERVER_IDS:
            self.is_pausable = True
            call_id = block.get("id")
            if type(call_id) is str and _SERVER_IDS[kind].fullmatch(call_id):
                self.use_id(call_id)
                self.pending_server_calls |= {call_id}
            else:
                self.fault(
                    "ALL-03", ".id", f"server tool id {excerpt(call_id)} is not in the required format"
                )
        elif self.role == "assistant" and type(kind) is str and kind.endswith("_tool_result"):
            call_id = block.get("tool_use_id")
            if type(call_id) is str and call_id in self.pending_server_calls:
                self.pending_server_calls -= {call_id}
            else:
                what = f"a server tool result for {excerpt(call_id)}, but no such server tool call is pending"
                self.fault("ANT-11", "", what)
        elif type(kind) is str and kind in (_PROVIDERS if self.role == "assistant" else _CLIENTS):
            self.allow_only("", block, _PROVIDERS[kind])
            if (mark := block.get("cache_control")) is not None:
                self.check_mark(mark)
            self.leading_block_count += kind in _AHEAD and self.block_count == self.leading_block_count
        else:
            what = f"a message of role {self.role} must not contain a block of type {excerpt(kind)}"
            self.fault("ALL-08", "", what)

    def _check_media(self, block: dict[str, JsonValue], kind: str, accepted: frozenset[str]) -> None:
        if kind not in accepted:
            return self.fault("ALL-10", "", f"{kind} is not accepted here")
        self.count_attachment(kind)
        source = self._with_defaults(block, kind)["source"]
        carrier = source.get("type") if type(source) is dict else None
        if type(source) is not dict or type(carrier) is not str or carrier not in _SOURCE:
            return self.fault("ALL-02", ".source", f"unknown source type {excerpt(carrier)}")
        data, media_type = source.get("data"), source.get("media_type")
        self.allow_only(".source", source, _SOURCE[carrier])
        if carrier == "base64" and (type(data) is not str or not data):
            self.fault("ALL-02", ".source", "data must be a non-empty base64 string")
        elif carrier == "base64" and (
            type(media_type) is not str or media_type not in self.dialect.media.types
        ):
            self.fault("ALL-10", ".source", f"media of type {excerpt(media_type)} is not accepted")
        elif kind == "image" and type(data) is str and len(data) > _IMAGE_BYTES:
            what = f"the image has {len(data)} bytes as base64, but at most {_IMAGE_BYTES} are allowed"
            self.fault("ANT-30", "", what)
        elif kind == "image":
            self.check_image(data, media_type)
        return None

    def _check_route_fields(self, body: dict[str, JsonValue]) -> None:
        """Check the fields that depend on the requested operation: the keys, the model and the version (ANT-60)."""
        assert isinstance(self.dialect, AnthropicDialect)
        route = self.dialect.request.route
        self.allow_only("request", body, _KEYS[route])
        if route == "messages":
            self.check_model(body.get("model"))
        elif (version := body.get("anthropic_version")) not in _VERSIONS[route]:
            self.fault(
                "ANT-60", "anthropic_version", f"must be {_VERSIONS[route][0]}, not {excerpt(version)}"
            )

    def check_parameters(self, body: dict[str, JsonValue]) -> None:
        self._check_route_fields(body)
        limit, budget = body.get("max_tokens"), value_at(body, "thinking", "budget_tokens")
        self.check_limit(limit, "max_tokens")
        self.request_mark = body.get("cache_control")
        manual = value_at(body, "thinking", "type") == "enabled"
        if manual and (
            type(budget) is not int or budget < _MIN_BUDGET or (type(limit) is int and budget >= limit)
        ):
            what = f"must be an integer from {_MIN_BUDGET} to below max_tokens, not {excerpt(budget)}"
            self.fault("ALL-02", "thinking.budget_tokens", what)
        if (tools := body.get("tools")) is not None:
            self._check_tools(tools)
        if (choice := body.get("tool_choice")) is not None:
            self._check_tool_choice(choice, manual=manual, has_tools=bool(tools or body.get("mcp_servers")))
        system: JsonValue = body.get("system")
        if type(system) is str or system is None:
            system = [{"type": "text", "text": system}] if system else []
        for _, block in self.checked_items(system, "system", "text blocks"):
            if type(block) is dict and block.get("type") == "text":
                self._check_text(block, "system")
            else:
                self.fault("ALL-02", "system", "only text blocks are allowed here")

    def _check_tool_choice(self, choice: JsonValue, *, manual: bool, has_tools: bool) -> None:
        kind = value_at(choice, "type")
        if kind not in ("auto", "any", "tool", "none"):
            self.fault("ALL-02", "tool_choice", f"unknown tool choice type {excerpt(kind)}")
        elif not has_tools:
            self.fault("ALL-14", "tool_choice", "must not be set without tools")
        elif kind == "tool":
            self.check_choice(value_at(choice, "name"), "tool_choice")
        if manual and kind in ("any", "tool"):
            self.fault("ANT-48", "tool_choice", "must not force a tool while manual thinking is on")

    def _check_tools(self, tools: JsonValue) -> None:
        for path, tool in self.checked_items(tools, "tools", "tools"):
            if type(tool) is not dict:
                self.reject_type("a tool must be an object", path, tool)
                continue
            # tools of other types run on the provider's servers and have different keys
            own = tool.get("type") in (None, "custom")
            if own:
                self.allow_only(path, tool, _TOOL)
            if (mark := tool.get("cache_control")) is not None:
                self.check_mark(mark, path)
            if own or "name" in tool:
                self.declare_tool(tool.get("name"), path)
            if own:
                self.check_schema(tool.get("input_schema"), f"{path}.input_schema")


# Any: most of these methods take an object, because they are chosen by the block's type
_CHECKS: dict[str, dict[str, Callable[[Anthropic, Any], None]]] = {
    "assistant": {
        "text": Anthropic._check_text_block,
        "thinking": Anthropic._check_thinking,
        "redacted_thinking": Anthropic._check_thinking,
        "tool_use": Anthropic._check_tool_use,
    },
    "user": {"text": Anthropic._check_text_block, "tool_result": Anthropic._check_result},
}
