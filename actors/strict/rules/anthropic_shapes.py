"""Define the parameters, content blocks and tools of Anthropic Messages as tables, and check their shapes.

The tables contain the stable API and its betas. The strict server accepts parameters and tools of a beta even if the
request does not enable the beta. A test compares the tables with the types of the vendor's SDK.

The rules for the schema of a structured answer (`output_config.format`) come from the documentation page "Structured
outputs" (the sections on JSON Schema limitations and on schema complexity), and from reported refusals. Keywords
without a known rule are accepted. The media type and size of an image are read from the beginning of the image file.
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.base import Json, RuleBroken, is_array, is_object
from actors.strict.rules.reading import cached_result
from actors.strict.rules.schemas import resolve_definition, schema_nodes
from actors.strict.rules.shapes import Fields, Maybe, Shape, ShapeChecker, Tagged, Word

COUNTED_KEYS = frozenset(
    """billing_policy cache_control compaction context_management mcp_servers messages model output_config
    output_format speed system thinking tool_choice tools user_profile_id workspace_id""".split()  # noqa: SIM905  a list would fill a page
)
"""The keys that a request for a token count may have."""
OUTPUT_KEYS = frozenset(
    """container diagnostics fallback_credit_token fallbacks inference_geo max_tokens metadata service_tier
    stop_sequences stream temperature thread top_k top_p""".split()  # noqa: SIM905  a list would fill a page
)
"""The keys that a request for an answer may have, in addition to `COUNTED_KEYS`."""
_USER = frozenset({"user"})
_ASSISTANT = frozenset({"assistant"})
_BOTH = _USER | _ASSISTANT
_BOUNDS = frozenset(
    """minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems uniqueItems
    minProperties maxProperties patternProperties propertyNames""".split()  # noqa: SIM905  a list would fill a page
)
_FORMATS = frozenset(
    "date-time time date duration email hostname uri ipv4 ipv6 uuid".split()  # noqa: SIM905  a list is longer
)
_TYPE = Word("json_schema", reports_wrong_type=True)
_FORM = Fields({"type": object, "schema": dict})
_LISTS = ("anyOf", "allOf", "oneOf")
_MAX_OPTIONAL = 24
_MAX_UNIONS = 16
_MAX_SIDE, _MAX_SIDE_OF_MANY, _MANY_IMAGES = 8000, 2000, 20
_HEADER_BYTES = 256 * 1024  # number of bytes to read from the beginning of an image file


@dataclass(frozen=True, slots=True)
class BlockShape:
    """The required and optional keys of one type of content block.

    Args:
        required: The required keys with their JSON types, without `type`.
        optional: The optional keys.
        roles: The roles of messages that may contain the block.
    """

    required: Mapping[str, type]
    optional: frozenset[str] = frozenset({"cache_control"})
    roles: frozenset[str] = _BOTH

    @property
    def keys(self) -> frozenset[str]:
        """All keys that the block may have."""
        return self.optional | self.required.keys() | {"type"}


def _optional_keys(names: str) -> frozenset[str]:
    return frozenset({"cache_control", *names.split()})


_CALL = {"id": str, "name": str, "input": dict}
_RESULT = BlockShape({"tool_use_id": str}, _optional_keys("content is_error caller"), _ASSISTANT)

SERVER_CALLS: Mapping[str, tuple[str, ...]] = {
    "server_tool_use": (
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
    ),
    "mcp_tool_use": ("mcp_tool_result",),
}
"""The types of calls that the provider runs, each with the types of the blocks that answer the call."""
SERVER_RESULTS: Mapping[str, str] = {
    result: call for call, results in SERVER_CALLS.items() for result in results
}
"""The type of call that each type of result answers."""

BLOCKS: Mapping[str, BlockShape] = {
    "text": BlockShape({"text": str}, _optional_keys("citations"), _BOTH | {"system"}),
    "image": BlockShape({"source": dict}, _optional_keys("transformations"), _USER),
    "document": BlockShape({"source": dict}, _optional_keys("title context citations")),
    "search_result": BlockShape(
        {"source": str, "title": str, "content": list}, _optional_keys("citations"), _USER
    ),
    "thinking": BlockShape({"thinking": str, "signature": str}, frozenset(), _ASSISTANT),
    "redacted_thinking": BlockShape({"data": str}, frozenset(), _ASSISTANT),
    "tool_use": BlockShape(_CALL, _optional_keys("caller toolset_name"), _ASSISTANT),
    "tool_result": BlockShape({"tool_use_id": str}, _optional_keys("content is_error toolset_name"), _USER),
    "server_tool_use": BlockShape(_CALL, _optional_keys("caller"), _ASSISTANT),
    "mcp_tool_use": BlockShape({**_CALL, "server_name": str}, _optional_keys(""), _ASSISTANT),
    **dict.fromkeys(SERVER_RESULTS, _RESULT),
    "container_upload": BlockShape({"file_id": str}),
    "compaction": BlockShape({}, _optional_keys("content encrypted_content signature tool_changes")),
    "tool_addition": BlockShape({"tool": dict}, roles=_USER | {"system"}),
    "tool_removal": BlockShape({"tool": dict}, roles=_USER | {"system"}),
    "mcp_tool_listing": BlockShape({"mcp_server_name": str, "tools": list}, frozenset()),
    "fallback": BlockShape({"from": dict, "to": dict}, frozenset({"trigger"}), _ASSISTANT),
    "tool_reference": BlockShape({"tool_name": str}, roles=frozenset({"tool_result"})),
    "browser_state": BlockShape({"tabs": list}, _optional_keys("state_changes"), frozenset({"tool_result"})),
}
"""The content blocks, by type. A block with the role `tool_result` may occur only inside a tool result."""
IN_RESULT = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
"""The types of content blocks that a tool result may contain."""
LEADING_BLOCKS = frozenset({"compaction", "fallback", "mcp_tool_listing"})
"""The types of blocks that the provider may put at the beginning of an answer, before thinking (ANT-39, ANT-40)."""

MESSAGE_KEYS: Mapping[str, frozenset[str]] = {
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content"}),
    "system": frozenset({"role", "content", "clear_at", "output_config"}),
}

CUSTOM_TOOL_KEYS = frozenset(
    """type name description input_schema cache_control strict defer_loading allowed_callers input_examples
    eager_input_streaming""".split()  # noqa: SIM905  a list would fill a page
)
TOOLSETS: Mapping[str, str | None] = {
    "mcp_toolset": "mcp_server_name",
    "browser_toolset_20260801": None,
    "computer_toolset_20260801": None,
}
"""The types of toolsets, which represent several tools and have no name, with their required key, if any."""
_UNDATED = ("tool_search_tool_bm25", "tool_search_tool_regex")
_DATED = re.compile(
    r"(?:bash|code_execution|memory|computer|text_editor|web_search|web_fetch|advisor|browser_toolset|computer_toolset"
    r"|tool_search_tool_bm25|tool_search_tool_regex)_20\d{6}"
)


_TYPE_NAMES = {str: "string", int: "integer", bool: "boolean", list: "list", dict: "dictionary"}


class MessagesShapeChecker(ShapeChecker):
    """The shape checks with Anthropic's paths and error messages. The path of a block contains its type."""

    def item_path(self, path: str, index: int) -> str:
        return f"{path}.{index}"

    def tagged_path(self, path: str, tag: str) -> str:
        return f"{path}.{tag}"

    def wrong_type_refusal(self, path: str, expected_type: type, value: Json) -> RuleBroken:
        return RULES["ANT-S02"].refuse(path=path, kind=_TYPE_NAMES[expected_type])

    def wrong_word_refusal(self, path: str, value: Json, shape: Word) -> RuleBroken:
        return RULES["ANT-S03"].refuse(path=path, values=" or ".join(map(repr, shape.values)))

    def wrong_tag_refusal(self, path: str, value: Json, shape: Tagged) -> RuleBroken:
        return RULES["ANT-S04"].refuse(path=path, tag=value, tags=", ".join(map(repr, shape.listed)))

    def missing_key_refusal(self, path: str, key: str) -> RuleBroken:
        return RULES["ANT-S01"].refuse(path=self.key_path(path, key))

    def unknown_key_refusal(self, path: str, key: str) -> RuleBroken:
        return RULES["ANT-28"].refuse(path=self.key_path(path, key))


