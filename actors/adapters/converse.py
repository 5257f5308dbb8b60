"""AWS Bedrock Converse: encode requests, decode answers, read foreign transcripts.

A block is an object with one key, which names its kind. The path of a request holds the model and whether the answer
is streamed. Only the fields named here are ever sent (rulebook BED-11).

A stream is a sequence of events: `messageStart`, then blocks one after the other (deltas, stop, each with the block's
index; a tool call has a start as well), `messageStop` with the reason, `metadata` with the token figures. An exception
may come at any time after the 200. The message is complete once `messageStop` was seen; the figures may be lost.
Reasoning is kept verbatim with its signature. Both may come in pieces, the redacted form in base64.

In foreign transcripts, a block with several keys is read as several blocks. Blocks are read in any message: a result in
an assistant message is still a result.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from typing import ClassVar, Literal
from urllib.parse import quote as percent

from actors.adapters.base import Decoder, Frames
from actors.adapters.calls import Slot, real_word, slot_of
from actors.adapters.codec import Codec
from actors.adapters.failure import answer_fault
from actors.adapters.framing import FrameParser
from actors.adapters.marks import mark
from actors.adapters.outputs import NAME
from actors.adapters.partial import Own, Part, PartialCall, PartialText
from actors.adapters.reading import TranscriptReader, as_text, blob
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.request_head import (
    RequestHead,
    Wire,
    WireTable,
    chosen_tool,
    open_body,
    system,
    with_fields,
)
from actors.adapters.schemas.closed import close_schema
from actors.adapters.thinking import answer_tokens, claude_thinking
from actors.adapters.wire import Fields, WireObject, fields, items, long_string, string
from actors.adapters.writing import Writing
from actors.core.data.jsonio import Json, is_blank, quote
from actors.core.dialects.dialect import ConverseDialect
from actors.core.models.rules import Role
from actors.core.transcript.transcript import Titled
from actors.core.values.content import Media, Thinking, ToolCall

_FORMATS = {"text/markdown": "md", "text/plain": "txt"}  # other formats are named as their media type
_ANY_INPUT = Json(b'{"type":"object","properties":{}}')


class ConverseWriter(Writing):
    """Writes `messages`, block by block."""

    natives = False

    def __init__(self, dialect: ConverseDialect, last_role: Role | None) -> None:
        super().__init__(dialect, last_role)
        self._nothing = quote(dialect.turns.empty_result or "")

    def write_text(self, json: Json) -> None:
        self.write_block(b'{"text":', json, b"}")

    def write_thinking(self, block: Thinking) -> None:
        """Write sealed reasoning verbatim. The renderer passes no unsealed reasoning here."""
        assert block.seal is not None
        if block.seal.kind == "redacted":
            self.write_block(b'{"reasoningContent":{"redactedContent":', block.seal.data, b"}}")
        else:
            opening = b'{"reasoningContent":{"reasoningText":{"text":'
            self.write_block(opening, block.json, b',"signature":')
            self.more(block.seal.data, b"}}}")

    def write_media(self, media: Media, title: str) -> None:
        self.write_block(_media(media, title))

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        opening = b'{"toolUse":{"toolUseId":"%b","name":"%b","input":' % (call_id.encode(), name.encode())
        self.write_block(opening + call.json + b"}}")

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[Titled]
    ) -> None:
        """Write a `toolResult` block: its text and its media. With media, a blank text is omitted."""
        self.write_block(b'{"toolResult":{"toolUseId":"%b","content":[' % call_id.encode())
        self._comma = b""
        if json != b'""' or not media:
            self.write_block(b'{"text":', self._result_text(json), b"}")
        for item, title in media:
            self.write_block(_media(item, title))
        self._loose.append(b'],"status":"error"}}' if failed else b'],"status":"success"}}')
        self._comma = b","

    def _result_text(self, json: Json) -> Json:
        """Return a result's text, or the substitute for a blank one (BED-04)."""
        return self._nothing if self._nothing != b'""' and is_blank(json) else json


def _media(media: Media, title: str) -> bytes:
    """Write an attachment. A document is preceded by a text that gives its name from the transcript (BED-13)."""
    source = b'"source":{"bytes":%b}' % quote(media.data)
    kind = (_FORMATS.get(media.media_type) or media.media_type.partition("/")[2]).encode()
    form = b'"format":"%b",' % kind
    if media.media_type.startswith("image/"):
        return b'{"image":{%b%b}}' % (form, source)
    name = title.encode()
    words = b'{"text":"Attached document: %b (%b)."}' % (name, kind)
    return words + b',{"document":{%b"name":"%b",%b}}' % (form, name, source)


