"""Simulate a simple model that answers each user text with one tool call, and each result with a text.

`actors simulate` and the stress test use this model, in any dialect. It generates the simplest arguments that the
schema of the tool allows. It thinks whenever the request enables thinking, because hosts then reject a history in
which an answer lacks thinking (ANT-40, DSK-05).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from actors.adapters.importing import read_declarations
from actors.core.data.jsonio import is_array, is_object
from actors.strict.rules.compatible import HOSTS
from actors.strict.script import Call, Say, Think, Turn

Request = dict[str, Any]  # Any: a request body that the rules of its dialect have accepted
Schema = Mapping[str, Any]  # Any: JSON Schema

_DEEPEST = 16
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_RESULTS = ("toolResult", "functionResponse")


def model(dialect: str) -> Callable[[Request], Turn]:
    """Return the model for the server of a dialect. In some dialects, thinking is on by default."""
    host = HOSTS.get(dialect)
    return partial(answer, thinks=host is not None and host.profile.thinking != "off")


def answer(request: Request, *, thinks: bool = False, number: int = 0) -> Turn:
    """Return the answer of the model: a call of a declared tool, or a short text after its result.

    Args:
        thinks: Whether to think if the request does not decide.
        number: Index of the tool, from 0, modulo the number of tools.
    """
    thoughts = (Think("Let me see."),) if _asks_to_think(request, thinks) else ()
    return Turn(*thoughts, *_choose_turn(request, number).parts)


def _choose_turn(request: Request, number: int) -> Turn:
    tools = [tool for tool in read_declarations(request).tools if not tool.namespace]
    tool = tools[number % len(tools)] if tools else None
    last = _last(request)
    if last == "result":
        return Turn(Say("I have the result."))
    if tool is None or last != "text" or _forbidden(request):
        return Turn(Say("ok"))
    given = {"input": "text"} if tool.form is not None else arguments(json.loads(tool.parameters))
    return Turn(Call(tool.name, given))


def _asks_to_think(request: Request, usual: bool) -> bool:
    fields = request.get("additionalModelRequestFields") or request
    kind = _inside(fields, "thinking").get("type")
    if kind is not None:
        return kind in ("enabled", "adaptive")
    google = _inside(_inside(request, "generationConfig"), "thinkingConfig")
    effort = _inside(request, "reasoning")
    template = _inside(request, "chat_template_kwargs")
    return usual or any(
        (
            google.get("includeThoughts"),
            effort and effort.get("effort") != "none" and effort.get("enabled") is not False,
            request.get("include_reasoning"),
            request.get("prompt_mode") == "reasoning",
            request.get("enable_thinking") or template.get("enable_thinking"),
        )
    )


def _inside(value: Request, key: str) -> Request:
    found = value.get(key)
    return found if is_object(found) else {}


def _last(request: Request) -> str:
    """Return the kind of the last input of the model: `text`, `result`, or empty if there is none."""
    messages = request.get("messages") or request.get("input") or request.get("contents") or ()
    if isinstance(messages, str):
        return "text"
    return ([""] + [kind for message in messages for kind in _kinds(message)])[-1]


def _kinds(message: Request) -> Iterator[str]:
    if message.get("role") == "tool" or message.get("type") in _OUTPUTS:
        yield "result"
    elif message.get("role") == "user":
        content = message.get("content") or message.get("parts") or ""
        for block in [content] if isinstance(content, str) else content:
            yield "result" if _is_result(block) else "text"


def _is_result(block: object) -> bool:
    if not is_object(block):
        return False
    return block.get("type") == "tool_result" or any(key in block for key in _RESULTS)


def _forbidden(request: Request) -> bool:
    """Return True if the request disables its tools."""
    choice = request.get("tool_choice")
    config: Request = request.get("toolConfig") or {}
    mode: object = config.get("functionCallingConfig", {}).get("mode")
    return choice in ("none", {"type": "none"}) or mode == "NONE"


def arguments(schema: Schema) -> dict[str, Any]:  # Any: JSON values
    """Return arguments that satisfy a simple schema."""
    value = _value(schema, schema, 0)
    return value if is_object(value) else {}


def _value(given: Any, root: Schema, depth: int) -> object:  # Any: JSON
    """Return a value that satisfies a schema of types, enumerations, bounds and alternatives."""
    schema: Schema = given
    if not isinstance(given, Mapping) or depth > _DEEPEST:
        return "text"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    if (meant := _resolve_schema(schema, root)) is not None:
        return _value(meant, root, depth + 1)
    match _type(schema):
        case "object":
            listed: Schema = schema.get("properties") or {}
            return {name: _value(listed.get(name), root, depth + 1) for name in schema.get("required") or ()}
        case "array":
            return [_value(schema.get("items"), root, depth + 1)] * min(_bound(schema, "minItems", 0), 100)
        case "integer" | "number":
            return _bound(schema, "minimum", min(1, _bound(schema, "maximum", 1)))
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "text".ljust(min(_bound(schema, "minLength", 0), 10_000), "x")


def _resolve_schema(schema: Schema, root: Schema) -> object:
    """Resolve a schema: follow a reference into the root, or take the first alternative."""
    if isinstance(reference := schema.get("$ref"), str):
        return _pointed(reference, root)
    return next((schema[key][0] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)), None)


def _pointed(reference: str, root: Schema) -> object:
    found: object = root
    for key in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        found = found.get(key) if is_object(found) else None
    return found


def _type(schema: Schema) -> str:
    named = schema.get("type") or ("object" if "properties" in schema else "string")
    return str(named[0] if is_array(named) else named).lower()  # Google writes types in capitals


def _bound(
    schema: Schema, key: str, usual: int
) -> Any:  # Any: an integer, or a number if the schema requires one
    found = schema.get(key)
    return found if isinstance(found, int | float) else usual
