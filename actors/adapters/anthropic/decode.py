"""Decode answers in the Anthropic Messages format, and read foreign transcripts.

A stream is a sequence of named events. It begins with `message_start`. The blocks follow one after another, each as a
start, deltas and a stop with the block's index. `message_delta` with the stop reason and `message_stop` end the stream.
`ping` and `error` may arrive at any time after the status 200. The format has no `[DONE]`; if a relay sends one, it is
ignored.

Blocks keep their order and boundaries, because thinking is bound to the exact bytes before it. Signatures, redacted
data, calls of the provider's own tools and the results of these calls are kept verbatim. Such a call and its result are
sent back together or not at all (ANT-10, ANT-11).

In foreign transcripts, blocks are read from messages of any role: a result in an assistant message is still a result.
Only the provider can use blocks of its server tools, so they are kept as text.
"""

import re
from collections.abc import Sequence
from typing import Literal

from actors.adapters.anthropic.encode import UNSIGNED, route_of
from actors.adapters.base import Decoder, StreamParser
from actors.adapters.calls import Slot, slot_of, without_placeholder
from actors.adapters.document import load_json
from actors.adapters.failure import answer_fault
from actors.adapters.framing import ChunkParser
from actors.adapters.partial import Part, PartialCall, PartialText, ProviderPart
from actors.adapters.reading import TranscriptReader
from actors.adapters.wire import Fields, Long, WireObject, as_array, as_long_string, as_object, as_string
from actors.core.dialects.dialect import AnthropicDialect
from actors.core.values.content import Media

_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_SERVER_RESULTS = frozenset(
    f"{tool}_tool_result" for tool in ("web_search", "web_fetch", "code_execution", "tool_search", "advisor")
)
_USAGE_FIELDS = {
    "input_tokens": (0,),
    "output_tokens": (1,),
    "cache_read_input_tokens": (0, 2),
    "cache_creation_input_tokens": (0, 3),
}


