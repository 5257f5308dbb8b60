"""AWS Bedrock Converse: a rendered transcript in, a request body out.

Shape only. The renderer has settled pairing, order, ids and synthetic results; a transcript that looks
wrong here is a bug there. A block is an object with one key, which names its kind. The model stands in the
path, and so does whether the answer is a stream. Only the fields named here are ever sent (rulebook BED-11).
"""

from collections.abc import Sequence
from urllib.parse import quote as percent

from actors.adapters.marks import mark
from actors.adapters.open_messages import OpenMessages
from actors.adapters.preamble import Preamble, Wire, chosen, opened, system
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.settings import room, thinking_switch
from actors.core.concerns import Role
from actors.core.content import Media, Thinking, ToolCall
from actors.core.dialect import ConverseDialect
from actors.core.jsonio import Json, quote, unquote
from actors.core.transcript import Titled

_FORMATS = {
    "image/png": b"png",
    "image/jpeg": b"jpeg",
    "image/gif": b"gif",
    "image/webp": b"webp",
    "application/pdf": b"pdf",
    "text/csv": b"csv",
    "text/html": b"html",
    "text/markdown": b"md",
    "text/plain": b"txt",
}
_MAYBE_BLANK = frozenset(b'" \\') | frozenset(range(0x80, 0x100))
_ANY_INPUT = Json(b'{"type":"object","properties":{}}')


class ConverseWriter(OpenMessages):
    """Writes `messages`, block by block."""

    opening = b'{"role":"%b","content":['

    def __init__(self, dialect: ConverseDialect, last_role: Role | None) -> None:
        super().__init__(dialect, last_role)
        self._nothing = quote(dialect.turns.empty_result or "")

    def text(self, json: Json) -> None:
        """Write a text block."""
        self._pieces += (self._comma, b'{"text":', json, b"}")
        self._comma = b","

    def thinking(self, block: Thinking) -> None:
        """Write sealed reasoning as it came; the renderer lets no other pass."""
        assert block.seal is not None
        self._pieces.append(self._comma)
        self._comma = b","
        if block.seal.kind == "redacted":
            self._pieces += (b'{"reasoningContent":{"redactedContent":', block.seal.data, b"}}")
        else:
            self._pieces += (b'{"reasoningContent":{"reasoningText":{"text":', block.json)
            self._pieces += (b',"signature":', block.seal.data, b"}}}")

    def media(self, media: Media, title: str) -> None:
        """Write an image or a document."""
        self._pieces += (self._comma, _media(media, title))
        self._comma = b","

    def call(self, call_id: str, name: str, call: ToolCall) -> None:
        """Write a `toolUse` block."""
        opening = b'%b{"toolUse":{"toolUseId":"%b","name":"%b","input":'
        self._pieces += (opening % (self._comma, call_id.encode(), name.encode()), call.json, b"}}")
        self._comma = b","

    def result(self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[Titled]) -> None:
        """Write a `toolResult` block: its text and its media. Beside media, no text need stand for a blank one."""
        self._pieces.append(
            b'%b{"toolResult":{"toolUseId":"%b","content":[' % (self._comma, call_id.encode())
        )
        comma = b""
        if json != b'""' or not media:
            self._pieces += (b'{"text":', self._said(json), b"}")
            comma = b","
        for item, title in media:
            self._pieces += (comma, _media(item, title))
            comma = b","
        self._pieces.append(b'],"status":"error"}}' if failed else b'],"status":"success"}}')
        self._comma = b","

    def _said(self, json: Json) -> Json:
        """Return a result's text, or what stands for one that is blank (BED-04)."""
        blank = json[1] in _MAYBE_BLANK and not unquote(json).strip()
        return self._nothing if blank and self._nothing else json


def _media(media: Media, title: str) -> bytes:
    """Write an attachment. A document has the name the transcript gave it, and a text beside it (BED-13)."""
    source = b'"source":{"bytes":%b}' % quote(media.data)
    kind, form = _FORMATS[media.mime], b'"format":"%b",' % _FORMATS[media.mime]
    if media.mime.startswith("image/"):
        return b'{"image":{%b%b}}' % (form, source)
    name = title.encode()
    return b'{"text":"Attached document: %b (%b)."},{"document":{%b"name":"%b",%b}}' % (
        name,
        kind,
        form,
        name,
        source,
    )


def preamble(settings: Settings, dialect: ConverseDialect, called: frozenset[str]) -> Preamble:
    """Return the preamble of a request; see `actors.adapters.codec.Codec`.

    Where the settings name no tool, those that were called are declared (BED-03). Otherwise the settings' tools
    are all there is: what a model invented must not change them, reasoning is bound to them (ANT-44). There is no
    tool choice that forbids calls, so `none` is `auto` and a loss.
    """
    ends, said = mark(settings, dialect), system(settings)
    tools = settings.tools or [ToolSpec(name, "", _ANY_INPUT) for name in sorted(called)]
    forced = chosen(settings) == "required"
    told = forced or (settings.tools and settings.tool_choice == "auto") or not tools
    limited = settings.max_tokens is not None or settings.thinking == "manual"
    table: dict[str, Wire] = {
        "toolConfig": {
            "tools": [*map(_tool, tools), ends] if tools else None,
            "toolChoice": {"any": b"{}"} if forced else None,
        },
        "inferenceConfig": {
            "maxTokens": room(settings, _ROOM) if limited else None,
            "temperature": settings.temperature,
        },
        "additionalModelRequestFields": {"thinking": thinking_switch(settings)},  # for the model's vendor
        "outputConfig": {"effort": settings.effort},
        "system": [{"text": said}, ends] if said else None,
    }
    path = f"/model/{percent(settings.model, safe='')}/{'converse-stream' if settings.stream else 'converse'}"
    assumed = () if settings.tools else tuple([f"a tool {name!r}" for name in sorted(called)])
    losses = () if told else ("tool_choice",)
    return Preamble(path, opened(table, "messages"), b"", losses=losses, assumed=assumed)


_ROOM = 4096
"""Tokens of an answer behind manual thinking where nobody said how many."""


def _tool(tool: ToolSpec) -> dict[str, Wire]:
    about = tool.description if tool.description.strip() else None
    return {"toolSpec": {"name": tool.name, "description": about, "inputSchema": {"json": tool.parameters}}}
