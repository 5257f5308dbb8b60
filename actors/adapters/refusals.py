"""Find what a provider rejects in a request, by the wording of its error: a parameter, a tool's schema, or attachments.

In:  the provider's message, the field in which the provider names a part of the request (`param`, `loc`), and the
     request.
Out: for a parameter, the settings that it encodes, and whether the parameter is unsupported or its value is rejected.
     For a tool's schema, the message with the names of the tool and of the rejected keys added.
     For attachments, their names (`actors.core.render.media_name`).

Hosts copy each other's wordings, and each host names parameters as in its own wire format, so one table of names and
one list of wordings serve all hosts. Names are compared without regard to case, underscores and indices:
`reasoning_effort`, `topP` and `generationConfig.thinkingConfig.thinkingLevel` are found by their last keys. A path
inside the messages or the tools is not a parameter, except for the path of a cache mark. Errors about a tool's schema
have their own wordings.

Providers identify a tool by its position (`tools.0.custom.input_schema`), or not at all if they compile all tools into
one grammar. They identify an attachment by its position (`messages.3.content.1.image.source`,
`input[2].content[0].image_url`, `contents[0].parts[1].inline_data`) or by its URL, and often not at all. Positions
refer to the request as it was sent, so the request body is parsed. These errors are rare, so speed does not matter.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from actors.adapters.failure import RefusedParameter
from actors.adapters.request import Request
from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.schemas.json_schema import subschema_entries
from actors.core.settings.table import SETTINGS
from actors.core.values.identity import content_digest

_EXTRA_NAMES: Mapping[tuple[str, ...], str] = {
    ("effort",): "effort reasoningeffort reasoning.effort outputconfig.effort thinkinglevel",
    ("thinking",): "thinking thinkingconfig thinkingbudget budgettokens includethoughts enablethinking"
    " reasoning.enabled reasoning.maxtokens additionalmodelrequestfields",
    ("effort", "thinking"): "reasoning",
    ("effort", "output"): "outputconfig",
    ("max_tokens",): "maxcompletiontokens",
    ("metadata", "user"): "metadata",
    ("seed",): "randomseed",
    ("stop",): "stopsequence",
    ("tool_choice",): "toolchoice toolconfig functioncallingconfig allowedfunctionnames",
    ("output",): "responseformat text text.format outputconfig.format outputconfig.textformat textformat"
    " responseschema responsejsonschema responsemimetype",
    ("cache",): "promptcachekey cachecontrol cachepoint promptcaching",
    ("cache_life",): "promptcacheretention promptcacheoptions cachecontrol.ttl",
    ("stream",): "stream",
    ("stream_options",): "streamoptions includeusage",
    ("include",): "include",
    ("upstream",): "provider",
}
"""Names of parameters by the settings that they encode, in addition to the wire names in the settings table."""
_TOOL_PLACE = re.compile(r"\btools[.\[]+(\d+)")
_PATTERN = re.compile(r"match pattern '?\^?(\[[^\]]+\]\{1,\d+\})")
_IS_SCHEMA = re.compile(r"schema|propert|grammar|function_?declaration|parameters", re.IGNORECASE)
_IS_GRAMMAR = re.compile(r"grammar|regex|regular expression|look-?(?:around|ahead|behind)", re.IGNORECASE)
_MAX_BODY = 1 << 28
_MAX_DEPTH = 96
_MAX_KEYS = 3  # maximum number of keys that an error message lists
_MAX_NAME = 80  # maximum characters of a name in an error message


def _table_names() -> Mapping[str, tuple[str, ...]]:
    """Return the settings in the table, by the names of their request fields. The field `user` is excluded, because
    errors mention `user` as a role.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, setting in SETTINGS.items():
        paths = [*setting.wire.values(), *(path for each in setting.constants.values() for path in each)]
        found |= {_last_keys(path): (name,) for path in paths if path != "user"}
    return found


def _last_keys(path: str) -> str:
    """Return the last key of a path, or its last two keys if the last key alone is ambiguous."""
    parts = path.replace("_", "").lower().split(".")
    return ".".join(parts[-2 if parts[-1] in ("type", "summary") else -1 :])


PARAMETERS: Mapping[str, tuple[str, ...]] = {
    **_table_names(),
    **{name: settings for settings, names in _EXTRA_NAMES.items() for name in names.split()},
}
"""The settings that each parameter encodes, by the parameter's wire name in lower case without underscores."""