class MessagesDecoder(Decoder):
    """Decodes answers in the Anthropic Messages format. In an answer without streaming, each block is started and
    stopped at once.
    """

    ended: bool
    _begun = False  # whether any part of a message has arrived

    def reset_parts(self) -> None:
        super().reset_parts()
        self._open: dict[Slot, Part] = {}
        self._own: list[ProviderPart] = []
        self._given: dict[Part, object] = {}  # arguments from the start event of a call
        self._inputs: dict[Part, str] = {}  # streamed inputs of the provider's own tools
        self._early: Sequence[object] = ()  # blocks in `message_start` that are not added yet
        self._early_calls: Sequence[object] = ()  # calls in `message_start`, which events may repeat

    def new_parser(self) -> StreamParser:
        assert isinstance(self.dialect, AnthropicDialect)
        return (
            ChunkParser(self.max_bytes) if route_of(self.dialect).framing == "aws" else super().new_parser()
        )

    def process_event(self, name: str, payload: Fields) -> None:
        match as_string(payload.get("type")) or name:
            case "content_block_delta":
                self._process_delta(slot_of(payload.get("index")), as_object(payload.get("delta")))
            case "content_block_start":
                self._start_block(slot_of(payload.get("index")), as_object(payload.get("content_block")))
            case "content_block_stop":
                self._stop_block(slot_of(payload.get("index")))
            case "message_start":
                self._begin_message(as_object(payload.get("message")))
            case "message_delta":
                self.record_withheld(payload.get("input_transformations"))
                self.update_usage(payload.get("usage"), _USAGE_FIELDS)
                self._record_stop_reason(as_object(payload.get("delta")))
            case "message_stop":
                self._end_message()
            case kind:
                if "error" in (kind, name) or payload.get("error"):  # relays report errors in different forms
                    self.raise_reported_error(payload)

    def process_body(self, body: Fields) -> None:
        if body.get("type") == "error" or body.get("error"):
            self.raise_reported_error(body)
        if not isinstance(body.get("content"), list):
            raise answer_fault("the body contains no message")
        self._begin_message(body)
        self._record_stop_reason(body)
        self._end_message()

    def _begin_message(self, message: Fields) -> None:
        """Begin the message. A relay that retries its provider sends a second start event, which restarts the message.

        The event may contain complete blocks. They are held back, because a relay may send them again as events.
        """
        if self._begun:
            self.restart()
        self._begun = True
        self.update_usage(message.get("usage"), _USAGE_FIELDS)
        self.record_withheld(message.get("input_transformations"))
        self._early = as_array(message.get("content"))

    def _add_early_blocks(self, slot: Slot = None, block: Fields | None = None) -> None:
        """Add the blocks from `message_start`, unless events repeat them.

        `slot` and `block` are the index and the content of the block that begins now, if any.
        """
        early, self._early = self._early, ()
        first: Fields = as_object(early[0]) if early else {}
        if block and slot == 0 and first and all(first.get(k) == block.get(k) for k in ("type", "id")):
            self._early_calls = [held for held in early if as_object(held).get("type") == "tool_use"]
            return
        for at, held in enumerate(early):
            self._start_block(at, as_object(held))
            self._stop_block(at)

    def _add_calls_without_events(self) -> None:
        """Add the calls from `message_start` that no event has repeated."""
        for held in map(as_object, self._early_calls):
            if not any(
                isinstance(part, PartialCall) and part.native_id == held.get("id") for part in self._parts
            ):
                self._start_block(None, held)
                self._stop_block(None)
        self._early_calls = ()

    def _record_stop_reason(self, delta: Fields) -> None:
        self._add_early_blocks()
        if reason := without_placeholder(delta.get("stop_reason")):
            self.record_finish_reason(reason)

    def _end_message(self) -> None:
        if not self._begun:
            raise answer_fault("the stream ended without a message")
        self._add_early_blocks()
        self._add_calls_without_events()
        unended = [part for slot in list(self._open) if (part := self._close_block(slot)) is not None]
        self._pair_server_tools()
        self.end_all_parts(unended)
        self.ended = True

    def _start_block(self, slot: Slot, block: Fields) -> None:
        """Begin a block with its initial content. Some servers already send the complete block here."""
        self._begun = True  # a relay may omit `message_start`, which otherwise sets this
        self._add_early_blocks(slot, block)
        match block.get("type"):
            case "text":
                self._open[slot] = self._begin_text_block("text", block)
            case "thinking":
                words = self._open[slot] = self._begin_text_block("thinking", block)
                self.attach_seal(words, "signature", as_string(block.get("signature")))
            case "redacted_thinking":
                words = self._open[slot] = self.begin_text("thinking")
                self.attach_seal(words, "redacted", as_string(block.get("data")))
            case "tool_use":
                call = self._open[slot] = self.add_fragment(slot, block.get("id"), block.get("name"))
                if given := block.get("input"):  # the official API sends `{}` here and fragments later
                    self._given[call] = given
            case kind:
                kind = as_string(kind)
                is_resendable = kind == "server_tool_use" or kind in _SERVER_RESULTS
                own = self._open[slot] = self.add_native(kind, dict(block), is_resendable=is_resendable)
                self._own.append(own)

    def _begin_text_block(self, kind: Literal["text", "thinking"], block: Fields) -> PartialText:
        words = self.begin_text(kind)
        self.add_text(words, as_long_string(block.get(kind)))
        self.add_metadata("citations", block.get("citations"))
        return words

    def _process_delta(self, slot: Slot, delta: Fields) -> None:
        kind, part = as_string(delta.get("type")), self._open.get(slot)
        if kind in ("text_delta", "thinking_delta"):
            said: Literal["text", "thinking"] = "text" if kind == "text_delta" else "thinking"
            self.add_text(self._text_at(slot, said), as_string(delta.get(said)))
        elif kind == "signature_delta":
            self.attach_seal(self._text_at(slot, "thinking"), "signature", as_string(delta.get("signature")))
        elif kind == "input_json_delta":
            self._add_argument_delta(slot, part, self.arguments_text(delta.get("partial_json")))
        elif kind == "citations_delta":
            self.add_metadata("citations", [citation] if (citation := delta.get("citation")) else None)
        elif isinstance(part, ProviderPart) and part.kind == "part":
            part.kind = "unknown"  # not sent back, since merging its deltas is undocumented
        else:
            self.count_omission(kind)

    def _text_at(self, slot: Slot, kind: Literal["text", "thinking"]) -> PartialText:
        """Return the block that a delta continues: the block at its index, otherwise the latest open block of its kind,
        otherwise a new block.
        """
        for part in (self._open.get(slot), *reversed(self._open.values())):
            if isinstance(part, PartialText) and part.kind == kind:
                return part
        self._begun = True
        self._add_early_blocks()
        words = self.begin_text(kind)
        self._open.setdefault(slot, words)
        return words

    def _add_argument_delta(self, slot: Slot, part: Part | None, text: str | Long) -> None:
        match part:
            case PartialCall():
                self.add_arguments(part, text)
            case ProviderPart():
                self._inputs[part] = self._inputs.get(part, "") + str(text)
            case _:
                self.add_fragment(slot, "", "", text)

    def _stop_block(self, slot: Slot) -> None:
        """End the block at an index. If no block is open there, end the only open block."""
        if slot not in self._open and len(self._open) == 1:
            slot = next(iter(self._open))
        if (part := self._close_block(slot)) is not None:
            if isinstance(part, PartialCall):
                part.is_closed = True
            self.end_part(part)

    def _close_block(self, slot: Slot) -> Part | None:
        """Close the open block at an index, add the data collected from its deltas, and return it. Return None if no
        block is open there.
        """
        part = self._open.pop(slot, None)
        match part:
            case ProviderPart() if text := self._inputs.pop(part, ""):
                _store_input(part, text)
            case PartialCall():
                given = self._given.pop(part, None)
                if given is not None and not part.pieces.size:
                    self.add_arguments(part, self.arguments_text(given))
            case PartialText(kind="thinking", seal=None) if self.dialect.reasoning.required == "with_calls":
                # Some hosts do not sign thinking, but require that it is sent back.
                self.attach_seal(part, UNSIGNED, UNSIGNED)
            case _:
                pass
        return part

    def _pair_server_tools(self) -> None:
        """Mark calls of the provider's own tools that lack a result, and results that lack a call, so that they are not
        sent back.
        """
        values = [as_object(own.value) for own in self._own]
        called = {as_string(value.get("id")) for value in values if value.get("type") == "server_tool_use"}
        answered = {as_string(value.get("tool_use_id")) for value in values}
        for own, value in zip(self._own, values, strict=True):
            own_id = as_string(value.get("id") or value.get("tool_use_id"))
            if own_id not in called & answered or not _SERVER_ID.fullmatch(own_id):
                own.kind = "unknown"


