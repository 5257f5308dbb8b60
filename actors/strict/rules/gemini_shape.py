"""Define the messages of Google's generateContent as tables, and parse requests as the provider does.

A field has a JSON name and a kind: a scalar, another message, or a list of scalars or messages. The provider's parser
reads the complete request first. Then it reports all unknown names together, one per line. As in ProtoJSON, each name
has two spellings (camelCase and snake_case), and enumerations are case-insensitive. The parsed request uses only the
JSON spelling, camelCase, so later checks need not handle both. The table contains the fields of the Gemini API and of
Vertex AI. A test compares the table with Google's SDK.

`Schema`, which tools and structured answers use, is one of these messages. A separate check finds keywords that are not
allowed for the type that a schema describes. JSON Schema (`responseJsonSchema`) is checked leniently: undocumented
keywords are ignored, as on the host.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from actors.strict.rules.base import Json, RuleBroken, is_array, is_object, object_at
from actors.strict.rules.gemini_rules import RULES
from actors.strict.rules.reading import cached_result

Message: TypeAlias = Mapping[str, str]
_FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
}


def _message_type(**fields: str) -> Message:
    return fields


_SCHEMA = _message_type(
    type="Type", format="string", title="string", description="string", nullable="bool", enum="string[]",
    maxItems="int", minItems="int", properties="Schema{}", required="string[]", minProperties="int",
    maxProperties="int", minLength="int", maxLength="int", pattern="string", example="any", anyOf="Schema[]",
    propertyOrdering="string[]", default="any", items="Schema", minimum="number", maximum="number",
    additionalProperties="any", defs="Schema{}", ref="string",
)  # fmt: skip

_MESSAGES: Mapping[str, Message] = {
    "GenerateContentRequest": _message_type(
        model="string", contents="Content[]", systemInstruction="Content", tools="Tool[]", toolConfig="ToolConfig",
        generationConfig="GenerationConfig", safetySettings="any", cachedContent="string", labels="Struct",
        modelArmorConfig="any", serviceTier="string", store="bool", continuationToken="bytes",
        automaticContinuation="bool", generationOutputConfig="any", outputConfig="any",
    ),
    "CountTokensRequest": _message_type(
        contents="Content[]", generateContentRequest="GenerateContentRequest", systemInstruction="Content",
        tools="Tool[]", generationConfig="GenerationConfig", model="string",
    ),
    "Content": _message_type(role="string", parts="Part[]"),
    "Part": _message_type(
        text="string", inlineData="Blob", fileData="FileData", functionCall="FunctionCall",
        functionResponse="FunctionResponse", executableCode="any", codeExecutionResult="any", toolCall="any",
        toolResponse="any", thought="bool", thoughtSignature="bytes", partMetadata="Struct",
        mediaResolution="any", videoMetadata="any", audioTranscription="any", mediaProcessing="any",
        speechMetadata="any", documentMetadata="any", spreadsheetMetadata="any", audioMetadata="any",
    ),
    "Blob": _message_type(mimeType="string", data="bytes", displayName="string"),
    "FileData": _message_type(mimeType="string", fileUri="string", displayName="string"),
    "FunctionCall": _message_type(
        id="string", name="string", args="Struct", partialArgs="any", willContinue="bool"
    ),
    "FunctionResponse": _message_type(
        id="string", name="string", response="Struct", parts="FunctionResponsePart[]", willContinue="bool",
        scheduling="string",
    ),
    "FunctionResponsePart": _message_type(
        inlineData="Blob", fileData="FileData", mediaProcessing="any", mediaResolution="any", videoMetadata="any",
        documentMetadata="any", spreadsheetMetadata="any", audioMetadata="any",
    ),
    "Tool": _message_type(
        functionDeclarations="FunctionDeclaration[]", googleSearch="any", codeExecution="any", urlContext="any",
        googleMaps="any", googleSearchRetrieval="any", computerUse="any", fileSearch="any", enterpriseWebSearch="any",
        retrieval="any", mcpServers="any", parallelAiSearch="any", exaAiSearch="any",
    ),
    "FunctionDeclaration": _message_type(
        name="string", description="string", parameters="Schema", parametersJsonSchema="any", response="Schema",
        responseJsonSchema="any", behavior="string",
    ),
    "Schema": _SCHEMA,
    "ToolConfig": _message_type(
        functionCallingConfig="FunctionCallingConfig", retrievalConfig="any",
        includeServerSideToolInvocations="bool",
    ),
    "FunctionCallingConfig": _message_type(
        mode="Mode", allowedFunctionNames="string[]", streamFunctionCallArguments="bool"
    ),
    "GenerationConfig": _message_type(
        stopSequences="string[]", responseMimeType="string", responseSchema="Schema", responseJsonSchema="any",
        responseModalities="string[]", candidateCount="int", maxOutputTokens="int", temperature="number",
        topP="number", topK="number", seed="int", presencePenalty="number", frequencyPenalty="number",
        responseLogprobs="bool", logprobs="int", thinkingConfig="ThinkingConfig", mediaResolution="string",
        speechConfig="any", imageConfig="any", audioTimestamp="bool", enableAffectiveDialog="bool",
        enableEnhancedCivicAnswers="bool", routingConfig="any", modelConfig="any", modelSelectionConfig="any",
        responseFormat="any", translationConfig="any", audioTranscriptionConfig="any",
    ),
    "ThinkingConfig": _message_type(includeThoughts="bool", thinkingBudget="int", thinkingLevel="Level"),
}  # fmt: skip
_VERTEX_ONLY = {"Schema": frozenset({"additionalProperties"})}
"""Fields that only Vertex AI accepts, by message type."""
_CACHED_TYPES = frozenset({"Content", "Tool"})
_ENUMS = {
    "Type": frozenset(
        {"TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
    ),
    "Mode": frozenset({"MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"}),
    "Level": frozenset({"THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"}),
}
_SCALARS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "TYPE_STRING"),
    "bytes": ((str,), "TYPE_BYTES"),
    "bool": ((bool,), "TYPE_BOOL"),
    "int": ((int,), "TYPE_INT32"),
    "number": ((int, float), "TYPE_FLOAT"),
    "Struct": ((dict,), "type.googleapis.com/google.protobuf.Struct"),
}
_PACKAGE = "type.googleapis.com/google.ai.generativelanguage.v1beta"


def parse_request(
    request: dict[str, Json], accepts_call_ids: bool, is_vertex: bool, kind: str = "GenerateContentRequest"
) -> dict[str, Json]:
    """Parse a request as the provider does, and return it with all names in their JSON spelling.

    Args:
        request: The request.
        accepts_call_ids: Whether calls may have ids.
        is_vertex: Whether the host is Vertex AI, which has additional fields.
        kind: The message type of the request.

    Raises:
        RuleBroken: A value has a wrong type, or the request contains unknown names. The error lists all unknown names.
    """
    walk = _RequestParser(accepts_call_ids, is_vertex)
    read = walk.parse_message(request, kind, "")
    if walk.unknown:
        rule = "GEM-09" if walk.unknown[0][0] == "id" else "GEM-10"
        lines = "\n".join(line for _, line in walk.unknown)
        raise RULES[rule].refuse(walk.unknown[0][0], lines=lines)
    return read


def _parse_message(value: Json, message_type: str, accepts_call_ids: bool, is_vertex: bool) -> Json:
    walk = _RequestParser(accepts_call_ids, is_vertex)
    read = walk.parse_message(value, message_type, message_type)
    if walk.unknown:
        raise RULES["GEM-10"].refuse(walk.unknown[0][0], lines=walk.unknown[0][1])
    return read


class _RequestParser:
    """Parses one request. It raises an error at the first value of a wrong type, and collects all unknown names."""

    def __init__(self, accepts_call_ids: bool, is_vertex: bool) -> None:
        self._ids = accepts_call_ids
        self._vertex = is_vertex
        self.unknown: list[tuple[str, str]] = []

    def parse_message(self, value: Json, message_type: str, path: str) -> dict[str, Json]:
        if not is_object(value):
            raise _invalid_value(path, f"{_PACKAGE}.{message_type}", value)
        known = _MESSAGES[message_type]
        read: dict[str, Json] = {}
        for told, inner in value.items():
            name = _to_camel_case(told)
            if name not in known or not self._has_field(message_type, name):
                at = f" at '{path}'" if path else ""
                line = f'Invalid JSON payload received. Unknown name "{told}"{at}: Cannot find field.'
                self.unknown.append((told, line))
            elif inner is not None:
                read[name] = self._parse_field(
                    inner, known[name], f"{path}.{_to_snake_case(name)}" if path else _to_snake_case(name)
                )
        return read

    def _has_field(self, message_type: str, name: str) -> bool:
        """Return True if this host accepts a field of a message type. Some fields exist only on Vertex AI."""
        if name == "id" and message_type in ("FunctionCall", "FunctionResponse"):
            return self._ids
        return self._vertex or name not in _VERTEX_ONLY.get(message_type, ())

    def _parse_repeated(self, value: Json, message_type: str, path: str) -> Json:
        """Parse a content or tool, and cache the result, because later requests repeat the value.

        An invalid value is parsed again without the cache, because the error message contains the path.
        """
        try:
            return cached_result(_parse_message, value, message_type, self._ids, self._vertex)
        except RuleBroken:
            return self._parse_field(value, message_type, path)

    def _parse_field(self, value: Json, field_type: str, path: str) -> Json:
        """Parse the value of a field. As in the tables, the type `X[]` is a list of `X`, and `X{}` is an object with
        values of type `X` under any keys.
        """
        if field_type.endswith("[]"):
            if not is_array(value):
                raise _invalid_value(path, f"{_PACKAGE}.{field_type[:-2]}", value)
            read = self._parse_repeated if field_type[:-2] in _CACHED_TYPES else self._parse_field
            return [read(item, field_type[:-2], f"{path}[{at}]") for at, item in enumerate(value)]
        if field_type.endswith("{}"):
            if not is_object(value):
                raise _invalid_value(path, f"{_PACKAGE}.{field_type[:-2]}", value)
            return {
                key: self._parse_field(item, field_type[:-2], f"{path}[{at}].value")
                for at, (key, item) in enumerate(value.items())
            }
        if field_type in _MESSAGES:
            return self.parse_message(value, field_type, path)
        if field_type in _ENUMS:
            if not isinstance(value, str) or value.upper() not in _ENUMS[field_type]:
                raise _invalid_value(path, f"{_PACKAGE}.{field_type}", value)
            return value.upper()
        if field_type != "any":
            _check_scalar(value, field_type, path)
        return value


def _check_scalar(value: Json, scalar_type: str, path: str) -> None:
    """Check that a value has the scalar type `scalar_type`, such as `bytes`."""
    types, name = _SCALARS[scalar_type]
    if not isinstance(value, types) or (isinstance(value, bool) and scalar_type != "bool"):
        raise _invalid_value(path, name, value)
    if scalar_type == "bytes" and isinstance(value, str) and decode_base64(value) is None:
        raise RULES["GEM-06"].refuse(path, path=path, value=value[:40])


def decode_base64(text: str) -> bytes | None:
    """Decode a base64 string in either alphabet, with or without padding. Return None if it is invalid."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _invalid_value(path: str, expected_type: str, value: Json) -> Exception:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return RULES["GEM-S02"].refuse(path, path=path, kind=expected_type, value=text[:80])


