"""Check requests of Google's generateContent, part by part.

Gemini calls a message a content. Calls and results are paired by position: the user content after a model content
begins with the results of its calls, in call order, with the names of the tools. Ids are optional, but if they are
sent, they must match. As in ProtoJSON, keys have two spellings, `functionCall` and `function_call`, and enumerations
are case-insensitive.
"""

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

from actors.core.check.json_values import excerpt, kind_of, shape
from actors.core.check.messages import AlternatingTurnsState
from actors.core.data.jsonio import JsonValue

_TOP = shape(
    """contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels
    modelArmorConfig serviceTier store continuationToken automaticContinuation outputConfig"""
)
_SYSTEM = shape("role parts")
_TOOL = shape(
    """functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext googleMaps fileSearch
    computerUse enterpriseWebSearch retrieval mcpServers parallelAiSearch exaAiSearch"""
)
_DECLARATION = shape("name description parameters parametersJsonSchema response responseJsonSchema behavior")
_SCHEMA = shape(
    """type format title description nullable enum maxItems minItems properties required minProperties
    maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum"""
)
_GENERATION = shape(
    """stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount
    temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs mediaResolution
    speechConfig imageConfig enableEnhancedCivicAnswers maxOutputTokens thinkingConfig audioTimestamp
    enableAffectiveDialog routingConfig modelConfig modelSelectionConfig responseFormat translationConfig
    audioTranscriptionConfig"""
)
_THINKING = shape("includeThoughts thinkingBudget thinkingLevel")
_CONFIG = shape("functionCallingConfig retrievalConfig includeServerSideToolInvocations")
_CALLING = shape("mode allowedFunctionNames streamFunctionCallArguments")
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED")
_FLAGS = shape(
    """thought thoughtSignature partMetadata mediaResolution videoMetadata audioTranscription mediaProcessing
    speechMetadata documentMetadata spreadsheetMetadata audioMetadata"""
)
_CALL = shape("name args id partialArgs willContinue")
_RESPONSE = shape("name response id parts willContinue scheduling")
_BLOB = shape("mimeType data displayName")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_UNDERSCORE = re.compile(r"_([a-z0-9])")
_DEEPEST = 48  # maximum depth of a schema


