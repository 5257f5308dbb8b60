"""What AWS Bedrock Converse demands, block by block.

Pairing is between two neighbours: what an assistant message calls, the next user message answers at its
head. A block is an object with one key, which names its kind. The last message of a fragment may be
unfinished, so what can only be said of a whole message is said when the next one begins or at the end.
"""

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

from actors.core.check.state import CheckState, kind_of, shown, why_no_root
from actors.core.check.turns import Turns
from actors.core.jsonio import JsonValue

_TOP = frozenset(
    """messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables
    additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier
    outputConfig""".split()  # noqa: SIM905  as a list it is a page
)
_INFERENCE = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})
_MESSAGE = frozenset({"role", "content"})
_CALL = frozenset({"toolUseId", "name", "input", "type"})
_RESULT = frozenset({"toolUseId", "content", "status", "type"})
_MEDIA = {"image": frozenset({"format", "source"}), "document": frozenset({"format", "name", "source"})}
_FORMATS = {
    "image": frozenset({"png", "jpeg", "gif", "webp"}),
    "document": frozenset({"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"}),
}
_TITLE = re.compile(r"(?!.*  )[a-zA-Z0-9 ()\[\]-]{1,200}")
_TOOL = frozenset({"name", "description", "inputSchema", "strict"})
_CHOICES = frozenset({"auto", "any", "tool"})


