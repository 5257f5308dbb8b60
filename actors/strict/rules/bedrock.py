"""AWS Bedrock Converse: what it refuses itself, and the order of the walk.

Body, unknown keys, values, tools, system; then each message (shape, ids, blank texts), the documents of all, their
sequence, the results of calls, the tools that must be declared, the window; what is left is up to the model's vendor
(`bedrock_upstream`).
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from string import ascii_letters, digits

from actors.strict.rules import bedrock_upstream
from actors.strict.rules.base import Json, Mode, unknown_key
from actors.strict.rules.bedrock_rules import ID, RULES, TOOL_NAME, BedrockProfile, BedrockSettings
from actors.strict.rules.reading import came, fresh, parse, standard_of

_NAMES_OF_KEYS = (
    "messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables "
    "additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig"
)
_KEYS = frozenset(_NAMES_OF_KEYS.split())
_INFERENCE = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})
_TOOL_KEYS = frozenset({"name", "description", "inputSchema", "strict"})
_CHOICES: Mapping[str, frozenset[str]] = {
    "auto": frozenset(),
    "any": frozenset(),
    "tool": frozenset({"name"}),
}
_BLOCK_KEYS: Mapping[str, frozenset[str]] = {
    "toolUse": frozenset({"toolUseId", "name", "input", "type"}),
    "toolResult": frozenset({"toolUseId", "content", "status", "type"}),
    "reasoningContent": frozenset({"reasoningText", "redactedContent"}),
    "image": frozenset({"format", "source"}),
    "document": frozenset({"format", "name", "source", "context", "citations"}),
    "video": frozenset({"format", "source"}),
    "audio": frozenset({"format", "source"}),
    "cachePoint": frozenset({"type", "ttl"}),
}
_MEDIA = frozenset({"image", "document", "video", "audio"})
_ROLE_OF = {"toolUse": "assistant", "reasoningContent": "assistant", "toolResult": "user"}
_ROLE_OF |= dict.fromkeys(_MEDIA, "user")
_IN_SYSTEM = frozenset({"text", "cachePoint", "guardContent"})
_IN_RESULT = frozenset({"text", "json", "image", "document", "video"})
_FORMATS = {
    "image": ("png", "jpeg", "gif", "webp"),
    "document": ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
}
_MARK_VALUES = {"type": ("default",), "ttl": ("5m", "1h")}
_MOST_DOCUMENTS = 5
_MOST_STOPS = 2500
_LONGEST_EFFORT = 16
_TITLE = frozenset(ascii_letters + digits + " -()[]")
_NAMES = {dict: "JSONObject", list: "JSONArray", str: "String", int: "Integer", bool: "Boolean"}
_NAMES |= {type(None): "Null", float: "BigDecimal"}


def validate(body: bytes, mode: Mode, settings: BedrockSettings) -> None:
    """Walk one request body.

    Raises:
        Refused: At the first rule that is broken.
    """
    request = _parsed(body)
    profile = _profile(settings)
    _only(request, _KEYS, "")
    _check_inference(request)
    _object(request.get("additionalModelRequestFields", {}), "additionalModelRequestFields")
    _check_output(_object(request.get("outputConfig", {}), "outputConfig"))
    declared = _check_tools(request, profile)
    for at, block in enumerate(_list(request, "system", "", required=False)):
        kind, value = _one(block, _IN_SYSTEM, f"system/{at}")
        if kind == "text":
            _check_text(value, f"system.{at}")
        elif kind == "cachePoint":
            _check_mark(value, f"system/{at}/cachePoint")
    messages = _list(request, "messages", "")
    for at, message in fresh(messages, standard_of("BED message", profile.media)):
        _check_message(message, at, profile)
    attached = [held for message in messages for held in came(_attached_to, message)]
    _check_documents([value for kind, value in attached if kind == "document"])
    _check_sequence(messages)
    if not declared and any(came(_uses_tools, message) for message in messages):
        raise RULES["BED-03"].refused()
    if profile.context_tokens is not None and len(body) // 4 > profile.context_tokens:
        raise RULES["BED-12"].refused()
    _check_count([kind for kind, _ in attached], profile.attachments)
    if profile.upstream is not None:
        bedrock_upstream.check(request, mode, profile.upstream, settings)


def _parsed(body: bytes) -> dict[str, Json]:
    try:
        request = parse(body)
    except ValueError as why:
        raise RULES["BED-S05"].refused(why=why) from why
    return _object(request, "")


def _profile(settings: BedrockSettings) -> BedrockProfile:
    if settings.models is None:
        return settings.profile
    if settings.model not in settings.models:
        raise RULES["BED-14"].refused()
    return settings.models[settings.model]


def _check_inference(request: dict[str, Json]) -> None:
    inference = _object(request.get("inferenceConfig", {}), "inferenceConfig")
    _only(inference, _INFERENCE, "inferenceConfig")
    if (limit := inference.get("maxTokens")) is not None:
        _typed(limit, int, "inferenceConfig/maxTokens")
        if limit < 1:
            raise RULES["BED-S04"].refused(value=limit, path="inferenceConfig.maxTokens")
    for key in ("temperature", "topP"):
        value = inference.get(key)
        if value is not None and (not isinstance(value, int | float) or not 0 <= value <= 1):
            raise RULES["BED-S08"].refused(value=value, path=f"inferenceConfig.{key}", least=0, most=1)
    _check_stops(_list(inference, "stopSequences", "inferenceConfig/", required=False))


def _check_stops(stops: list[Json]) -> None:
    if len(stops) > _MOST_STOPS:
        raise RULES["BED-S10"].refused(value=f"[{len(stops)}]", path="inferenceConfig.stopSequences")
    for at, text in enumerate(stops):
        if not _typed(text, str, f"inferenceConfig/stopSequences/{at}"):
            raise RULES["BED-S04"].refused(value="''", path=f"inferenceConfig.stopSequences.{at}")


def _check_output(config: dict[str, Json]) -> None:
    """Check the effort, and the schema of the answer: a text that holds JSON, as the service's model has it."""
    _only(config, frozenset({"effort", "textFormat"}), "outputConfig")
    if "effort" in config and len(_typed(config["effort"], str, "outputConfig/effort")) > _LONGEST_EFFORT:
        raise RULES["BED-S11"].refused(value=f"'{config['effort']}'", path="outputConfig.effort")
    if "textFormat" not in config:
        return
    path = "outputConfig/textFormat"
    form = _object(config["textFormat"], path)
    _only(form, frozenset({"type", "structure"}), path)
    if (kind := _typed(form.get("type"), str, f"{path}/type")) != "json_schema":
        raise RULES["BED-S03"].refused(value=f"'{kind}'", path=_dotted(f"{path}/type"), values="json_schema")
    path = f"{path}/structure"
    told = _object(_one(form.get("structure"), frozenset({"jsonSchema"}), path)[1], f"{path}/jsonSchema")
    _only(told, frozenset({"schema", "name", "description"}), f"{path}/jsonSchema")
    try:
        schema = parse(_typed(told.get("schema"), str, f"{path}/jsonSchema/schema").encode())
    except ValueError as why:
        raise RULES["BED-S05"].refused(why=why) from why
    _object(schema, f"{path}/jsonSchema/schema")


