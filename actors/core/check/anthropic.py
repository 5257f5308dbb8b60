"""What Anthropic Messages demands, block by block.

Neighbours of one role are merged by the provider and refused by stricter copies; they are a fault here, and after it
they are read as merged, so that one mistake is one fault.
"""

import re
from collections.abc import Callable
from typing import Any, ClassVar

from actors.core.check.anthropic_parameters import AnthropicParameters
from actors.core.check.words import excerpt, kind_of, listed
from actors.core.jsonio import JsonValue

_THINKING = {
    "thinking": frozenset({"type", "thinking", "signature", "cache_control"}),
    "redacted_thinking": frozenset({"type", "data", "cache_control"}),
}
_TOOL_USE = frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"})
_PLAIN_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})
_RESULT = _PLAIN_RESULT | {"cache_control", "toolset_name"}
_MEDIA = {
    "image": frozenset({"type", "source", "cache_control", "transformations"}),
    "document": frozenset({"type", "source", "cache_control", "citations", "context", "title"}),
}
_SOURCE = {
    "base64": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "text": frozenset({"type", "media_type", "data"}),
    "content": frozenset({"type", "content"}),
    "file": frozenset({"type", "file_id"}),
}
_SEARCH = frozenset({"type", "source", "title", "content", "citations", "cache_control"})
_IMAGE_BYTES = 5 * 1024 * 1024
_SERVER_IDS = {"server_tool_use": re.compile(r"srvtoolu_[a-zA-Z0-9_]+"),
               "mcp_tool_use": re.compile(r"mcptoolu_[a-zA-Z0-9_]+")}  # fmt: skip