def request_head(settings: Settings, dialect: ConverseDialect, called: frozenset[str]) -> RequestHead:
    """Return the head of a request; see `actors.adapters.codec.Codec`.

    If the settings declare no tool, the tools called in the transcript are declared (BED-03). Converse cannot forbid
    calls, so the tool choice `none` becomes `auto` and a loss.
    """
    ends, said = mark(settings, dialect), system(settings)
    tools = [*settings.tools, *(ToolSpec(name, "", _ANY_INPUT) for name in sorted(called))]
    forced = _forced_choice(settings)
    told = forced or (settings.tools and settings.tool_choice == "auto") or not tools
    limited = settings.max_tokens is not None or settings.thinking == "manual"
    table: WireTable = {
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
    return RequestHead(
        path,
        open_body(with_fields(table, settings, dialect), "messages"),
        b"",
        losses=losses,
        assumed=assumed,
    )


def _forced_choice(settings: Settings) -> Wire:
    """Return the tool choice that forces a tool; None if no tool is forced."""
    choice = chosen_tool(settings)
    if isinstance(choice, ToolSpec):
        return {"tool": {"name": choice.name}}
    return {"any": b"{}"} if choice == "required" else None


def _answer(settings: Settings) -> Wire:
    """Return the text format with the answer's schema, in which every object is closed. The schema is a string of
    JSON."""
    schema = None if settings.output is None else close_schema(settings.output)
    if schema is None:
        return None
    return {"type": "json_schema", "structure": {"jsonSchema": {"name": NAME, "schema": schema.decode()}}}


_ROOM = 4096
"""Tokens of an answer after manual thinking, if the settings give no limit."""


def _tool(tool: ToolSpec) -> dict[str, Wire]:
    about = tool.description if tool.description.strip() else None
    return {"toolSpec": {"name": tool.name, "description": about, "inputSchema": {"json": tool.parameters}}}


_FIGURES = {
    "inputTokens": (0,),
    "outputTokens": (1,),
    "cacheReadInputTokens": (0, 2),
    "cacheWriteInputTokens": (0, 3),
}


class ConverseDecoder(Decoder):
    """Reads events, and a complete body as blocks that start and stop at once."""

    frames: ClassVar[type[Frames]] = FrameParser
    ended: bool
    _stopped = False

    def begin(self) -> None:
        super().begin()
        self._open: dict[Slot, Part] = {}
        self._seals: dict[tuple[Part, str], list[str]] = {}

    def event(self, name: str, payload: Fields) -> None:
        match name:
            case "contentBlockDelta":
                self._delta(slot_of(payload.get("contentBlockIndex")), fields(payload.get("delta")))
            case "contentBlockStart":
                self._start(slot_of(payload.get("contentBlockIndex")), fields(payload.get("start")))
            case "contentBlockStop":
                self._stop(slot_of(payload.get("contentBlockIndex")))
            case "messageStop":
                self._message_stop(payload)
            case "metadata":
                self.count(payload.get("usage"), _FIGURES)
                self.stream_end()
            case "exception":
                self.report(payload)
            case _:
                pass  # `messageStart`, and future events

    def on_done(self) -> None:
        self.stream_end()

    def stream_end(self) -> None:
        """End the answer if it has a finish reason. Events between the reason and the figures belong to it."""
        if self._stopped and not self.ended:
            unended = [part for slot in list(self._open) if (part := self._close(slot)) is not None]
            self.end_all(unended)
            self.ended = True

    def body(self, body: Fields) -> None:
        message = fields(fields(body.get("output")).get("message"))
        if not isinstance(message.get("content"), list):
            if "message" in body:
                self.report(body)
            raise answer_fault("the body holds no message")
        for index, block in enumerate(map(fields, items(message["content"]))):
            if "toolUse" in block or not block:
                self._start(index, block)
            else:
                self._delta(index, block)
            self._stop(index)
        self._message_stop(body)
        self.event("metadata", body)

    def _message_stop(self, payload: Fields) -> None:
        if reason := real_word(payload.get("stopReason")):
            self.finish(reason)
        self._stopped = True

    def _start(self, slot: Slot, block: Fields) -> None:
        if "toolUse" not in block:
            return self._add_native(slot, block)
        told = fields(block["toolUse"])
        self._open[slot] = call = self.fragment(slot, told.get("toolUseId"), told.get("name"))
        if given := told.get("input"):  # of a body; streams send `{}` before the arguments
            self.argue(call, self.arguments(given))
        return None

    def _add_native(self, slot: Slot, block: Fields) -> None:
        """Add a block of the provider's own. It is not sent back, since the merging of its deltas is undocumented."""
        self._open[slot] = self.native(next(iter(block), ""), dict(block), goes_back=False)

    def _delta(self, slot: Slot, delta: Fields) -> None:
        """Process a delta of a block, or a complete block with the same keys."""
        part = self._open.get(slot)
        if "text" in delta:
            self.say(self._text_at(slot, "text"), long_string(delta["text"]))
        elif "reasoningContent" in delta:
            self._reasoning(slot, fields(delta["reasoningContent"]))
        elif "toolUse" in delta:
            text = self.arguments(fields(delta["toolUse"]).get("input"))
            if isinstance(part, PartialCall):
                self.argue(part, text)
            else:
                self.fragment(slot, "", "", text)
        elif "citation" in delta:
            self.mark("citations", [delta["citation"]] if delta["citation"] else None)
        elif "citationsContent" in delta:
            cited = fields(delta["citationsContent"])
            pieces = map(fields, items(cited.get("content")))
            self.say(self._text_at(slot, "text"), "".join(string(piece.get("text")) for piece in pieces))
            self.mark("citations", cited.get("citations"))
        elif isinstance(part, Own):
            self.leave_out(next(iter(delta), ""))
        elif delta:
            self._add_native(slot, delta)

    def _text_at(self, slot: Slot, kind: Literal["text", "thinking"]) -> PartialText:
        """Return the block that a delta continues, or begin one if no block of its kind is open at its index."""
        part = self._open.get(slot)
        if not isinstance(part, PartialText) or part.kind != kind:
            part = self.words(kind)
            self._open.setdefault(slot, part)
        return part

    def _reasoning(self, slot: Slot, piece: Fields) -> None:
        part = self._text_at(slot, "thinking")
        piece = {**fields(piece.get("reasoningText")), **piece}  # a complete block nests these keys
        self.say(part, long_string(piece.get("text")))
        for kind in ("signature", "redactedContent"):
            if data := string(piece.get(kind)):
                self._seals.setdefault((part, kind), []).append(data)

    def _stop(self, slot: Slot) -> None:
        """End a block. A stop without an index ends the only open block."""
        if slot not in self._open and len(self._open) == 1 and slot is None:
            slot = next(iter(self._open))
        part = self._close(slot)
        if part is None:
            self.words("text")  # no piece arrived: an empty text, which is not sent again
            return
        if isinstance(part, PartialCall):
            part.is_closed = True
        self.end(part)

    def _close(self, slot: Slot) -> Part | None:
        """Remove and return the open block at an index, with its collected seals attached."""
        part = self._open.pop(slot, None)
        if isinstance(part, PartialText) and part.kind == "thinking":
            self.seal(part, "signature", "".join(self._seals.pop((part, "signature"), [])))
            self.seal(part, "redacted", _join_base64(self._seals.pop((part, "redactedContent"), [])))
        return part


def _join_base64(pieces: list[str]) -> str:
    """Return pieces of base64, each encoded separately, as one base64 string."""
    if len(pieces) < 2:
        return "".join(pieces)
    try:
        return b64encode(b"".join(b64decode(piece, validate=True) for piece in pieces)).decode()
    except (NotBase64, ValueError):
        raise answer_fault("redacted reasoning that is not base64") from None


_DOCUMENTS = {"csv": "text/csv", "html": "text/html", "txt": "text/plain", "md": "text/markdown"}


class ConverseReading(TranscriptReader):
    """Reads a Converse transcript."""

    stray_part: ClassVar[str] = "block of no kind"

    def part(self, part: WireObject) -> None:
        if not part:
            self.fold(self.stray_part, {})
        for kind in part.fields:
            if kind != "cachePoint":  # a cache mark is not content, and is not imported
                self._block(part, kind)

    def _block(self, part: WireObject, kind: str) -> None:
        held = part.inner(kind)
        match kind:
            case "text":
                self.text(as_text(part.take(kind)))
            case "reasoningContent":
                reasoning = held.inner("reasoningText")
                self.think(reasoning.text("text"), "signature", reasoning.text("signature"))
                self.think("", "redacted", blob(held.take("redactedContent")))
            case "toolUse":
                self.call(held.native_id("toolUseId"), held.text("name"), held.take("input"))
            case "toolResult":
                key, failed = held.native_id("toolUseId"), held.has_value("status", "error")
                held.has_value("status", "success")
                self.result(key, *self.spread(held, "content"), name=held.text("name"), failed=failed)
            case "image" | "document" if found := _attachment(part, kind):
                self.say(found)
            case "image" | "document" if words := held.inner("source").text("text"):
                self.text(words)
            case _:
                self.fold(f"block of type {str(kind)[:40]!r}", part.take(kind))

    def spread(self, holder: WireObject, *keys: str) -> tuple[object, list[Media]]:
        """Return the content of a result: the value of a single `json` part, otherwise the texts of the parts, one
        per line."""
        if not isinstance(holder.fields.get("content"), list | tuple | None):
            return holder.take("content"), []
        parts = holder.each("content")
        if len(parts) == 1 and isinstance(only := parts[0], WireObject) and [*only.fields] == ["json"]:
            return only.take("json"), []
        return self.join_parts(parts)

    def words(self, part: WireObject) -> str | None:
        return as_text(part.take("text")) if [*part.fields] == ["text"] else None

    def media(self, part: WireObject) -> Media | None:
        return _attachment(part, "image") or _attachment(part, "document")


def _attachment(part: WireObject, kind: str) -> Media | None:
    """Return the image or document in a block, or None."""
    held = part.inner(kind)
    if not (data := blob(held.inner("source").take("bytes"))):
        return None
    form = held.text("format")
    media_type = f"image/{form}" if kind == "image" else _DOCUMENTS.get(form, f"application/{form}")
    return Media(media_type, data)


CODEC = Codec(
    writer=ConverseWriter, request_head=request_head, decoder=ConverseDecoder, reading=ConverseReading
)