def _check_tools(request: dict[str, Json], profile: BedrockProfile) -> bool:
    """Check what is declared, and say whether anything is."""
    if "toolConfig" not in request:
        return False
    config = _object(request["toolConfig"], "toolConfig")
    _only(config, frozenset({"tools", "toolChoice"}), "toolConfig")
    tools = _list(config, "tools", "toolConfig/")
    if not tools:
        raise RULES["BED-S04"].refused(value="[]", path="toolConfig.tools")
    names = [_check_tool(tool, f"toolConfig/tools/{at}") for at, tool in enumerate(tools)]
    if "toolChoice" in config:
        _check_choice(_object(config["toolChoice"], "toolConfig/toolChoice"), names, profile)
    return True


def _check_tool(tool: Json, path: str) -> str | None:
    kind, value = _one(tool, frozenset({"toolSpec", "systemTool", "cachePoint"}), path)
    if kind == "cachePoint":
        _check_mark(value, f"{path}/cachePoint")
    if kind != "toolSpec":
        return None
    spec = _object(value, f"{path}/toolSpec")
    _only(spec, _TOOL_KEYS, f"{path}/toolSpec")
    _check_name(spec.get("name"), f"{path}/toolSpec/name", TOOL_NAME)
    if "description" in spec and not _typed(spec["description"], str, f"{path}/toolSpec/description"):
        raise RULES["BED-S04"].refused(value="''", path=_dotted(f"{path}/toolSpec/description"))
    schema = _one(spec.get("inputSchema"), frozenset({"json"}), f"{path}/toolSpec/inputSchema")[1]
    _object(schema, f"{path}/toolSpec/inputSchema/json")
    name: str = spec["name"]
    return name


