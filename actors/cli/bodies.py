"""What a request body says beside its transcript, in any dialect: tools, a limit, a model.

Only what `encode` can say again is read; the rest is left out, and `left_out` names it.
"""

from collections.abc import Iterator
from typing import Any

from actors.core.check import container
from actors.core.dialect import Dialect

MODEL = "model"
"""Stands in a body where nobody named one."""

Body = dict[str, Any]  # Any: parsed JSON of a file

_LIMITS = (
    ("max_tokens",),
    ("max_completion_tokens",),
    ("max_output_tokens",),
    ("inferenceConfig", "maxTokens"),
    ("generationConfig", "maxOutputTokens"),
)
_SYSTEMS = frozenset({"system", "instructions", "systemInstruction"})
_CONTAINERS = frozenset({"messages", "input", "contents"})
_KEPT = frozenset({"model", "tools", "toolConfig", "stream", "store", *(path[0] for path in _LIMITS)})
_ANY_TOOL = b'{"toolSpec":{"name":"any","inputSchema":{"json":{"type":"object"}}}}'


def whole(text: bytes, rules: Dialect) -> bytes:
    """Return a list of messages, which is the text given, in a body with what it must have beside it."""
    key = container(rules).encode()
    model = MODEL.encode()
    match rules.family:
        case "converse":
            return b'{"toolConfig":{"tools":[%b]},"%b":%b}' % (_ANY_TOOL, key, text)
        case "gemini":
            return b'{"%b":%b}' % (key, text)
        case "anthropic":
            return b'{"model":"%b","max_tokens":1,"%b":%b}' % (model, key, text)
        case "openai_chat" | "responses":
            return b'{"model":"%b","%b":%b}' % (model, key, text)


def limit(body: Body) -> int | None:
    """Return the most tokens of the answer that a body asks for."""
    said = [_at(body, *path) for path in _LIMITS]
    return next((most for most in said if type(most) is int and most > 0), None)


def tools(body: Body) -> Iterator[Body]:
    """Give the tools a body declares, as `encode` takes them."""
    for tool in _declared(body):
        if isinstance(tool.get("name"), str):
            schemas = (_at(tool, *path) for path in _SCHEMAS)
            about = tool.get("description")
            yield {
                "name": tool["name"],
                "description": about if isinstance(about, str) else "",
                "parameters": next((schema for schema in schemas if isinstance(schema, dict)), None),
            }


_SCHEMAS = (("parameters",), ("parametersJsonSchema",), ("input_schema",), ("inputSchema", "json"))


def _declared(body: Body) -> Iterator[Body]:
    listed = body.get("tools") or _at(body, "toolConfig", "tools")
    for tool in listed if isinstance(listed, list) else ():
        if not isinstance(tool, dict):
            continue
        functions = tool.get("functionDeclarations")
        for told in (
            functions
            if isinstance(functions, list)
            else (tool.get("function") or tool.get("toolSpec", tool),)
        ):
            if isinstance(told, dict):
                yield told


def left_out(body: Body) -> list[str]:
    """Return the fields of a body that are not carried over, in order of the alphabet."""
    return sorted(set(body) - _KEPT - _SYSTEMS - _CONTAINERS)


def _at(body: Body, *path: str) -> object:
    """Return what stands at a path in a body, or None."""
    held: object = body
    for key in path:
        held = held.get(key) if isinstance(held, dict) else None
    return held
