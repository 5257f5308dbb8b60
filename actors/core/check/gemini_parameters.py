"""What Google's generateContent demands of a request beside its contents."""

import re
from typing import ClassVar

from actors.core.check.turns import Turns
from actors.core.check.words import excerpt
from actors.core.jsonio import JsonValue

_TOP = frozenset(
    """contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels
    serviceTier store""".split()  # noqa: SIM905  as a list it is a page
)
_SYSTEM = frozenset({"role", "parts"})
_TOOLS = frozenset(
    """functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext googleMaps fileSearch
    computerUse enterpriseWebSearch retrieval mcpServers""".split()  # noqa: SIM905  likewise
)
_DECLARATION = frozenset(
    "name description parameters parametersJsonSchema response responseJsonSchema behavior".split()  # noqa: SIM905
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
_CONFIG = frozenset({"functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations"})
_CALLING = frozenset({"mode", "allowedFunctionNames"})
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED")
_UNDERSCORE = re.compile(r"_([a-z0-9])")
_DEEPEST = 48  # levels of a schema that are read


class GeminiParameters(Turns):
    """The part of the judge that reads what stands beside the messages."""

    container: ClassVar[str] = "contents"

    def spelt(self, value: JsonValue) -> JsonValue:
        if type(value) is not dict or "_" not in "".join(value):
            return value
        first = {key: _UNDERSCORE.sub(lambda found: found[1].upper(), key) for key in value}
        return {
            key if first[key] != key and first[key] in value else first[key]: item
            for key, item in value.items()
        }  # a key that is there in both stays in both, and is unknown in the second: the host refuses it too

    def parameters(self, body: dict[str, JsonValue]) -> None:
        body = self.fields(body, _TOP, "request") or {}
        names = set[str]()
        if (tools := body.get("tools")) is not None:
            self._tools(tools, names)
        if (config := body.get("toolConfig")) is not None:
            self._calling(config, names, bool(tools))
        if (system := body.get("systemInstruction")) is not None:
            self._system(system)
        if (generation := body.get("generationConfig")) is not None:
            self._generation(generation)

    def _tools(self, tools: JsonValue, names: set[str]) -> None:
        for where, value in self.each(tools, "tools", "tools"):
            tool = self.fields(value, _TOOLS, where)
            declared = (tool or {}).get("functionDeclarations", [])
            for at, declaration in self.each(declared, f"{where}.functionDeclarations", "declarations"):
                self._declaration(declaration, at, names)

    def _declaration(self, value: JsonValue, where: str, names: set[str]) -> None:
        declaration = self.fields(value, _DECLARATION, where)
        if declaration is None:
            return
        self.declare(declaration.get("name"), where, names)
        if "parameters" in declaration:
            self._schema(declaration["parameters"], f"{where}.parameters", _DEEPEST)
        plain = declaration.get("parametersJsonSchema", {})
        if type(plain) is not dict:
            self.wanted("a JSON Schema is an object", f"{where}.parametersJsonSchema", plain)

    def _schema(self, value: JsonValue, where: str, depth: int) -> None:
        """Judge the keys of a schema, which is of the provider's own subset."""
        schema = self.fields(value, _SCHEMA, where)
        if schema is None or not depth:
            return None
        inner = [("items", schema["items"])] if "items" in schema else []
        properties, arms = schema.get("properties", {}), schema.get("anyOf", [])
        if type(properties) is not dict or type(arms) is not list:
            return self.fault("ALL-02", where, "properties are an object and anyOf a list")
        inner += [*properties.items(), *(("anyOf", arm) for arm in arms)]
        for name, item in inner:
            self._schema(item, f"{where}.{name}"[:200], depth - 1)
        return None

    def _calling(self, value: JsonValue, names: set[str], has_tools: bool) -> None:
        config = self.fields(value, _CONFIG, "toolConfig")
        if config is None or "functionCallingConfig" not in config:
            return None
        where = "toolConfig.functionCallingConfig"
        calling = self.fields(config["functionCallingConfig"], _CALLING, where) or {}
        mode = calling.get("mode", _MODES[0])
        if type(mode) is not str or mode.upper() not in _MODES:
            return self.fault("ALL-02", where, f"a mode of {', '.join(_MODES)}")
        if not has_tools:
            return self.fault("ALL-14", "toolConfig", "given without tools")
        allowed = calling.get("allowedFunctionNames", [])
        for name in allowed if type(allowed) is list else [allowed]:
            self.chosen(name, "toolConfig", names)
        return None

    def _system(self, value: JsonValue) -> None:
        system = self.fields(value, _SYSTEM, "systemInstruction") or {}
        parts = system.get("parts")
        if type(parts) is not list or not parts:
            return self.fault("ALL-02", "systemInstruction", "an object with parts")
        for part in parts:
            if type(part) is not dict or part.keys() != {"text"} or type(part["text"]) is not str:
                self.fault("ALL-02", "systemInstruction", f"only text parts stand here, not {excerpt(part)}")
        return None

    def _generation(self, value: JsonValue) -> None:
        generation = self.fields(value, _GENERATION, "generationConfig") or {}
        self.limited(generation.get("maxOutputTokens", 1), "generationConfig.maxOutputTokens")
        where = "generationConfig.thinkingConfig"
        thinking = self.fields(generation.get("thinkingConfig", {}), _THINKING, where) or {}
        if {"thinkingBudget", "thinkingLevel"} <= thinking.keys():
            self.fault("ALL-02", where, "a budget or a level, not both")