def _check_choice(choice: dict[str, Json], names: list[str | None], profile: BedrockProfile) -> None:
    kind, value = _one(choice, frozenset(_CHOICES), "toolConfig/toolChoice")
    _only(_object(value, f"toolConfig/toolChoice/{kind}"), _CHOICES[kind], f"toolConfig/toolChoice/{kind}")
    if kind not in profile.choices:
        raise RULES["BED-S12"].refused(kind=kind)
    if kind == "tool" and value.get("name") not in names:
        raise RULES["BED-S09"].refused(name=value.get("name"))


# --- messages ----------------------------------------------------------------------------------------


def _check_message(message: Json, at: int, profile: BedrockProfile) -> None:
    path = f"messages/{at}"
    _only(_object(message, path), frozenset({"role", "content"}), path)
    role = _typed(message.get("role"), str, f"{path}/role")
    if role not in ("user", "assistant"):
        raise RULES["BED-S03"].refused(
            value=f"'{role}'", path=f"messages.{at}.role", values="user, assistant"
        )
    content = _list(message, "content", f"{path}/")
    if not content:
        raise RULES["BED-05"].refused(at=at)
    kinds = [_check_block(block, f"{path}/content/{n}", role, profile) for n, block in enumerate(content)]
    if "document" in kinds and "text" not in kinds:
        raise RULES["BED-13"].refused(at=at)


def _check_block(block: Json, path: str, role: str, profile: BedrockProfile) -> str:
    kind, value = _one(block, _BLOCK_KEYS.keys() | {"text"}, path)
    if kind == "text":
        _check_text(_typed(value, str, f"{path}/text"), _dotted(path))
        return kind
    _only(_object(value, f"{path}/{kind}"), _BLOCK_KEYS[kind], f"{path}/{kind}")
    if _ROLE_OF.get(kind, role) != role:
        raise RULES["BED-S07"].refused(block=kind, path=_dotted(path), role=role)
    if kind in _MEDIA:
        _check_media(kind, value, f"{path}/{kind}", profile)
    elif kind == "toolUse":
        _check_name(value.get("toolUseId"), f"{path}/toolUse/toolUseId", ID)
        _check_name(value.get("name"), f"{path}/toolUse/name", TOOL_NAME)
        _object(value.get("input"), f"{path}/toolUse/input")
    elif kind == "toolResult":
        _check_result(value, f"{path}/toolResult", profile)
    elif kind == "reasoningContent":
        _check_reasoning(value, f"{path}/reasoningContent")
    elif kind == "cachePoint":
        _check_mark(value, f"{path}/cachePoint")
    return kind


def _check_mark(value: Json, path: str) -> None:
    _only(_object(value, path), _BLOCK_KEYS["cachePoint"], path)
    for key, allowed in _MARK_VALUES.items():
        if value.get(key, allowed[0]) not in allowed or (key == "type" and key not in value):
            told = f"'{value.get(key)}'"
            raise RULES["BED-S03"].refused(
                value=told, path=_dotted(f"{path}/{key}"), values=", ".join(allowed)
            )


def _check_text(text: Json, path: str) -> None:
    if not _typed(text, str, path).strip():
        raise RULES["BED-04"].refused(path=path)


def _check_result(value: dict[str, Json], path: str, profile: BedrockProfile) -> None:
    _check_name(value.get("toolUseId"), f"{path}/toolUseId", ID)
    if value.get("status", "success") not in ("success", "error"):
        raise RULES["BED-S03"].refused(
            value=f"'{value['status']}'", path=_dotted(f"{path}/status"), values="success, error"
        )
    for at, part in enumerate(_list(value, "content", f"{path}/")):
        kind, held = _one(part, _IN_RESULT, f"{path}/content/{at}")
        if kind == "text":
            _check_text(held, _dotted(f"{path}/content/{at}"))
        elif kind == "json":
            _object(held, f"{path}/content/{at}/json")
        else:
            _check_media(kind, _object(held, f"{path}/content/{at}"), f"{path}/content/{at}", profile)


def _check_reasoning(value: dict[str, Json], path: str) -> None:
    kind, held = _one(value, _BLOCK_KEYS["reasoningContent"], path)
    if kind == "redactedContent":
        _typed(held, str, f"{path}/{kind}")
        return
    _only(_object(held, f"{path}/{kind}"), frozenset({"text", "signature"}), f"{path}/{kind}")
    _typed(held.get("text"), str, f"{path}/{kind}/text")
    if "signature" in held:
        _typed(held["signature"], str, f"{path}/{kind}/signature")


