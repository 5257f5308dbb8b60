"""AWS Bedrock Converse: a rendered transcript in, a request body out.

A block is an object with one key, which names its kind. The model stands in the
path, and so does whether the answer is a stream. Only the fields named here are ever sent (rulebook BED-11).
"""

from collections.abc import Sequence
from urllib.parse import quote as percent

from actors.adapters.closed_schemas import closed
from actors.adapters.marks import mark
from actors.adapters.outputs import NAME
from actors.adapters.preamble import Preamble, Wire, chosen, opened, system
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.request_fields import Fields, with_fields
from actors.adapters.thinking import answer_tokens, claude_thinking
from actors.adapters.writing import Writing
from actors.core.data.jsonio import Json, is_blank, quote
from actors.core.dialects.dialect import ConverseDialect
from actors.core.models.concerns import Role
from actors.core.transcript.transcript import Titled
from actors.core.values.content import Media, Thinking, ToolCall

_FORMATS = {"text/markdown": "md", "text/plain": "txt"}  # the others are called as their media type is
_ANY_INPUT = Json(b'{"type":"object","properties":{}}')


class ConverseWriter(Writing):
    """Writes `messages`, block by block."""

    natives = False

    def __init__(self, dialect: ConverseDialect, last_role: Role | None) -> None:
        super().__init__(dialect, last_role)
        self._nothing = quote(dialect.turns.empty_result or "")

    def text(self, json: Json) -> None:
        self.block(b'{"text":', json, b"}")

    def thinking(self, block: Thinking) -> None:
        """Write sealed reasoning as it came; the renderer lets no other pass."""
        assert block.seal is not None
        if block.seal.kind == "redacted":
            self.block(b'{"reasoningContent":{"redactedContent":', block.seal.data, b"}}")
        else:
            opening = b'{"reasoningContent":{"reasoningText":{"text":'
            self.block(opening, block.json, b',"signature":')
            self.more(block.seal.data, b"}}}")

    def media(self, media: Media, title: str) -> None:
        self.block(_media(media, title))

    def call(self, call_id: str, name: str, call: ToolCall) -> None:
        opening = b'{"toolUse":{"toolUseId":"%b","name":"%b","input":' % (call_id.encode(), name.encode())
        self.block(opening + call.json + b"}}")

    def result(self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[Titled]) -> None:
        """Write a `toolResult` block: its text and its media. Beside media, no text need stand for a blank one."""
        self.block(b'{"toolResult":{"toolUseId":"%b","content":[' % call_id.encode())
        self._comma = b""
        if json != b'""' or not media:
            self.block(b'{"text":', self._said(json), b"}")
        for item, title in media:
            self.block(_media(item, title))
        self._loose.append(b'],"status":"error"}}' if failed else b'],"status":"success"}}')
        self._comma = b","

    def _said(self, json: Json) -> Json:
        """Return a result's text, or what stands for one that is blank (BED-04)."""
        return self._nothing if self._nothing != b'""' and is_blank(json) else json


def _media(media: Media, title: str) -> bytes:
    """Write an attachment. A document has the name the transcript gave it, and a text beside it (BED-13)."""
    source = b'"source":{"bytes":%b}' % quote(media.data)
    kind = (_FORMATS.get(media.mime) or media.mime.partition("/")[2]).encode()
    form = b'"format":"%b",' % kind
    if media.mime.startswith("image/"):
        return b'{"image":{%b%b}}' % (form, source)
    name = title.encode()
    words = b'{"text":"Attached document: %b (%b)."}' % (name, kind)
    return words + b',{"document":{%b"name":"%b",%b}}' % (form, name, source)


def preamble(settings: Settings, dialect: ConverseDialect, called: frozenset[str]) -> Preamble:
    """Return the preamble of a request; see `actors.adapters.codec.Codec`.

    Where the settings name no tool, those that were called are declared (BED-03). There is no tool choice that forbids
    calls, so `none` is `auto` and a loss.
    """
    ends, said = mark(settings, dialect), system(settings)
    tools = [*settings.tools, *(ToolSpec(name, "", _ANY_INPUT) for name in sorted(called))]
    forced = _forced(settings)
    told = forced or (settings.tools and settings.tool_choice == "auto") or not tools
    limited = settings.max_tokens is not None or settings.thinking == "manual"
    table: Fields = {
        "toolConfig": {
            "tools": [*map(_tool, tools), ends] if tools else None,
            "toolChoice": forced,
        },
        "inferenceConfig": {
            "maxTokens": answer_tokens(settings, _ROOM) if limited else None,
        },
        "additionalModelRequestFields": {
            "thinking": claude_thinking(settings, dialect)
        },  # for the model's vendor
        "outputConfig": {"effort": settings.effort, "textFormat": _answer(settings)},
        "system": [{"text": said}, ends] if said else None,
    }
    path = f"/model/{percent(settings.model, safe='')}/{'converse-stream' if settings.stream else 'converse'}"
    assumed = tuple([f"a tool {name!r}" for name in sorted(called)])
    losses = () if told else ("tool_choice",)
    return Preamble(
        path, opened(with_fields(table, settings, dialect), "messages"), b"", losses=losses, assumed=assumed
    )


def _forced(settings: Settings) -> Wire:
    """Return the tool choice that forces a tool, if one does."""
    choice = chosen(settings)
    if isinstance(choice, ToolSpec):
        return {"tool": {"name": choice.name}}
    return {"any": b"{}"} if choice == "required" else None


def _answer(settings: Settings) -> Wire:
    """Return the schema of the answer, every object of it closed: a text that holds JSON."""
    schema = None if settings.output is None else closed(settings.output)
    if schema is None:
        return None
    return {"type": "json_schema", "structure": {"jsonSchema": {"name": NAME, "schema": schema.decode()}}}


_ROOM = 4096
"""Tokens of an answer behind manual thinking where nobody said how many."""


def _tool(tool: ToolSpec) -> dict[str, Wire]:
    about = tool.description if tool.description.strip() else None
    return {"toolSpec": {"name": tool.name, "description": about, "inputSchema": {"json": tool.parameters}}}
