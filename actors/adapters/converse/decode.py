"""AWS Bedrock Converse: an answer's bytes in, canonical events and a message out.

A stream is a sequence of events: `messageStart`, then blocks one after the other (deltas, stop, each with the
block's index; a tool call has a start as well), `messageStop` with the reason, `metadata` with the token
figures. An exception may come at any time after the 200. The message is whole once `messageStop` was seen;
the figures may be lost without harm.

Reasoning is kept with its signature, verbatim. Both may come in pieces, the redacted form in base64.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable

from actors.adapters.arriving import ArrivingCall, Own, Part, Words
from actors.adapters.assembly import Assembly
from actors.adapters.base import AnswerReader
from actors.adapters.failure import broken
from actors.adapters.wire import Fields, fields, items, json_text, number, string
from actors.core.dialect import Dialect
from actors.core.stream import Usage


class ConverseReader(AnswerReader):
    """Reads events, and a whole body as blocks that start and stop at once."""

    def __init__(self, assembly: Assembly, dialect: Dialect) -> None:
        super().__init__(assembly, dialect)
        self._stopped = False
        self._open: dict[int, Part] = {}
        self._signatures: dict[int, list[str]] = {}
        self._redacted: dict[int, list[str]] = {}
        self._events: dict[str, Callable[[Fields], None]] = {
            "contentBlockStart": self._block_start,
            "contentBlockDelta": self._block_delta,
            "contentBlockStop": self._block_stop,
            "messageStop": self._message_stop,
            "metadata": self._metadata,
            "exception": self.report,
        }

    def event(self, name: str, payload: Fields) -> None:
        read = self._events.get(name)
        if read is not None:
            read(payload)

    def done(self) -> None:
        self.ended = self._stopped

    def body(self, body: Fields) -> None:
        message = fields(fields(body.get("output")).get("message"))
        if not isinstance(message.get("content"), list):
            if "message" in body:
                self.report(body)
            raise broken("the body holds no message")
        for index, block in enumerate(items(message["content"])):
            self._whole(index, fields(block))
            self._stop(index)
        self._message_stop(body)
        self._metadata(body)

    def _message_stop(self, payload: Fields) -> None:
        if reason := string(payload.get("stopReason")):
            self.assembly.finish(reason)
        for index in list(self._open):
            self._stop(index, told=False)
        self.assembly.end_all()
        self._stopped = True

    def _metadata(self, payload: Fields) -> None:
        usage = fields(payload.get("usage"))
        fresh, output, read, written = (number(usage.get(name)) or 0 for name in _FIGURES)
        self.assembly.report_usage(Usage(fresh + read + written, output, read, written))
        self.ended = self._stopped

    # --- blocks -------------------------------------------------------------------------------------

    def _whole(self, index: int, block: Fields) -> None:
        """Take a block of an answer that is not streamed."""
        if "toolUse" in block:
            call = fields(block["toolUse"])
            part = self._call_start(index, call)
            if given := call.get("input"):  # `{}` is said of none, and of those that never came
                self.assembly.argue(part, json_text(given))
        elif "reasoningContent" in block:
            reasoning = fields(block["reasoningContent"])
            self._reasoning(index, {**fields(reasoning.get("reasoningText")), **reasoning})
        elif "text" in block:
            self._say(index, string(block["text"]))
        elif "citationsContent" in block:
            cited = fields(block["citationsContent"])
            self._say(
                index, "".join(string(fields(piece).get("text")) for piece in items(cited.get("content")))
            )
            self.assembly.mark("citations", cited.get("citations"))
        else:
            self._own(index, block)

    def _own(self, index: int, block: Fields) -> None:
        """Take a block that is the provider's own. How its pieces are put together is not known: it stays here."""
        self._open[index] = self.assembly.native(next(iter(block), ""), dict(block), goes_back=False)

    def _block_start(self, payload: Fields) -> None:
        start = fields(payload.get("start"))
        if "toolUse" in start:
            self._call_start(_index(payload), fields(start["toolUse"]))
        else:
            self._own(_index(payload), start)

    def _call_start(self, index: int, call: Fields) -> ArrivingCall:
        part = self.assembly.call(string(call.get("toolUseId")), string(call.get("name")))
        self._open[index] = part
        return part

    def _block_delta(self, payload: Fields) -> None:
        index, delta = _index(payload), fields(payload.get("delta"))
        if "text" in delta:
            self._say(index, string(delta["text"]))
        elif "reasoningContent" in delta:
            self._reasoning(index, fields(delta["reasoningContent"]))
        elif "toolUse" in delta:
            part = self._open.get(index)
            if not isinstance(part, ArrivingCall):
                raise broken(f"arguments for content block {index}, which is no open tool call")
            self.assembly.argue(part, string(fields(delta["toolUse"]).get("input")))
        elif "citation" in delta:
            self.assembly.mark("citations", [delta["citation"]] if delta["citation"] else None)
        elif index in self._open and isinstance(self._open[index], Own):
            self.assembly.leave_out(next(iter(delta), ""))
        elif delta:
            self._own(index, delta)

    def _say(self, index: int, text: str) -> None:
        part = self._open.get(index)
        if part is None:
            part = self._open[index] = self.assembly.words("text")
        if isinstance(part, Words) and part.kind == "text":
            self.assembly.say(part, text)

    def _reasoning(self, index: int, piece: Fields) -> None:
        part = self._open.get(index)
        if part is None:
            part = self._open[index] = self.assembly.words("thinking")
        if not isinstance(part, Words) or part.kind != "thinking":
            return
        self.assembly.say(part, string(piece.get("text")))
        if signature := string(piece.get("signature")):
            self._signatures.setdefault(index, []).append(signature)
        if data := string(piece.get("redactedContent")):
            self._redacted.setdefault(index, []).append(data)

    def _block_stop(self, payload: Fields) -> None:
        self._stop(_index(payload))

    def _stop(self, index: int, *, told: bool = True) -> None:
        part = self._open.pop(index, None)
        if part is None:
            self.assembly.words("text")  # an empty text, of which no piece came, is not sent again
        signatures, redacted = self._signatures.pop(index, []), self._redacted.pop(index, [])
        if isinstance(part, Words) and part.kind == "thinking":
            self.assembly.seal(part, "signature", "".join(signatures))
            self.assembly.seal(part, "redacted", _joined(redacted))
        if part is not None and told:
            self.assembly.end(part)
        elif part is not None:
            self.assembly.break_off(part)


_FIGURES = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")


def _index(payload: Fields) -> int:
    index = number(payload.get("contentBlockIndex"))
    if index is None:
        raise broken("a content block event without its index")
    return index


def _joined(pieces: list[str]) -> str:
    """Return base64 that came in pieces, each encoded on its own, as one."""
    if len(pieces) < 2:
        return "".join(pieces)
    try:
        return b64encode(b"".join(b64decode(piece, validate=True) for piece in pieces)).decode()
    except (NotBase64, ValueError):
        raise broken("redacted reasoning that is not base64") from None