def _check_media(kind: str, value: dict[str, Json], path: str, profile: BedrockProfile) -> None:
    if kind not in profile.media:
        raise RULES["BED-09"].refused(kind=kind)
    if (form := value.get("format")) not in _FORMATS[kind]:
        formats = ", ".join(_FORMATS[kind])
        raise RULES["BED-S03"].refused(value=f"'{form}'", path=_dotted(f"{path}/format"), values=formats)
    if kind == "document":
        _check_title(_typed(value.get("name"), str, f"{path}/name"))
    where, held = _one(value.get("source"), frozenset({"bytes", "s3Location"}), f"{path}/source")
    if where == "bytes" and not _typed(held, str, f"{path}/source/bytes"):
        raise RULES["BED-S04"].refused(value="''", path=_dotted(f"{path}/source/bytes"))


def _uses_tools(message: Json) -> bool:
    return any("toolUse" in block or "toolResult" in block for block in message["content"])


def _attached_to(message: Json) -> list[tuple[str, Json]]:
    return list(_attached(message["content"]))


def _attached(content: list[Json]) -> Iterator[tuple[str, Json]]:
    """Yield the images and documents of a message, and those inside its results."""
    for block in content:
        ((kind, value),) = block.items()
        if kind in ("image", "document"):
            yield kind, value
        elif kind == "toolResult":
            yield from _attached(value["content"])


def _check_documents(documents: list[Json]) -> None:
    if len(documents) > _MOST_DOCUMENTS:
        raise RULES["BED-16"].refused(most=_MOST_DOCUMENTS)
    if len({document["name"] for document in documents}) < len(documents):
        raise RULES["BED-15"].refused()


def _check_count(kinds: list[str], most: int | None) -> None:
    images, documents = kinds.count("image"), kinds.count("document")
    if most is not None and images + documents > most:
        raise RULES["BED-17"].refused(images=images, documents=documents, most=most)


def _check_title(name: str) -> None:
    if not 1 <= len(name) <= 200 or not set(name) <= _TITLE or "  " in name:
        raise RULES["BED-18"].refused()


def _check_sequence(messages: list[Json]) -> None:
    if not messages or messages[0]["role"] != "user":
        raise RULES["BED-07"].refused()
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        given = came(_ids, message, "toolResult")
        if missing := [call for call in open_calls if call not in given]:
            raise RULES["BED-01"].refused(at=at, ids=", ".join(missing))
        if len(given) > len(open_calls):
            raise RULES["BED-02"].refused(at=at)
        open_calls = came(_ids, message, "toolUse")
    if open_calls:
        raise RULES["BED-01"].refused(at=len(messages), ids=", ".join(open_calls))
    if any(before["role"] == message["role"] for before, message in pairwise(messages)):
        raise RULES["BED-06"].refused()


def _ids(message: Json, kind: str) -> list[str]:
    return [block[kind]["toolUseId"] for block in message["content"] if kind in block]


# --- shapes ------------------------------------------------------------------------------------------


def _typed(value: Json, wanted: type, path: str) -> Json:
    if value is None:
        raise RULES["BED-S01"].refused(value="null", path=_dotted(path))
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise RULES["BED-S02"].refused(path=path, wanted=_NAMES[wanted], found=_NAMES[type(value)])
    return value


def _object(value: Json, path: str) -> dict[str, Json]:
    found: dict[str, Json] = _typed(value, dict, path)
    return found


def _list(value: dict[str, Json], key: str, path: str, *, required: bool = True) -> list[Json]:
    if key not in value and not required:
        return []
    found: list[Json] = _typed(value.get(key), list, f"{path}{key}")
    return found


def _only(value: dict[str, Json], allowed: frozenset[str], path: str) -> None:
    if (key := unknown_key(value, allowed)) is not None:
        raise RULES["BED-11"].refused(path=path, key=key)


def _one(value: Json, allowed: frozenset[str] | set[str], path: str) -> tuple[str, Json]:
    """Return the one member of a union."""
    held = _object(value, path)
    _only(held, frozenset(allowed), path)
    if len(held) != 1:
        raise RULES["BED-S06"].refused(path=path, count=len(held))
    return next(iter(held.items()))


def _check_name(value: Json, path: str, pattern: str) -> None:
    text = _typed(value, str, path)
    if len(text) > 64:
        raise RULES["BED-08-length"].refused(value=f"'{text}'", path=_dotted(path))
    if not re.fullmatch(pattern, text):
        raise RULES["BED-08"].refused(value=f"'{text}'", path=_dotted(path), pattern=pattern)


def _dotted(path: str) -> str:
    return path.replace("/", ".")
