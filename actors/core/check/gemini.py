"""What Google's generateContent demands, part by part.

Pairing is between two neighbours and by position: what a model content calls, the user content after it answers at
its head, in call order, under the calls' names. Ids, where there are any, only repeat that. The last content
of a fragment may be unfinished, so that results are missing is said when the next one begins or at the end.
"""

import re
from collections.abc import Callable
from typing import ClassVar

from actors.core.check.state import Fold, kind_of, shown
from actors.core.jsonio import JsonValue

_TOP = frozenset(
    """contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels
    serviceTier store""".split()  # noqa: SIM905  as a list it is a page
)
_CONTENT = frozenset({"role", "parts"})
_FLAGS = frozenset({"thought", "thoughtSignature", "partMetadata", "mediaResolution", "videoMetadata"})
_CALL = frozenset({"name", "args", "id"})
_RESPONSE = frozenset({"name", "response", "id", "parts"})
_TOOL = frozenset({"functionDeclarations"})
_DECLARATION = frozenset(
    {
        "name",
        "description",
        "parameters",
        "parametersJsonSchema",
        "response",
        "responseJsonSchema",
        "behavior",
    }
)
_SCHEMA = frozenset(
    """type format title description nullable enum maxItems minItems properties required minProperties
    maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum
    maximum""".split()  # noqa: SIM905  likewise
)
_GENERATION = frozenset(
    """stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount
    maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs
    thinkingConfig mediaResolution speechConfig imageConfig enableEnhancedCivicAnswers""".split()  # noqa: SIM905
)
_THINKING = frozenset({"includeThoughts", "thinkingBudget", "thinkingLevel"})
_CALLING = frozenset({"mode", "allowedFunctionNames"})
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_DEEPEST = 48  # levels of a schema that are read


