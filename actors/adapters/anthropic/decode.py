"""Anthropic Messages: an answer's bytes in, canonical events and a message out.

A stream is a sequence of named events: `message_start`, then blocks one after the other (start, deltas,
stop, each with the block's index), `message_delta` with the stop reason, `message_stop`. `ping` may come
anywhere, `error` at any time after the 200. There is no `[DONE]`; relays that send one end nothing by it.

Blocks keep their order and their borders, because thinking is bound to the exact bytes before it.
Signatures and redacted data are kept verbatim. So are the calls of the provider's own tools and their results, which go
back together or not at all (ANT-10, ANT-11).
"""

import re
from typing import Literal

from actors.adapters.anthropic.encode import UNSIGNED
from actors.adapters.arriving import ArrivingCall, Own, Part, Words
from actors.adapters.base import Decoder, block_index
from actors.adapters.failure import broken
from actors.adapters.wire import Fields, fields, items, json_text, loaded, string

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
    """Reads events, and a whole body as blocks that start and stop at once."""

    _begun = False  # whether anything of a message was there

    def begin(self) -> None:
        super().begin()
        self._open: dict[int, Part] = {}
        self._own: list[Own] = []
        self._given: dict[int, str] = {}  # arguments that came with the start of a call

    def event(self, name: str, payload: Fields) -> None:
        match string(payload.get("type")) or name:
            case "content_block_delta":
                self._delta(block_index(payload, "index"), fields(payload.get("delta")))
            case "content_block_start":
                self._begun = True  # a relay may have left `message_start` out
                self._start(block_index(payload, "index"), fields(payload.get("content_block")))
            case "content_block_stop":
                self._stop(block_index(payload, "index"))
            case "message_start":
                self._message_start(fields(payload.get("message")))
            case "message_delta":
                self.report_withheld(payload.get("input_transformations"))
                self.count(payload.get("usage"), _FIGURES)
                self._stopped(fields(payload.get("delta")))
            case "message_stop":
                self._message_stop()
            case kind:
                if "error" in (kind, name) or payload.get("error"):  # a relay's has a form of its own
                    self.report(payload)

    def body(self, body: Fields) -> None:
        if body.get("type") == "error" or body.get("error"):
            self.report(body)
        if not isinstance(body.get("content"), list):
            raise broken("the body holds no message")
        self._message_start(body)
        for index, block in enumerate(items(body["content"])):
            self._start(index, fields(block))
            self._stop(index)
        self._stopped(body)
        self._message_stop()

    def _message_start(self, message: Fields) -> None:
        """Begin the message. A second one begins it again, as relays do that ask their provider a second time."""
        if self._begun:
            self.restart()
        self._begun = True
        self.count(message.get("usage"), _FIGURES)
        self.report_withheld(message.get("input_transformations"))

    def _stopped(self, delta: Fields) -> None:
        if reason := string(delta.get("stop_reason")):
            self.finish(reason)

    def _message_stop(self) -> None:
        if not self._begun:
            raise broken("the stream ended without a message")
        for index in list(self._open):
            self._stop(index, told=False)
        self._pair()
        self.end_all()
        self.ended = True

    def _start(self, index: int, block: Fields) -> None:
        """Begin a block. Whatever it holds already is taken, as some servers send blocks whole."""
        match block.get("type"):
            case "text":
                self._open[index] = self._words("text", block)
            case "thinking":
                words = self._open[index] = self._words("thinking", block)
                self.seal(words, "signature", string(block.get("signature")))
            case "redacted_thinking":
                words = self._open[index] = self.words("thinking")
                self.seal(words, "redacted", string(block.get("data")))
            case "tool_use":
                if given := block.get("input"):  # `{}` on the official API, where fragments follow
                    self._given[index] = json_text(given)
                self._open[index] = self.call(string(block.get("id")), string(block.get("name")))
            case kind:
                kind = string(kind)
                goes_back = kind == "server_tool_use" or kind in _SERVER_RESULTS
                own = self._open[index] = self.native(kind, dict(block), goes_back=goes_back)
                self._own.append(own)

    def _words(self, kind: Literal["text", "thinking"], block: Fields) -> Words:
        words = self.words(kind)
        self.say(words, string(block.get(kind)))
        self.mark("citations", block.get("citations"))
        return words

    def _delta(self, index: int, delta: Fields) -> None:
        if index not in self._open:
            raise broken(f"a delta for content block {index}, which is not open")
        part = self._open[index]
        match delta.get("type"), part:
            case "text_delta", Words(kind="text"):
                self.say(part, string(delta.get("text")))
            case "thinking_delta", Words(kind="thinking"):
                self.say(part, string(delta.get("thinking")))
            case "signature_delta", Words(kind="thinking"):
                self.seal(part, "signature", string(delta.get("signature")))
            case "input_json_delta", ArrivingCall():
                self.argue(part, string(delta.get("partial_json")))
            case "citations_delta", Words():
                self.mark("citations", [citation] if (citation := delta.get("citation")) else None)
            case "input_json_delta", Own():
                self._given[index] = self._given.get(index, "") + string(delta.get("partial_json"))
            case _, Own(kind="part"):
                part.kind = "unknown"  # in pieces that are put together in a way of their own
            case kind, _:
                self.leave_out(string(kind))

    def _stop(self, index: int, *, told: bool = True) -> None:
        part, given = self._open.pop(index, None), self._given.pop(index, "")
        match part:
            case None:
                return
            case Own() if given:
                _take_input(part, given)
            case ArrivingCall() if not part.pieces.whole():
                self.argue(part, given)
            case Words(kind="thinking", seal=None) if self.dialect.reasoning.required == "with_calls":
                self.seal(part, UNSIGNED, UNSIGNED)  # copies that do not sign want it back
        self.end(part, told=told)

    def _pair(self) -> None:
        """Let no call of a provider's own tool go back without its result, and no result without its call."""
        values = [fields(own.value) for own in self._own]
        called = {string(value.get("id")) for value in values if value.get("type") == "server_tool_use"}
        answered = {string(value.get("tool_use_id")) for value in values}
        for own, value in zip(self._own, values, strict=True):
            own_id = string(value.get("id") or value.get("tool_use_id"))
            if own_id not in called & answered or not _SERVER_ID.fullmatch(own_id):
                own.kind = "unknown"


def _take_input(call: Own, text: str) -> None:
    """Put the input of a provider's own call, which came in pieces, where a whole block has it."""
    try:
        call.value = {**fields(call.value), "input": loaded(text)}
    except ValueError:
        call.kind = "unknown"
