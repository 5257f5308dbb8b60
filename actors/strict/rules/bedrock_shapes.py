"""Define the shapes of AWS Bedrock Converse requests as tables, and check them with the service's error messages."""

import re
from collections.abc import Mapping
from string import ascii_letters, digits
from typing import NamedTuple

from actors.strict.rules.base import Json, RuleBroken
from actors.strict.rules.bedrock_rules import ID, RULES, TOOL_NAME, BedrockProfile
from actors.strict.rules.reading import parse
from actors.strict.rules.shapes import ArrayOf, Fields, Maybe, OneMember, Shape, ShapeChecker, Then, Word

_NAMES: Mapping[type, str] = {
    dict: "JSONObject",
    list: "JSONArray",
    str: "String",
    int: "Integer",
    bool: "Boolean",
    type(None): "Null",
    float: "BigDecimal",
}
_FORMATS = {
    "image": ("png", "jpeg", "gif", "webp"),
    "document": ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
}
_MEDIA_ROLES = dict.fromkeys(("image", "document", "video", "audio"), "user")
_ROLE_OF = {"toolUse": "assistant", "reasoningContent": "assistant", "toolResult": "user", **_MEDIA_ROLES}
_MAX_STOPS = 2500
_MAX_EFFORT = 16
_MAX_NAME = 64
_TITLE = frozenset(ascii_letters + digits + " -()[]")


class MessageContext(NamedTuple):
    """The context for checks inside a message: the model's profile, and the message's role."""

    profile: BedrockProfile
    role: Json


class ConverseShapeChecker(ShapeChecker):
    """The shape checks with Bedrock's paths and error messages. Bedrock reports a missing key as null."""

    def key_path(self, path: str, key: str) -> str:
        return f"{path}/{key}" if path else key

    def item_path(self, path: str, index: int) -> str:
        return f"{path}/{index}"

    def wrong_type_refusal(self, path: str, expected_type: type, value: Json) -> RuleBroken:
        if value is None:
            return RULES["BED-S01"].refuse(value="null", path=dotted_path(path))
        return RULES["BED-S02"].refuse(path=path, wanted=_NAMES[expected_type], found=_NAMES[type(value)])

    def wrong_word_refusal(self, path: str, value: Json, shape: Word) -> RuleBroken:
        return RULES["BED-S03"].refuse(
            value=f"'{value}'", path=dotted_path(path), values=", ".join(shape.values)
        )

    def missing_key_refusal(self, path: str, key: str) -> RuleBroken:
        return self.wrong_type_refusal(self.key_path(path, key), object, None)

    def unknown_key_refusal(self, path: str, key: str) -> RuleBroken:
        return RULES["BED-11"].refuse(path=path, key=key)

    def key_count_refusal(self, path: str, count: int) -> RuleBroken:
        return RULES["BED-S06"].refuse(path=path, count=count)


WALK = ConverseShapeChecker()


def dotted_path(path: str) -> str:
    """Return a path in dotted form, as the service writes paths in messages about constraints."""
    return path.replace("/", ".")


# --- checks of values


def _check_positive(value: int, path: str, context: object) -> None:
    if value < 1:
        raise RULES["BED-S04"].refuse(value=value, path=dotted_path(path))


def _check_fraction(value: Json, path: str, context: object) -> None:
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RULES["BED-S08"].refuse(value=value, path=dotted_path(path), least=0, most=1)


def _check_not_empty(text: str, path: str, context: object) -> None:
    if not text:
        raise RULES["BED-S04"].refuse(value="''", path=dotted_path(path))


def _check_stop_sequences(stops: list[Json], path: str, context: object) -> None:
    if len(stops) > _MAX_STOPS:
        raise RULES["BED-S10"].refuse(value=f"[{len(stops)}]", path=dotted_path(path))


def _check_effort(effort: str, path: str, context: object) -> None:
    if len(effort) > _MAX_EFFORT:
        raise RULES["BED-S11"].refuse(value=f"'{effort}'", path=dotted_path(path))


def _check_schema(text: str, path: str, context: object) -> None:
    """Check an answer schema, which is given as a string that contains JSON."""
    try:
        schema = parse(text.encode())
    except ValueError as why:
        raise RULES["BED-S05"].refuse(why=why) from why
    WALK.require_type(schema, dict, path)


def _name_shape(pattern: str) -> Shape:
    """Return the shape of a name or id that matches a regular expression."""

    def check(text: str, path: str, context: object) -> None:
        if len(text) > _MAX_NAME:
            raise RULES["BED-08-length"].refuse(value=f"'{text}'", path=dotted_path(path))
        if not re.fullmatch(pattern, text):
            raise RULES["BED-08"].refuse(value=f"'{text}'", path=dotted_path(path), pattern=pattern)

    return Then(str, check)


def _check_document_name(name: str, path: str, context: object) -> None:
    if not 1 <= len(name) <= 200 or not set(name) <= _TITLE or "  " in name:
        raise RULES["BED-18"].refuse()


def _check_not_blank(text: str, path: str, context: object) -> None:
    if not text.strip():
        raise RULES["BED-04"].refuse(path=dotted_path(path.removesuffix("/text")))


def _check_text(value: Json, path: str, context: object) -> None:
    """Check a text block in a tool result or in the system prompt. A refusal names the block, not its field `text`."""
    block = dotted_path(path.removesuffix("/text"))
    _check_not_blank(WALK.require_type(value, str, block), block, context)


def _check_json(value: Json, path: str, context: object) -> None:
    WALK.require_type(value, dict, f"{path}/json")


def _check_role(value: Json, path: str, context: MessageContext) -> None:
    """Check that a message with this role may contain a block of this kind."""
    block, _, kind = path.rpartition("/")
    if _ROLE_OF[kind] != context.role:
        raise RULES["BED-S07"].refuse(block=kind, path=dotted_path(block), role=context.role)