@lru_cache(maxsize=1024)
def _to_snake_case(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


@lru_cache(maxsize=1024)
def _to_camel_case(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)


def check(schema: Json, path: str, *, is_filled: bool = False) -> None:
    """Check one `Schema` and its subschemas.

    If `is_filled` is True, every object must have properties, as answer schemas require.

    Raises:
        RuleBroken: At the first field that is not allowed for its type.
    """
    arms = schema.get("anyOf") or ()
    kind = schema.get("type", "TYPE_UNSPECIFIED")
    if not arms and kind == "TYPE_UNSPECIFIED":
        raise RULES["GEM-S10"].refuse(path, path=path)
    if kind == "ARRAY" and schema.get("items") is None:
        _refuse_schema(f"{path}.items", "missing field.")
    if schema.get("items") is not None and kind != "ARRAY":
        _refuse_schema(f"{path}.items", "field predicate failed: $type == Type.ARRAY")
    if schema.get("properties") and kind != "OBJECT":
        _refuse_schema(f"{path}.properties", "only allowed for OBJECT type")
    if kind == "OBJECT" and is_filled and not schema.get("properties"):
        raise RULES["GEM-S14"].refuse(path, path=f"{path}.properties")
    _check_values(schema, kind, path)
    for at, name in enumerate(schema.get("required") or ()):
        if name not in object_at(schema, "properties"):
            _refuse_schema(f"{path}.required[{at}]", "property is not defined")
    for step, inner in _subschemas(schema):
        check(inner, f"{path}.{step}", is_filled=is_filled)


def _check_values(schema: Json, schema_type: str, path: str) -> None:
    """Check the enumeration and the format of a schema."""
    values, form = schema.get("enum") or (), schema.get("format")
    if values and schema_type != "STRING":
        _refuse_schema(f"{path}.enum", "only allowed for STRING type")
    for at, value in enumerate(values):
        if not value:
            _refuse_schema(f"{path}.enum[{at}]", "cannot be empty")
    known = _FORMATS.get(schema_type, ())
    if form and known and form not in known:
        told = " and ".join(f"'{word}'" for word in known)
        _refuse_schema(f"{path}.format", f"only {told} are supported for {schema_type} type")


def _subschemas(schema: Json) -> Iterator[tuple[str, Json]]:
    for at, arm in enumerate(schema.get("anyOf") or ()):
        yield f"any_of[{at}]", arm
    for name, inner in object_at(schema, "properties").items():
        yield f"properties[{name}]", inner
    if schema.get("items") is not None:
        yield "items", schema["items"]


def _refuse_schema(path: str, reason: str) -> None:
    raise RULES["GEM-S13"].refuse(path, path=path, why=reason)


def check_json(schema: Json, path: str) -> None:
    """Check that no schema inside a JSON Schema combines a reference with other keywords.

    Raises:
        RuleBroken: A schema has a reference and other keywords.
    """
    if is_array(schema):
        for inner in schema:
            check_json(inner, path)
    if not is_object(schema):
        return
    if isinstance(schema.get("$ref"), str) and not all(key.startswith("$") for key in schema):
        raise RULES["GEM-S19"].refuse(path, path=path.lstrip("."))
    for key, inner in schema.items():
        check_json(inner, f"{path}.{key}")