_CONTENT_KEYS = frozenset(("messages", "contents", "input", "tools", "system", "systeminstruction"))
"""First keys of paths that lead to content and not to a parameter."""
_CACHE = frozenset(("cachecontrol", "cachepoint"))
_PREFIXES = frozenset(
    ("body", "request", "generatecontentrequest", "generationconfig", "inferenceconfig", "toolconfig")
)

_PATHS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<name>tool_choice) forces",
        r"unknown name \W*(?P<name>\w+)\W+at '(?P<at>[\w.\[\]]*)'",  # Google's message
        r"#/?(?P<at>[\w/]*): extraneous key \[(?P<name>\w+)\]",  # Bedrock's message
        r"extraneous key \[(?P<name>\w+)\]",
        r"loc\W+body\W+(?P<name>\w+)",  # pydantic's message, quoted by vLLM
        r"(?:unsupported|unknown|unrecognized|unexpected|invalid) (?:request )?(?:parameter|param|argument|value|field|"
        r"keyword argument)s?(?: supplied)?:? *[\"'`]?(?P<name>[a-z_][\w.\[\]]*)",
        r"^(?P<name>[a-z_][\w.\[\]]*): ",  # Anthropic's message
        r"errors: (?P<name>[a-z_][\w.\[\]]*): ",  # Anthropic's message, forwarded by Bedrock
        r"\b(?:parameter|param|field|argument)s?(?: not supported on this model)?:? [\"'`]?(?P<name>[a-z_][\w.]*)",
        r"\bthe (?P<name>[\w.]+) (?:parameter|param|field|argument|setting)\b",
        r"[\"'`](?P<name>[a-z_][\w.]*)[\"'`]",
        r"\b(?P<name>[a-z]+(?:_[a-z]+)+|(?-i:[a-z]+[A-Z]\w+))\b",
        r"\b(?P<name>temperature|top_p|effort|tool choice|thinking (?:budget|level|config)|prompt caching|"
        r"response (?:format|schema|mime type)|stop sequences?|thinking)\b",
    )
)
"""Patterns that find a parameter's name in a message, the most specific pattern first."""

_VALUE = re.compile(
    r"unsupported[ _]value|invalid[ _]value|supported (?:values|levels|types)|is invalid|one of|\bboth\b|"
    r"\bonly\b.{0,40}\b(?:allowed|supported|works)|only the default|\b(?:must|should) be|may only|input should|"
    r"incompatible|cannot (?:both )?be|greater than|less than|exceed|out of range|maximum|minimum|at most|"
    r"too (?:many|long|large|small)|[<>] ?\d|effort level|does not support [\"'\d]|this tool_choice|thinking\.type\.|"
    r"type \W?(?:tool|any|required|function)|'(?:specified|required)'|when (?:thinking|tool|using)|tools with|"
    r"with (?:thinking|tools|reasoning)|(?:adaptive|manual|extended) thinking is",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported|not (?:\w+ )?support|n't support|deprecat|not permitted|unknown|unrecognized|unexpected|extraneous|"
    r"extra_forbidden|extra inputs|no longer|not (?:available|accepted|allowed)|cannot find field|does not accept|"
    r"did not allow|removed",
    re.IGNORECASE,
)


_SCHEMAS = (
    (
        "schema_keys",
        r"property keys? (?:should|must) match|invalid property (?:key|name)|"
        r"propert(?:y|ies)\b.{0,60}\bnames?\b.{0,40}(?:invalid|must|should)",
    ),
    (
        "schema_patterns",
        r"failed to parse grammar|failed to initialize samplers|pattern must start with|look-?(?:around|ahead|behind)|"
        r"(?:regex\w*|regular expression|\bpattern)\b.{0,80}(?:unsupported|invalid|not (?:\w+ )?(?:support|valid))|"
        r"(?:unsupported|invalid) (?:regex|regular expression|pattern)|json schema conversion failed",
    ),
)
"""Rewrites of a tool's schema, each with a pattern for the errors that the rewrite avoids."""


def refused_schema(message: str) -> RefusedParameter | None:
    """Return the rewrite of tool schemas that avoids an error, or None if the error's wording is unknown."""
    for name, pattern in _SCHEMAS:
        if re.search(pattern, message, re.IGNORECASE):
            return RefusedParameter((name,), is_value=False)
    return None


