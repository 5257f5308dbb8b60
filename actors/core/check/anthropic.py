"""What Anthropic Messages demands, block by block.

Pairing is between two neighbours: what an assistant message calls, the next user message answers at its
head. Neighbours of one role are merged by the provider and refused by stricter copies; they are a fault
here, and after it they are read as merged, so that one mistake is one fault. The last message of a
fragment may be unfinished, so what can only be said of a whole message is said when the next one begins or
at the end.
"""

import re
from collections.abc import Callable
from typing import ClassVar

from actors.core.check.state import kind_of, shown, why_no_root
from actors.core.check.turns import Turns
from actors.core.jsonio import JsonValue

_TOP = frozenset(
    """cache_control container diagnostics inference_geo max_tokens messages metadata model output_config
    service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p
    user_profile_id workspace_id""".split()  # noqa: SIM905  as a list it is a page
)
_MESSAGE = frozenset({"role", "content"})
_TEXT = frozenset({"type", "text", "cache_control", "citations"})
_THINKING = frozenset({"type", "thinking", "signature"})
_REDACTED = frozenset({"type", "data"})
_TOOL_USE = frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"})
_RESULT = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"})
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
_TOOL = frozenset(
    """name description input_schema type cache_control strict defer_loading allowed_callers
    eager_input_streaming input_examples""".split()  # noqa: SIM905  likewise
)
_IMAGE_BYTES = 5 * 1024 * 1024
_MARKS = 4
_MIN_BUDGET = 1024
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_THINKING_KINDS = frozenset({"thinking", "redacted_thinking"})