WALK = MessagesShapeChecker()


def optional_fields(names: str, **shapes: Shape | Maybe) -> dict[str, Shape | Maybe]:
    """Return the fields in `shapes`, followed by an optional field of any type for each word in `names`."""
    return {**shapes, **dict.fromkeys(names.split(), Maybe(object))}


_MARK = Fields({"type": Word("ephemeral"), "ttl": Maybe(Word("5m", "1h"))})


def check_cache_mark(value: Mapping[str, Json], path: str) -> None:
    """Refuse an invalid `cache_control` in a block or tool."""
    if value.get("cache_control") is not None:
        WALK.check(value["cache_control"], _MARK, WALK.key_path(path, "cache_control"))


def is_provider_tool(kind: str) -> bool:
    """Return True if `kind` is the type of a provider-defined tool, in any version."""
    return kind in TOOLSETS or kind in _UNDATED or _DATED.fullmatch(kind) is not None


def check_answer_schema(config: dict[str, Json]) -> None:
    """Check the answer format of an `output_config`.

    Raises:
        RuleBroken: The format is invalid, or its schema cannot be compiled by the host.
    """
    form = WALK.optional_member(config, "format", dict, "output_config")
    if form is None:
        return
    path = "output_config.format"
    WALK.check(WALK.require(form, "type", path), _TYPE, f"{path}.type")
    WALK.check(form, _FORM, path)
    root = form["schema"]
    found = list(schema_nodes(root, _subschemas))
    for node in found:
        _check_node(node, root)
    if _is_recursive(root):
        raise RULES["ANT-S19"].refuse()
    optional = sum(len(_optional_properties(node)) for node in found)
    if optional > _MAX_OPTIONAL:
        raise RULES["ANT-S20"].refuse(what="optional parameters", count=optional, limit=_MAX_OPTIONAL)
    unions = sum(1 for node in found for inner in _property_schemas(node) if _is_union(inner))
    if unions > _MAX_UNIONS:
        raise RULES["ANT-S20"].refuse(what="parameters with union types", count=unions, limit=_MAX_UNIONS)


