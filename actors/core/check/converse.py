"""Check requests of AWS Bedrock Converse, block by block. A block is an object with one key: the kind of the block."""

import re
from collections.abc import Callable
from typing import ClassVar

from actors.core.check.json_values import excerpt, kind_of, shape, value_at
from actors.core.check.messages import AlternatingTurnsState
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


class Converse(AlternatingTurnsState):
    """The check state of the family `converse`.

    Attributes:
        has_reasoning: Whether the last message contains reasoning.
        has_text: Whether the last message contains a text.
        has_document: Whether the last message contains a document.
        document_names: The names of all documents.
        has_tool_blocks: Whether any message contains a call or a result.
        declares_tools: Whether the request declares tools; True while only messages have been checked.
    """

    marking: ClassVar[tuple[str, str]] = ("default", "cachePoint")

    has_reasoning: bool = False
    has_text: bool = False
    has_document: bool = False
    has_tool_blocks: bool = False
    declares_tools: bool = True
    document_names: frozenset[str] = frozenset()
    has_other_blocks: bool

    def check_end(self, *, manual_thinking: bool) -> None:
        super().check_end(manual_thinking=manual_thinking)
        self._check_documents()
        if self.has_tool_blocks and not self.declares_tools:
            self.fault("BED-03", "toolConfig", "the messages contain tool blocks, but no tool is declared")

    def begin_message(self, role: str) -> None:
        if self.has_document:
            self._check_documents()
        if role == "assistant":
            if self.open_calls:
                self.report_unanswered("in the next message")
            self.answered_calls.clear()
        self.has_other_blocks = self.has_reasoning = self.has_document = self.has_text = False

    def _check_documents(self) -> None:
        if self.has_document and not self.has_text:
            self.fault("BED-13", self.message_path, "a message with a document must contain a text")

    def check_block(self, block: JsonValue) -> None:
        if type(block) is not dict or len(block) != 1:
            what = kind_of(block) if type(block) is not dict else f"{len(block)} keys"
            return self.fault("ALL-02", "", f"a block must be an object with one key, not {what}")
        (kind,) = block
        checks = _CHECKS[str(self.role)]
        if kind in checks:
            return checks[kind](self, block[kind])
        if any(kind in checks for checks in _CHECKS.values()):
            return self.fault("ALL-08", "", f"a message of role {self.role} must not contain {kind}")
        return self.allow_only("", block, ())

    def _check_text_block(self, value: JsonValue) -> None:
        self.has_other_blocks = self.has_text = True
        if type(value) is not str or not value or value.isspace():
            self._check_text(value)

    def _check_text(self, value: JsonValue, path: str = "") -> None:
        if type(value) is not str:
            self.reject_type("text must be a string", path, value)
        elif not value or value.isspace():
            self.fault("BED-04", path, "the text is blank")

    def _check_reasoning(self, value: JsonValue) -> None:
        if self.dialect.reasoning.carrier == "none":
            self.fault("ALL-08", "", "this dialect does not accept reasoning")
        if self.block_count and not self.has_reasoning and self.dialect.reasoning.must_be_first:
            self.fault("BED-10", "", "a message with reasoning must begin with reasoning")
        self.has_reasoning = True
        held = self.checked_fields(value, _REASONING) or {}
        data = held.get("redactedContent", "x")
        if len(held) != 1 or type(data) is not str or not data:
            self.fault("ALL-02", "", "reasoning must have either reasoningText or redactedContent, not empty")
        elif "reasoningText" in held:
            thought = _THOUGHT | (self.checked_fields(held["reasoningText"], _THOUGHT) or {})
            if type(thought["text"]) is not str or type(thought["signature"]) is not str:
                self.fault("ALL-02", "", "reasoningText must have a text and a signature, both strings")

    def _check_tool_use(self, value: JsonValue) -> None:
        call = _CALL | (self.checked_fields(value, _CALL) or {})
        if type(call["input"]) is not dict:
            self.fault("ALL-06", ".input", f"arguments must be an object, not {kind_of(call['input'])}")
        self.has_tool_blocks = True
        name = call["name"]
        if type(name) is not str or not self.is_name(name):
            self.check_tool_name(name)
        self.open_call(call["toolUseId"], ".toolUseId")

    def _check_result(self, value: JsonValue) -> None:
        self.has_tool_blocks = True
        result = _RESULT | (self.checked_fields(value, _RESULT) or {})
        call_id, content = result["toolUseId"], result["content"]
        self.close_call(call_id, "toolUseId")
        if result["status"] not in ("success", "error"):
            self.fault("ALL-02", "", f"status must be success or error, not {excerpt(result['status'])}")
        for _, part in self.checked_items(content, ".content", "content blocks", non_empty=True):
            self._check_result_part(part)

    def _check_result_part(self, part: JsonValue) -> None:
        kind, value = next(iter(part.items())) if type(part) is dict and len(part) == 1 else (None, None)
        if kind == "text":
            self._check_text(value, ".content")
        elif kind in _MEDIA:
            self._check_media(str(kind), value, self.dialect.media.result_kinds)
        elif kind is None:
            self.fault("ALL-02", ".content", "each block must be an object with one key")
        elif kind != "json":
            self.fault("ALL-07", ".content", f"unknown key {excerpt(kind)}")
        elif type(value) is not dict:
            self.reject_type("json must be an object", ".content", value)

    def _check_image_block(self, value: JsonValue) -> None:
        self.has_other_blocks = True
        self._check_media("image", value, self.dialect.media.user_kinds)

    def _check_document(self, value: JsonValue) -> None:
        self.has_other_blocks = self.has_document = True
        self._check_media("document", value, self.dialect.media.user_kinds)

    def _check_media(self, kind: str, value: JsonValue, accepted: frozenset[str]) -> None:
        if kind not in accepted:
            return self.fault("BED-09", "", f"{kind} is not accepted here")
        media = _MEDIA[kind] | (self.checked_fields(value, _MEDIA[kind]) or {})
        if type(form := media["format"]) is not str or form not in _FORMATS[kind]:
            self.fault("ALL-10", "", f"{kind} format {excerpt(form)} is not accepted")
        self.count_attachment(kind)
        if kind == "document":
            self._check_title(media["name"])
        source = self.checked_fields(media["source"], _SOURCE, ".source") or {}
        data = source.get("bytes", "x")
        if len(source) != 1 or type(data) is not str or not data:
            self.fault("ALL-02", ".source", "a source must have either bytes, in base64, or s3Location")
        elif kind == "image" and type(form) is str and form in _FORMATS[kind]:
            self.check_image(data, f"image/{form}")
        return None

    def _check_title(self, name: JsonValue) -> None:
        if type(name) is not str or not _TITLE.fullmatch(name):
            self.fault(
                "BED-18", ".name", f"the document's name {excerpt(name)} is not in the required format"
            )
        elif name in self.document_names:
            self.fault("BED-15", ".name", f"two documents are named {excerpt(name)}")
        else:
            self.document_names |= {name}

    def _check_cache_point(self, value: JsonValue, path: str = "") -> None:
        self.checked_fields(value, _POINT, path)
        self.check_mark(value, path)

    def check_parameters(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("request", body, _TOP)
        if (inference := body.get("inferenceConfig")) is not None:
            given = _INFERENCE | (self.checked_fields(inference, _INFERENCE, "inferenceConfig") or {})
            self.check_limit(given["maxTokens"], "inferenceConfig.maxTokens")
        self.declares_tools = "toolConfig" in body
        # checked before the system prompt, because the provider counts cache marks in this order
        if self.declares_tools:
            self._check_tools(body["toolConfig"])
        if (system := body.get("system")) is not None:
            for _, block in self.checked_items(system, "system", "blocks"):
                held = self.checked_fields(block, _SYSTEM, "system") or {}
                if "text" in held:
                    self._check_text(held["text"], "system")
                if "cachePoint" in held:
                    self._check_cache_point(held["cachePoint"], "system")

    def _check_tools(self, config: JsonValue) -> None:
        held = _TOOLS | (self.checked_fields(config, _TOOLS, "toolConfig") or {})
        choice = held["toolChoice"]
        for path, tool in self.checked_items(held["tools"], "toolConfig.tools", "tools", non_empty=True):
            entry = self.checked_fields(tool, _ENTRY, path) or {}
            if "cachePoint" in entry:
                self._check_cache_point(entry["cachePoint"], path)
            if "toolSpec" in entry:
                self._check_tool(entry["toolSpec"], path)
        if type(choice) is dict and choice.keys() == {"tool"}:
            self.check_choice(value_at(choice, "tool", "name"), "toolConfig.toolChoice")
        elif choice is not None and (type(choice) is not dict or [*choice] not in (["auto"], ["any"])):
            self.fault("ALL-02", "toolConfig.toolChoice", "must be one of auto, any and tool")

    def _check_tool(self, value: JsonValue, path: str) -> None:
        tool = _TOOL | (self.checked_fields(value, _TOOL, path) or {})
        schema, description = tool["inputSchema"], tool["description"]
        self.declare_tool(tool["name"], path)
        given = schema.get("json") if type(schema) is dict and len(schema) == 1 else None
        self.check_schema(given, f"{path}.inputSchema.json")
        if type(description) is not str or not description:
            self.fault("ALL-02", f"{path}.description", "must be a non-empty string, or absent")


_CHECKS: dict[str, dict[str, Callable[[Converse, JsonValue], None]]] = {
    "assistant": {
        "text": Converse._check_text_block,
        "reasoningContent": Converse._check_reasoning,
        "toolUse": Converse._check_tool_use,
        "cachePoint": Converse._check_cache_point,
    },
    "user": {
        "text": Converse._check_text_block,
        "toolResult": Converse._check_result,
        "image": Converse._check_image_block,
        "document": Converse._check_document,
        "cachePoint": Converse._check_cache_point,
    },
}
