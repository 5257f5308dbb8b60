"""Decode the answers of Anthropic Messages, and read foreign transcripts.

A stream is a sequence of named events: `message_start`, then blocks one after the other (start, deltas, stop, each
with the block's index), `message_delta` with the stop reason, `message_stop`. `ping` may come anywhere, `error` at
any time after the 200. There is no `[DONE]`; if a relay sends it, it has no effect.

Blocks keep their order and boundaries, because thinking is bound to the exact bytes before it. Signatures and
redacted data are kept verbatim. So are the calls of the provider's own tools and their results, which are sent back
together or not at all (ANT-10, ANT-11).

In foreign transcripts, blocks are read in any message: a result in an assistant message is still a result. Blocks of
server tools belong to their provider and are kept as text.
"""

import re
from collections.abc import Sequence
from typing import Literal

from actors.adapters.anthropic.encode import UNSIGNED, route_of
from actors.adapters.base import Decoder, Frames
from actors.adapters.calls import Slot, real_word, slot_of
from actors.adapters.document import load
from actors.adapters.failure import answer_fault
from actors.adapters.framing import ChunkParser
from actors.adapters.partial import Own, Part, PartialCall, PartialText
from actors.adapters.reading import TranscriptReader
from actors.adapters.wire import Fields, Long, WireObject, fields, items, long_string, string
from actors.core.dialects.dialect import AnthropicDialect
from actors.core.values.content import Media

_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_SERVER_RESULTS = frozenset(
    f"{tool}_tool_result" for tool in ("web_search", "web_fetch", "code_execution", "tool_search", "advisor")
)
_FIGURES = {
    "input_tokens": (0,),
    "output_tokens": (1,),
    "cache_read_input_tokens": (0, 2),
    "cache_creation_input_tokens": (0, 3),
}


