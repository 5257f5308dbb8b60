"""Rules of structured outputs and settings in every dialect: a broken request and the nearest valid one.

The judge leaves the schema of an answer to the providers, so it finds hardly any of these faults.
"""

import json
from collections.abc import Iterator
from typing import Any

from actors.strict.rules import AnthropicProfile, AnthropicSettings, ServerSettings
from tests.rules.row import UNSEEN, Json, Row

TEXT: Json = {"type": "string"}


def row(
    dialect: str,
    rule: str,
    words: str,
    broken: Json,
    sound: Json,
    *,
    judge: str = UNSEEN,
    read: str = "",
    hosted: bool = True,
    settings: ServerSettings | None = None,
) -> Row:
    """Return a row whose message may be any part of the error message."""
    read = read or READ.get(rule, "parameter")
    return Row(
        rule, broken, sound, f"…{words}…", judge, dialect=dialect, read=read, hosted=hosted, settings=settings
    )


READ = {
    **dict.fromkeys(("ANT-S20", "BED-S05", "GEM-S19", "GRQ-04"), "transcript"),
    **dict.fromkeys(("OAC-11", "OAR-S08"), "transcript OAC-11"),
    **dict.fromkeys(("OAC-12", "OAR-S03"), "parameter OAC-12"),
    **dict.fromkeys(("BED-S04", "BED-S10", "BED-S11"), "parameter BED-08"),
    "ANT-56": "parameter:config ANT-56",
    "BED-10": "parameter BED-10",
    "BED-11": "parameter BED-11",
    "GEM-S20": "media",
}
"""What the classifier reads where it is not a refused parameter without a rule."""


LATEST = AnthropicSettings(AnthropicProfile(sampling=False))


def object_of(**properties: Any) -> Json:  # any schema may be under test
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


GOOD = object_of(a=TEXT)

# ---- OpenAI: strict schemas, by position

MISSING = (
    "In context=('properties', 'a'), 'required' is required to be supplied and to be an array including every key in "
    "properties. Missing 'b'."
)
ONE, TWO = object_of(name=TEXT, x=TEXT), object_of(name=TEXT, y=TEXT)
CAT, DOG = (
    object_of(kind={"const": "cat", "type": "string"}),
    object_of(kind={"const": "dog", "type": "string"}),
)


def nest(levels: int) -> Json:
    made = GOOD
    for _ in range(levels - 1):
        made = object_of(a=made)
    return made