def _check_content(content: list[Json], path: str, context: object) -> None:
    if not content:
        raise RULES["BED-05"].refuse(at=path.split("/")[1])


def _check_documents(message: Json, path: str, context: object) -> None:
    """Check that a message with a document contains text as well."""
    kinds = {kind for block in message["content"] for kind in block}
    if "document" in kinds and "text" not in kinds:
        raise RULES["BED-13"].refuse(at=path.split("/")[1])


def _check_tools(tools: list[Json], path: str, context: object) -> None:
    if not tools:
        raise RULES["BED-S04"].refuse(value="[]", path=dotted_path(path))


def _check_choice(config: Json, path: str, profile: BedrockProfile) -> None:
    for kind, value in config.get("toolChoice", {}).items():
        if kind not in profile.choices:
            raise RULES["BED-S12"].refuse(kind=kind)
        names = [tool["toolSpec"]["name"] for tool in config["tools"] if "toolSpec" in tool]
        if kind == "tool" and value.get("name") not in names:
            raise RULES["BED-S09"].refuse(name=value.get("name"))


# --- tables


def _media_fields(kind: str, *, is_in_result: bool = False) -> Fields:
    def check_support(value: Json, path: str, context: MessageContext) -> None:
        if not is_in_result:
            _check_role(value, path, context)
        if kind not in context.profile.media:
            raise RULES["BED-09"].refuse(kind=kind)

    named: dict[str, Shape | Maybe] = {"name": Then(str, _check_document_name)} if kind == "document" else {}
    others = dict.fromkeys(("context", "citations"), _ANY) if kind == "document" else {}
    source = OneMember({"bytes": Then(str, _check_not_empty), "s3Location": object})
    fields = {"format": Word(*_FORMATS.get(kind, ())), **named, "source": source, **others}
    return Fields(fields, closed="open" if is_in_result else "first", precheck=check_support)


_ANY = Maybe(object)
_MARK = Fields({"type": Word("default"), "ttl": Maybe(Word("5m", "1h"))})
_IN_RESULT = OneMember(
    {
        "text": Then(object, _check_text),
        "json": Then(object, _check_json),
        **{kind: _media_fields(kind, is_in_result=True) for kind in ("image", "document", "video")},
    },
    is_key_in_path=False,
)
_BLOCK = OneMember(
    {
        "text": Then(str, _check_not_blank),
        "toolUse": Fields(
            {"toolUseId": _name_shape(ID), "name": _name_shape(TOOL_NAME), "input": dict, "type": _ANY},
            precheck=_check_role,
        ),
        "toolResult": Fields(
            {
                "toolUseId": _name_shape(ID),
                "status": Maybe(Word("success", "error")),
                "content": ArrayOf(_IN_RESULT),
                "type": _ANY,
            },
            precheck=_check_role,
        ),
        "reasoningContent": OneMember(
            {"reasoningText": Fields({"text": str, "signature": Maybe(str)}), "redactedContent": str},
            precheck=_check_role,
        ),
        **{kind: _media_fields(kind) for kind in _MEDIA_ROLES},
        "cachePoint": _MARK,
    }
)
MESSAGE = Fields(
    {"role": Word("user", "assistant", reports_wrong_type=True), "content": ArrayOf(_BLOCK, _check_content)},
    check=_check_documents,
)
"""The shape of a message. Its checks need a `MessageContext` as the context."""

_FRACTION = Maybe(Then(object, _check_fraction), null=True)
_INFERENCE = Fields(
    {
        "maxTokens": Maybe(Then(int, _check_positive), null=True),
        "temperature": _FRACTION,
        "topP": _FRACTION,
        "stopSequences": Maybe(ArrayOf(Then(str, _check_not_empty), _check_stop_sequences)),
    }
)
_FORM = Fields({"schema": Then(str, _check_schema), "name": _ANY, "description": _ANY})
_OUTPUT = Fields(
    {
        "effort": Maybe(Then(str, _check_effort)),
        "textFormat": Maybe(
            Fields(
                {
                    "type": Word("json_schema", reports_wrong_type=True),
                    "structure": OneMember({"jsonSchema": _FORM}),
                }
            )
        ),
    }
)
_TOOL = Fields(
    {
        "name": _name_shape(TOOL_NAME),
        "description": Maybe(Then(str, _check_not_empty)),
        "inputSchema": OneMember({"json": dict}),
        "strict": _ANY,
    }
)
_TOOLS = Fields(
    {
        "tools": ArrayOf(
            OneMember({"toolSpec": _TOOL, "systemTool": object, "cachePoint": _MARK}), _check_tools
        ),
        "toolChoice": Maybe(
            OneMember({"auto": Fields({}), "any": Fields({}), "tool": Fields({"name": _ANY})})
        ),
    },
    check=_check_choice,
)
REQUEST = Fields(
    {
        "inferenceConfig": Maybe(_INFERENCE),
        "additionalModelRequestFields": Maybe(dict),
        "outputConfig": Maybe(_OUTPUT),
        "toolConfig": Maybe(_TOOLS),
        "system": Maybe(
            ArrayOf(
                OneMember({"text": Then(object, _check_text), "cachePoint": _MARK, "guardContent": object})
            )
        ),
        "messages": list,
        **dict.fromkeys(
            (
                "guardrailConfig",
                "promptVariables",
                "additionalModelResponseFieldPaths",
                "requestMetadata",
                "performanceConfig",
                "serviceTier",
            ),
            _ANY,
        ),
    }
)
"""The shape of a request without its messages. Its checks need a `BedrockProfile` as the context."""