def refused_parameter(message: str, place: str, code: str = "") -> RefusedParameter | None:
    """Return the parameter that an error message mentions, or None if it mentions no known parameter.

    Args:
        message: The provider's message.
        place: The part of the request that the provider names in a separate field, or "" if there is none.
        code: The provider's type and code of the error.
    """
    words = f"{code} {message}"
    is_value = _VALUE.search(words) is not None or _UNSUPPORTED.search(words) is None
    for parts in map(_path_keys, (place, *_named_paths(message))):
        if len(parts) > 1 and parts[0] in _CONTENT_KEYS:
            return RefusedParameter(("cache",), is_value) if _CACHE.intersection(parts) else None
        if settings := _settings_of_path(parts):
            return RefusedParameter(settings, is_value)
    return None


def _named_paths(message: str) -> Iterator[str]:
    for pattern in _PATHS:
        for match in pattern.finditer(message):
            named = match.groupdict()
            yield f"{named.get('at') or ''}.{named['name']}"


def _path_keys(path: str) -> list[str]:
    """Return the keys of a path such as `body.generation_config.thinkingConfig[0]`, written as in `PARAMETERS`."""
    plain = re.sub(r"[_ -]", "", path.lower())
    parts = [part for part in re.split(r"[./\[\]#]+", plain) if part and not part.isdecimal()]
    while len(parts) > 1 and parts[0] in _PREFIXES:
        del parts[0]
    return parts


def _settings_of_path(keys: list[str]) -> tuple[str, ...]:
    """Return the settings to which a path refers. The last keys of the path decide or, if no setting matches them, the
    keys before them. The result is empty if no key matches a setting.
    """
    for end in range(len(keys), 0, -1):
        for start in range(max(0, end - 2), end):
            if found := PARAMETERS.get(".".join(keys[start:end])):
                return found
    return ()


def _parse_body(body: bytes) -> dict[str, JsonValue]:
    """Return a request body as JSON, or an empty object if the body is not a JSON object."""
    try:
        request = parse(body, max_bytes=_MAX_BODY, max_depth=_MAX_DEPTH)
    except JsonRefused:
        return {}
    return request if isinstance(request, dict) else {}


class _DeclaredTool(NamedTuple):
    name: str
    schema: JsonValue


def name_refused_tool(message: str, request: Request) -> str:
    """Add the names of the tool and of the rejected keys to a provider's message about a tool's schema, and return the
    message. Other messages are returned unchanged.
    """
    if not _IS_SCHEMA.search(message):
        return message
    tools = [tool for tool in _declared_tools(request.body) if tool.name]
    if (place := _TOOL_PLACE.search(message)) is not None:
        tools = tools[int(place[1]) : int(place[1]) + 1]
    elif named := [tool for tool in tools if f"'{tool.name}'" in message or f'"{tool.name}"' in message]:
        tools = named
    elif not _IS_GRAMMAR.search(message):
        return message
    for tool in tools:
        keys = _rejected_schema_keys(message, tool)
        if keys or place is not None or len(tools) == 1:
            own = request.names.get(tool.name, tool.name)
            made = request.keys.get(own, {})
            told = ", ".join(repr(made.get(key, key)[:_MAX_NAME]) for key in keys[:_MAX_KEYS])
            return f"{message} (tool {own[:_MAX_NAME]!r}{', key ' if told else ''}{told})"
    return message


def _rejected_schema_keys(message: str, tool: _DeclaredTool) -> list[str]:
    """Return the keys of a tool's schema to which the message refers."""
    members = tool.schema.get("properties") if isinstance(tool.schema, dict) else None
    if (demanded := _PATTERN.search(message)) is not None and isinstance(members, dict):
        return [key for key in members if not re.fullmatch(demanded[1], key)]
    if _IS_GRAMMAR.search(message):
        return [key for key, held in _schema_properties(tool.schema) if _has_pattern(held)]
    return [
        key
        for key, _ in _schema_properties(tool.schema)
        if re.search(rf"['\".]{re.escape(key)}(?:['\"\].:\s]|$)", message)
    ]