LOOP = {
    **object_of(a={"$ref": "#/$defs/A"}),
    "$defs": {"A": object_of(next={"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]})},
}
STRICT: tuple[tuple[str, Json, Json], ...] = (
    ("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'.", {"type": "array"}, GOOD),
    ("not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.", {**GOOD, "anyOf": [GOOD]}, GOOD),
    (
        "In context=(), 'additionalProperties' is required to be supplied and to be false.",
        {**GOOD, "additionalProperties": True},
        GOOD,
    ),
    (MISSING, object_of(a={**object_of(b=TEXT), "required": []}), object_of(a=object_of(b=TEXT))),
    ("Extra required key 'b' supplied.", {**GOOD, "required": ["a", "b"]}, GOOD),
    (
        "object schema missing properties.",
        object_of(a={"type": "object", "additionalProperties": False}),
        GOOD,
    ),
    (
        "In context=('properties', 'a'), schema must have a 'type' key.",
        object_of(a={}),
        object_of(a={"anyOf": [TEXT]}),
    ),
    ("schema must have a 'type' key.", object_of(a={"enum": ["x", 1]}), object_of(a={"enum": ["x"], **TEXT})),
    (
        "array schema missing items.",
        object_of(a={"type": "array"}),
        object_of(a={"type": "array", "items": TEXT}),
    ),
    (
        "'uri' is not a valid format.",
        object_of(a={**TEXT, "format": "uri"}),
        object_of(a={**TEXT, "format": "date"}),
    ),
    (
        "'default' is not permitted.",
        object_of(a={**TEXT, "default": "x"}),
        object_of(a={**TEXT, "pattern": "x"}),
    ),
    (
        "'maxLength' is not permitted.",
        object_of(a={**TEXT, "maxLength": 2}),
        object_of(a={"type": "integer", "maximum": 2}),
    ),
    ("'oneOf' is not permitted.", object_of(a={"oneOf": [TEXT]}), object_of(a={"anyOf": [TEXT]})),
    (
        "$ref cannot have keywords {'description'}.",
        {**object_of(a={"$ref": "#/$defs/A", "description": "d"}), "$defs": {"A": GOOD}},
        LOOP,
    ),
    ("reference can only point to definitions", object_of(a={"$ref": "#/$defs/B"}), LOOP),
    ("In context=('$defs', 'A'), ", {**LOOP, "$defs": {"A": {"type": "object"}}}, LOOP),
    ("11 levels of nesting exceeds limit of 10.", nest(11), nest(10)),
    (
        "1001 enum values exceeds limit of 1000.",
        object_of(a={**TEXT, "enum": [str(n) for n in range(1001)]}),
        object_of(a={**TEXT, "enum": [str(n) for n in range(1000)]}),
    ),
)


def chat(form: Json, **more: Any) -> Json:  # any key may be under test
    return {"model": "m", "messages": [{"role": "user", "content": "u"}], "response_format": form, **more}


def json_schema(
    schema: Any, *, strict: Any = True, name: Any = "answer"
) -> Json:  # anything may be under test
    return {"name": name, "schema": schema, "strict": strict}


def in_chat(schema: Any, **more: Any) -> Json:  # as above
    return chat({"type": "json_schema", "json_schema": json_schema(schema, **more)})


def chat_settings(**more: Any) -> Json:  # as above
    return {key: value for key, value in chat({}, **more).items() if key != "response_format"}


def responses(form: Json, **more: Any) -> Json:  # as above
    return {"model": "m", "input": [{"role": "user", "content": "u"}], "text": {"format": form}, **more}


def in_responses(schema: Any, **more: Any) -> Json:  # as above
    return responses({"type": "json_schema", **json_schema(schema, **more)})


def _openai() -> Iterator[Row]:
    for message, refused, accepted in STRICT:
        yield row("openai_chat", "OAC-S13", message, in_chat(refused), in_chat(accepted))
        yield row("openai_responses", "OAR-S14", message, in_responses(refused), in_responses(accepted))
    alike = "Objects provided via 'anyOf' must not share identical first keys."
    same, apart = object_of(a={"anyOf": [ONE, TWO]}), object_of(a={"anyOf": [CAT, DOG]})
    yield row("openai_chat", "OAC-S13", alike, in_chat(same), in_chat(apart), hosted=False)
    yield row("openai_responses", "OAR-S14", alike, in_responses(same), in_responses(apart), hosted=False)
    listed = {"type": "array", "items": TEXT}
    yield row("openai_chat", "OAC-S13", "got 'type: \"array\"'", in_chat(listed, strict=False), in_chat(GOOD))
    yield row(
        "openai_responses",
        "OAR-S14",
        "got 'type: \"array\"'",
        in_responses(listed, strict=False),
        in_responses(GOOD),
    )
    strict = {"name": "read", "parameters": {"type": "object"}, "strict": True}
    taken = {"name": "read", "parameters": GOOD, "strict": True}
    yield row(
        "openai_chat",
        "OAC-11",
        "'additionalProperties' is required",
        chat_settings(tools=[{"type": "function", "function": strict}]),
        chat_settings(tools=[{"type": "function", "function": taken}]),
    )
    yield row(
        "openai_responses",
        "OAR-S08",
        "'additionalProperties' is required",
        {**responses({"type": "text"}), "tools": [{"type": "function", **strict}]},
        {**responses({"type": "text"}), "tools": [{"type": "function", **taken}]},
    )


JSON_WORD = "must contain the word 'json' in some form"
SAYS_JSON: Json = {"messages": [{"role": "user", "content": "As JSON, please."}]}


def _values() -> Iterator[Row]:
    plain = chat({"type": "text"})
    yield row("openai_chat", "OAC-06", "Invalid value: 'xml'.", chat({"type": "xml"}), plain)
    yield row("openai_chat", "OAC-07", "'response_format.json_schema'", chat({"type": "json_schema"}), plain)
    yield row("openai_chat", "OAC-S06", "does not match pattern", in_chat(GOOD, name="a b"), in_chat(GOOD))
    yield row(
        "openai_chat", "OAC-10", "string too long", in_chat(GOOD, name="a" * 65), in_chat(GOOD, name="a" * 64)
    )
    yield row(
        "openai_chat", "OAC-05", "expected a boolean", in_chat(GOOD, strict="yes"), in_chat(GOOD, strict=None)
    )
    yield row("openai_chat", "OAC-12", "'response_format.z'", chat({"type": "text", "z": 1}), plain)
    yield row(
        "openai_chat",
        "OAC-06",
        "Invalid value: 'ultra'.",
        chat_settings(reasoning_effort="ultra"),
        chat_settings(reasoning_effort="xhigh"),
    )
    yield row("openai_chat", "OAC-05", "'stop[0]'", chat_settings(stop=[1]), chat_settings(stop=["a"]))
    yield row(
        "openai_chat",
        "OAC-S15",
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        chat_settings(max_tokens=9, max_completion_tokens=9),
        chat_settings(max_completion_tokens=9),
    )
    words = {"openai_chat": "OAC-S14", "groq": "OAC-S14", "qwen": "QWN-06", "deepseek": "DSK-11"}
    for dialect, rule in words.items():
        form = {"type": "json_object"}
        yield row(dialect, rule, JSON_WORD, chat(form), chat(form, **SAYS_JSON))
    form = {"type": "json_object"}
    said = responses(form, input=[{"role": "user", "content": "json"}])
    yield row("openai_responses", "OAR-S15", JSON_WORD, responses(form), said)
    yield row(
        "openai_responses", "OAR-S04", "Invalid value: 'xml'.", responses({"type": "xml"}), in_responses(GOOD)
    )
    yield row(
        "openai_responses",
        "OAR-S02",
        "'text.format.name'",
        responses({"type": "json_schema"}),
        in_responses(GOOD),
    )
    yield row(
        "openai_responses", "OAR-S05", "does not match", in_responses(GOOD, name="a b"), in_responses(GOOD)
    )
    yield row(
        "openai_responses",
        "OAR-S07",
        "string too long",
        in_responses(GOOD, name="a" * 65),
        in_responses(GOOD),
    )
    yield row(
        "openai_responses",
        "OAR-S03",
        "'text.format.z'",
        responses({"type": "text", "z": 1}),
        in_responses(GOOD),
    )
    loud = {"text": {"verbosity": "loud"}}
    yield row("openai_responses", "OAR-S04", "'loud'", responses({}, **loud), in_responses(GOOD))


def _vendors() -> Iterator[Row]:
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
    yield row(
        "deepseek",
        "DSK-10",
        "This response_format type is unavailable now",
        in_chat(GOOD),
        chat({"type": "text"}),
    )
    yield row(
        "groq",
        "GRQ-04",
        "json mode cannot be combined with tool/function calling",
        {**in_chat(GOOD), "tools": [tool]},
        in_chat(GOOD),
    )
    yield row(
        "groq", "GRQ-05", "does not support streaming", {**in_chat(GOOD), "stream": True}, in_chat(GOOD)
    )
    yield row(
        "groq",
        "GRQ-06",
        "'default' is not permitted",
        in_chat(object_of(a={**TEXT, "default": ""})),
        in_chat(GOOD),
    )
    open_pattern, whole = object_of(a={**TEXT, "pattern": "x"}), object_of(a={**TEXT, "pattern": "^x$"})
    yield row("llama_cpp", "LCP-14", "Pattern must start with '^'", in_chat(open_pattern), in_chat(whole))
    yield row("ollama", "OLL-04", "invalid JSON schema in format", in_chat(open_pattern), in_chat(whole))


# ---- Anthropic, also through Bedrock


def anthropic(**more: Any) -> Json:  # any key may be under test
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "u"}], **more}


