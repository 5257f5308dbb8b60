"""Encode requests, decode answers and read foreign transcripts for AWS Bedrock Converse.

A block is an object with one key, which is the block's kind. A request's path contains the model, and determines
whether the answer is streamed. Only the fields listed in this module are ever sent (rulebook BED-11).

A stream is a sequence of events. It begins with `messageStart`. The blocks follow one after another, each as deltas and
a stop with the block's index. A tool call has a start event as well. `messageStop` with the reason and `metadata` with
the token figures end the stream. An exception may arrive at any time after the status 200. The message is complete once
`messageStop` has arrived, even if the token figures are lost. Reasoning is kept verbatim with its signature. Both may
arrive in pieces. Redacted reasoning arrives in pieces of base64.

In foreign transcripts, a block with several keys is read as several blocks. Blocks are read from messages of any role:
a result in an assistant message is still a result.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from typing import ClassVar, Literal
from urllib.parse import quote as percent

from actors.adapters.base import Decoder, StreamParser
from actors.adapters.calls import Slot, slot_of, without_placeholder
from actors.adapters.codec import Codec
from actors.adapters.failure import answer_fault
from actors.adapters.framing import FrameParser
from actors.adapters.outputs import NAME
from actors.adapters.partial import Part, PartialCall, PartialText, ProviderPart
from actors.adapters.reading import TranscriptReader, as_base64, as_text
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.schemas.closed import close_schema
from actors.adapters.thinking import answer_token_limit, claude_thinking
from actors.adapters.wire import Fields, WireObject, as_array, as_long_string, as_object, as_string
from actors.adapters.writing import (
    BaseWriter,
    RequestHead,
    Wire,
    WireTable,
    add_setting_fields,
    begin_body,
    block_mark,
    chosen_tool,
    system_prompt,
)
from actors.core.data.jsonio import Json, is_blank, quote
from actors.core.dialects.dialect import ConverseDialect
from actors.core.models.rules import Role
from actors.core.transcript.transcript import TitledMedia
from actors.core.values.content import Media, Thinking, ToolCall

# Names of formats that differ from the subtype of the media type.
_FORMATS = {"text/markdown": "md", "text/plain": "txt"}
_ANY_INPUT = Json(b'{"type":"object","properties":{}}')


class ConverseWriter(BaseWriter):
    """Writes the `messages` of a request, block by block."""

    natives = False

    def __init__(self, dialect: ConverseDialect, last_role: Role | None) -> None:
        super().__init__(dialect, last_role)
        self._empty_result = quote(dialect.turns.empty_result or "")

    def write_text(self, text_json: Json) -> None:
        self.write_block(b'{"text":', text_json, b"}")

    def write_thinking(self, block: Thinking) -> None:
        """Write signed or redacted reasoning verbatim. The renderer passes no other reasoning to this writer."""
        assert block.seal is not None
        if block.seal.kind == "redacted":
            self.write_block(b'{"reasoningContent":{"redactedContent":', block.seal.data, b"}}")
        else:
            opening = b'{"reasoningContent":{"reasoningText":{"text":'
            self.write_block(opening, block.json, b',"signature":')
            self.write_more(block.seal.data, b"}}}")

    def write_media(self, media: Media, title: str) -> None:
        self.write_block(_media_json(media, title))

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        opening = b'{"toolUse":{"toolUseId":"%b","name":"%b","input":' % (call_id.encode(), name.encode())
        self.write_block(opening + call.json + b"}}")

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[TitledMedia]
    ) -> None:
        """Write a `toolResult` block with its text and its media. Empty text is omitted if there are media."""
        opening = b'{"toolResult":{"toolUseId":"%b","content":[' % call_id.encode()
        ending = b'],"status":"error"}}' if failed else b'],"status":"success"}}'
        if media:
            words = [b'{"text":%b}' % self._result_text(json)] if json != b'""' else []
            parts = b",".join([*words, *(_media_json(item, title) for item, title in media)])
            self.write_block(opening + parts + ending)
        else:
            self.write_block(opening + b'{"text":', self._result_text(json), b"}" + ending)

    def _result_text(self, json: Json) -> Json:
        """Return the text of a result, or a placeholder if the text is blank (BED-04)."""
        return self._empty_result if self._empty_result != b'""' and is_blank(json) else json


def _media_json(media: Media, title: str) -> bytes:
    """Return the JSON of an attachment. A document is preceded by a text block with its name in the transcript
    (BED-13).
    """
    source = b'"source":{"bytes":%b}' % quote(media.data)
    kind = (_FORMATS.get(media.media_type) or media.media_type.partition("/")[2]).encode()
    form = b'"format":"%b",' % kind
    if media.media_type.startswith("image/"):
        return b'{"image":{%b%b}}' % (form, source)
    name = title.encode()
    words = b'{"text":"Attached document: %b (%b)."}' % (name, kind)
    return words + b',{"document":{%b"name":"%b",%b}}' % (form, name, source)


def request_head(settings: Settings, dialect: ConverseDialect, called_tools: frozenset[str]) -> RequestHead:
    """Return the head of a request; see `actors.adapters.codec.Codec`.

    If the settings declare no tools, the tools called in the transcript are declared (BED-03). Converse cannot
    forbid tool calls, so the tool choice `none` becomes `auto` and is reported as a loss.
    """
    ends, said = block_mark(settings, dialect), system_prompt(settings)
    tools = [*settings.tools, *(ToolSpec(name, "", _ANY_INPUT) for name in sorted(called_tools))]
    forced = _forced_choice(settings)
    told = forced or (settings.tools and settings.tool_choice == "auto") or not tools
    limited = settings.max_tokens is not None or settings.thinking == "manual"
    table: WireTable = {
        "toolConfig": {
            "tools": [*map(_tool_json, tools), ends] if tools else None,
            "toolChoice": forced,
        },
        "inferenceConfig": {
            "maxTokens": answer_token_limit(settings, _ANSWER_TOKENS) if limited else None,
        },
        # Bedrock passes these fields to the model's vendor.
        "additionalModelRequestFields": {"thinking": claude_thinking(settings, dialect)},
        "outputConfig": {"effort": settings.effort, "textFormat": _text_format(settings)},
        "system": [{"text": said}, ends] if said else None,
    }
    path = f"/model/{percent(settings.model, safe='')}/{'converse-stream' if settings.stream else 'converse'}"
    assumed = tuple([f"a tool {name!r}" for name in sorted(called_tools)])
    losses = () if told else ("tool_choice",)
    return RequestHead(
        path,
        begin_body(add_setting_fields(table, settings, dialect), "messages"),
        b"",
        losses=losses,
        assumed=assumed,
    )


def _forced_choice(settings: Settings) -> Wire:
    """Return the tool choice that forces a tool call, or None if no call is forced."""
    choice = chosen_tool(settings)
    if isinstance(choice, ToolSpec):
        return {"tool": {"name": choice.name}}
    return {"any": b"{}"} if choice == "required" else None


def _text_format(settings: Settings) -> Wire:
    """Return the field for the answer's schema, closed and encoded as a string. Return None without a schema."""
    schema = None if settings.output is None else close_schema(settings.output)
    if schema is None:
        return None
    return {"type": "json_schema", "structure": {"jsonSchema": {"name": NAME, "schema": schema.decode()}}}