class Gemini(AlternatingTurnsState):
    """The check state of the family `gemini`.

    In `open_calls` and `answered_calls`, the key of a call is its index in the transcript, such as `#3`.

    Attributes:
        call_count: The number of calls so far.
        lacks_user_content: Whether the current message of the model does not follow a user message.
    """

    container = "contents"
    open_blocks_key: ClassVar[str | None] = "parts"
    model_role = "model"

    call_count: int = 0
    lacks_user_content: bool = False
    has_other_blocks: bool

    def continues_turn(self, role: str) -> bool:
        """Return True for the role `model`, because streaming clients send each piece of an answer as a message."""
        return role == "model"

    def begin_message(self, role: str) -> None:
        if role == self.role == "model":
            return
        if self.open_calls and (role == "model" or self.role == "user"):
            self.report_unanswered("in the next content")
        self.lacks_user_content = role == "model" and self.role != "user"
        self.answered_calls.clear()
        self.has_other_blocks = False

    def report_unanswered(self, when: str) -> None:
        ids = tuple(call_id or number for number, (call_id, _) in self.open_calls.items())
        self.fault(
            "GEM-01", self.message_path, f"no functionResponse for {len(ids)} functionCall parts {when}", *ids
        )
        self.open_calls.clear()

    def normalize_keys(self, value: JsonValue) -> JsonValue:
        if type(value) is not dict or "_" not in "".join(value):
            return value
        first = {key: _UNDERSCORE.sub(lambda found: found[1].upper(), key) for key in value}
        # if both spellings occur, the second is not converted and counts as an unknown key, as on the host
        twice = {key for key in value if first[key] != key and first[key] in value}
        return {key if key in twice else first[key]: item for key, item in value.items()}

    def check_block(self, block: JsonValue) -> None:
        part = self.checked_fields(block, _PART)
        if part is None:
            return None
        if "thoughtSignature" in part:
            self._check_signature(part["thoughtSignature"])
        if "thought" in part:
            self.fault("ALL-08", "", "a thought must not be sent back")
        held = _PARTS.keys() & part
        if len(held) != 1:
            return self.fault("ALL-11", "", f"a part must have one kind of data, not {len(held)}")
        (kind,) = held
        return _PARTS[kind](self, part)

    def _check_signature(self, signature: JsonValue) -> None:
        if self.role != "model":
            self.fault("ALL-08", "", "only a model content may contain a thoughtSignature")
        stem = signature.rstrip("=") if type(signature) is str else ""
        if type(signature) is not str or not _BASE64.fullmatch(signature) or len(stem) % 4 == 1:
            self.fault("GEM-06", "", f"thoughtSignature {excerpt(signature)} is not base64")

    def _check_text(self, part: dict[str, JsonValue]) -> None:
        self.has_other_blocks = True
        if type(text := part["text"]) is not str:
            self.reject_type("text must be a string", "", text)

    def _check_call(self, part: dict[str, JsonValue]) -> None:
        call = self.checked_fields(part["functionCall"], _CALL)
        if call is None:
            return None
        if self.role != "model":
            return self.fault("ALL-08", "", "only a model content may contain a functionCall")
        if type(given := call["args"] if "args" in call else None) is not dict:
            self.fault("ALL-06", ".args", f"arguments must be an object, not {kind_of(given)}")
        call_id, name = self._checked_id(call), call["name"] if "name" in call else None
        self.has_other_blocks = True
        if not self.open_calls and self.lacks_user_content:
            self.fault("GEM-02", "", "a content with function calls must follow a user content")
        signed = "thoughtSignature" in part and part["thoughtSignature"]
        if not self.open_calls and not signed and self.dialect.reasoning.required == "before_calls":
            self.fault("GEM-04", "", "the first functionCall has no thoughtSignature")
        if type(name) is not str or not self.is_name(name):
            self.check_tool_name(name)
        if call_id:
            self.use_id(call_id)
        self.open_calls[f"#{self.call_count}"] = (call_id, name)
        self.call_count += 1
        return None

    def _check_response(self, part: dict[str, JsonValue]) -> None:
        response = self.checked_fields(part["functionResponse"], _RESPONSE)
        if response is None:
            return None
        if self.role != "user":
            return self.fault("ALL-08", "", "only a user content may contain a functionResponse")
        if type(said := response["response"] if "response" in response else None) is not dict:
            self.reject_type("a response must be an object", ".response", said)
        if "parts" in response:
            self._check_attachments(response["parts"])
        call_id, name = self._checked_id(response), response["name"] if "name" in response else None
        if type(name) is not str or not self.is_name(name):
            self.check_tool_name(name)
        return self._check_answer(call_id, name)

    def _check_answer(self, call_id: str, name: JsonValue) -> None:
        ids = (call_id,) if call_id else ()
        if not self.open_calls and self.answered_calls:
            return self.fault("GEM-01", "", "there are more functionResponses than functionCalls", *ids)
        if not self.open_calls:
            return self.fault(
                "GEM-03", "", "a functionResponse must follow a content with function calls", *ids
            )
        number, (wanted_id, wanted_name) = self._answered_call(call_id)
        if self.has_other_blocks:
            self.fault("GEM-03", "", "a functionResponse must precede all other parts", call_id or number)
        if name != wanted_name or (call_id and wanted_id and call_id != wanted_id):
            what = (
                f"expected the response of {excerpt(wanted_name)}, not of {excerpt(name)} {excerpt(call_id)}"
            )
            self.fault("GEM-16", "", what, call_id or number)
        del self.open_calls[number]
        self.answered_calls[number] = None
        return None

    def _answered_call(self, call_id: str) -> tuple[str, tuple[str, JsonValue]]:
        """Return the open call that a response answers: the call with this id or, if there is none, the first one."""
        opened = iter(self.open_calls.items())
        first = next(opened)
        return next((call for call in (first, *opened) if call_id and call[1][0] == call_id), first)

    def _checked_id(self, value: dict[str, JsonValue]) -> str:
        call_id = value["id"] if "id" in value else ""
        if "id" in value and not self.dialect.ids.native_passthrough:
            self.fault("GEM-09", ".id", "this host does not accept call ids")
        elif "id" in value:
            self.check_id(call_id)
        return call_id if type(call_id) is str else ""

    def _check_attachments(self, parts: JsonValue) -> None:
        for _, part in self.checked_items(parts, ".parts", "parts", non_empty=True):
            blob = self.normalize_keys(part)
            if type(blob) is not dict or blob.keys() != {"inlineData"}:
                self.fault(
                    "ALL-07", ".parts", "a part of a response must have the key inlineData and no other key"
                )
            elif (kind := self._check_blob(blob["inlineData"])) not in (
                None,
                *self.dialect.media.result_kinds,
            ):
                self.fault("ALL-10", ".parts", f"{kind} is not accepted in a response")

    def _check_inline_data(self, part: dict[str, JsonValue]) -> None:
        self.has_other_blocks = True
        self._check_blob(part["inlineData"])

    def _check_blob(self, value: JsonValue) -> str | None:
        """Check inline data, and return its kind, `image` or `document`; None if the value is not an object."""
        blob = self.checked_fields(value, _BLOB)
        if blob is None:
            return None
        media_type, data = blob.get("mimeType"), blob.get("data")
        if type(data) is not str or not data:
            self.fault("ALL-02", "", "data must be a non-empty base64 string")
        if self.role != "user" or type(media_type) is not str or media_type not in self.dialect.media.types:
            self.fault("ALL-10", "", f"media of type {excerpt(media_type)} is not accepted here")
        kind = "image" if str(media_type).startswith("image/") else "document"
        self.count_attachment(kind)
        return kind

    def _reject_file(self, part: dict[str, JsonValue]) -> None:
        self.has_other_blocks = True
        self.fault("ALL-10", "", "fileData is not accepted here")

    def _check_provider_part(self, part: dict[str, JsonValue]) -> None:
        self.has_other_blocks = True
        if self.role != "model":
            self.fault("ALL-08", "", "only a model content may contain parts of the provider's own tools")

    def check_parameters(self, body: dict[str, JsonValue]) -> None:
        body = self.checked_fields(body, _TOP, "request") or {}
        if (tools := body.get("tools")) is not None:
            for path, value in self.checked_items(tools, "tools", "tools"):
                declared = (self.checked_fields(value, _TOOL, path) or {}).get("functionDeclarations", [])
                for at, declaration in self.checked_items(
                    declared, f"{path}.functionDeclarations", "declarations"
                ):
                    self._check_declaration(declaration, at)
        if (config := body.get("toolConfig")) is not None:
            self._check_function_calling(config, bool(tools))
        if (system := body.get("systemInstruction")) is not None:
            self._check_system(system)
        if (value := body.get("generationConfig")) is not None:
            path = "generationConfig"
            generation = self.checked_fields(value, _GENERATION, path) or {}
            self.check_limit(generation.get("maxOutputTokens", 1), f"{path}.maxOutputTokens")
            path = f"{path}.thinkingConfig"
            thinking = self.checked_fields(generation.get("thinkingConfig", {}), _THINKING, path) or {}
            if {"thinkingBudget", "thinkingLevel"} <= thinking.keys():
                self.fault("ALL-02", path, "must have a budget or a level, not both")

    def _check_declaration(self, value: JsonValue, path: str) -> None:
        if (declaration := self.checked_fields(value, _DECLARATION, path)) is not None:
            self.declare_tool(declaration.get("name"), path)
            if "parameters" in declaration:
                self._check_schema_fields(declaration["parameters"], f"{path}.parameters", _DEEPEST)
            if type(plain := declaration.get("parametersJsonSchema", {})) is not dict:
                self.reject_type("a JSON Schema must be an object", f"{path}.parametersJsonSchema", plain)

    def _check_schema_fields(self, value: JsonValue, path: str, depth: int) -> None:
        schema = self.checked_fields(value, _SCHEMA, path)
        if schema is None or not depth:
            return None
        properties, arms = schema.get("properties", {}), schema.get("anyOf", [])
        if type(properties) is not dict or type(arms) is not list:
            return self.fault("ALL-02", path, "properties must be an object, and anyOf must be a list")
        inner = [(key, schema[key]) for key in ("items",) if key in schema]
        for name, item in [*inner, *properties.items(), *(("anyOf", arm) for arm in arms)]:
            self._check_schema_fields(item, f"{path}.{name}"[:200], depth - 1)
        return None

    def _check_function_calling(self, value: JsonValue, has_tools: bool) -> None:
        config, path = self.checked_fields(value, _CONFIG, "toolConfig"), "toolConfig.functionCallingConfig"
        if config is None or "functionCallingConfig" not in config:
            return
        calling = self.checked_fields(config["functionCallingConfig"], _CALLING, path) or {}
        mode, allowed = calling.get("mode", _MODES[0]), calling.get("allowedFunctionNames", [])
        if type(mode) is not str or mode.upper() not in _MODES:
            self.fault("ALL-02", path, f"the mode must be one of {', '.join(_MODES)}")
        elif not has_tools:
            self.fault("ALL-14", "toolConfig", "must not be set without tools")
        else:
            for name in allowed if type(allowed) is list else [allowed]:
                self.check_choice(name, "toolConfig")

    def _check_system(self, value: JsonValue) -> None:
        parts = (self.checked_fields(value, _SYSTEM, "systemInstruction") or {}).get("parts")
        for _, part in self.checked_items(parts, "systemInstruction", "parts", non_empty=True):
            if type(part) is not dict or part.keys() != {"text"} or type(part["text"]) is not str:
                self.fault("ALL-02", "systemInstruction", f"only text parts are allowed, not {excerpt(part)}")


_PARTS: Mapping[str, Callable[[Gemini, dict[str, JsonValue]], None]] = {
    "text": Gemini._check_text,
    "functionCall": Gemini._check_call,
    "functionResponse": Gemini._check_response,
    "inlineData": Gemini._check_inline_data,
    "fileData": Gemini._reject_file,
    **dict.fromkeys(
        ("executableCode", "codeExecutionResult", "toolCall", "toolResponse"), Gemini._check_provider_part
    ),
}
_PART = _FLAGS | dict.fromkeys(_PARTS)