def answering(schema: Any) -> Json:  # any schema may be under test
    return anthropic(output_config={"format": {"type": "json_schema", "schema": schema}})


def optional(count: int) -> Json:
    return {**object_of(**{f"f{n}": TEXT for n in range(count)}), "required": []}


def unions(count: int) -> Json:
    return object_of(**{f"f{n}": {"anyOf": [TEXT, {"type": "null"}]} for n in range(count)})


OPEN = "For 'object' type, 'additionalProperties' must be explicitly set to false"
TRUE = "For 'object' type, 'additionalProperties: true' is not supported. Please set 'additionalProperties' to false"
BOUNDS = "For 'integer' type, properties maximum, minimum are not supported"
ITEMS = "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
LISTED: Json = {"type": "array", "items": TEXT}
CLAUDES: tuple[tuple[str, str, Json, Json], ...] = (
    ("ANT-S18", OPEN, {"type": "object", "properties": {}}, GOOD),
    ("ANT-S18", OPEN, object_of(a={"type": "object"}), GOOD),
    ("ANT-S18", TRUE, {**GOOD, "additionalProperties": True}, GOOD),
    ("ANT-S18", BOUNDS, object_of(a={"type": "integer", "minimum": 1, "maximum": 2}), GOOD),
    ("ANT-S18", ITEMS, object_of(a={**LISTED, "minItems": 2}), object_of(a={**LISTED, "minItems": 1})),
    (
        "ANT-S18",
        "format 'color'",
        object_of(a={**TEXT, "format": "color"}),
        object_of(a={**TEXT, "format": "uri"}),
    ),
    ("ANT-S18", "enum values must be", object_of(a={"enum": [{}]}), object_of(a={"enum": ["a", 1, None]})),
    ("ANT-S18", "is not defined in the schema", object_of(a={"$ref": "https://x.example"}), GOOD),
    (
        "ANT-S18",
        "allOf with $ref",
        object_of(a={"allOf": [{"$ref": "#/$defs/A"}]}),
        object_of(a={"allOf": [TEXT]}),
    ),
    ("ANT-S19", "recursive schemas are not supported", LOOP, {**LOOP, "$defs": {"A": GOOD}}),
    ("ANT-S20", "too many optional parameters (25)", optional(25), optional(24)),
    ("ANT-S20", "too many parameters with union types (17)", unions(17), unions(16)),
)


