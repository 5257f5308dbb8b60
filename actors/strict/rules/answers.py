"""Check `response_format` in Chat Completions requests. In JSON mode, a message must mention JSON.

The checks are the same for all hosts. A `VendorHost` defines which schemas a host accepts.
"""

import re

from actors.strict.rules.base import Json, strings_inside
from actors.strict.rules.host import RequestContext
from actors.strict.rules.openai_messages import RULES, WALK, enumerate_names, refuse_unknown_keys

_KEYS = frozenset({"name", "description", "schema", "strict"})
_FORMS = ("text", "json_object", "json_schema")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_NAME = 64


def check(request: dict[str, Json], context: RequestContext) -> None:
    """Refuse an answer format that the host does not support, or a schema that it does not accept."""
    asked = request.get("response_format")
    if asked is None:
        return
    WALK.require_type(asked, dict, "response_format")
    which = WALK.require(asked, "type", "response_format")
    if which not in _FORMS:
        told = enumerate_names(_FORMS)
        raise RULES["OAC-06"].refuse(
            "response_format.type", path="response_format.type", value=which, values=told
        )
    refuse_unknown_keys(asked, frozenset({"type", "json_schema"}), "response_format", context)
    if (
        which == "json_object"
        and context.enforces(RULES["OAC-S14"])
        and not _mentions_json(request["messages"])
    ):
        raise RULES["OAC-S14"].refuse("messages")
    if which == "json_schema":
        _check_json_schema(WALK.require(asked, "json_schema", "response_format"), context)


def _mentions_json(messages: Json) -> bool:
    return any("json" in text.lower() for _, text in strings_inside(messages))


def _check_json_schema(setting: Json, context: RequestContext) -> None:
    path = "response_format.json_schema"
    WALK.require_type(setting, dict, path)
    refuse_unknown_keys(setting, _KEYS, path, context)
    name = WALK.required_member(setting, "name", str, path)
    if len(name) > _MAX_NAME:
        at = f"{path}.name"
        raise RULES["OAC-10"].refuse(at, path=at, limit=_MAX_NAME, length=len(name), name=name)
    if not _NAME.fullmatch(name):
        raise RULES["OAC-S06"].refuse(f"{path}.name", path=f"{path}.name", name=name)
    schema = WALK.required_member(setting, "schema", dict, path)
    if setting.get("strict") is not None:
        WALK.require_type(setting["strict"], bool, f"{path}.strict")
    if wrong := _schema_fault(schema, context, is_strict=setting.get("strict") is True):
        raise RULES["OAC-S13"].refuse("response_format", name=name, why=wrong)


def _schema_fault(schema: dict[str, Json], context: RequestContext, *, is_strict: bool) -> str | None:
    """Return a description of a fault in an answer schema, or None."""
    if is_strict and (wrong := context.host.strict(schema, context.mode)):
        return wrong
    return context.host.answer(schema)