_ANSWER_TOKENS = 4096
"""Token limit for the answer after manual thinking, if the settings contain no limit."""


def _tool_json(tool: ToolSpec) -> dict[str, Wire]:
    about = tool.description if tool.description.strip() else None
    return {"toolSpec": {"name": tool.name, "description": about, "inputSchema": {"json": tool.parameters}}}


_USAGE_FIELDS = {
    "inputTokens": (0,),
    "outputTokens": (1,),
    "cacheReadInputTokens": (0, 2),
    "cacheWriteInputTokens": (0, 3),
}


class ConverseDecoder(Decoder):
    """Decodes answers in the Bedrock Converse format. In an answer without streaming, each block is started and stopped
    at once.
    """

    parser_type: ClassVar[type[StreamParser]] = FrameParser
    ended: bool
    _stopped = False

    def reset_parts(self) -> None:
        super().reset_parts()
        self._open: dict[Slot, Part] = {}
        self._seals: dict[tuple[Part, str], list[str]] = {}

    def process_event(self, name: str, payload: Fields) -> None:
        match name:
            case "contentBlockDelta":
                self._process_delta(
                    slot_of(payload.get("contentBlockIndex")), as_object(payload.get("delta"))
                )
            case "contentBlockStart":
                self._start_block(slot_of(payload.get("contentBlockIndex")), as_object(payload.get("start")))
            case "contentBlockStop":
                self._stop_block(slot_of(payload.get("contentBlockIndex")))
            case "messageStop":
                self._end_message(payload)
            case "metadata":
                self.update_usage(payload.get("usage"), _USAGE_FIELDS)
                self.on_stream_end()
            case "exception":
                self.raise_reported_error(payload)
            case _:
                pass  # ignore `messageStart` and unknown events

    def on_done(self) -> None:
        self.on_stream_end()

    def on_stream_end(self) -> None:
        """End the answer if a finish reason has arrived. Events between the reason and the token figures are still
        processed.
        """
        if self._stopped and not self.ended:
            unended = [part for slot in list(self._open) if (part := self._close_block(slot)) is not None]
            self.end_all_parts(unended)
            self.ended = True

    def process_body(self, body: Fields) -> None:
        message = as_object(as_object(body.get("output")).get("message"))
        if not isinstance(message.get("content"), list):
            if "message" in body:
                self.raise_reported_error(body)
            raise answer_fault("the body contains no message")
        for index, block in enumerate(map(as_object, as_array(message["content"]))):
            if "toolUse" in block or not block:
                self._start_block(index, block)
            else:
                self._process_delta(index, block)
            self._stop_block(index)
        self._end_message(body)
        self.process_event("metadata", body)

    def _end_message(self, payload: Fields) -> None:
        if reason := without_placeholder(payload.get("stopReason")):
            self.record_finish_reason(reason)
        self._stopped = True

    def _start_block(self, slot: Slot, block: Fields) -> None:
        if "toolUse" not in block:
            return self._begin_native_block(slot, block)
        told = as_object(block["toolUse"])
        self._open[slot] = call = self.add_fragment(slot, told.get("toolUseId"), told.get("name"))
        if given := told.get("input"):  # a body contains all arguments here, a stream only `{}`
            self.add_arguments(call, self.arguments_text(given))
        return None

    def _begin_native_block(self, slot: Slot, block: Fields) -> None:
        """Begin a provider-specific block.

        It is not sent back, because it is undocumented how its deltas are merged.
        """
        self._open[slot] = self.add_native(next(iter(block), ""), dict(block), is_resendable=False)

    def _process_delta(self, slot: Slot, delta: Fields) -> None:
        """Process a delta of a block, or a complete block, which has the same keys."""
        part = self._open.get(slot)
        if "text" in delta:
            self.add_text(self._text_at(slot, "text"), as_long_string(delta["text"]))
        elif "reasoningContent" in delta:
            self._add_reasoning(slot, as_object(delta["reasoningContent"]))
        elif "toolUse" in delta:
            text = self.arguments_text(as_object(delta["toolUse"]).get("input"))
            if isinstance(part, PartialCall):
                self.add_arguments(part, text)
            else:
                self.add_fragment(slot, "", "", text)
        elif "citation" in delta:
            self.add_metadata("citations", [delta["citation"]] if delta["citation"] else None)
        elif "citationsContent" in delta:
            cited = as_object(delta["citationsContent"])
            pieces = map(as_object, as_array(cited.get("content")))
            self.add_text(
                self._text_at(slot, "text"), "".join(as_string(piece.get("text")) for piece in pieces)
            )
            self.add_metadata("citations", cited.get("citations"))
        elif isinstance(part, ProviderPart):
            self.count_omission(next(iter(delta), ""))
        elif delta:
            self._begin_native_block(slot, delta)

    def _text_at(self, slot: Slot, kind: Literal["text", "thinking"]) -> PartialText:
        """Return the open text or thinking block at an index. If no block of this kind is open there, begin one."""
        part = self._open.get(slot)
        if not isinstance(part, PartialText) or part.kind != kind:
            part = self.begin_text(kind)
            self._open.setdefault(slot, part)
        return part

    def _add_reasoning(self, slot: Slot, piece: Fields) -> None:
        part = self._text_at(slot, "thinking")
        piece = {
            **as_object(piece.get("reasoningText")),
            **piece,
        }  # a complete block nests the keys of a delta
        self.add_text(part, as_long_string(piece.get("text")))
        for kind in ("signature", "redactedContent"):
            if data := as_string(piece.get(kind)):
                self._seals.setdefault((part, kind), []).append(data)

    def _stop_block(self, slot: Slot) -> None:
        """End the block at an index. If the index is missing, end the only open block."""
        if slot not in self._open and len(self._open) == 1 and slot is None:
            slot = next(iter(self._open))
        part = self._close_block(slot)
        if part is None:
            self.begin_text("text")  # a block without pieces is empty text, which is not sent back
            return
        if isinstance(part, PartialCall):
            part.is_closed = True
        self.end_part(part)

    def _close_block(self, slot: Slot) -> Part | None:
        """Close the open block at an index, attach its signature, and return it.

        Return None if no block is open there.
        """
        part = self._open.pop(slot, None)
        if isinstance(part, PartialText) and part.kind == "thinking":
            self.attach_seal(part, "signature", "".join(self._seals.pop((part, "signature"), [])))
            self.attach_seal(part, "redacted", _join_base64(self._seals.pop((part, "redactedContent"), [])))
        return part


