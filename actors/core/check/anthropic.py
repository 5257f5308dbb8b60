"""Judge Anthropic Messages, block by block.

The provider merges adjacent messages of one role, and stricter copies reject them. They are one fault here, and are
then read as merged, so that one mistake causes one fault.
"""

import re
from collections.abc import Callable
from typing import Any

from actors.core.check.state import Turns, excerpt, inside, kind_of, shape
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
"""The accepted versions in a body, by the route of a request whose path names the model."""
_HOSTED = (_TOP.keys() - {"model"}) | {"anthropic_version", "anthropic_beta"}
_KEYS = {"messages": _TOP.keys(), "raw_predict": _HOSTED, "invoke_model": _HOSTED - {"stream"}}
"""The keys of a request, by its route."""
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
"""Blocks of the provider that are neither a call nor a result."""
_AHEAD = frozenset({"compaction", "mcp_tool_listing", "fallback"})
"""Blocks that the provider may put at the beginning of an answer, before thinking."""
_CLIENTS = frozenset({"container_upload"})
"""Blocks of the provider in a user message."""
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


class Anthropic(Turns):
    """The judge of the family `anthropic`.

    Attributes:
        thinks: Whether the last message begins with thinking.
        dangles: Whether it ends in thinking.
        ragged: Whether it ends in a text that ends in whitespace.
        loop: Whether the message that opened the current tool loop begins with thinking; None before its first block.
        server: The ids of server tool calls without a result.
        moving: The cache mark of the complete request, which applies to its last block, after all other marks.
        ahead: The number of provider blocks at the beginning of the last message.
        pausable: Whether the last message uses the provider's tools, so that the provider may have paused it.
        instructed: Whether the last message is a system message.
    """

    may_end_empty = True

    thinks: bool = False
    dangles: bool = False
    ragged: bool = False
    pausable: bool = False
    instructed: bool = False
    ahead: int = 0
    loop: bool | None = None
    server: frozenset[str] = frozenset()
    moving: JsonValue = None
    blocks: int
    mixed: bool
    split: bool
    answered: dict[str, None]

    def begin(self, role: str) -> None:
        if role == "assistant":
            if self.due and self.role == "user":
                self.fault_unanswered("in the next message")
            elif self.due:
                ids, where = tuple(self.due), f"messages[{self.count}]"
                what = f"a user message with results of {', '.join(map(excerpt, ids))} is missing here"
                self.fault("ANT-04", where, what, *ids)
            if self.mixed or not self.answered:
                self.loop = None
            if self.role == "user":
                self.pausable = False
            if self.answered:
                self.answered = {}
        elif self.role == "user":
            self.split = bool(self.due)
        else:
            if self.dangles:
                self.fault("ANT-52", self.here, "the message ends in thinking")
            self.mixed = self.split = False
        if self.instructed and role != "assistant":
            self.fault("ALL-02 role", self.here, "a system message is not followed by an assistant message")
        self.thinks = self.ragged = self.dangles = self.instructed = False
        self.ahead = 0

    def finish(self, *, manual_thinking: bool) -> None:
        if self.moving is not None:
            self.check_mark(self.moving, "request")
        self.ragged = self.ragged and not self.pausable
        super().finish(manual_thinking=manual_thinking)
        if self.ragged and self.role == "assistant":
            self.fault("ANT-23", self.here, "the final assistant message ends in whitespace")
        if manual_thinking and self.role == "user" and self.answered and not self.loop:
            what = "the message that opened this tool loop does not begin with thinking"
            self.fault("ANT-40", self.here, what)

    def content(self, content: JsonValue) -> None:
        if type(content) is str:
            content = [{"type": "text", "text": content}] if content else []
        if type(content) is not list:
            return super().content(content)
        checks = _CHECKS[str(self.role)]
        for block in content:
            self.dangles = self.ragged = False
            try:
                reader = checks[block["type"]]  # type: ignore[call-overload,index]  # such errors are caught below
            except (KeyError, IndexError, TypeError):
                reader = Anthropic._judge_other_block
            reader(self, block)
            if self.loop is None and self.blocks == self.ahead and self.role == "assistant":
                self.loop = self.dangles
            self.blocks += 1
        return None

    def read_other_role(self, message: dict[str, JsonValue], role: JsonValue) -> bool:
        """Judge a system message between turns, after a user message or a provider's tool (ANT-S07)."""
        if role != "system":
            return False
        self.allow_only(self.here, message, _SYSTEM)
        if self.due or self.instructed or not (self.role == "user" or self.pausable):
            self.fault(
                "ALL-02 role", self.here, "a system message stands where no user message came before it"
            )
        self.instructed = True
        content = message.get("content")
        for where, block in self.each(content, self.here, "blocks") if type(content) is list else ():
            if inside(block, "type") not in _SYSTEM_BLOCKS:
                self.fault(
                    "ALL-08", where, f"a block of type {excerpt(inside(block, 'type'))} in a system message"
                )
        return True

    def is_paused(self) -> bool:
        """Return True if the provider may have paused the last message, so that another may continue it."""
        return self.pausable and self.role == "assistant"

    def continues_turn(self, role: str) -> bool:
        return self.is_paused()

    def _with_defaults(self, block: dict[str, JsonValue], kind: str, where: str = "") -> dict[str, JsonValue]:
        """Judge the keys and the cache mark of a block, and return it with its defaults."""
        self.allow_only(where, block, _BLOCKS[kind])
        if (mark := block.get("cache_control")) is not None:
            self.check_mark(mark, where)
        return _BLOCKS[kind] | block

    def _note_other_block(self) -> None:
        """Record a block that is neither a result, nor a call, nor thinking."""
        if self.server and self.role == "user":
            pending = ", ".join(map(excerpt, sorted(self.server)))
            self.fault("ANT-10", "", f"only results here: server tool {pending} is pending")
        self.mixed = True

    def _text(self, block: dict[str, JsonValue]) -> None:
        text = block["text"] if "text" in block else None
        self.ragged = type(text) is str and text[-1:].isspace()
        if len(block) != 2 or self.ragged or not text or type(text) is not str:
            self._check_text(block, "")
        if self.server:
            self._note_other_block()
        self.mixed = True

    def _check_text(self, block: dict[str, JsonValue], where: str) -> None:
        text = self._with_defaults(block, "text", where)["text"]
        if type(text) is not str:
            self.reject("text is a string", where, text)
        elif not text:
            self.fault("ANT-20", where, "the text block is empty")
            if "cache_control" in block:
                self.fault("ANT-33", where, "an empty text block carries cache_control")
        elif text.isspace():
            self.fault("ANT-21", where, "the text block is only whitespace")

    def _thinking(self, block: dict[str, JsonValue]) -> None:
        kind, text, data = str(block["type"]), block.get("thinking"), block.get("data")
        rules = self.dialect.reasoning
        if "cache_control" in block:
            self.fault("ANT-34", "", "a thinking block carries cache_control")
        self.allow_only("", block, _BLOCKS[kind])
        if kind == "thinking":
            if type(text) is not str:
                self.reject("thinking is a string", "", text)
            signature = block.get("signature")
            if type(signature) is not str or not (signature or rules.required == "with_calls"):
                self.fault("ANT-43", "", f"the thinking block has no signature ({excerpt(signature)})")
        elif type(data) is not str or not data:
            self.fault("ALL-02", "", f"data is a string with content, not {excerpt(data)}")
        if self.blocks == self.ahead:
            self.thinks = True
        elif not self.thinks and rules.first:
            self.fault("ANT-39", "", "thinking in a message that does not begin with it")
        if rules.carrier == "none":
            self.fault("ALL-08", "", "this dialect carries no thinking")
        self.dangles = True

    def _tool_use(self, block: dict[str, JsonValue]) -> None:
        if len(block) != 4 or not ("id" in block and "name" in block and "input" in block):
            block = self._with_defaults(block, "tool_use")
        if type(block["input"]) is not dict:
            self.fault("ALL-06", ".input", f"arguments are an object, not {kind_of(block['input'])}")
        if not self.thinks and self.dialect.reasoning.required == "with_calls":
            self.fault("ALL-02", "", "a tool call in a message that does not begin with thinking")
        name = block["name"]
        if type(name) is not str or not self.is_name(name):
            self.check_tool_name(name)
        self.open_call(block["id"])

    def _result(self, block: dict[str, JsonValue]) -> None:
        if len(block) != 1 + ("tool_use_id" in block) + ("content" in block) + ("is_error" in block):
            self._with_defaults(block, "tool_result")
        call_id = block["tool_use_id"] if "tool_use_id" in block else None
        content = block["content"] if "content" in block else ""
        failed = block["is_error"] if "is_error" in block else False
        if type(failed) is not bool:
            self.reject("is_error is a boolean", "", failed)
        if type(content) is not str:
            self._result_content(content, failed=failed is True)
        elif failed is True and not content.strip():
            self.fault("ANT-53", "", "the result of a failed tool is blank")
        if type(call_id) is str and call_id in self.due and not (self.mixed or self.split):
            del self.due[call_id]  # as `answer` does, but without a function call per result
            self.answered[call_id] = None
        else:
            self.answer(call_id, "tool_use_id")

    def _result_content(self, content: JsonValue, *, failed: bool) -> None:
        if type(content) is not list:
            return self.reject("a string or a list of blocks", ".content", content)
        where = f"{self.at}.content"
        if not content:
            self.fault("ANT-29", where, "the list is empty")
        for part in content:
            kind = part.get("type") if type(part) is dict else None
            if failed and kind != "text":
                self.fault("ANT-51", where, f"a block of type {excerpt(kind)} in the result of a failed tool")
            if type(part) is dict and kind == "text":
                self._check_text(part, where)
            elif type(part) is dict and (kind == "image" or kind == "document"):
                self._media(part, str(kind), self.dialect.media.result_kinds)
            elif kind not in ("search_result", "tool_reference", "browser_state"):
                self.fault("ALL-08", where, f"a block of type {excerpt(kind)} in a tool_result")
        return None

    def _judge_other_block(self, block: JsonValue) -> None:
        kind = block.get("type") if type(block) is dict else None
        if type(block) is not dict:
            self.reject("a block is an object", "", block)
        elif self.role == "user" and kind in ("image", "document", "search_result"):
            if kind == "search_result":
                self._with_defaults(block, kind)
            else:
                self._media(block, str(kind), self.dialect.media.user_kinds)
            self._note_other_block()
        elif self.role == "assistant" and type(kind) is str and kind in _SERVER_IDS:
            self.pausable = True
            call_id = block.get("id")
            if type(call_id) is str and _SERVER_IDS[kind].fullmatch(call_id):
                self.use_id(call_id)
                self.server |= {call_id}
            else:
                self.fault(
                    "ALL-03", ".id", f"server tool id {excerpt(call_id)} is not in the required format"
                )
        elif self.role == "assistant" and type(kind) is str and kind.endswith("_tool_result"):
            call_id = block.get("tool_use_id")
            if type(call_id) is str and call_id in self.server:
                self.server -= {call_id}
            else:
                what = f"a server tool result for {excerpt(call_id)}, which is not pending"
                self.fault("ANT-11", "", what)
        elif type(kind) is str and kind in (_PROVIDERS if self.role == "assistant" else _CLIENTS):
            self.allow_only("", block, _PROVIDERS[kind])
            if (mark := block.get("cache_control")) is not None:
                self.check_mark(mark)
            self.ahead += kind in _AHEAD and self.blocks == self.ahead
        else:
            self.fault("ALL-08", "", f"a block of type {excerpt(kind)} in a message of role {self.role}")

    def _media(self, block: dict[str, JsonValue], kind: str, held: frozenset[str]) -> None:
        if kind not in held:
            return self.fault("ALL-10", "", f"{kind} is not accepted here")
        self.count_attachment(kind)
        source = self._with_defaults(block, kind)["source"]
        carrier = source.get("type") if type(source) is dict else None
        if type(source) is not dict or type(carrier) is not str or carrier not in _SOURCE:
            return self.fault("ALL-02", ".source", f"a source of type {excerpt(carrier)}")
        data, media_type = source.get("data"), source.get("media_type")
        self.allow_only(".source", source, _SOURCE[carrier])
        if carrier == "base64" and (type(data) is not str or not data):
            self.fault("ALL-02", ".source", "data is a base64 string with content")
        elif carrier == "base64" and (
            type(media_type) is not str or media_type not in self.dialect.media.types
        ):
            self.fault("ALL-10", ".source", f"media of type {excerpt(media_type)}")
        elif kind == "image" and type(data) is str and len(data) > _IMAGE_BYTES:
            self.fault("ANT-30", "", f"an image of {len(data)} bytes as base64, at most {_IMAGE_BYTES}")
        elif kind == "image":
            self.check_image(data, media_type)
        return None

    def _check_route(self, body: dict[str, JsonValue]) -> None:
        """Judge the parts that depend on the route of the request: its keys, model and version."""
        assert isinstance(self.dialect, AnthropicDialect)
        route = self.dialect.request.route
        self.allow_only("request", body, _KEYS[route])
        if route == "messages":
            self.check_model(body.get("model"))
        elif (version := body.get("anthropic_version")) not in _VERSIONS[route]:
            self.fault(
                "ANT-60", "anthropic_version", f"{excerpt(version)} where {_VERSIONS[route][0]} belongs"
            )

    def parameters(self, body: dict[str, JsonValue]) -> None:
        self._check_route(body)
        limit, budget = body.get("max_tokens"), inside(body, "thinking", "budget_tokens")
        self.check_limit(limit, "max_tokens")
        self.moving = body.get("cache_control")
        manual = inside(body, "thinking", "type") == "enabled"
        if manual and (
            type(budget) is not int or budget < _MIN_BUDGET or (type(limit) is int and budget >= limit)
        ):
            what = f"a whole number from {_MIN_BUDGET}, below max_tokens, not {excerpt(budget)}"
            self.fault("ALL-02", "thinking.budget_tokens", what)
        if (tools := body.get("tools")) is not None:
            self._tools(tools)
        if (choice := body.get("tool_choice")) is not None:
            self._choice(choice, manual=manual, has_tools=bool(tools or body.get("mcp_servers")))
        system: JsonValue = body.get("system")
        if type(system) is str or system is None:
            system = [{"type": "text", "text": system}] if system else []
        for _, block in self.each(system, "system", "text blocks"):
            if type(block) is dict and block.get("type") == "text":
                self._check_text(block, "system")
            else:
                self.fault("ALL-02", "system", "only text blocks are allowed here")

    def _choice(self, choice: JsonValue, *, manual: bool, has_tools: bool) -> None:
        kind = inside(choice, "type")
        if kind not in ("auto", "any", "tool", "none"):
            self.fault("ALL-02", "tool_choice", f"a choice of type {excerpt(kind)}")
        elif not has_tools:
            self.fault("ALL-14", "tool_choice", "given without tools")
        elif kind == "tool":
            self.check_choice(inside(choice, "name"), "tool_choice")
        if manual and kind in ("any", "tool"):
            self.fault("ANT-48", "tool_choice", "a tool is forced while manual thinking is on")

    def _tools(self, tools: JsonValue) -> None:
        for where, tool in self.each(tools, "tools", "tools"):
            if type(tool) is not dict:
                self.reject("a tool is an object", where, tool)
                continue
            # other tools are the provider's, with different keys
            own = tool.get("type") in (None, "custom")
            if own:
                self.allow_only(where, tool, _TOOL)
            if (mark := tool.get("cache_control")) is not None:
                self.check_mark(mark, where)
            if own or "name" in tool:
                self.declare_tool(tool.get("name"), where)
            if own:
                self.check_schema(tool.get("input_schema"), f"{where}.input_schema")


# Any: an object, except in the reader of unknown kinds
_CHECKS: dict[str, dict[str, Callable[[Anthropic, Any], None]]] = {
    "assistant": {
        "text": Anthropic._text,
        "thinking": Anthropic._thinking,
        "redacted_thinking": Anthropic._thinking,
        "tool_use": Anthropic._tool_use,
    },
    "user": {"text": Anthropic._text, "tool_result": Anthropic._result},
}
