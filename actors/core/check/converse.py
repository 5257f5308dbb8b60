"""What AWS Bedrock Converse demands, block by block.

A block is an object with one key, which names its kind.
"""

import re
from collections.abc import Callable

from actors.core.check.turns import Turns
from actors.core.check.words import excerpt, kind_of
from actors.core.jsonio import JsonValue

_TOP = frozenset(
    """messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables
    additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier
    outputConfig""".split()  # noqa: SIM905  as a list it is a page
)
_INFERENCE = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})
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
    """The judge of the family `converse`.

    Attributes:
        thinks: The last message holds reasoning.
        worded, documented: It holds a text; a document.
        titles: Names of the documents so far.
        called: A message holds a call or a result.
        declares: The request declares tools, as far as its parameters were read.
    """

    thinks = worded = documented = called = False
    declares = True
    titles: frozenset[str] = frozenset()

    # --- messages -----------------------------------------------------------------------------------

    def finish(self, *, manual_thinking: bool) -> None:
        super().finish(manual_thinking=manual_thinking)
        self.marked()
        self._documented()
        if self.called and not self.declares:
            self.fault("BED-03", "toolConfig", "the messages hold tool blocks and no tool is declared")

    def begin(self, role: str) -> None:
        if self.documented:
            self._documented()
        if role == "assistant":
            if self.due:
                self.unanswered("in the next message")
            self.answered.clear()
        self.mixed = self.thinks = self.documented = self.worded = False

    def _documented(self) -> None:
        if self.documented and not self.worded:
            self.fault("BED-13", self.here, "a document without a text beside it")

    def place(self, index: int) -> str:
        return f"{self.at}.toolUseId"

    # --- blocks -------------------------------------------------------------------------------------

    def block(self, block: JsonValue) -> None:
        if type(block) is not dict or len(block) != 1:
            what = kind_of(block) if type(block) is not dict else f"{len(block)} keys"
            return self.fault("ALL-02", self.at, f"a block is an object with one key, not {what}")
        (kind,) = block
        value = block[kind]
        checks = _CHECKS[str(self.role)]
        if kind in checks:
            return checks[kind](self, value)
        if any(kind in checks for checks in _CHECKS.values()):
            return self.fault("ALL-08", self.at, f"{kind} in a message of role {self.role}")
        return self.fault("ALL-07", self.at, f"unknown key {excerpt(kind)}")

    def _text(self, value: JsonValue) -> None:
        self.mixed = self.worded = True
        if type(value) is not str or not value or value.isspace():
            self._words(value, self.at)

    def _words(self, value: JsonValue, where: str) -> None:
        if type(value) is not str:
            self.wanted("text is a string", where, value)
        elif not value or value.isspace():
            self.fault("BED-04", where, "the text is blank")

    def _reasoning(self, value: JsonValue) -> None:
        if self.dialect.reasoning.carrier == "none":
            self.fault("ALL-08", self.at, "this dialect carries no reasoning")
        if self.blocks and not self.thinks and self.dialect.reasoning.first:
            self.fault("BED-10", self.at, "reasoning in a message that does not begin with it")
        self.thinks = True
        held = self.fields(value, frozenset({"reasoningText", "redactedContent"})) or {}
        data = held.get("redactedContent")
        if len(held) != 1 or ("redactedContent" in held and (type(data) is not str or not data)):
            return self.fault("ALL-02", self.at, "either reasoningText or redactedContent, with content")
        if "reasoningText" not in held:
            return None
        text = self.fields(held["reasoningText"], frozenset({"text", "signature"})) or {}
        if type(text.get("text")) is not str or type(text.get("signature", "")) is not str:
            self.fault("ALL-02", self.at, "reasoningText holds a text and a signature, both strings")
        return None

    def _tool_use(self, value: JsonValue) -> None:
        call = self.fields(value, _CALL) or {}
        if type(given := call["input"] if "input" in call else None) is not dict:
            self.fault("ALL-06", f"{self.at}.input", f"arguments are an object, not {kind_of(given)}")
        self.called = True
        name = call["name"] if "name" in call else None
        if type(name) is not str or not self.is_name(name):
            self.named(name, self.at)
        self.open_call(call["toolUseId"] if "toolUseId" in call else None)

    def _result(self, value: JsonValue) -> None:
        self.called = True
        result = self.fields(value, _RESULT) or {}
        call_id = result["toolUseId"] if "toolUseId" in result else None
        if type(call_id) is str and call_id in self.due and not self.mixed:
            del self.due[call_id]
            self.answered.add(call_id)
        else:
            self._misplaced(call_id)
        if "status" in result and result["status"] not in ("success", "error"):
            self.fault("ALL-02", self.at, f"status {excerpt(result['status'])}")
        self._said(result["content"] if "content" in result else None)

    def _misplaced(self, call_id: JsonValue) -> None:
        """Judge a result that has no call, or stands behind other content."""
        if type(call_id) is not str:
            return self.wanted("toolUseId is a string", self.at, call_id)
        if call_id not in self.due:
            why = "answered already" if call_id in self.answered else "not called by the message before"
            return self.fault("BED-02", self.at, f"a result for {excerpt(call_id)}, which is {why}", call_id)
        self.fault("BED-10", self.at, f"the result of {excerpt(call_id)} stands after other content", call_id)
        del self.due[call_id]
        return self.answered.add(call_id)

    def _said(self, content: JsonValue) -> None:
        where = f"{self.at}.content"
        if type(content) is not list or not content:
            return self.wanted("a list with content", where, content)
        for part in content:
            kind, value = next(iter(part.items())) if type(part) is dict and len(part) == 1 else (None, None)
            if kind == "text":
                self._words(value, where)
            elif kind == "json":
                if type(value) is not dict:
                    self.wanted("json is an object", where, value)
            elif kind in _MEDIA:
                self._carried(str(kind), value, self.dialect.media.result_kinds)
            elif kind is None:
                self.fault("ALL-02", where, "each part is an object with one key")
            else:
                self.fault("ALL-07", where, f"unknown key {excerpt(kind)}")
        return None

    def _image(self, value: JsonValue) -> None:
        self.mixed = True
        self._carried("image", value, self.dialect.media.user_kinds)

    def _document(self, value: JsonValue) -> None:
        self.mixed = self.documented = True
        self._carried("document", value, self.dialect.media.user_kinds)

    def _carried(self, kind: str, value: JsonValue, held: frozenset[str]) -> None:
        if kind not in held:
            return self.fault("BED-09", self.at, f"{kind} is not accepted here")
        media = self.fields(value, _MEDIA[kind]) or {}
        if type(form := media.get("format")) is not str or form not in _FORMATS[kind]:
            self.fault("ALL-10", self.at, f"{kind} of format {excerpt(form)}")
        self.attach(kind, self.at)
        if kind == "document":
            self._titled(media.get("name"))
        source = (
            self.fields(media.get("source"), frozenset({"bytes", "s3Location"}), f"{self.at}.source") or {}
        )
        data = source.get("bytes", "x")
        if len(source) != 1 or type(data) is not str or not data:
            self.fault("ALL-02", f"{self.at}.source", "either bytes, in base64, or s3Location")
        return None

    def _titled(self, name: JsonValue) -> None:
        where = f"{self.at}.name"
        if type(name) is not str or not _TITLE.fullmatch(name):
            return self.fault("BED-18", where, f"the document's name {excerpt(name)} is not of the form")
        if name in self.titles:
            self.fault("BED-15", where, f"two documents are named {excerpt(name)}")
        self.titles |= {name}
        return None

    def _cache_point(self, value: JsonValue) -> None:
        self._point(value, self.at)

    def _point(self, value: JsonValue, where: str) -> None:
        self.fields(value, frozenset({"type", "ttl"}), where)
        self.mark(value, where, "default", "cachePoint")

    # --- the rest of the request --------------------------------------------------------------------

    def parameters(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("request", body, _TOP)
        if (inference := body.get("inferenceConfig")) is not None:
            given = self.fields(inference, _INFERENCE, "inferenceConfig") or {}
            self.limited(given.get("maxTokens", 1), "inferenceConfig.maxTokens")
        self.declares = "toolConfig" in body
        if (
            self.declares
        ):  # before the system prompt: so its cache marks are in the order that the provider reads
            self._tool_config(body["toolConfig"])
        if (system := body.get("system")) is not None:
            self._system(system)

    def _system(self, system: JsonValue) -> None:
        for _, block in self.each(system, "system", "blocks"):
            held = self.fields(block, frozenset({"text", "cachePoint", "guardContent"}), "system") or {}
            if "text" in held:
                self._words(held["text"], "system")
            if "cachePoint" in held:
                self._point(held["cachePoint"], "system")

    def _tool_config(self, config: JsonValue) -> None:
        held = self.fields(config, frozenset({"tools", "toolChoice"}), "toolConfig") or {}
        tools, names = held.get("tools"), set[str]()
        if type(tools) is not list or not tools:
            return self.fault("ALL-02", "toolConfig.tools", f"a list with tools, not {excerpt(tools)}")
        for index, tool in enumerate(tools):
            where = f"toolConfig.tools[{index}]"
            entry = self.fields(tool, frozenset({"toolSpec", "systemTool", "cachePoint"}), where) or {}
            if "cachePoint" in entry:
                self._point(entry["cachePoint"], where)
            if "toolSpec" in entry:
                self._tool((self.fields(entry["toolSpec"], _TOOL, where) or {}), where, names)
        if (choice := held.get("toolChoice")) is not None:
            self._choice(choice, names)
        return None

    def _tool(self, tool: dict[str, JsonValue], where: str, names: set[str]) -> None:
        schema, description = tool.get("inputSchema"), tool.get("description", "x")
        self.declare(tool.get("name"), where, names)
        given = schema.get("json") if type(schema) is dict and len(schema) == 1 else None
        self.rooted(given, f"{where}.inputSchema.json")
        if type(description) is not str or not description:
            self.fault("ALL-02", f"{where}.description", "a string with content, or none")

    def _choice(self, choice: JsonValue, names: set[str]) -> None:
        if type(choice) is not dict or len(choice) != 1 or not choice.keys() <= _CHOICES:
            return self.fault("ALL-02", "toolConfig.toolChoice", "one of auto, any and tool")
        if "tool" in choice:
            tool = choice["tool"]
            self.chosen(tool.get("name") if type(tool) is dict else None, "toolConfig.toolChoice", names)
        return None


_Check = Callable[[Converse, JsonValue], None]
_CHECKS: dict[str, dict[str, _Check]] = {
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