def _check_node(node: dict[str, Json], root: Json) -> None:
    """Check one schema that is part of the schema `root`. Its subschemas are not checked."""
    kinds = node.get("type")
    told = kinds if is_array(kinds) else [kinds]
    if "object" in told and node.get("additionalProperties") is not False:
        raise RULES["ANT-S18"].refuse(why=_open_object_fault(node))
    if barred := sorted(_BOUNDS & node.keys()):
        kind = next((kind for kind in told if isinstance(kind, str)), "any")
        verb = "properties {} are" if len(barred) > 1 else "property '{}' is"
        raise RULES["ANT-S18"].refuse(
            why=f"For '{kind}' type, {verb.format(', '.join(barred))} not supported"
        )
    if node.get("minItems", 0) not in (0, 1):
        raise RULES["ANT-S18"].refuse(
            why="For 'array' type, 'minItems' values other than 0 or 1 are not supported"
        )
    if "format" in node and str(node["format"]) not in _FORMATS:
        raise RULES["ANT-S18"].refuse(why=f"For 'string' type, format '{node['format']}' is not supported")
    if any(isinstance(value, dict | list) for value in _enum_values(node)):
        raise RULES["ANT-S18"].refuse(why="enum values must be strings, numbers, booleans or null")
    if "$ref" in node and resolve_definition(node["$ref"], root) is None:
        raise RULES["ANT-S18"].refuse(why=f"$ref '{node['$ref']}' is not defined in the schema")
    if any(is_object(arm) and "$ref" in arm for arm in _as_list(node.get("allOf"))):
        raise RULES["ANT-S18"].refuse(why="allOf with $ref is not supported")


def _open_object_fault(node: dict[str, Json]) -> str:
    """Return the error message for an object that allows additional properties."""
    if "additionalProperties" not in node:
        return "For 'object' type, 'additionalProperties' must be explicitly set to false"
    told = "true" if node["additionalProperties"] is True else "object"
    return (
        f"For 'object' type, 'additionalProperties: {told}' is not supported. Please set 'additionalProperties' to "
        "false"
    )


def _optional_properties(node: dict[str, Json]) -> list[str]:
    required = _as_list(node.get("required"))
    properties = node.get("properties")
    return [name for name in properties if name not in required] if is_object(properties) else []


def _is_union(schema: Json) -> bool:
    return is_object(schema) and ("anyOf" in schema or is_array(schema.get("type")))


def _property_schemas(node: dict[str, Json]) -> Iterator[Json]:
    properties = node.get("properties")
    yield from properties.values() if is_object(properties) else ()


def _enum_values(node: dict[str, Json]) -> list[Json]:
    return [node["const"]] if "const" in node else _as_list(node.get("enum"))


def _as_list(value: Json) -> list[Json]:
    return value if is_array(value) else []


def _subschemas(schema: dict[str, Json]) -> Iterator[Json]:
    yield from _property_schemas(schema)
    if "items" in schema:
        yield schema["items"]
    for key in _LISTS:
        yield from _as_list(schema.get(key))