def _join_base64(pieces: list[str]) -> str:
    """Join pieces of base64 that were encoded separately into one base64 string."""
    if len(pieces) < 2:
        return "".join(pieces)
    try:
        return b64encode(b"".join(b64decode(piece, validate=True) for piece in pieces)).decode()
    except (NotBase64, ValueError):
        raise answer_fault("the redacted reasoning in the answer is not base64") from None


_DOCUMENTS = {"csv": "text/csv", "html": "text/html", "txt": "text/plain", "md": "text/markdown"}


class ConverseReader(TranscriptReader):
    """Reads transcripts in the Bedrock Converse format."""

    stray_part: ClassVar[str] = "block of no kind"

    def read_part(self, part: WireObject) -> None:
        if not part:
            self.add_as_text(self.stray_part, {})
        for kind in part.fields:
            if kind != "cachePoint":  # a cache mark is not content, so it is not imported
                self._read_block(part, kind)

    def _read_block(self, part: WireObject, kind: str) -> None:
        held = part.read_object(kind)
        match kind:
            case "text":
                self.add_text(as_text(part.read_value(kind)))
            case "reasoningContent":
                reasoning = held.read_object("reasoningText")
                self.add_thinking(reasoning.read_text("text"), "signature", reasoning.read_text("signature"))
                self.add_thinking("", "redacted", as_base64(held.read_value("redactedContent")))
            case "toolUse":
                self.add_call(held.read_id("toolUseId"), held.read_text("name"), held.read_value("input"))
            case "toolResult":
                key, failed = held.read_id("toolUseId"), held.has_value("status", "error")
                held.has_value("status", "success")
                self.add_result(
                    key,
                    *self.read_result_content(held, "content"),
                    name=held.read_text("name"),
                    failed=failed,
                )
            case "image" | "document" if found := _block_media(part, kind):
                self.add_block(found)
            case "image" | "document" if words := held.read_object("source").read_text("text"):
                self.add_text(words)
            case _:
                self.add_as_text(f"block of type {str(kind)[:40]!r}", part.read_value(kind))

    def read_result_content(self, holder: WireObject, *keys: str) -> tuple[object, list[Media]]:
        """Return the content of a result and its media.

        The content is the value of the `json` part if it is the only part; otherwise the texts of the parts, one per
        line.
        """
        if not isinstance(holder.fields.get("content"), list | tuple | None):
            return holder.read_value("content"), []
        parts = holder.read_list("content")
        if len(parts) == 1 and isinstance(only := parts[0], WireObject) and [*only.fields] == ["json"]:
            return only.read_value("json"), []
        return self.join_parts(parts)

    def result_text(self, part: WireObject) -> str | None:
        return as_text(part.read_value("text")) if [*part.fields] == ["text"] else None

    def parse_media(self, part: WireObject) -> Media | None:
        return _block_media(part, "image") or _block_media(part, "document")


def _block_media(part: WireObject, kind: str) -> Media | None:
    """Return the image or document in a block, or None if the block contains neither."""
    held = part.read_object(kind)
    if not (data := as_base64(held.read_object("source").read_value("bytes"))):
        return None
    form = held.read_text("format")
    media_type = f"image/{form}" if kind == "image" else _DOCUMENTS.get(form, f"application/{form}")
    return Media(media_type, data)


CODEC = Codec(
    writer=ConverseWriter, request_head=request_head, decoder=ConverseDecoder, reader=ConverseReader
)