class MessagesDecoder(Decoder):
    """Reads events, and a complete body as blocks that start and stop at once."""

    ended: bool
    _begun = False  # whether any part of a message has arrived

    def begin(self) -> None:
        super().begin()
        self._open: dict[Slot, Part] = {}
        self._own: list[Own] = []
        self._given: dict[Part, object] = {}  # arguments in the start event of a call
        self._inputs: dict[Part, str] = {}  # of calls of the provider's own tools
        self._early: Sequence[object] = ()  # blocks of `message_start`
        self._early_calls: Sequence[object] = ()  # events may repeat them

    def framing(self) -> Frames:
        assert isinstance(self.dialect, AnthropicDialect)
        return ChunkParser(self.max_bytes) if route_of(self.dialect).framing == "aws" else super().framing()

    def event(self, name: str, payload: Fields) -> None:
        match string(payload.get("type")) or name:
            case "content_block_delta":
                self._delta(slot_of(payload.get("index")), fields(payload.get("delta")))
            case "content_block_start":
                self._start(slot_of(payload.get("index")), fields(payload.get("content_block")))
            case "content_block_stop":
                self._stop(slot_of(payload.get("index")))
            case "message_start":
                self._message_start(fields(payload.get("message")))
            case "message_delta":
                self.report_withheld(payload.get("input_transformations"))
                self.count(payload.get("usage"), _FIGURES)
                self._take_stop_reason(fields(payload.get("delta")))
            case "message_stop":
                self._message_stop()
            case kind:
                if "error" in (kind, name) or payload.get("error"):  # relays shape errors differently
                    self.report(payload)

    def body(self, body: Fields) -> None:
        if body.get("type") == "error" or body.get("error"):
            self.report(body)
        if not isinstance(body.get("content"), list):
            raise answer_fault("the body holds no message")
        self._message_start(body)
        self._take_stop_reason(body)
        self._message_stop()

    def _message_start(self, message: Fields) -> None:
        """Begin the message. A second start event restarts it: relays send one when they retry their provider.

        The event may hold finished blocks. They are held back, because a relay may also send them as events.
        """
        if self._begun:
            self.restart()
        self._begun = True
        self.count(message.get("usage"), _FIGURES)
        self.report_withheld(message.get("input_transformations"))
        self._early = items(message.get("content"))

    def _take_early(self, slot: Slot = None, block: Fields | None = None) -> None:
        """Add the blocks of `message_start`, unless the block that begins now is the first of them."""
        early, self._early = self._early, ()
        first: Fields = fields(early[0]) if early else {}
        if block and slot == 0 and first and all(first.get(k) == block.get(k) for k in ("type", "id")):
            self._early_calls = [held for held in early if fields(held).get("type") == "tool_use"]
            return
        for at, held in enumerate(early):
            self._start(at, fields(held))
            self._stop(at)

    def _take_calls_without_events(self) -> None:
        """Add the calls of `message_start` that no event repeated."""
        for held in map(fields, self._early_calls):
            if not any(
                isinstance(part, PartialCall) and part.native_id == held.get("id") for part in self._parts
            ):
                self._start(None, held)
                self._stop(None)
        self._early_calls = ()

    def _take_stop_reason(self, delta: Fields) -> None:
        self._take_early()
        if reason := real_word(delta.get("stop_reason")):
            self.finish(reason)

    def _message_stop(self) -> None:
        if not self._begun:
            raise answer_fault("the stream ended without a message")
        self._take_early()
        self._take_calls_without_events()
        unended = [part for slot in list(self._open) if (part := self._close(slot)) is not None]
        self._pair()
        self.end_all(unended)
        self.ended = True

    def _start(self, slot: Slot, block: Fields) -> None:
        """Begin a block with its initial content: some servers send complete blocks."""
        self._begun = True  # a relay may omit `message_start`
        self._take_early(slot, block)
        match block.get("type"):
            case "text":
                self._open[slot] = self._partial_text("text", block)
            case "thinking":
                words = self._open[slot] = self._partial_text("thinking", block)
                self.seal(words, "signature", string(block.get("signature")))
            case "redacted_thinking":
                words = self._open[slot] = self.words("thinking")
                self.seal(words, "redacted", string(block.get("data")))
            case "tool_use":
                call = self._open[slot] = self.fragment(slot, block.get("id"), block.get("name"))
                if given := block.get("input"):  # `{}` on the official API, where fragments follow
                    self._given[call] = given
            case kind:
                kind = string(kind)
                goes_back = kind == "server_tool_use" or kind in _SERVER_RESULTS
                own = self._open[slot] = self.native(kind, dict(block), goes_back=goes_back)
                self._own.append(own)

    def _partial_text(self, kind: Literal["text", "thinking"], block: Fields) -> PartialText:
        words = self.words(kind)
        self.say(words, long_string(block.get(kind)))
        self.mark("citations", block.get("citations"))
        return words

    def _delta(self, slot: Slot, delta: Fields) -> None:
        kind, part = string(delta.get("type")), self._open.get(slot)
        if kind in ("text_delta", "thinking_delta"):
            said: Literal["text", "thinking"] = "text" if kind == "text_delta" else "thinking"
            self.say(self._text_at(slot, said), string(delta.get(said)))
        elif kind == "signature_delta":
            self.seal(self._text_at(slot, "thinking"), "signature", string(delta.get("signature")))
        elif kind == "input_json_delta":
            self._argue(slot, part, self.arguments(delta.get("partial_json")))
        elif kind == "citations_delta":
            self.mark("citations", [citation] if (citation := delta.get("citation")) else None)
        elif isinstance(part, Own) and part.kind == "part":
            part.kind = "unknown"  # its deltas are merged in an undocumented way
        else:
            self.leave_out(kind)

    def _text_at(self, slot: Slot, kind: Literal["text", "thinking"]) -> PartialText:
        """Return the block that a delta continues: the one at its index, else the latest open one, else a new one."""
        for part in (self._open.get(slot), *reversed(self._open.values())):
            if isinstance(part, PartialText) and part.kind == kind:
                return part
        self._begun = True
        self._take_early()
        words = self.words(kind)
        self._open.setdefault(slot, words)
        return words

    def _argue(self, slot: Slot, part: Part | None, text: str | Long) -> None:
        match part:
            case PartialCall():
                self.argue(part, text)
            case Own():
                self._inputs[part] = self._inputs.get(part, "") + str(text)
            case _:
                self.fragment(slot, "", "", text)

    def _stop(self, slot: Slot) -> None:
        """End a block. If none is open at this index, end the only open block."""
        if slot not in self._open and len(self._open) == 1:
            slot = next(iter(self._open))
        if (part := self._close(slot)) is not None:
            if isinstance(part, PartialCall):
                part.is_closed = True
            self.end(part)

    def _close(self, slot: Slot) -> Part | None:
        """Remove and return the open block at an index, completed from its deltas."""
        part = self._open.pop(slot, None)
        match part:
            case Own() if text := self._inputs.pop(part, ""):
                _take_input(part, text)
            case PartialCall():
                given = self._given.pop(part, None)
                if given is not None and not part.pieces.size:
                    self.argue(part, self.arguments(given))
            case PartialText(kind="thinking", seal=None) if self.dialect.reasoning.required == "with_calls":
                self.seal(part, UNSIGNED, UNSIGNED)  # hosts that do not sign require the thinking back
            case _:
                pass
        return part

    def _pair(self) -> None:
        """Mark calls of the provider's own tools without a result, and results without a call, as not to be sent
        back."""
        values = [fields(own.value) for own in self._own]
        called = {string(value.get("id")) for value in values if value.get("type") == "server_tool_use"}
        answered = {string(value.get("tool_use_id")) for value in values}
        for own, value in zip(self._own, values, strict=True):
            own_id = string(value.get("id") or value.get("tool_use_id"))
            if own_id not in called & answered or not _SERVER_ID.fullmatch(own_id):
                own.kind = "unknown"


def _take_input(call: Own, text: str) -> None:
    """Store the streamed input of a provider's own call where a complete block has it."""
    try:
        call.value = {**fields(call.value), "input": load(text)}
    except ValueError:
        call.kind = "unknown"


class MessagesReading(TranscriptReader):
    """Reads a Messages transcript."""

    def part(self, part: WireObject) -> None:
        match part.text("type"):
            case "text":
                self.text(part.text("text"))
            case "thinking":
                self.think(part.text("thinking"), "signature", part.text("signature"))
            case "redacted_thinking":
                self.think("", "redacted", part.text("data"))
            case "tool_use":
                self.call(part.native_id("id"), part.text("name"), part.take("input"))
            case "tool_result":
                key, failed = part.native_id("tool_use_id"), part.has_value("is_error", True)
                self.result(key, *self.spread(part, "content"), name=part.text("name"), failed=failed)
            case "image" | "document" if part.inner("source").has_value("type", "text"):
                part.inner("source").has_value("media_type", "text/plain")
                self.text(part.inner("source").text("data"))
            case _:
                self.add_attachment("block", part)

    def media(self, part: WireObject) -> Media | None:
        kind, source = part.text("type"), part.inner("source")
        if kind in ("image", "document"):
            if source.has_value("type", "base64"):
                return Media(source.text("media_type"), data=source.text("data"))
            if source.has_value("type", "url"):
                return Media("application/pdf" if kind == "document" else "image/*", url=source.text("url"))
        return None