def _schema_properties(schema: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield the properties of a schema and of all schemas inside it, outer properties first."""
    if not isinstance(schema, dict):
        return
    members = schema.get("properties")
    if isinstance(members, dict):
        yield from members.items()
    for keyword, value in schema.items():
        for _, inner in subschema_entries(keyword, value):
            yield from _schema_properties(inner)


def _has_pattern(schema: JsonValue) -> bool:
    if not isinstance(schema, dict):
        return False
    around = [item for item in schema.items() if item[0] != "properties"]
    inner = (held for keyword, value in around for _, held in subschema_entries(keyword, value))
    return "pattern" in schema or any(map(_has_pattern, inner))


def _declared_tools(body: bytes) -> Iterator[_DeclaredTool]:
    """Yield the tools of a request body of any family, in order."""
    request = _parse_body(body)
    for holder in (request, request.get("toolConfig")):
        tools = holder.get("tools") if isinstance(holder, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            yield from _tools_of_entry(tool)


def _tools_of_entry(tool: JsonValue) -> Iterator[_DeclaredTool]:
    if not isinstance(tool, dict):
        return
    declarations = tool.get("functionDeclarations")
    listed = declarations if isinstance(declarations, list) else [tool]
    for entry in listed:
        told = entry
        for key in ("function", "toolSpec"):
            told = told[key] if isinstance(told, dict) and isinstance(told.get(key), dict) else told
        if not isinstance(told, dict):
            continue
        schemas = (
            told.get(key) for key in ("parameters", "parametersJsonSchema", "input_schema", "inputSchema")
        )
        schema = next((found for found in schemas if isinstance(found, dict)), dict[str, JsonValue]())
        inner = schema.get("json")
        name = told.get("name")
        yield _DeclaredTool(
            name if isinstance(name, str) else "", inner if isinstance(inner, dict) else schema
        )


_LISTS = ("messages", "input", "contents")
"""The keys of a request body that may contain the messages."""
_CALLS = frozenset(("input", "arguments", "args", "toolUse", "functionCall"))
"""Keys of tool call arguments, which the model wrote, so they do not contain attachments."""
_MEDIA_PLACE = re.compile(r"\b(?:messages|input|contents)((?:[.\[]+\w+\]?)+)")
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")


class MediaPart(NamedTuple):
    """An attachment in a request.

    Args:
        place: The list indices that lead to the attachment.
        name: The name that is derived from the attachment's content.
        url: The URL, or "" if the request contains the attachment's data.
    """

    place: tuple[int, ...]
    name: str
    url: str = ""


def media_parts(body: bytes) -> tuple[MediaPart, ...]:
    """Return the attachments of a request body of any family, in order. The result is empty if the body is not JSON."""
    request = _parse_body(body)
    return tuple(found for key in _LISTS for found in _find_media(request.get(key), ()))


def named_media(message: str, parts: Iterable[MediaPart]) -> tuple[str, ...]:
    """Return the names of the attachments that a provider's message identifies by position or by URL."""
    places = [
        tuple(map(int, re.findall(r"(?<=[.\[])\d+(?=[.\]:]|$)", found)))
        for found in _MEDIA_PLACE.findall(message)
    ]
    pointed = [
        item.name
        for item in parts
        if (item.url and item.url in message)
        or any(_is_same_position(item.place, place) for place in places if place)
    ]
    return tuple(dict.fromkeys(pointed))


def _is_same_position(position: tuple[int, ...], other_position: tuple[int, ...]) -> bool:
    """Return True if one position is a prefix of the other.

    An error may give the position of the message that contains an attachment, or of a page inside a document.
    """
    least = min(len(position), len(other_position))
    return position[:least] == other_position[:least]


def _find_media(value: JsonValue, indices: tuple[int, ...]) -> Iterator[MediaPart]:
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _find_media(item, (*indices, at))
    elif isinstance(value, dict):
        if content := _attachment_content(value):
            bare = _DATA_URL.sub("", content, count=1)
            yield MediaPart(
                indices, content_digest(bare), content if bare == content and "://" in bare else ""
            )
            return
        for key, item in value.items():
            if key not in _CALLS:
                yield from _find_media(item, indices)


def _attachment_content(block: dict[str, JsonValue]) -> str:
    """Return the data or the URL of an attachment block of any family, or "" for other blocks."""
    source = block.get("source") or block.get("image_url") or block.get("inlineData")
    if block.get("type") in ("input_image", "input_file"):
        source = block.get("image_url") or block.get("file_data") or block.get("file_url")
    if isinstance(source, str):
        return source
    if not isinstance(source, dict):
        return ""
    found = source.get("data") or source.get("url") or source.get("bytes")
    return found if isinstance(found, str) else ""