def _store_input(call: ProviderPart, text: str) -> None:
    """Store a call's streamed input in the call's block. Used for the provider's own tools."""
    try:
        call.value = {**as_object(call.value), "input": load_json(text)}
    except ValueError:
        call.kind = "unknown"


class MessagesReader(TranscriptReader):
    """Reads transcripts in the Anthropic Messages format."""

    def read_part(self, part: WireObject) -> None:
        match part.read_text("type"):
            case "text":
                self.add_text(part.read_text("text"))
            case "thinking":
                self.add_thinking(part.read_text("thinking"), "signature", part.read_text("signature"))
            case "redacted_thinking":
                self.add_thinking("", "redacted", part.read_text("data"))
            case "tool_use":
                self.add_call(part.read_id("id"), part.read_text("name"), part.read_value("input"))
            case "tool_result":
                key, failed = part.read_id("tool_use_id"), part.has_value("is_error", True)
                self.add_result(
                    key,
                    *self.read_result_content(part, "content"),
                    name=part.read_text("name"),
                    failed=failed,
                )
            case "image" | "document" if part.read_object("source").has_value("type", "text"):
                part.read_object("source").has_value("media_type", "text/plain")
                self.add_text(part.read_object("source").read_text("data"))
            case _:
                self.add_attachment("block", part)

    def parse_media(self, part: WireObject) -> Media | None:
        kind, source = part.read_text("type"), part.read_object("source")
        if kind in ("image", "document"):
            if source.has_value("type", "base64"):
                return Media(source.read_text("media_type"), data=source.read_text("data"))
            if source.has_value("type", "url"):
                return Media(
                    "application/pdf" if kind == "document" else "image/*", url=source.read_text("url")
                )
        return None