class Gemini(Fold):
    """The fold of the family `gemini`.

    Of what it remembers, `due` are the calls that wait (`place\\nid\\nname`), `answered` the places answered in
    this content, `mixed` says that the user content holds something beside responses, `split` that no user
    content stands before the model content.
    """

    container: ClassVar[str] = "contents"
    opens: ClassVar[str | None] = "parts"

    def message(self, value: JsonValue) -> None:
        if type(value) is not dict:
            self.count += 1
            return self.fault("ALL-02", self.here, f"a content is an object, not {kind_of(value)}")
        role = value.get("role")
        if role not in ("user", "model"):
            self.count += 1
            return self.fault("GEM-08", self.here, f"role {shown(role)} is neither user nor model")
        self._open("user" if role == "user" else "model")
        return self._read(value)

    def resume(self, value: JsonValue) -> None:
        self._read(value if type(value) is dict else {})

    def finish(self, *, manual_thinking: bool) -> None:
        if self.due:
            self._unanswered()
        if self.role is None:
            return self.fault("GEM-07", "contents", "there is no content")
        if not self.blocks:
            self.fault("GEM-11", self.here, "the content has no parts")
        if _ours(self.role) not in self.dialect.last_roles:
            self.fault("ALL-05", self.here, f"a request cannot end with role {self.role}")
        return None

    # --- contents -----------------------------------------------------------------------------------

    def _open(self, role: str) -> None:
        """Judge the content that ends here, and begin the next."""
        if self.role is not None and not self.blocks:
            self.fault("GEM-11", self.here, "the content has no parts")
        if self.due and (role == "model" or self.role == "user"):
            self._unanswered()
        self.count += 1
        if self.role is None and _ours(role) not in self.dialect.first_roles:
            self.fault("ALL-09", self.here, f"a transcript cannot begin with role {role}")
        if role == self.role:
            self.fault("GEM-18", self.here, f"role {role} twice in a row")
        self.split = role == "model" and self.role != "user"
        self.answered.clear()
        self.role, self.blocks, self.mixed = role, 0, False

    def _unanswered(self) -> None:
        ids = tuple(call.split("\n", 2)[1] for call in self.due)
        self.fault("GEM-01", self.here, f"no functionResponse for {len(ids)} functionCall parts", *ids)
        self.due.clear()

    def _read(self, content: dict[str, JsonValue]) -> None:
        self.allow_only("GEM-10", self.here, content, _CONTENT)
        parts = content.get("parts")
        if type(parts) is not list:
            self.fault("ALL-02", f"{self.here}.parts", f"a list of parts, not {kind_of(parts)}")
            self.blocks += 1  # it is not empty, it is wrong
            return
        for part in parts:
            if type(part) is dict:
                self._part(part)
            else:
                self.fault("ALL-02", self._at, f"a part is an object, not {kind_of(part)}")
            self.blocks += 1

    # --- parts --------------------------------------------------------------------------------------

    @property
    def _at(self) -> str:
        return f"{self.here}.parts[{self.blocks}]"

    def _part(self, part: dict[str, JsonValue]) -> None:
        if not part.keys() <= _PART:
            self.allow_only("GEM-10", self._at, part, _PART)
        held = [key for key in part if key in _PARTS]
        if "thoughtSignature" in part:
            self._signature(part["thoughtSignature"])
        if "thought" in part:
            self.fault("ALL-08", self._at, "thoughts are not sent back")
        if len(held) != 1:
            return self.fault("GEM-11", self._at, f"a part holds one kind of data, not {len(held)}")
        if held[0] != "functionResponse":
            self.mixed = True
        return _PARTS[held[0]](self, part)

    def _signature(self, signature: JsonValue) -> None:
        if self.role != "model":
            self.fault("ALL-08", self._at, "a thoughtSignature outside a model content")
        if self.dialect.thinking_carrier == "none":
            self.fault("ALL-08", self._at, "this dialect carries no thoughtSignature")
        stem = signature.rstrip("=") if type(signature) is str else ""
        if type(signature) is not str or not _BASE64.fullmatch(signature) or len(stem) % 4 == 1:
            self.fault("GEM-06", self._at, f"thoughtSignature {shown(signature)} is not base64")

    def _text(self, part: dict[str, JsonValue]) -> None:
        text = part["text"]
        if type(text) is not str:
            self.fault("ALL-02", self._at, f"text is a string, not {kind_of(text)}")
        elif not text and "thoughtSignature" not in part:
            self.fault("GEM-11", self._at, "the text is empty")

    def _call(self, part: dict[str, JsonValue]) -> None:
        call = part["functionCall"]
        if type(call) is not dict:
            return self.fault("ALL-02", self._at, f"a functionCall is an object, not {kind_of(call)}")
        if self.role != "model":
            return self.fault("ALL-08", self._at, "a functionCall outside a model content")
        if not self.due:
            self._first_call(part)
        self.allow_only("GEM-10", self._at, call, _CALL)
        name = self._named(call)
        if type(call.get("args")) is not dict:
            self.fault(
                "ALL-06", f"{self._at}.args", f"arguments are an object, not {kind_of(call.get('args'))}"
            )
        call_id = self._id(call)
        if call_id and self.take_id(call_id):
            self.fault("ALL-04", f"{self._at}.id", f"id {shown(call_id)} is taken", call_id)
        self.due[f"{self.blocks}\n{call_id}\n{name}"] = None
        return None

    def _first_call(self, part: dict[str, JsonValue]) -> None:
        if self.split:
            self.fault("GEM-02", self._at, "a function call turn that does not come after a user content")
        if self.dialect.thinking_required == "before_calls" and not part.get("thoughtSignature"):
            self.fault("GEM-04", self._at, "the first functionCall has no thoughtSignature")

    def _response(self, part: dict[str, JsonValue]) -> None:
        response = part["functionResponse"]
        if type(response) is not dict:
            return self.fault("ALL-02", self._at, f"a functionResponse is an object, not {kind_of(response)}")
        if self.role != "user":
            return self.fault("ALL-08", self._at, "a functionResponse outside a user content")
        self.allow_only("GEM-10", self._at, response, _RESPONSE)
        name, call_id = self._named(response), self._id(response)
        if type(response.get("response")) is not dict:
            what = f"a response is an object, not {kind_of(response.get('response'))}"
            self.fault("ALL-02", f"{self._at}.response", what)
        if "parts" in response:
            self._attached(response["parts"])
        return self._answer(name, call_id)

    def _attached(self, parts: JsonValue) -> None:
        """Judge the media of a response."""
        where = f"{self._at}.parts"
        if type(parts) is not list or not parts:
            return self.fault("ALL-02", where, f"parts are a list with content, not {kind_of(parts)}")
        for part in parts:
            if type(part) is not dict or part.keys() != {"inlineData"}:
                self.fault("GEM-10", where, "a part of a response has inlineData and no other key")
            else:
                self._inline(part)
                self._held_in_response(part["inlineData"], where)
        return None

    def _held_in_response(self, blob: JsonValue, where: str) -> None:
        mime = blob.get("mimeType") if type(blob) is dict else None
        kind = "image" if str(mime).startswith("image/") else "document"
        if kind not in self.dialect.result_media:
            self.fault("ALL-10", where, f"{kind} is not accepted in a response")

    def _answer(self, name: str, call_id: str) -> None:
        """Take the next waiting call as answered."""
        if not self.due:
            if self.answered:
                return self.fault("GEM-01", self._at, "more functionResponses than functionCalls", call_id)
            return self.fault("GEM-03", self._at, "a functionResponse without a function call turn", call_id)
        if self.mixed:
            self.fault("GEM-03", self._at, "a functionResponse behind other parts", call_id)
        waiting = next(iter(self.due))
        place, wanted_id, wanted_name = waiting.split("\n", 2)
        if (name, call_id) != (wanted_name, wanted_id):
            what = f"the response of {shown(name)} {shown(call_id)} where {shown(wanted_name)} is due"
            self.fault("GEM-16", self._at, what, call_id)
        del self.due[waiting]
        self.answered.add(place)
        return None

    def _named(self, value: dict[str, JsonValue]) -> str:
        name = value.get("name")
        if type(name) is not str or not self.is_name(name):
            self.fault("GEM-17", f"{self._at}.name", f"tool name {shown(name)}")
        return name if type(name) is str else ""

    def _id(self, value: dict[str, JsonValue]) -> str:
        """Return the id, empty if there is none."""
        call_id = value.get("id")
        if "id" not in value:
            return ""
        if not self.dialect.native_id_passthrough:
            self.fault("GEM-09", f"{self._at}.id", "this host refuses ids")
        elif type(call_id) is not str or not self.is_id(call_id):
            self.fault("ALL-03", f"{self._at}.id", f"id {shown(call_id)} is not of the form")
        return call_id if type(call_id) is str else ""

    def _inline(self, part: dict[str, JsonValue]) -> None:
        blob = part["inlineData"]
        if type(blob) is not dict:
            return self.fault("ALL-02", self._at, f"inlineData is an object, not {kind_of(blob)}")
        self.allow_only("GEM-10", self._at, blob, frozenset({"mimeType", "data", "displayName"}))
        mime, data = blob.get("mimeType"), blob.get("data")
        if type(data) is not str or not data:
            self.fault("ALL-02", self._at, "data is a base64 string with content")
        if self.role != "user" or type(mime) is not str or mime not in self.dialect.media_types:
            self.fault("ALL-10", self._at, f"media of type {shown(mime)} are not accepted here")
        self.attach("image" if str(mime).startswith("image/") else "document", self._at)
        return None

    def _file(self, part: dict[str, JsonValue]) -> None:
        if self.role != "user" or not self.dialect.media_urls:
            self.fault("ALL-10", self._at, "fileData is not accepted here")

    def _foreign(self, part: dict[str, JsonValue]) -> None:
        self.fault("ALL-08", self._at, "parts of the provider's own tools are not sent back")

    # --- the rest of the request --------------------------------------------------------------------

    def head(self, body: dict[str, JsonValue]) -> None:
        self.allow_only("GEM-10", "request", body, _TOP)
        names = set[str]()
        if (tools := body.get("tools")) is not None:
            self._tools(tools, names)
        if (config := body.get("toolConfig")) is not None:
            self._calling(config, names)
        if (system := body.get("systemInstruction")) is not None:
            self._system(system)
        if (generation := body.get("generationConfig")) is not None:
            self._generation(generation)

    def _tools(self, tools: JsonValue, names: set[str]) -> None:
        if type(tools) is not list:
            return self.fault("ALL-02", "tools", f"a list of tools, not {kind_of(tools)}")
        for index, tool in enumerate(tools):
            declared = tool.get("functionDeclarations") if type(tool) is dict else None
            if type(tool) is not dict or type(declared) is not list:
                self.fault("ALL-02", f"tools[{index}]", "a tool is an object with functionDeclarations")
                continue
            self.allow_only("GEM-10", f"tools[{index}]", tool, _TOOL)
            for at, declaration in enumerate(declared):
                self._declaration(declaration, f"tools[{index}].functionDeclarations[{at}]", names)
        return None

    def _declaration(self, declaration: JsonValue, where: str, names: set[str]) -> None:
        if type(declaration) is not dict:
            return self.fault("ALL-02", where, f"a declaration is an object, not {kind_of(declaration)}")
        self.allow_only("GEM-10", where, declaration, _DECLARATION)
        name = declaration.get("name")
        if type(name) is not str or not self.is_name(name):
            self.fault("GEM-17", f"{where}.name", f"tool name {shown(name)}")
        elif name in names:
            self.fault("ALL-13", f"{where}.name", f"tool name {shown(name)} is declared twice")
        else:
            names.add(name)
        if "parameters" in declaration:
            self._schema(declaration["parameters"], f"{where}.parameters", _DEEPEST)
        plain = declaration.get("parametersJsonSchema", {})
        if type(plain) is not dict:
            self.fault("ALL-02", f"{where}.parametersJsonSchema", "a JSON Schema is an object")
        return None

    def _schema(self, schema: JsonValue, where: str, depth: int) -> None:
        """Judge the keys of a schema, which is of the provider's own subset."""
        if type(schema) is not dict:
            return self.fault("ALL-02", where, f"a schema is an object, not {kind_of(schema)}")
        self.allow_only("GEM-10", where, schema, _SCHEMA)
        if not depth:
            return None
        inner = [("items", schema["items"])] if "items" in schema else []
        properties, arms = schema.get("properties", {}), schema.get("anyOf", [])
        if type(properties) is not dict or type(arms) is not list:
            return self.fault("ALL-02", where, "properties are an object and anyOf a list")
        inner += [*properties.items(), *(("anyOf", arm) for arm in arms)]
        for name, value in inner:
            self._schema(value, f"{where}.{name}"[:200], depth - 1)
        return None

    def _calling(self, config: JsonValue, names: set[str]) -> None:
        calling = config.get("functionCallingConfig") if type(config) is dict else None
        if type(config) is not dict or type(calling) is not dict or calling.get("mode") not in _MODES:
            what = f"a functionCallingConfig with a mode of {', '.join(_MODES)}"
            return self.fault("ALL-02", "toolConfig", what)
        self.allow_only(
            "GEM-10", "toolConfig", config, frozenset({"functionCallingConfig", "retrievalConfig"})
        )
        self.allow_only("GEM-10", "toolConfig.functionCallingConfig", calling, _CALLING)
        allowed = calling.get("allowedFunctionNames", [])
        if not names:
            return self.fault("ALL-14", "toolConfig", "given without tools")
        if type(allowed) is not list or any(type(name) is not str or name not in names for name in allowed):
            self.fault("ALL-14", "toolConfig", "an allowed function is not declared")
        return None

    def _system(self, system: JsonValue) -> None:
        parts = system.get("parts") if type(system) is dict else None
        if type(system) is not dict or type(parts) is not list or not parts:
            return self.fault("ALL-02", "systemInstruction", "an object with parts")
        self.allow_only("GEM-10", "systemInstruction", system, _CONTENT)
        for part in parts:
            if type(part) is not dict or part.keys() != {"text"} or type(part["text"]) is not str:
                self.fault("ALL-02", "systemInstruction", "only text parts stand here")
        return None

    def _generation(self, generation: JsonValue) -> None:
        if type(generation) is not dict:
            return self.fault("ALL-02", "generationConfig", f"an object, not {kind_of(generation)}")
        self.allow_only("GEM-10", "generationConfig", generation, _GENERATION)
        limit, thinking = generation.get("maxOutputTokens", 1), generation.get("thinkingConfig", {})
        if type(limit) is not int or limit < 1:
            self.fault("ALL-02", "generationConfig.maxOutputTokens", f"a whole number, not {shown(limit)}")
        if type(thinking) is not dict:
            return self.fault("ALL-02", "generationConfig.thinkingConfig", "an object")
        self.allow_only("GEM-10", "generationConfig.thinkingConfig", thinking, _THINKING)
        if {"thinkingBudget", "thinkingLevel"} <= thinking.keys():
            self.fault("ALL-02", "generationConfig.thinkingConfig", "a budget or a level, not both")
        return None


def _ours(role: str) -> str:
    return "assistant" if role == "model" else role


_PARTS: dict[str, Callable[[Gemini, dict[str, JsonValue]], None]] = {
    "text": Gemini._text,
    "functionCall": Gemini._call,
    "functionResponse": Gemini._response,
    "inlineData": Gemini._inline,
    "fileData": Gemini._file,
    "executableCode": Gemini._foreign,
    "codeExecutionResult": Gemini._foreign,
    "toolCall": Gemini._foreign,
    "toolResponse": Gemini._foreign,
}
_PART = _FLAGS | _PARTS.keys()
