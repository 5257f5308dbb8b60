"""AWS Bedrock Converse: an answer's bytes in, canonical events and a message out.

A stream is a sequence of events: `messageStart`, then blocks one after the other (deltas, stop, each with the
block's index; a tool call has a start as well), `messageStop` with the reason, `metadata` with the token
figures. An exception may come at any time after the 200. The message is whole once `messageStop` was seen;
the figures may be lost without harm.

Reasoning is kept with its signature, verbatim. Both may come in pieces, the redacted form in base64.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64

from actors.adapters.arriving import ArrivingCall, Own, Part, Words
from actors.adapters.base import Decoder, block_index
from actors.adapters.converse.frames import FrameParser
from actors.adapters.failure import broken
from actors.adapters.wire import Fields, fields, items, json_text, string

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
        self._open: dict[int, Part] = {}
        self._seals: dict[tuple[int, str], list[str]] = {}

    def event(self, name: str, payload: Fields) -> None:
        match name:
            case "contentBlockDelta":
                self._delta(block_index(payload, "contentBlockIndex"), fields(payload.get("delta")))
            case "contentBlockStart":
                self._start(block_index(payload, "contentBlockIndex"), fields(payload.get("start")))
            case "contentBlockStop":
                self._stop(block_index(payload, "contentBlockIndex"))
            case "messageStop":
                self._message_stop(payload)
            case "metadata":
                self.count(payload.get("usage"), _FIGURES)
                self.ended = self._stopped
            case "exception":
                self.report(payload)
            case _:
                pass  # `messageStart`, and what comes to be

    def done(self) -> None:
        self.ended = self._stopped

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
        if reason := string(payload.get("stopReason")):
            self.finish(reason)
        for index in list(self._open):
            self._stop(index, told=False)
        self.end_all()
        self._stopped = True

    def _start(self, index: int, block: Fields) -> None:
        if "toolUse" not in block:
            return self._own(index, block)
        told = fields(block["toolUse"])
        self._open[index] = call = self.call(string(told.get("toolUseId")), string(told.get("name")))
        if given := told.get("input"):  # of a body; `{}` is said of none, and of those that never came
            self.argue(call, json_text(given))
        return None

    def _own(self, index: int, block: Fields) -> None:
        """Take a block that is the provider's own. How its pieces are put together is not known: it stays here."""
        self._open[index] = self.native(next(iter(block), ""), dict(block), goes_back=False)

    def _delta(self, index: int, delta: Fields) -> None:
        """Take a delta of a block, or a whole block that holds the same."""
        part = self._open.get(index)
        if "text" in delta:
            self._say(index, string(delta["text"]))
        elif "reasoningContent" in delta:
            self._reasoning(index, fields(delta["reasoningContent"]))
        elif "toolUse" in delta:
            if not isinstance(part, ArrivingCall):
                raise broken(f"arguments for content block {index}, which is no open tool call")
            self.argue(part, string(fields(delta["toolUse"]).get("input")))
        elif "citation" in delta:
            self.mark("citations", [delta["citation"]] if delta["citation"] else None)
        elif "citationsContent" in delta:
            cited = fields(delta["citationsContent"])
            pieces = map(fields, items(cited.get("content")))
            self._say(index, "".join(string(piece.get("text")) for piece in pieces))
            self.mark("citations", cited.get("citations"))
        elif isinstance(part, Own):
            self.leave_out(next(iter(delta), ""))
        elif delta:
            self._own(index, delta)

    def _say(self, index: int, text: str) -> None:
        if index not in self._open:
            self._open[index] = self.words("text")
        part = self._open[index]
        if isinstance(part, Words) and part.kind == "text":
            self.say(part, text)

    def _reasoning(self, index: int, piece: Fields) -> None:
        if index not in self._open:
            self._open[index] = self.words("thinking")
        part = self._open[index]
        if not isinstance(part, Words) or part.kind != "thinking":
            return
        piece = {**fields(piece.get("reasoningText")), **piece}  # as a whole block has it
        self.say(part, string(piece.get("text")))
        for kind in ("signature", "redactedContent"):
            if data := string(piece.get(kind)):
                self._seals.setdefault((index, kind), []).append(data)

    def _stop(self, index: int, *, told: bool = True) -> None:
        part = self._open.pop(index, None)
        if part is None:
            self.words("text")  # an empty text, of which no piece came, is not sent again
            return
        if isinstance(part, Words) and part.kind == "thinking":
            self.seal(part, "signature", "".join(self._seals.pop((index, "signature"), [])))
            self.seal(part, "redacted", _joined(self._seals.pop((index, "redactedContent"), [])))
        self.end(part, told=told)


def _joined(pieces: list[str]) -> str:
    """Return base64 that came in pieces, each encoded on its own, as one."""
    if len(pieces) < 2:
        return "".join(pieces)
    try:
        return b64encode(b"".join(b64decode(piece, validate=True) for piece in pieces)).decode()
    except (NotBase64, ValueError):
        raise broken("redacted reasoning that is not base64") from None
