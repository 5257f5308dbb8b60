"""Simulate a simple model: it answers each user message with one tool call, and each tool result with a short text.

`actors simulate` and the stress test use this model, in any dialect. It generates the simplest arguments that the
schema of the tool allows. If a request enables thinking, its answer contains reasoning, because some hosts reject later
requests that repeat an answer without reasoning (ANT-40, DSK-05).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from actors.adapters.importing import read_declarations
from actors.core.data.jsonio import is_array, is_object
from actors.strict.rules import HOSTS
from actors.strict.script import Call, Say, Think, Turn

Request = dict[str, Any]  # Any: a request body that the rules of its dialect have accepted
Schema = Mapping[str, Any]  # Any: schema keywords have many types

_DEEPEST = 16
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_RESULTS = ("toolResult", "functionResponse")


def model(dialect: str) -> Callable[[Request], Turn]:
    """Return a function that answers requests of one dialect.

    If models of the dialect think by default, each answer contains reasoning unless the request disables thinking.
    """
    host = HOSTS.get(dialect)
    return partial(answer, thinks_by_default=host is not None and host.profile.thinking != "off")


def answer(request: Request, *, thinks_by_default: bool = False, tool_index: int = 0) -> Turn:
    """Return the model's answer to a request: a call of a declared tool, or a short text after the tool's result.

    Args:
        request: The body of the request.
        thinks_by_default: Whether the answer has reasoning if the request neither enables nor disables thinking.
        tool_index: Index of the tool to call, from 0. Indexes beyond the last tool start again at the first tool.
    """
    thoughts = (Think("Let me see."),) if _is_thinking_requested(request, thinks_by_default) else ()
    return Turn(*thoughts, *_choose_turn(request, tool_index).parts)


def _choose_turn(request: Request, tool_index: int) -> Turn:
    """Return the answer without reasoning: a tool call after a user message, otherwise a short text."""
    tools = [tool for tool in read_declarations(request).tools if not tool.namespace]
    tool = tools[tool_index % len(tools)] if tools else None
    last = _last_input_kind(request)
    if last == "result":
        return Turn(Say("I have the result."))
    if tool is None or last != "text" or _forbids_tools(request):
        return Turn(Say("ok"))
    given = {"input": "text"} if tool.form is not None else sample_arguments(json.loads(tool.parameters))
    return Turn(Call(tool.name, given))


def _is_thinking_requested(request: Request, default: bool) -> bool:
    """Return True if the request enables thinking. If it does not mention thinking, return `default`."""
    fields = request.get("additionalModelRequestFields") or request
    kind = _nested_object(fields, "thinking").get("type")
    if kind is not None:
        return kind in ("enabled", "adaptive")
    google = _nested_object(_nested_object(request, "generationConfig"), "thinkingConfig")
    effort = _nested_object(request, "reasoning")
    template = _nested_object(request, "chat_template_kwargs")
    return default or any(
        (
            google.get("includeThoughts"),
            effort and effort.get("effort") != "none" and effort.get("enabled") is not False,
            request.get("include_reasoning"),
            request.get("prompt_mode") == "reasoning",
            request.get("enable_thinking") or template.get("enable_thinking"),
        )
    )


def _nested_object(value: Request, key: str) -> Request:
    """Return the object in a field of a request; an empty object if the field is missing or has another type."""
    found = value.get(key)
    return found if is_object(found) else {}


def _last_input_kind(request: Request) -> str:
    """Return the kind of the last input in a request: `text`, `result`, or an empty string if there is no input."""
    messages = request.get("messages") or request.get("input") or request.get("contents") or ()
    if isinstance(messages, str):
        return "text"
    return ([""] + [kind for message in messages for kind in _input_kinds(message)])[-1]


def _input_kinds(message: Request) -> Iterator[str]:
    """Yield the kind of each input in a message: `text` or `result`. A model's message yields nothing."""
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


def _forbids_tools(request: Request) -> bool:
    """Return True if the request forbids tool calls."""
    choice = request.get("tool_choice")
    config: Request = request.get("toolConfig") or {}
    mode: object = config.get("functionCallingConfig", {}).get("mode")
    return choice in ("none", {"type": "none"}) or mode == "NONE"


def sample_arguments(schema: Schema) -> dict[str, Any]:  # Any: the schema decides the types of the values
    """Return minimal arguments that satisfy the schema of a tool."""
    value = _sample_value(schema, schema, 0)
    return value if is_object(value) else {}


def _sample_value(
    candidate: Any, root_schema: Schema, depth: int
) -> object:  # Any: a JSON value, which should be a schema
    """Return a value that satisfies a schema with types, enumerations, bounds or alternatives.

    `root_schema` is the complete schema, in which references are resolved.
    """
    schema: Schema = candidate
    if not isinstance(candidate, Mapping) or depth > _DEEPEST:
        return "text"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    if (meant := _resolve_schema(schema, root_schema)) is not None:
        return _sample_value(meant, root_schema, depth + 1)
    match _schema_type(schema):
        case "object":
            listed: Schema = schema.get("properties") or {}
            return {
                name: _sample_value(listed.get(name), root_schema, depth + 1)
                for name in schema.get("required") or ()
            }
        case "array":
            return [_sample_value(schema.get("items"), root_schema, depth + 1)] * min(
                _schema_bound(schema, "minItems", 0), 100
            )
        case "integer" | "number":
            return _schema_bound(schema, "minimum", min(1, _schema_bound(schema, "maximum", 1)))
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "text".ljust(min(_schema_bound(schema, "minLength", 0), 10_000), "x")


def _resolve_schema(schema: Schema, root_schema: Schema) -> object:
    """Return the schema that `schema` refers to, or its first alternative; None without a reference or alternatives."""
    if isinstance(reference := schema.get("$ref"), str):
        return _resolve_reference(reference, root_schema)
    return next((schema[key][0] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)), None)


def _resolve_reference(reference: str, root_schema: Schema) -> object:
    """Return the part of the root schema that a JSON pointer such as `#/$defs/City` names; None if it is missing."""
    found: object = root_schema
    for key in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        found = found.get(key) if is_object(found) else None
    return found


def _schema_type(schema: Schema) -> str:
    """Return the type of a schema in lower case; the first type if there are several."""
    named = schema.get("type") or ("object" if "properties" in schema else "string")
    return str(named[0] if is_array(named) else named).lower()  # Google writes types in capitals


def _schema_bound(
    schema: Schema, key: str, default: int
) -> Any:  # Any: an integer, or a float if the schema states a float
    """Return the number in a field of a schema, such as `minimum`; `default` if the field is missing."""
    found = schema.get(key)
    return found if isinstance(found, int | float) else default