class Anthropic(Turns):
    """The fold of the family `anthropic`."""

    surrogates: ClassVar[str] = "ANT-31"
    crowded: ClassVar[tuple[str, str]] = ("ANT-54", "ANT-54")

    def finish(self, *, manual_thinking: bool) -> None:
        if self.due:
            self._unanswered("at the end")
        if self.role is None:
            return self.fault("ANT-25", "messages", "there is no message")
        if self.role not in self.dialect.last_roles:
            self.fault("ANT-27", self.here, f"a request cannot end with role {self.role}")
        if not self.blocks and self.role == "user":
            self.fault("ANT-22", self.here, "the message is empty")
        if self.ragged and self.role == "assistant":
            self.fault("ANT-23", self.here, "the final assistant message ends in whitespace")
        if self.marks > _MARKS:
            self.fault("ANT-32", "request", f"{self.marks} blocks carry cache_control, at most {_MARKS}")
        if manual_thinking and self.role == "user" and self.answered and not self.loop:
            self.fault(
                "ANT-40", self.here, "the message that opened this tool loop does not begin with thinking"
            )
        return None

    # --- messages -----------------------------------------------------------------------------------

    def _open(self, role: str) -> None:
        """Judge the message that ends here, and begin the next."""
        if self.role is not None and not self.blocks:
            self.fault("ANT-22", self.here, "the message is empty")
        if self.dangles and role != "assistant":
            self.fault("ANT-52", self.here, "the message ends in thinking")
        if role == "assistant" and self.role == "user" and self.due:
            self._unanswered("in the next message")
        self.count += 1
        if self.role is None and role not in self.dialect.first_roles:
            self.fault("ANT-24", self.here, f"a transcript cannot begin with role {role}")
        if role == self.role and self.dialect.alternation == "merge_same":
            self.fault("ANT-26", self.here, f"role {role} twice in a row")
        if role == "assistant":
            self._open_assistant()
        elif self.role == "user":
            self.split = bool(self.due)
        else:
            self.mixed = self.split = False
        self.role, self.blocks, self.thinks, self.ragged, self.dangles = role, 0, False, False, False

    def _open_assistant(self) -> None:
        if self.due:
            ids = tuple(self.due)
            self.fault(
                "ANT-04", self.here, f"a user message with results of {_listed(ids)} belongs here", *ids
            )
        if self.mixed or not self.answered:
            self.loop = None
        self.answered.clear()

    def _unanswered(self, when: str) -> None:
        ids = tuple(self.due)
        self.fault("ANT-01", self.here, f"no result for tool call {_listed(ids)} {when}", *ids)
        self.due.clear()

    def _read(self, message: dict[str, JsonValue]) -> None:
        if not message.keys() <= _MESSAGE:
            self.allow_only("ANT-28", self.here, message, _MESSAGE)
        content = message.get("content")
        if type(content) is str:
            self._blocks([{"type": "text", "text": content}] if content else [])
        elif type(content) is list:
            self._blocks(content)
        else:
            what = f"a string or a list of blocks, not {kind_of(content)}"
            self.fault("ALL-02", f"{self.here}.content", what)
            self.blocks += 1  # it is not empty, it is wrong

    # --- blocks -------------------------------------------------------------------------------------

    @property
    def _at(self) -> str:
        return f"{self.here}.content[{self.blocks}]"

    def _blocks(self, blocks: list[JsonValue]) -> None:
        readers = _ASSISTANT if self.role == "assistant" else _USER
        last: JsonValue = None
        for block in blocks:
            if type(block) is dict:
                kind = block.get("type")
                reader = readers.get(kind) if type(kind) is str else None
                if reader is None:
                    self._other(block, kind)
                else:
                    reader(self, block)
                if not self.blocks and self.loop is None and self.role == "assistant":
                    self.loop = kind in _THINKING_KINDS if type(kind) is str else False
                self.dangles = type(kind) is str and kind in _THINKING_KINDS
            else:
                self.fault("ALL-02", self._at, f"a block is an object, not {kind_of(block)}")
            self.blocks += 1
            last = block
        text = last.get("text") if type(last) is dict else None
        self.ragged = type(text) is str and text[-1:].isspace()

    def _text(self, block: dict[str, JsonValue]) -> None:
        if self.server and self.role == "user":
            self._pending()
        self.mixed = True
        text = block.get("text")
        if len(block) != 2:
            self._extras(block, _TEXT, self._at)
        if type(text) is not str:
            self.fault("ALL-02", self._at, f"text is a string, not {kind_of(text)}")
        elif not text or text.isspace():
            self._blank(block, text, self._at)

    def _blank(self, block: dict[str, JsonValue], text: str, where: str) -> None:
        if text:
            return self.fault("ANT-21", where, "the text block is only whitespace")
        self.fault("ANT-20", where, "the text block is empty")
        if "cache_control" in block:
            self.fault("ANT-33", where, "an empty text block carries cache_control")
        return None

    def _thinking(self, block: dict[str, JsonValue]) -> None:
        self._thinks(block, _THINKING)
        text, signature = block.get("thinking"), block.get("signature")
        if type(text) is not str:
            self.fault("ALL-02", self._at, f"thinking is a string, not {kind_of(text)}")
        unsigned = signature == "" and self.dialect.thinking_required == "with_calls"
        if type(signature) is not str or not (signature or unsigned):
            self.fault("ANT-43", self._at, f"the thinking block has no signature ({shown(signature)})")

    def _redacted(self, block: dict[str, JsonValue]) -> None:
        self._thinks(block, _REDACTED)
        data = block.get("data")
        if type(data) is not str or not data:
            self.fault("ALL-02", self._at, f"data is a string with content, not {shown(data)}")

    def _thinks(self, block: dict[str, JsonValue], keys: frozenset[str]) -> None:
        """Judge where a thinking block stands, and its keys."""
        if not self.blocks:
            self.thinks = True
        elif not self.thinks and self.dialect.thinking_first:
            self.fault("ANT-39", self._at, "thinking in a message that does not begin with it")
        if self.dialect.thinking_carrier == "none":
            self.fault("ALL-08", self._at, "this dialect carries no thinking")
        if "cache_control" in block:
            self.fault("ANT-34", self._at, "a thinking block carries cache_control")
        self.allow_only("ANT-28", self._at, block, keys | {"cache_control"})

    def _tool_use(self, block: dict[str, JsonValue]) -> None:
        if len(block) != 4:
            self._extras(block, _TOOL_USE, self._at)
        call_id, name, given = block.get("id"), block.get("name"), block.get("input")
        if not self.thinks and self.dialect.thinking_required == "with_calls":
            self.fault("ALL-02", self._at, "a tool call in a message that does not begin with thinking")
        if type(name) is not str or not self.is_name(name):
            self.fault("ANT-08", f"{self._at}.name", f"tool name {shown(name)}")
        if type(given) is not dict:
            self.fault("ALL-06", f"{self._at}.input", f"arguments are an object, not {kind_of(given)}")
        if type(call_id) is not str or not self.is_id(call_id):
            self.fault("ANT-07", f"{self._at}.id", f"id {shown(call_id)} is not of the form")
        if type(call_id) is str:
            self._call(call_id)

    def _call(self, call_id: str) -> None:
        taken = self.take_id(call_id)
        if call_id in self.due or (taken and self.dialect.id_unique_scope == "transcript"):
            self.fault("ANT-05", f"{self._at}.id", f"id {shown(call_id)} is taken", call_id)
        self.due[call_id] = None

    def _result(self, block: dict[str, JsonValue]) -> None:
        if not block.keys() <= _RESULT or "cache_control" in block:
            self._extras(block, _RESULT, self._at)
        call_id = block.get("tool_use_id")
        if type(call_id) is not str:
            self.fault("ALL-02", self._at, f"tool_use_id is a string, not {kind_of(call_id)}")
        elif call_id in self.due:
            self._answer(call_id)
        elif call_id in self.answered:
            self.fault("ANT-06", self._at, f"a second result for tool call {shown(call_id)}", call_id)
        else:
            what = f"a result for {shown(call_id)}, which the message before does not call"
            self.fault("ANT-02", self._at, what, call_id)
        if type(block.get("is_error", False)) is not bool:
            self.fault("ALL-02", self._at, f"is_error is a boolean, not {kind_of(block['is_error'])}")
        failed = block.get("is_error") is True
        if type(content := block.get("content", "")) is not str:
            self._result_content(content, failed=failed)
        elif failed and not content.strip():
            self.fault("ANT-53", self._at, "the result of a failed tool is blank")

    def _answer(self, call_id: str) -> None:
        if self.mixed:
            self.fault(
                "ANT-03", self._at, f"the result of {shown(call_id)} stands after other content", call_id
            )
        if self.split:
            self.fault(
                "ANT-12", self._at, f"the result of {shown(call_id)} stands in a second user message", call_id
            )
        del self.due[call_id]
        self.answered.add(call_id)

    def _result_content(self, content: JsonValue, *, failed: bool) -> None:
        where = f"{self._at}.content"
        if type(content) is not list:
            return self.fault("ALL-02", where, f"a string or a list of blocks, not {kind_of(content)}")
        if not content:
            self.fault("ANT-29", where, "the list is empty")
        for part in content:
            kind = part.get("type") if type(part) is dict else None
            if failed and kind != "text":
                self.fault("ANT-51", where, f"a block of type {shown(kind)} in the result of a failed tool")
            if type(part) is dict and kind == "text":
                self._inner_text(part, where)
            elif type(part) is dict and (kind == "image" or kind == "document"):
                self._media(part, str(kind), self.dialect.result_media)
            elif kind not in ("search_result", "tool_reference", "browser_state"):
                self.fault("ALL-08", where, f"a block of type {shown(kind)} in a tool_result")
        return None

    def _inner_text(self, part: dict[str, JsonValue], where: str) -> None:
        text = part.get("text")
        self._extras(part, _TEXT, where)
        if type(text) is not str:
            self.fault("ALL-02", where, f"text is a string, not {kind_of(text)}")
        elif not text or text.isspace():
            self._blank(part, text, where)

    # --- media, server tools, marks -----------------------------------------------------------------

    def _other(self, block: dict[str, JsonValue], kind: JsonValue) -> None:
        """Read a block of a kind that is rare or does not belong here."""
        if self.role == "user" and kind in ("image", "document", "search_result"):
            self.mixed = True
            if self.server:
                self._pending()
            if kind == "search_result":
                self._extras(block, _SEARCH, self._at)
            else:
                self._media(block, str(kind), self.dialect.user_media)
        elif self.role == "assistant" and kind == "server_tool_use":
            self._server_call(block.get("id"))
        elif self.role == "assistant" and type(kind) is str and kind.endswith("_tool_result"):
            self._server_result(block.get("tool_use_id"))
        else:
            self.fault("ALL-08", self._at, f"a block of type {shown(kind)} in a message of role {self.role}")

    def _media(self, block: dict[str, JsonValue], kind: str, held: frozenset[str]) -> None:
        if kind not in held:
            return self.fault("ALL-10", self._at, f"{kind} is not accepted here")
        self.attach(kind, self._at)
        self._extras(block, _MEDIA[kind], self._at)
        source = block.get("source")
        carrier = source.get("type") if type(source) is dict else None
        if type(source) is not dict or type(carrier) is not str or carrier not in _SOURCE:
            return self.fault("ALL-02", f"{self._at}.source", f"a source of type {shown(carrier)}")
        self.allow_only("ANT-28", f"{self._at}.source", source, _SOURCE[carrier])
        data, mime = source.get("data"), source.get("media_type")
        if carrier == "base64" and (type(data) is not str or not data):
            return self.fault("ALL-02", f"{self._at}.source", "data is a base64 string with content")
        if carrier == "base64" and (type(mime) is not str or mime not in self.dialect.media_types):
            return self.fault("ALL-10", f"{self._at}.source", f"media of type {shown(mime)}")
        if kind == "image" and type(data) is str and len(data) > _IMAGE_BYTES:
            self.fault("ANT-30", self._at, f"an image of {len(data)} bytes as base64, at most {_IMAGE_BYTES}")
        return None

    def _pending(self) -> None:
        self.fault(
            "ANT-10", self._at, f"only results here: server tool {_listed(sorted(self.server))} is pending"
        )

    def _server_call(self, call_id: JsonValue) -> None:
        if type(call_id) is not str or not _SERVER_ID.fullmatch(call_id):
            return self.fault(
                "ANT-07", f"{self._at}.id", f"server tool id {shown(call_id)} is not of the form"
            )
        if self.take_id(call_id):
            self.fault("ANT-05", f"{self._at}.id", f"id {shown(call_id)} is taken", call_id)
        self.server = self.server | {call_id}
        return None

    def _server_result(self, call_id: JsonValue) -> None:
        if type(call_id) is not str or call_id not in self.server:
            self.fault("ANT-11", self._at, f"a server tool result for {shown(call_id)}, which is not pending")
        else:
            self.server = self.server - {call_id}

    def _extras(self, value: dict[str, JsonValue], keys: frozenset[str], where: str) -> None:
        """Judge the keys of a block and its cache mark."""
        self.allow_only("ANT-28", where, value, keys)
        if value.get("cache_control") is not None:
            self._mark(value["cache_control"], where)

    def _mark(self, mark: JsonValue, where: str) -> None:
        ttl = mark.get("ttl", "5m") if type(mark) is dict else None
        if type(mark) is not dict or mark.get("type") != "ephemeral" or ttl not in ("5m", "1h"):
            return self.fault("ALL-02", where, "cache_control is of type ephemeral, ttl 5m or 1h")
        self.marks += 1
        if ttl == "1h" and self.short:
            self.fault("ANT-34", where, "a 1h cache mark after a 5m mark")
        self.short = self.short or ttl == "5m"
        return None

    # --- the rest of the request --------------------------------------------------------------------

    def head(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("ANT-28", "request", body, _TOP)
        model, limit, thinking = body.get("model"), body.get("max_tokens"), body.get("thinking")
        if type(model) is not str or not model:
            self.fault("ALL-02", "model", f"a model name, not {shown(model)}")
        if type(limit) is not int or limit < 1:
            self.fault("ALL-02", "max_tokens", f"a whole number from 1, not {shown(limit)}")
        manual = type(thinking) is dict and thinking.get("type") == "enabled"
        if type(thinking) is dict and manual:
            self._budget(thinking.get("budget_tokens"), limit)
        names = set[str]()
        if (tools := body.get("tools")) is not None:
            self._tools(tools, names)
        if (choice := body.get("tool_choice")) is not None:
            self._choice(choice, names, manual)
        if (system := body.get("system")) is not None:
            self._system(system)

    def _budget(self, budget: JsonValue, limit: JsonValue) -> None:
        if type(budget) is not int or budget < _MIN_BUDGET or (type(limit) is int and budget >= limit):
            what = f"a whole number from {_MIN_BUDGET}, below max_tokens, not {shown(budget)}"
            self.fault("ALL-02", "thinking.budget_tokens", what)

    def _choice(self, choice: JsonValue, names: set[str], manual: bool) -> None:
        kind = choice.get("type") if type(choice) is dict else None
        if type(choice) is not dict or kind not in ("auto", "any", "tool", "none"):
            return self.fault("ALL-02", "tool_choice", f"a choice of type {shown(kind)}")
        if not names:
            self.fault("ALL-14", "tool_choice", "given without tools")
        elif kind == "tool" and (type(name := choice.get("name")) is not str or name not in names):
            self.fault("ALL-14", "tool_choice", f"tool {shown(name)} is not declared")
        if manual and kind in ("any", "tool"):
            self.fault("ANT-48", "tool_choice", "a tool is forced while manual thinking is on")
        return None

    def _tools(self, tools: JsonValue, names: set[str]) -> None:
        if type(tools) is not list:
            return self.fault("ALL-02", "tools", f"a list of tools, not {kind_of(tools)}")
        for index, tool in enumerate(tools):
            if type(tool) is not dict:
                self.fault("ALL-02", f"tools[{index}]", f"a tool is an object, not {kind_of(tool)}")
                continue
            self._tool(tool, f"tools[{index}]", names)
        return None

    def _tool(self, tool: dict[str, JsonValue], where: str, names: set[str]) -> None:
        own = tool.get("type") in (None, "custom")  # the others are the provider's, with keys of their own
        self._extras(tool, _TOOL if own else frozenset(tool), where)
        name, schema = tool.get("name"), tool.get("input_schema")
        if type(name) is not str or not self.is_name(name):
            self.fault("ANT-08", f"{where}.name", f"tool name {shown(name)}")
        elif name in names:
            self.fault("ANT-09", f"{where}.name", f"tool name {shown(name)} is declared twice")
        else:
            names.add(name)
        if own and (wanted := why_no_root(schema)):
            self.fault("ALL-02", f"{where}.input_schema", wanted)

    def _system(self, system: JsonValue) -> None:
        if type(system) is str:
            return self._inner_text({"type": "text", "text": system}, "system") if system else None
        if type(system) is not list:
            return self.fault("ALL-02", "system", f"a string or a list of text blocks, not {kind_of(system)}")
        for block in system:
            if type(block) is not dict or block.get("type") != "text":
                self.fault("ALL-02", "system", "only text blocks stand here")
                continue
            self._inner_text(block, "system")
        return None


def _listed(ids: tuple[str, ...] | list[str]) -> str:
    return ", ".join(map(shown, ids))


_Reader = Callable[[Anthropic, dict[str, JsonValue]], None]
_ASSISTANT: dict[str, _Reader] = {
    "text": Anthropic._text,
    "thinking": Anthropic._thinking,
    "redacted_thinking": Anthropic._redacted,
    "tool_use": Anthropic._tool_use,
}
_USER: dict[str, _Reader] = {"text": Anthropic._text, "tool_result": Anthropic._result}