def _is_recursive(root: Json) -> bool:
    def loops(schema: Json, followed: tuple[Json, ...]) -> bool:
        if not is_object(schema):
            return False
        reference = schema.get("$ref")
        if reference is not None:
            return reference in followed or loops(resolve_definition(reference, root), (*followed, reference))
        return any(loops(inner, followed) for inner in _subschemas(schema))

    return loops(root, ())


def check_images(messages: Sequence[Json]) -> None:
    """Check the images of all messages.

    Raises:
        RuleBroken: An image has a wrong media type or is too large. The limit is lower in a request with many images.
    """
    images = [
        (at, *image)
        for at, message in enumerate(messages)
        for image in cached_result(_images_with_sizes, message)
    ]
    for at, place, label, kind, side in images:
        path = f"messages.{at}.{place}"
        if kind and kind != label:
            raise RULES["ANT-61"].refuse(path=path, label=label)
        if side > _MAX_SIDE:
            raise RULES["ANT-58"].refuse(path=path, most=_MAX_SIDE)
        if side > _MAX_SIDE_OF_MANY and len(images) > _MANY_IMAGES:
            raise RULES["ANT-59"].refuse(path=path, most=_MAX_SIDE_OF_MANY)


def _images_with_sizes(message: Json) -> list[tuple[str, str, str, int]]:
    """Return (path, stated media type, actual media type, longest side in pixels) for each image of a message.

    The last two are "" and 0 if the image cannot be read.
    """
    found: list[tuple[str, str, str, int]] = []
    for path, image in _images(message.get("content"), "content"):
        source = image.get("source")
        inline = is_object(source) and source.get("type") == "base64"
        kind, sides = _read_image(source.get("data")) if inline else ("", (0,))
        label = source.get("media_type", "") if inline else ""
        found.append((f"{path}.image.source.base64.data", label, kind, max(sides)))
    return found


def _images(content: Json, path: str) -> Iterator[tuple[str, Json]]:
    for number, block in enumerate(content if is_array(content) else ()):
        if is_object(block) and block.get("type") == "image":
            yield f"{path}.{number}", block
        elif is_object(block) and block.get("type") == "tool_result":
            yield from _images(block.get("content"), f"{path}.{number}.tool_result.content")


def _read_image(data: Json) -> tuple[str, tuple[int, ...]]:
    """Return the media type of an image file and its sides in pixels. The type is "" if it is unknown."""
    try:
        raw = b64decode(data[: _HEADER_BYTES * 4 // 3 // 4 * 4])
    except (ValueError, TypeError):
        return "", (0,)
    if raw[:8] == b"\x89PNG\r\n\x1a\n":
        return "image/png", _unpack_integers(raw[16:24], 4, "big")
    if raw[:4] == b"GIF8":
        return "image/gif", _unpack_integers(raw[6:10], 2, "little")
    if raw[:2] == b"\xff\xd8":
        return "image/jpeg", _jpeg_sides(raw)
    if raw[:4] + raw[8:12] == b"RIFFWEBP":
        return "image/webp", _webp_sides(raw)
    return "", (0,)


def _unpack_integers(raw: bytes, width: int, byte_order: Json) -> tuple[int, ...]:
    return tuple(int.from_bytes(raw[at : at + width], byte_order) for at in range(0, len(raw), width)) or (0,)


def _jpeg_sides(raw: bytes) -> tuple[int, ...]:
    """Return the sides of a JPEG image in pixels, from its first frame header; (0,) if it has none."""
    at = 2
    while at + 9 < len(raw):
        if raw[at] != 0xFF or raw[at + 1] == 0xFF:
            at += 1
            continue
        marker = raw[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _unpack_integers(raw[at + 5 : at + 9], 2, "big")
        length = 0 if 0xD0 <= marker <= 0xD7 or marker == 1 else int.from_bytes(raw[at + 2 : at + 4], "big")
        at += 2 + length
    return (0,)


def _webp_sides(raw: bytes) -> tuple[int, ...]:
    """Return the sides of a WebP image in pixels. The image may be extended, lossless or lossy."""
    chunk, held = raw[12:16], raw[20:30]
    if chunk == b"VP8X":
        return tuple(1 + side for side in _unpack_integers(held[4:10], 3, "little"))
    if chunk == b"VP8L":
        packed = int.from_bytes(held[1:5], "little")
        return 1 + packed % 0x4000, 1 + packed // 0x4000 % 0x4000
    return tuple(side % 0x4000 for side in _unpack_integers(held[6:10], 2, "little"))
