"""Judge AWS Bedrock Converse, block by block. A block is an object with one key, its kind."""

import re
from collections.abc import Callable
from typing import ClassVar

from actors.core.check.state import Turns, excerpt, inside, kind_of, shape
from actors.core.data.jsonio import JsonValue

_TOP = shape(
    """messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables
    additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig"""
)
_INFERENCE = shape("temperature topP stopSequences", maxTokens=1)
_SYSTEM = shape("text cachePoint guardContent")
_TOOLS = shape("tools toolChoice")
_ENTRY = shape("toolSpec systemTool cachePoint")
_TOOL = shape("name inputSchema strict", description="x")
_CALL = shape("toolUseId name input type")
_RESULT = shape("toolUseId content type", status="success")
_REASONING = shape("reasoningText redactedContent")
_THOUGHT = shape("text", signature="")
_MEDIA = {"image": shape("format source"), "document": shape("format name source")}
_SOURCE = shape("s3Location", bytes="x")
_POINT = shape("type ttl")
_FORMATS = {
    "image": frozenset({"png", "jpeg", "gif", "webp"}),
    "document": frozenset({"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"}),
}
_TITLE = re.compile(r"(?!.*  )[a-zA-Z0-9 ()\[\]-]{1,200}")


class Converse(Turns):
    """The judge of the family `converse`.

    Attributes:
        thinks: Whether the last message contains reasoning.
        worded, documented: Whether it contains a text, and a document.
        titles: The names of all documents.
        called: Whether a message contains a call or a result.
        declares: Whether the request declares tools, if its parameters have been read.
    """

    marking: ClassVar[tuple[str, str]] = ("default", "cachePoint")

    thinks: bool = False
    worded: bool = False
    documented: bool = False
    called: bool = False
    declares: bool = True
    titles: frozenset[str] = frozenset()
    mixed: bool

    def finish(self, *, manual_thinking: bool) -> None:
        super().finish(manual_thinking=manual_thinking)
        self._check_documents()
        if self.called and not self.declares:
            self.fault("BED-03", "toolConfig", "the messages hold tool blocks and no tool is declared")

    def begin(self, role: str) -> None:
        if self.documented:
            self._check_documents()
        if role == "assistant":
            if self.due:
                self.fault_unanswered("in the next message")
            self.answered.clear()
        self.mixed = self.thinks = self.documented = self.worded = False

    def _check_documents(self) -> None:
        if self.documented and not self.worded:
            self.fault("BED-13", self.here, "a document without a text beside it")

    def block(self, block: JsonValue) -> None:
        if type(block) is not dict or len(block) != 1:
            what = kind_of(block) if type(block) is not dict else f"{len(block)} keys"
            return self.fault("ALL-02", "", f"a block is an object with one key, not {what}")
        (kind,) = block
        checks = _CHECKS[str(self.role)]
        if kind in checks:
            return checks[kind](self, block[kind])
        if any(kind in checks for checks in _CHECKS.values()):
            return self.fault("ALL-08", "", f"{kind} in a message of role {self.role}")
        return self.allow_only("", block, ())

    def _text(self, value: JsonValue) -> None:
        self.mixed = self.worded = True
        if type(value) is not str or not value or value.isspace():
            self._check_text(value)

    def _check_text(self, value: JsonValue, where: str = "") -> None:
        if type(value) is not str:
            self.reject("text is a string", where, value)
        elif not value or value.isspace():
            self.fault("BED-04", where, "the text is blank")

    def _reasoning(self, value: JsonValue) -> None:
        if self.dialect.reasoning.carrier == "none":
            self.fault("ALL-08", "", "this dialect carries no reasoning")
        if self.blocks and not self.thinks and self.dialect.reasoning.first:
            self.fault("BED-10", "", "reasoning in a message that does not begin with it")
        self.thinks = True
        held = self.fields(value, _REASONING) or {}
        data = held.get("redactedContent", "x")
        if len(held) != 1 or type(data) is not str or not data:
            self.fault("ALL-02", "", "either reasoningText or redactedContent, with content")
        elif "reasoningText" in held:
            thought = _THOUGHT | (self.fields(held["reasoningText"], _THOUGHT) or {})
            if type(thought["text"]) is not str or type(thought["signature"]) is not str:
                self.fault("ALL-02", "", "reasoningText holds a text and a signature, both strings")

    def _tool_use(self, value: JsonValue) -> None:
        call = _CALL | (self.fields(value, _CALL) or {})
        if type(call["input"]) is not dict:
            self.fault("ALL-06", ".input", f"arguments are an object, not {kind_of(call['input'])}")
        self.called = True
        name = call["name"]
        if type(name) is not str or not self.is_name(name):
            self.check_tool_name(name)
        self.open_call(call["toolUseId"], ".toolUseId")

    def _result(self, value: JsonValue) -> None:
        self.called = True
        result = _RESULT | (self.fields(value, _RESULT) or {})
        call_id, content = result["toolUseId"], result["content"]
        self.answer(call_id, "toolUseId")
        if result["status"] not in ("success", "error"):
            self.fault("ALL-02", "", f"status {excerpt(result['status'])}")
        for _, part in self.each(content, ".content", "content", filled=True):
            self._result_part(part)

    def _result_part(self, part: JsonValue) -> None:
        kind, value = next(iter(part.items())) if type(part) is dict and len(part) == 1 else (None, None)
        if kind == "text":
            self._check_text(value, ".content")
        elif kind in _MEDIA:
            self._media(str(kind), value, self.dialect.media.result_kinds)
        elif kind is None:
            self.fault("ALL-02", ".content", "each part is an object with one key")
        elif kind != "json":
            self.fault("ALL-07", ".content", f"unknown key {excerpt(kind)}")
        elif type(value) is not dict:
            self.reject("json is an object", ".content", value)

    def _image(self, value: JsonValue) -> None:
        self.mixed = True
        self._media("image", value, self.dialect.media.user_kinds)

    def _document(self, value: JsonValue) -> None:
        self.mixed = self.documented = True
        self._media("document", value, self.dialect.media.user_kinds)

    def _media(self, kind: str, value: JsonValue, held: frozenset[str]) -> None:
        if kind not in held:
            return self.fault("BED-09", "", f"{kind} is not accepted here")
        media = _MEDIA[kind] | (self.fields(value, _MEDIA[kind]) or {})
        if type(form := media["format"]) is not str or form not in _FORMATS[kind]:
            self.fault("ALL-10", "", f"{kind} of format {excerpt(form)}")
        self.count_attachment(kind)
        if kind == "document":
            self._check_title(media["name"])
        source = self.fields(media["source"], _SOURCE, ".source") or {}
        data = source.get("bytes", "x")
        if len(source) != 1 or type(data) is not str or not data:
            self.fault("ALL-02", ".source", "either bytes, in base64, or s3Location")
        elif kind == "image" and type(form) is str and form in _FORMATS[kind]:
            self.check_image(data, f"image/{form}")
        return None

    def _check_title(self, name: JsonValue) -> None:
        if type(name) is not str or not _TITLE.fullmatch(name):
            self.fault(
                "BED-18", ".name", f"the document's name {excerpt(name)} is not in the required format"
            )
        elif name in self.titles:
            self.fault("BED-15", ".name", f"two documents are named {excerpt(name)}")
        else:
            self.titles |= {name}

    def _cache_point(self, value: JsonValue, where: str = "") -> None:
        self.fields(value, _POINT, where)
        self.check_mark(value, where)

    def parameters(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("request", body, _TOP)
        if (inference := body.get("inferenceConfig")) is not None:
            given = _INFERENCE | (self.fields(inference, _INFERENCE, "inferenceConfig") or {})
            self.check_limit(given["maxTokens"], "inferenceConfig.maxTokens")
        self.declares = "toolConfig" in body
        if self.declares:  # before the system prompt: the provider reads cache marks in this order
            self._tools(body["toolConfig"])
        if (system := body.get("system")) is not None:
            for _, block in self.each(system, "system", "blocks"):
                held = self.fields(block, _SYSTEM, "system") or {}
                if "text" in held:
                    self._check_text(held["text"], "system")
                if "cachePoint" in held:
                    self._cache_point(held["cachePoint"], "system")

    def _tools(self, config: JsonValue) -> None:
        held = _TOOLS | (self.fields(config, _TOOLS, "toolConfig") or {})
        choice = held["toolChoice"]
        for where, tool in self.each(held["tools"], "toolConfig.tools", "tools", filled=True):
            entry = self.fields(tool, _ENTRY, where) or {}
            if "cachePoint" in entry:
                self._cache_point(entry["cachePoint"], where)
            if "toolSpec" in entry:
                self._tool(entry["toolSpec"], where)
        if type(choice) is dict and choice.keys() == {"tool"}:
            self.check_choice(inside(choice, "tool", "name"), "toolConfig.toolChoice")
        elif choice is not None and (type(choice) is not dict or [*choice] not in (["auto"], ["any"])):
            self.fault("ALL-02", "toolConfig.toolChoice", "one of auto, any and tool")

    def _tool(self, value: JsonValue, where: str) -> None:
        tool = _TOOL | (self.fields(value, _TOOL, where) or {})
        schema, description = tool["inputSchema"], tool["description"]
        self.declare_tool(tool["name"], where)
        given = schema.get("json") if type(schema) is dict and len(schema) == 1 else None
        self.check_schema(given, f"{where}.inputSchema.json")
        if type(description) is not str or not description:
            self.fault("ALL-02", f"{where}.description", "a non-empty string, or no content")


_CHECKS: dict[str, dict[str, Callable[[Converse, JsonValue], None]]] = {
    "assistant": {
        "text": Converse._text,
        "reasoningContent": Converse._reasoning,
        "toolUse": Converse._tool_use,
        "cachePoint": Converse._cache_point,
    },
    "user": {
        "text": Converse._text,
        "toolResult": Converse._result,
        "image": Converse._image,
        "document": Converse._document,
        "cachePoint": Converse._cache_point,
    },
}