def converse(**more: Any) -> Json:  # any key may be under test
    return {"messages": [{"role": "user", "content": [{"text": "u"}]}], **more}


def output(schema: Any) -> Json:  # any schema may be under test
    told = {"name": "answer", "schema": schema if isinstance(schema, str) else json.dumps(schema)}
    return converse(outputConfig={"textFormat": {"type": "json_schema", "structure": {"jsonSchema": told}}})


def _claude() -> Iterator[Row]:
    for rule, message, refused, accepted in CLAUDES:
        yield row("anthropic", rule, message, answering(refused), answering(accepted))
        too_many = "transcript BED-10" if rule == "ANT-S20" else ""
        yield row("bedrock", "BED-10", message, output(refused), output(accepted), read=too_many)
    plain = {"output_config": {"format": {"type": "text"}}}
    yield row("anthropic", "ANT-S03", "output_config.format.type", anthropic(**plain), answering(GOOD))
    both = anthropic(temperature=0.5, top_p=0.9)
    yield row("anthropic", "ANT-S15", "cannot both be specified", both, anthropic(top_p=0.9))
    thinks = anthropic(thinking={"type": "adaptive"}, top_p=0.9)
    yield row("anthropic", "ANT-S16", "greater than or equal to 0.95", thinks, {**thinks, "top_p": 0.95})
    blank = anthropic(stop_sequences=[" "])
    yield row("anthropic", "ANT-S17", "must contain non-whitespace", blank, anthropic(stop_sequences=["a"]))
    yield row("anthropic", "ANT-S14", "top_p: Input should be", anthropic(top_p=2), anthropic(top_p=1))
    yield row(
        "anthropic", "ANT-S08", "temperature: Input", anthropic(temperature=-1), anthropic(temperature=0)
    )
    told = "`temperature` is deprecated for this model."
    yield row("anthropic", "ANT-56", told, anthropic(temperature=0.5), anthropic(), settings=LATEST)
    inference = {"temperature": 0.5, "topP": 0.5}
    yield row("bedrock", "BED-10", "cannot both", converse(inferenceConfig=inference), converse())
    yield row("bedrock", "BED-11", "key [z]", converse(outputConfig={"z": 1}), output(GOOD))
    yield row("bedrock", "BED-S05", "not valid JSON", output("{"), output(GOOD))
    stops = {"stopSequences": ["a"] * 2501}
    few = converse(inferenceConfig={"stopSequences": ["a"] * 2500})
    yield row("bedrock", "BED-S10", "less than or equal to 2500", converse(inferenceConfig=stops), few)
    yield row("bedrock", "BED-S04", "stopSequences.0", converse(inferenceConfig={"stopSequences": [""]}), few)
    long = converse(outputConfig={"effort": "x" * 17})
    yield row(
        "bedrock", "BED-S11", "less than or equal to 16", long, converse(outputConfig={"effort": "low"})
    )