class Converse(Turns):
    """The fold of the family `converse`.

    Of the shared state, `split` says here that the last message holds a document, `ragged` that it holds a text.
    """

    crowded: ClassVar[tuple[str, str]] = ("BED-17", "BED-16")

    def __init__(self, state: CheckState) -> None:
        super().__init__(state)
        self.declares = True  # `head` has read otherwise
        self.has_tool_blocks = False

    def finish(self, *, manual_thinking: bool) -> None:
        if self.due:
            self._unanswered("at the end")
        if self.role is None:
            return self.fault("BED-07", "messages", "there is no message")
        if self.role not in self.dialect.last_roles:
            self.fault("ALL-05", self.here, f"a request cannot end with role {self.role}")
        self._closed()
        if self.has_tool_blocks and not self.declares:
            self.fault("BED-03", "toolConfig", "the messages hold tool blocks and no tool is declared")
        return None

    # --- messages -----------------------------------------------------------------------------------

    def _open(self, role: str) -> None:
        """Judge the message that ends here, and begin the next."""
        if self.role is not None:
            self._closed()
        if role == "assistant" and self.due:
            self._unanswered("in the next message")
        self.count += 1
        if self.role is None and role not in self.dialect.first_roles:
            self.fault("BED-07", self.here, f"a transcript cannot begin with role {role}")
        if role == self.role:
            self.fault("BED-06", self.here, f"role {role} twice in a row")
        if role == "assistant":
            self.answered.clear()
        self.role, self.blocks = role, 0
        self.mixed = self.thinks = self.split = self.ragged = False

    def _closed(self) -> None:
        """Judge what can only be said of a whole message."""
        if not self.blocks:
            self.fault("BED-05", self.here, "the message is empty")
        if self.split and not self.ragged:
            self.fault("BED-13", self.here, "a document without a text beside it")

    def _unanswered(self, when: str) -> None:
        ids = tuple(self.due)
        listed = ", ".join(map(shown, ids))
        self.fault("BED-01", self.here, f"no result for tool call {listed} {when}", *ids)
        self.due.clear()

    def _read(self, message: dict[str, JsonValue]) -> None:
        self.allow_only("BED-11", self.here, message, _MESSAGE)
        content = message.get("content")
        if type(content) is not list:
            self.fault("ALL-02", f"{self.here}.content", f"a list of blocks, not {kind_of(content)}")
            self.blocks += 1  # it is not empty, it is wrong
            return
        for block in content:
            self._block(block)
            self.blocks += 1

    # --- blocks -------------------------------------------------------------------------------------

    @property
    def _at(self) -> str:
        return f"{self.here}.content[{self.blocks}]"

    def _block(self, block: JsonValue) -> None:
        if type(block) is not dict or len(block) != 1:
            what = kind_of(block) if type(block) is not dict else f"{len(block)} keys"
            return self.fault("ALL-02", self._at, f"a block is an object with one key, not {what}")
        ((kind, value),) = block.items()
        reader = (_ASSISTANT if self.role == "assistant" else _USER).get(kind)
        if reader is not None:
            return reader(self, value)
        if kind in _KINDS:
            return self.fault("ALL-08", self._at, f"{kind} in a message of role {self.role}")
        return self.fault("BED-11", self._at, f"unknown key {shown(kind)}")

    def _text(self, value: JsonValue) -> None:
        self.mixed = self.ragged = True
        self._words(value, self._at)

    def _words(self, value: JsonValue, where: str) -> None:
        if type(value) is not str:
            self.fault("ALL-02", where, f"text is a string, not {kind_of(value)}")
        elif not value or value.isspace():
            self.fault("BED-04", where, "the text is blank")

    def _object(self, value: JsonValue, keys: frozenset[str], where: str) -> dict[str, JsonValue]:
        """Return `value` if it is an object, its keys judged, else an empty one with the fault noted."""
        if type(value) is not dict:
            self.fault("ALL-02", where, f"an object, not {kind_of(value)}")
            return {}
        self.allow_only("BED-11", where, value, keys)
        return value

    def _reasoning(self, value: JsonValue) -> None:
        if self.dialect.thinking_carrier == "none":
            self.fault("ALL-08", self._at, "this dialect carries no reasoning")
        if self.blocks and not self.thinks and self.dialect.thinking_first:
            self.fault("BED-10", self._at, "reasoning in a message that does not begin with it")
        self.thinks = True
        held = self._object(value, frozenset({"reasoningText", "redactedContent"}), self._at)
        data = held.get("redactedContent")
        if len(held) != 1 or ("redactedContent" in held and (type(data) is not str or not data)):
            return self.fault("ALL-02", self._at, "either reasoningText or redactedContent, with content")
        if "reasoningText" not in held:
            return None
        text = self._object(held["reasoningText"], frozenset({"text", "signature"}), self._at)
        if type(text.get("text")) is not str or type(text.get("signature", "")) is not str:
            self.fault("ALL-02", self._at, "reasoningText holds a text and a signature, both strings")
        return None

    def _call(self, value: JsonValue) -> None:
        self.has_tool_blocks = True
        call = self._object(value, _CALL, self._at)
        call_id, name, given = call.get("toolUseId"), call.get("name"), call.get("input")
        if type(name) is not str or not self.is_name(name):
            self.fault("BED-08", f"{self._at}.name", f"tool name {shown(name)}")
        if type(given) is not dict:
            self.fault("ALL-06", f"{self._at}.input", f"arguments are an object, not {kind_of(given)}")
        if type(call_id) is not str or not self.is_id(call_id):
            self.fault("BED-08", f"{self._at}.toolUseId", f"id {shown(call_id)} is not of the form")
        if type(call_id) is str:
            taken = self.take_id(call_id)
            if call_id in self.due or (taken and self.dialect.id_unique_scope == "transcript"):
                self.fault("ALL-04", f"{self._at}.toolUseId", f"id {shown(call_id)} is taken", call_id)
            self.due[call_id] = None

    def _result(self, value: JsonValue) -> None:
        self.has_tool_blocks = True
        result = self._object(value, _RESULT, self._at)
        call_id = result.get("toolUseId")
        if type(call_id) is not str:
            self.fault("ALL-02", self._at, f"toolUseId is a string, not {kind_of(call_id)}")
        elif call_id in self.due:
            self._answer(call_id)
        else:
            why = "answered already" if call_id in self.answered else "not called by the message before"
            self.fault("BED-02", self._at, f"a result for {shown(call_id)}, which is {why}", call_id)
        if result.get("status", "success") not in ("success", "error"):
            self.fault("ALL-02", self._at, f"status {shown(result.get('status'))}")
        self._said(result.get("content"))

    def _answer(self, call_id: str) -> None:
        if self.mixed:
            what = f"the result of {shown(call_id)} stands after other content"
            self.fault("BED-10", self._at, what, call_id)
        del self.due[call_id]
        self.answered.add(call_id)

    def _said(self, content: JsonValue) -> None:
        where = f"{self._at}.content"
        if type(content) is not list or not content:
            return self.fault("ALL-02", where, f"a list with content, not {kind_of(content)}")
        for part in content:
            kind, value = next(iter(part.items())) if type(part) is dict and len(part) == 1 else (None, None)
            if kind == "text":
                self._words(value, where)
            elif kind == "json":
                if type(value) is not dict:
                    self.fault("ALL-02", where, f"json is an object, not {kind_of(value)}")
            elif kind in _MEDIA:
                self._carried(str(kind), value, self.dialect.result_media)
            elif kind is None:
                self.fault("ALL-02", where, "each part is an object with one key")
            else:
                self.fault("BED-11", where, f"unknown key {shown(kind)}")
        return None

    def _image(self, value: JsonValue) -> None:
        self.mixed = True
        self._carried("image", value, self.dialect.user_media)

    def _document(self, value: JsonValue) -> None:
        self.mixed = self.split = True
        self._carried("document", value, self.dialect.user_media)

    def _carried(self, kind: str, value: JsonValue, held: frozenset[str]) -> None:
        if kind not in held:
            return self.fault("BED-09", self._at, f"{kind} is not accepted here")
        media = self._object(value, _MEDIA[kind], self._at)
        if type(form := media.get("format")) is not str or form not in _FORMATS[kind]:
            self.fault("ALL-10", self._at, f"{kind} of format {shown(form)}")
        self.attach(kind, self._at)
        if kind == "document":
            self._titled(media.get("name"))
        source = self._object(media.get("source"), frozenset({"bytes", "s3Location"}), f"{self._at}.source")
        data = source.get("bytes", "x")
        if len(source) != 1 or type(data) is not str or not data:
            self.fault("ALL-02", f"{self._at}.source", "either bytes, in base64, or s3Location")
        return None

    def _titled(self, name: JsonValue) -> None:
        where = f"{self._at}.name"
        if type(name) is not str or not _TITLE.fullmatch(name):
            return self.fault("BED-18", where, f"the document's name {shown(name)} is not of the form")
        if name in self.titles:
            self.fault("BED-15", where, f"two documents are named {shown(name)}")
        self.titles |= {name}
        return None

    def _cache_point(self, value: JsonValue) -> None:
        point = self._object(value, frozenset({"type", "ttl"}), self._at)
        if point.get("type") != "default" or point.get("ttl", "5m") not in ("5m", "1h"):
            self.fault("ALL-02", self._at, "cachePoint is of type default, ttl 5m or 1h")

    # --- the rest of the request --------------------------------------------------------------------

    def head(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("BED-11", "request", body, _TOP)
        if (inference := body.get("inferenceConfig")) is not None:
            limit = self._object(inference, _INFERENCE, "inferenceConfig").get("maxTokens", 1)
            if type(limit) is not int or limit < 1:
                self.fault(
                    "ALL-02", "inferenceConfig.maxTokens", f"a whole number from 1, not {shown(limit)}"
                )
        if (system := body.get("system")) is not None:
            self._system(system)
        self.declares = "toolConfig" in body
        if self.declares:
            self._tool_config(body["toolConfig"])

    def _system(self, system: JsonValue) -> None:
        if type(system) is not list:
            return self.fault("ALL-02", "system", f"a list of blocks, not {kind_of(system)}")
        for block in system:
            held = self._object(block, frozenset({"text", "cachePoint", "guardContent"}), "system")
            if "text" in held:
                self._words(held["text"], "system")
        return None

    def _tool_config(self, config: JsonValue) -> None:
        held = self._object(config, frozenset({"tools", "toolChoice"}), "toolConfig")
        tools, names = held.get("tools"), set[str]()
        if type(tools) is not list or not tools:
            return self.fault("ALL-02", "toolConfig.tools", f"a list with tools, not {shown(tools)}")
        for index, tool in enumerate(tools):
            where = f"toolConfig.tools[{index}]"
            entry = self._object(tool, frozenset({"toolSpec", "systemTool", "cachePoint"}), where)
            if "toolSpec" in entry:
                self._tool(self._object(entry["toolSpec"], _TOOL, where), where, names)
        if (choice := held.get("toolChoice")) is not None:
            self._choice(choice, names)
        return None

    def _tool(self, tool: Mapping[str, JsonValue], where: str, names: set[str]) -> None:
        name, schema = tool.get("name"), tool.get("inputSchema")
        if type(name) is not str or not self.is_name(name):
            self.fault("BED-08", f"{where}.name", f"tool name {shown(name)}")
        elif name in names:
            self.fault("ALL-13", f"{where}.name", f"tool name {shown(name)} is declared twice")
        else:
            names.add(name)
        given = schema.get("json") if type(schema) is dict and len(schema) == 1 else None
        if wanted := why_no_root(given):
            self.fault("ALL-02", f"{where}.inputSchema", f"json with {wanted}")
        description = tool.get("description", "x")
        if type(description) is not str or not description:
            self.fault("ALL-02", f"{where}.description", "a string with content, or none")

    def _choice(self, choice: JsonValue, names: set[str]) -> None:
        if type(choice) is not dict or len(choice) != 1 or not choice.keys() <= _CHOICES:
            return self.fault("ALL-02", "toolConfig.toolChoice", "one of auto, any and tool")
        tool = choice.get("tool")
        name = tool.get("name") if type(tool) is dict else None
        if "tool" in choice and (type(name) is not str or name not in names):
            self.fault("ALL-14", "toolConfig.toolChoice", "the tool is not declared")
        return None


_Reader = Callable[[Converse, JsonValue], None]
_ASSISTANT: dict[str, _Reader] = {
    "text": Converse._text,
    "reasoningContent": Converse._reasoning,
    "toolUse": Converse._call,
    "cachePoint": Converse._cache_point,
}
_USER: dict[str, _Reader] = {
    "text": Converse._text,
    "toolResult": Converse._result,
    "image": Converse._image,
    "document": Converse._document,
    "cachePoint": Converse._cache_point,
}
_KINDS = _ASSISTANT.keys() | _USER.keys()
