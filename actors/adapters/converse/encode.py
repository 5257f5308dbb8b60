"""AWS Bedrock Converse: a rendered transcript in, a request body out.

Shape only. The renderer has settled pairing, order, ids and synthetic results; a transcript that looks
wrong here is a bug there. A block is an object with one key, which names its kind. The model stands in the
path, and so does whether the answer is a stream. Only the fields named here are ever sent (rulebook BED-11).
"""

from collections.abc import Sequence
from urllib.parse import quote as percent

from actors.adapters.marks import mark, marked
from actors.adapters.open_messages import CLOSING, OpenMessages
from actors.adapters.request import Request, Settings, ToolSpec
from actors.adapters.settings import room, thinking_switch
from actors.core.concerns import Role
from actors.core.content import Media, Thinking, ToolCall
from actors.core.dialect import ConverseDialect
from actors.core.jsonio import Json, dump, quote, unquote
from actors.core.transcript import Titled, TranscriptFacts

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


def request(
    segments: Sequence[bytes], settings: Settings, dialect: ConverseDialect, facts: TranscriptFacts
) -> Request:
    """Return the request that sends a lane's segments; see `actors.adapters.codec.Codec`.

    Where the settings name no tool, those that were called are declared (BED-03). Otherwise the settings' tools
    are all there is: what a model invented must not change them, reasoning is bound to them (ANT-44). There is no
    tool choice that forbids calls, so `none` is `auto` and a loss.
    """
    losses: list[str] = []
    opening = b"{" + _tools(settings, dialect, facts.tools, losses) + _inference(settings)
    opening += _reasons(settings)
    if settings.system and settings.system.strip():
        opening += b'"system":[{"text":' + quote(settings.system) + b"}" + mark(settings, dialect) + b"],"
    action = "converse-stream" if settings.stream else "converse"
    path = f"/model/{percent(settings.model, safe='')}/{action}"
    assumed = () if settings.tools else tuple([f"a tool {name!r}" for name in sorted(facts.tools)])
    said = marked(segments, settings, dialect, facts, CLOSING)
    return Request(path, (), (opening + b'"messages":[', *said, b"]}"), tuple(losses), assumed=assumed)


def _tools(settings: Settings, dialect: ConverseDialect, called: frozenset[str], losses: list[str]) -> bytes:
    tools = settings.tools or [ToolSpec(name, "", _ANY_INPUT) for name in sorted(called)]
    if not tools:
        return b""
    return b'"toolConfig":{"tools":[%b%b]%b},' % (
        b",".join(map(_tool, tools)),
        mark(settings, dialect),
        _choice(settings, losses),
    )


def _choice(settings: Settings, losses: list[str]) -> bytes:
    """Return the tool choice. Where it cannot be said, or no tool is to be called, `auto` is nearest."""
    if settings.tool_choice == "required" and settings.tools:
        return b',"toolChoice":{"any":{}}'
    if settings.tool_choice != "auto" or not settings.tools:
        losses.append("tool_choice")
    return b""


def _tool(tool: ToolSpec) -> bytes:
    description = b'"description":%b,' % quote(tool.description) if tool.description.strip() else b""
    return b'{"toolSpec":{"name":%b,%b"inputSchema":{"json":%b}}}' % (
        quote(tool.name),
        description,
        tool.parameters,
    )


_ROOM = 4096
"""Tokens of an answer behind manual thinking where nobody said how many."""


def _inference(settings: Settings) -> bytes:
    fields: list[bytes] = []
    if settings.max_tokens is not None or settings.thinking == "manual":
        fields.append(b'"maxTokens":%d' % room(settings, _ROOM))
    if settings.temperature is not None:
        fields.append(b'"temperature":' + dump(settings.temperature))
    return b'"inferenceConfig":{' + b",".join(fields) + b"}," if fields else b""


def _reasons(settings: Settings) -> bytes:
    """Return how thinking is asked for. The switch goes to the model's vendor, in Anthropic's words."""
    switch = thinking_switch(settings)
    asked = b'"additionalModelRequestFields":{%b},' % switch if switch else b""
    return asked + (b'"outputConfig":{"effort":%b},' % quote(settings.effort) if settings.effort else b"")