# ---- generateContent


def gemini(tools: Any = None, **config: Any) -> Json:  # any key may be under test
    declared = {"tools": tools} if tools else {}
    contents = [{"role": "user", "parts": [{"text": "u"}]}]
    return {"contents": contents, "generationConfig": config, **declared}


def in_gemini(schema: Any, **more: Any) -> Json:  # any schema may be under test
    return gemini(responseMimeType="application/json", responseSchema=schema, **more)


def in_gemini_json(schema: Any) -> Json:  # any schema may be under test
    return gemini(responseMimeType="application/json", responseJsonSchema=schema)


TEXTS: Json = {"type": "STRING"}
OBJECT: Json = {"type": "OBJECT", "properties": {"a": TEXTS}, "required": ["a"]}
PREDICATES: tuple[tuple[str, Json], ...] = (
    ("response_schema.items: missing field.", {"type": "ARRAY"}),
    ("items: field predicate failed: $type == Type.ARRAY", {"type": "STRING", "items": TEXTS}),
    ("properties: only allowed for OBJECT type", {"type": "STRING", "properties": {"a": TEXTS}}),
    ("enum: only allowed for STRING type", {"type": "INTEGER", "enum": ["1"]}),
    ("enum[0]: cannot be empty", {"type": "STRING", "enum": [""]}),
    (
        "format: only 'enum' and 'date-time' are supported for STRING type",
        {"type": "STRING", "format": "date"},
    ),
    ("required[0]: property is not defined", {**OBJECT, "required": ["b"]}),
    ("properties[a].items: missing field.", {"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}}),
)


def _gemini() -> Iterator[Row]:
    sound = in_gemini(OBJECT)
    for message, schema in PREDICATES:
        yield row("gemini", "GEM-S13", message, in_gemini(schema), sound)
    hollow = {"type": "OBJECT", "properties": {"a": {"type": "OBJECT"}}}
    yield row(
        "gemini", "GEM-S14", "should be non-empty for OBJECT type", in_gemini(hollow), sound, hosted=False
    )
    yield row("gemini", "GEM-S15", "allowed mimetypes are", gemini(responseMimeType="text/html"), sound)
    yield row("gemini", "GEM-S16", "temperature value of 3", gemini(temperature=3), gemini(temperature=2))
    yield row("gemini", "GEM-S17", "needs a response mime type", gemini(responseSchema=OBJECT), sound)
    yield row(
        "gemini", "GEM-S17", "beside response_json_schema", in_gemini(OBJECT, responseJsonSchema=GOOD), sound
    )
    yield row(
        "gemini", "GEM-S18", "at most 5", gemini(stopSequences=["a"] * 6), gemini(stopSequences=["a"] * 5)
    )
    beside = object_of(a={"$ref": "#/$defs/A", "description": "d"})
    message = "schema at properties.a can only contain properties starting with '$' when $ref is present"
    yield row(
        "gemini",
        "GEM-S19",
        message,
        in_gemini_json(beside),
        in_gemini_json(object_of(a={"$ref": "#/$defs/A"})),
    )
    tools = [{"functionDeclarations": [{"name": "read"}]}]
    yield row("gemini_2", "GEM-S20", "is unsupported", in_gemini(OBJECT, tools=tools), sound)
    none, one = gemini(maxOutputTokens=0), gemini(maxOutputTokens=1)
    yield row("gemini", "GEM-S13", "must be positive", none, one, judge="ALL-02")


ROWS = [*_openai(), *_values(), *_vendors(), *_claude(), *_gemini()]