class Anthropic(AnthropicParameters):
    """The judge of the family `anthropic`.

    Attributes:
        thinks: The last message begins with thinking.
        dangles: It ends in thinking.
        ragged: It ends in a text that ends in whitespace.
        split: The last user message follows another that left calls unanswered.
        loop: The message that opened the current tool loop begins with thinking; None before its first block.
        server: Ids of server tool calls without a result.
    """

    surrogates: ClassVar[str] = "ANT-31"
    may_end_empty: ClassVar[bool] = True

    thinks = dangles = ragged = split = False
    loop: bool | None = None
    server: frozenset[str] = frozenset()

    # --- messages -----------------------------------------------------------------------------------

    def begin(self, role: str) -> None:
        if role == "assistant":
            if self.due:
                self._overdue()
            if self.mixed or not self.answered:
                self.loop = None
            if self.answered:
                self.answered = set()
        elif self.role == "user":
            self.split = bool(self.due)
        else:
            if self.dangles:
                self.fault("ANT-52", self.here, "the message ends in thinking")
            self.mixed = self.split = False
        self.thinks = self.ragged = self.dangles = False

    def _overdue(self) -> None:
        """Judge calls that wait when the assistant speaks again."""
        if self.role == "user":
            return self.unanswered("in the next message")
        ids, where = tuple(self.due), f"messages[{self.count}]"
        return self.fault("ANT-04", where, f"a user message with results of {listed(ids)} belongs here", *ids)

    def finish(self, *, manual_thinking: bool) -> None:
        super().finish(manual_thinking=manual_thinking)
        if self.ragged and self.role == "assistant":
            self.fault("ANT-23", self.here, "the final assistant message ends in whitespace")
        if self.moving is not None:
            self.mark(self.moving, "request", "ephemeral", "cache_control")
        self.marked()
        if manual_thinking and self.role == "user" and self.answered and not self.loop:
            self.fault(
                "ANT-40", self.here, "the message that opened this tool loop does not begin with thinking"
            )

    # --- blocks -------------------------------------------------------------------------------------

    def content(self, content: JsonValue) -> None:
        if type(content) is str:
            content = [{"type": "text", "text": content}] if content else []
        if type(content) is not list:
            return super().content(content)
        checks = _CHECKS[str(self.role)]
        for block in content:
            self.dangles = self.ragged = False
            try:
                reader = checks[block["type"]]  # type: ignore[call-overload,index]  # what is raised then is seen to
            except (KeyError, IndexError, TypeError):
                reader = Anthropic._other
            reader(self, block)
            if self.loop is None and not self.blocks and self.role == "assistant":
                self.loop = self.dangles
            self.blocks += 1
        return None

    def _beside(self) -> None:
        """A block stands here that is neither a result, nor a call, nor thinking."""
        if self.server and self.role == "user":
            pending = listed(sorted(self.server))
            self.fault("ANT-10", self.at, f"only results here: server tool {pending} is pending")
        self.mixed = True

    def _text(self, block: dict[str, JsonValue]) -> None:
        text = block["text"] if "text" in block else None
        self.ragged = type(text) is str and text[-1:].isspace()
        if len(block) != 2 or self.ragged or not text or type(text) is not str:
            self.words(block, self.at)
        if self.server:
            self._beside()
        self.mixed = True

    def _thought(self, block: dict[str, JsonValue]) -> None:
        kind, text, data = str(block["type"]), block.get("thinking"), block.get("data")
        if "cache_control" in block:
            self.fault("ANT-34", self.at, "a thinking block carries cache_control")
        self.allow_only(self.at, block, _THINKING[kind])
        if kind == "thinking":
            if type(text) is not str:
                self.wanted("thinking is a string", self.at, text)
            self._signed(block.get("signature"))
        elif type(data) is not str or not data:
            self.fault("ALL-02", self.at, f"data is a string with content, not {excerpt(data)}")
        if not self.blocks:
            self.thinks = True
        elif not self.thinks and self.dialect.reasoning.first:
            self.fault("ANT-39", self.at, "thinking in a message that does not begin with it")
        if self.dialect.reasoning.carrier == "none":
            self.fault("ALL-08", self.at, "this dialect carries no thinking")
        self.dangles = True

    def _signed(self, signature: JsonValue) -> None:
        unsigned = signature == "" and self.dialect.reasoning.required == "with_calls"
        if type(signature) is not str or not (signature or unsigned):
            self.fault("ANT-43", self.at, f"the thinking block has no signature ({excerpt(signature)})")

    def _tool_use(self, block: dict[str, JsonValue]) -> None:
        if len(block) != 4:
            self.marks_of(block, _TOOL_USE, self.at)
        given = block["input"] if "input" in block else None
        if type(given) is not dict:
            self.fault("ALL-06", ".input", f"arguments are an object, not {kind_of(given)}")
        if not self.thinks and self.dialect.reasoning.required == "with_calls":
            self.fault("ALL-02", self.at, "a tool call in a message that does not begin with thinking")
        name = block["name"] if "name" in block else None
        if type(name) is not str or not self.is_name(name):
            self.named(name, self.at)
        self.open_call(block["id"] if "id" in block else None)

    def _result(self, block: dict[str, JsonValue]) -> None:
        if not block.keys() <= _PLAIN_RESULT:
            self.marks_of(block, _RESULT, self.at)
        call_id = block["tool_use_id"] if "tool_use_id" in block else None
        failed = block["is_error"] if "is_error" in block else False
        content = block["content"] if "content" in block else ""
        if type(failed) is not bool:
            self.wanted("is_error is a boolean", self.at, failed)
        if type(content) is not str:
            self._result_content(content, failed=failed is True)
        elif failed is True and not content.strip():
            self.fault("ANT-53", self.at, "the result of a failed tool is blank")
        if type(call_id) is str and call_id in self.due and not (self.mixed or self.split):
            del self.due[call_id]
            self.answered.add(call_id)
        else:
            self._misplaced(call_id)

    def _misplaced(self, call_id: JsonValue) -> None:
        """Judge a result that has no call, or does not stand where its call wants it."""
        if type(call_id) is not str:
            return self.wanted("tool_use_id is a string", self.at, call_id)
        if call_id not in self.due:
            if call_id in self.answered:
                return self.fault(
                    "ANT-06", self.at, f"a second result for tool call {excerpt(call_id)}", call_id
                )
            what = f"a result for {excerpt(call_id)}, which the message before does not call"
            return self.fault("ANT-02", self.at, what, call_id)
        if self.mixed:
            what = f"the result of {excerpt(call_id)} stands after other content"
            self.fault("ANT-03", self.at, what, call_id)
        if self.split:
            what = f"the result of {excerpt(call_id)} stands in a second user message"
            self.fault("ANT-12", self.at, what, call_id)
        del self.due[call_id]
        return self.answered.add(call_id)

    def _result_content(self, content: JsonValue, *, failed: bool) -> None:
        where = f"{self.at}.content"
        if type(content) is not list:
            return self.wanted("a string or a list of blocks", where, content)
        if not content:
            self.fault("ANT-29", where, "the list is empty")
        for part in content:
            kind = part.get("type") if type(part) is dict else None
            if failed and kind != "text":
                self.fault("ANT-51", where, f"a block of type {excerpt(kind)} in the result of a failed tool")
            if type(part) is dict and kind == "text":
                self.words(part, where)
            elif type(part) is dict and (kind == "image" or kind == "document"):
                self._media(part, str(kind), self.dialect.media.result_kinds)
            elif kind not in ("search_result", "tool_reference", "browser_state"):
                self.fault("ALL-08", where, f"a block of type {excerpt(kind)} in a tool_result")
        return None

    def _other(self, block: JsonValue) -> None:
        """Read a block of a kind that is rare or does not belong here."""
        if type(block) is not dict:
            return self.wanted("a block is an object", "", block)
        kind = block.get("type")
        if self.role == "user" and kind in ("image", "document", "search_result"):
            if kind == "search_result":
                self.marks_of(block, _SEARCH, self.at)
            else:
                self._media(block, str(kind), self.dialect.media.user_kinds)
            self._beside()
        elif self.role == "assistant" and type(kind) is str and kind in _SERVER_IDS:
            self._server_call(block.get("id"), _SERVER_IDS[kind])
        elif self.role == "assistant" and type(kind) is str and kind.endswith("_tool_result"):
            self._server_result(block.get("tool_use_id"))
        else:
            self.fault("ALL-08", self.at, f"a block of type {excerpt(kind)} in a message of role {self.role}")
        return None

    def _media(self, block: dict[str, JsonValue], kind: str, held: frozenset[str]) -> None:
        where = f"{self.at}.source"
        if kind not in held:
            return self.fault("ALL-10", self.at, f"{kind} is not accepted here")
        self.attach(kind, self.at)
        self.marks_of(block, _MEDIA[kind], self.at)
        source = block.get("source")
        carrier = source.get("type") if type(source) is dict else None
        if type(source) is not dict or type(carrier) is not str or carrier not in _SOURCE:
            return self.fault("ALL-02", where, f"a source of type {excerpt(carrier)}")
        self.allow_only(where, source, _SOURCE[carrier])
        data, mime = source.get("data"), source.get("media_type")
        if carrier == "base64" and (type(data) is not str or not data):
            return self.fault("ALL-02", where, "data is a base64 string with content")
        if carrier == "base64" and (type(mime) is not str or mime not in self.dialect.media.types):
            return self.fault("ALL-10", where, f"media of type {excerpt(mime)}")
        if kind == "image" and type(data) is str and len(data) > _IMAGE_BYTES:
            self.fault("ANT-30", self.at, f"an image of {len(data)} bytes as base64, at most {_IMAGE_BYTES}")
        return None

    def _server_call(self, call_id: JsonValue, form: re.Pattern[str]) -> None:
        if type(call_id) is not str or not form.fullmatch(call_id):
            return self.fault(
                "ALL-03", f"{self.at}.id", f"server tool id {excerpt(call_id)} is not of the form"
            )
        if self.take(call_id):
            self.fault("ALL-04", f"{self.at}.id", f"id {excerpt(call_id)} is taken", call_id)
        self.server = self.server | {call_id}
        return None

    def _server_result(self, call_id: JsonValue) -> None:
        if type(call_id) is not str or call_id not in self.server:
            self.fault(
                "ANT-11", self.at, f"a server tool result for {excerpt(call_id)}, which is not pending"
            )
        else:
            self.server = self.server - {call_id}


_Check = Callable[[Anthropic, Any], None]  # Any: an object, but for the reader of what is of no known kind
_CHECKS: dict[str, dict[str, _Check]] = {
    "assistant": {
        "text": Anthropic._text,
        "thinking": Anthropic._thought,
        "redacted_thinking": Anthropic._thought,
        "tool_use": Anthropic._tool_use,
    },
    "user": {"text": Anthropic._text, "tool_result": Anthropic._result},
}
