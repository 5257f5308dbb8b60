"""AWS Bedrock Converse: an answer's bytes in, canonical events and a message out.

A stream is a sequence of events: `messageStart`, then blocks one after the other (deltas, stop, each with the
block's index; a tool call has a start as well), `messageStop` with the reason, `metadata` with the token
figures. An exception may come at any time after the 200. The message is whole once `messageStop` was seen;
the figures may be lost without harm.

Reasoning is kept with its signature, verbatim. Both may come in pieces, the redacted form in base64.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from typing import Literal

from actors.adapters.arriving import ArrivingCall, Own, Part, Words
from actors.adapters.base import Decoder
from actors.adapters.calls import Slot, real_word, slot_of
from actors.adapters.converse.frames import FrameParser
from actors.adapters.failure import broken
from actors.adapters.wire import Fields, fields, items, long_string, string

_FIGURES = {
    "inputTokens": (0,),
    "outputTokens": (1,),
    "cacheReadInputTokens": (0, 2),
    "cacheWriteInputTokens": (0, 3),
}


class ConverseDecoder(Decoder):
    """Reads events, and a whole body as blocks that start and stop at once."""

    frames = FrameParser
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
                pass  # `messageStart`, and what comes to be

    def done(self) -> None:
        self.stream_end()

    def stream_end(self) -> None:
        """End the answer if it has a reason to stop. What comes between the reason and the figures belongs to it."""
        if self._stopped and not self.ended:
            unended = [part for slot in list(self._open) if (part := self._close(slot)) is not None]
            self.end_all(unended)
            self.ended = True

    def body(self, body: Fields) -> None:
        message = fields(fields(body.get("output")).get("message"))
        if not isinstance(message.get("content"), list):
            if "message" in body:
                self.report(body)
            raise broken("the body holds no message")
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
            return self._own(slot, block)
        told = fields(block["toolUse"])
        self._open[slot] = call = self.fragment(slot, told.get("toolUseId"), told.get("name"))
        if given := told.get("input"):  # of a body; `{}` is said of none, and of those that never came
            self.argue(call, self.arguments(given))
        return None

    def _own(self, slot: Slot, block: Fields) -> None:
        """Take a block that is the provider's own. How its pieces are put together is not known: it stays here."""
        self._open[slot] = self.native(next(iter(block), ""), dict(block), goes_back=False)

    def _delta(self, slot: Slot, delta: Fields) -> None:
        """Take a delta of a block, or a whole block that holds the same."""
        part = self._open.get(slot)
        if "text" in delta:
            self.say(self._words_at(slot, "text"), long_string(delta["text"]))
        elif "reasoningContent" in delta:
            self._reasoning(slot, fields(delta["reasoningContent"]))
        elif "toolUse" in delta:
            text = self.arguments(fields(delta["toolUse"]).get("input"))
            if isinstance(part, ArrivingCall):
                self.argue(part, text)
            else:
                self.fragment(slot, "", "", text)
        elif "citation" in delta:
            self.mark("citations", [delta["citation"]] if delta["citation"] else None)
        elif "citationsContent" in delta:
            cited = fields(delta["citationsContent"])
            pieces = map(fields, items(cited.get("content")))
            self.say(self._words_at(slot, "text"), "".join(string(piece.get("text")) for piece in pieces))
            self.mark("citations", cited.get("citations"))
        elif isinstance(part, Own):
            self.leave_out(next(iter(delta), ""))
        elif delta:
            self._own(slot, delta)

    def _words_at(self, slot: Slot, kind: Literal["text", "thinking"]) -> Words:
        """Return the block that a delta continues; it begins one where none of its kind is open at its index."""
        part = self._open.get(slot)
        if not isinstance(part, Words) or part.kind != kind:
            part = self.words(kind)
            self._open.setdefault(slot, part)
        return part

    def _reasoning(self, slot: Slot, piece: Fields) -> None:
        part = self._words_at(slot, "thinking")
        piece = {**fields(piece.get("reasoningText")), **piece}  # as a whole block has it
        self.say(part, long_string(piece.get("text")))
        for kind in ("signature", "redactedContent"):
            if data := string(piece.get(kind)):
                self._seals.setdefault((part, kind), []).append(data)

    def _stop(self, slot: Slot) -> None:
        """End a block. If none is open at this index, it is the only one that is open."""
        if slot not in self._open and len(self._open) == 1 and slot is None:
            slot = next(iter(self._open))
        part = self._close(slot)
        if part is None:
            self.words("text")  # an empty text, of which no piece came, is not sent again
            return
        if isinstance(part, ArrivingCall):
            part.is_closed = True
        self.end(part)

    def _close(self, slot: Slot) -> Part | None:
        """Return the block that was open at an index, with all that came of it."""
        part = self._open.pop(slot, None)
        if isinstance(part, Words) and part.kind == "thinking":
            self.seal(part, "signature", "".join(self._seals.pop((part, "signature"), [])))
            self.seal(part, "redacted", _joined(self._seals.pop((part, "redactedContent"), [])))
        return part


def _joined(pieces: list[str]) -> str:
    """Return base64 that came in pieces, each encoded on its own, as one."""
    if len(pieces) < 2:
        return "".join(pieces)
    try:
        return b64encode(b"".join(b64decode(piece, validate=True) for piece in pieces)).decode()
    except (NotBase64, ValueError):
        raise broken("redacted reasoning that is not base64") from None
