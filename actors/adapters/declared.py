"""What a request body says beside its transcript, in any dialect: tools, a limit, a model.

Only what `actors.encode` can say again is read. The rest is counted by its path, and so are a provider's own tools: a
search or a code runner of theirs is no function of the client, and is never made one.
"""

from collections.abc import Iterator
from typing import NamedTuple

from actors.adapters.importing import INSTRUCTIONS
from actors.adapters.recognition import HOLDERS
from actors.adapters.request import TEXT, ToolSpec
from actors.adapters.wire import number
from actors.adapters.wire_object import WireObject
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json
from actors.core.transcript.projection import flat_name
from actors.core.values.intake import NameTally


class Declared(NamedTuple):
    """What a body says beside its transcript: the client's tools, and the model, empty if none is named.

    `left_out` has the path of each thing that is not carried, with how often it was met.
    """

    model: str
    tools: tuple[ToolSpec, ...]
    max_tokens: int | None
    stream: bool
    left_out: tuple[tuple[str, int], ...]


def declared(body: object) -> Declared:
    """Return what a request body declares; of a list of messages, nothing."""
    read, left = WireObject(body), NameTally()
    for key in (*HOLDERS, *INSTRUCTIONS):  # which `from_wire` reads
        read.take(key)
    tools: list[ToolSpec] = []
    for holder in (read, read.inner("toolConfig")):
        for tool in holder.each("tools"):
            tools += _tools(tool, left)
    model, limit, stream = read.text("model"), _limit(read), read.says("stream", True)
    read.says("store", False)  # what is sent is never stored
    for path in read.unread():
        left.add(path.removeprefix("."))
    return Declared(model, tuple(tools), limit, stream, left.counts())


def _limit(body: WireObject) -> int | None:
    """Return the first limit that is a number above 0."""
    inference, generation = body.inner("inferenceConfig"), body.inner("generationConfig")
    named = [(body, key) for key in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    for holder, key in (*named, (inference, "maxTokens"), (generation, "maxOutputTokens")):
        if most := number(holder.fields.get(key)):
            holder.take(key)
            return most
    return None


def _tools(tool: object, left: NameTally, namespace: str = "") -> Iterator[ToolSpec]:
    """Give the client's tools of one entry; count what is none."""
    if not isinstance(tool, WireObject):
        left.add("tools[]")
        return
    kind = tool.text("type")
    functions = [*tool.each(*_LISTS), *filter(None, [tool.inner("toolSpec")])]
    if kind == "namespace":
        for inner in tool.each("tools"):
            yield from _tools(inner, left, tool.text("name"))
    elif functions or not (kind or "name" in tool.fields):
        for key in tool.fields:  # a server's tool is a key, often with nothing in it
            if key not in (*_LISTS, "toolSpec"):
                tool.take(key)
                left.add(f"tools[].{key}")
        yield from (_function(each, "", namespace) for each in functions if isinstance(each, WireObject))
    elif kind in ("", "function", "custom"):
        told = tool.inner("function") or tool.inner("custom") or tool
        if isinstance(told.fields.get("name"), str):
            yield _function(told, kind, namespace)
    else:
        tool.whole()
        left.add(f"tools[] of type {kind[:40]!r}")


_LISTS = ("functionDeclarations", "function_declarations")


def _function(told: WireObject, kind: str, namespace: str) -> ToolSpec:
    name, about = flat_name(namespace, told.text("name")), told.text("description")
    schema = told.inner(*_SCHEMAS)
    if not schema and kind == "custom":
        return ToolSpec.free_form(name, about, _form(told.inner("format")), namespace)
    whole = (schema.inner("json") or schema).whole() or {"type": "object", "properties": {}}
    return ToolSpec(name, about, ingest(whole).json, namespace=namespace)


_SCHEMAS = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema")


def _form(told: WireObject) -> Json:
    """Return how a free text looks. Chat Completions has a grammar in an object of its own."""
    if not told:
        return TEXT
    grammar = told.inner("grammar")
    said = {key: value for key, value in told.whole().items() if key != "grammar"}
    return ingest({**said, **grammar.whole()}).json
