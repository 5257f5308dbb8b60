"""Anthropic Messages: an answer's bytes in, canonical events and a message out.

A stream is a sequence of named events: `message_start`, then blocks one after the other (start, deltas,
stop, each with the block's index), `message_delta` with the stop reason, `message_stop`. `ping` may come
anywhere, `error` at any time after the 200. There is no `[DONE]`; relays that send one end nothing by it.

Blocks keep their order and their borders, because thinking is bound to the exact bytes before it.
Signatures and redacted data are kept verbatim. So are the calls of the provider's own tools and their results, which go
back together or not at all (ANT-10, ANT-11).
"""

import re
from collections.abc import Callable
from typing import Literal

from actors.adapters.anthropic.encode import UNSIGNED
from actors.adapters.arriving import ArrivingCall, Own, Part, Words
from actors.adapters.assembly import Assembly
from actors.adapters.base import AnswerReader
from actors.adapters.failure import broken
from actors.adapters.wire import Fields, fields, items, json_text, loaded, number, string
from actors.core.dialect import Dialect
from actors.core.stream import Usage

_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_SERVER_RESULTS = frozenset(
    f"{tool}_tool_result" for tool in ("web_search", "web_fetch", "code_execution", "tool_search", "advisor")
)


class MessagesReader(AnswerReader):
    """Reads events, and a whole body as blocks that start and stop at once."""

    def __init__(self, assembly: Assembly, dialect: Dialect) -> None:
        super().__init__(assembly, dialect)
        self._unsigned = dialect.reasoning.required == "with_calls"  # copies that do not sign want it back
        self._begun = False  # whether anything of a message was there
        self._open: dict[int, Part] = {}
        self._own: list[Own] = []
        self._given: dict[int, str] = {}  # arguments that came with the start of a call
        self._figures: dict[str, int] = {}
        self._events: dict[str, Callable[[Fields], None]] = {
            "message_start": self._message_start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "error": self.report,
        }

    def event(self, name: str, payload: Fields) -> None:
        read = self._events.get(string(payload.get("type")) or name)
        if read is not None:
            read(payload)
        elif payload.get("error") or name == "error":  # a relay's, in a form of its own
            self.report(payload)

    def body(self, body: Fields) -> None:
        if body.get("type") == "error" or body.get("error"):
            self.report(body)
        if not isinstance(body.get("content"), list):
            raise broken("the body holds no message")
        self._message_start({"message": body})
        for index, block in enumerate(items(body["content"])):
            self._start(index, fields(block))
            self._stop(index)
        self._stopped(body)
        self._message_stop(body)

    def _message_start(self, payload: Fields) -> None:
        """Begin the message. A second one begins it again, as relays do that ask their provider a second time."""
        if self._begun:
            self.assembly.restart()
            self._open, self._given, self._figures, self._own = {}, {}, {}, []
        self._begun = True
        message = fields(payload.get("message"))
        self._usage(message.get("usage"))
        self.assembly.report_withheld(message.get("input_transformations"))

    def _message_delta(self, payload: Fields) -> None:
        self.assembly.report_withheld(payload.get("input_transformations"))
        self._usage(payload.get("usage"))
        self._stopped(fields(payload.get("delta")))

    def _message_stop(self, payload: Fields) -> None:
        if not self._begun:
            raise broken("the stream ended without a message")
        for index in list(self._open):
            self._stop(index, told=False)
        self._pair()
        self.assembly.end_all()
        self.ended = True

    def _block_start(self, payload: Fields) -> None:
        self._begun = True  # a relay may have left `message_start` out
        self._start(_index(payload), fields(payload.get("content_block")))

    def _block_stop(self, payload: Fields) -> None:
        self._stop(_index(payload))

    def _start(self, index: int, block: Fields) -> None:
        """Begin a block. Whatever it holds already is taken, as some servers send blocks whole."""
        match block.get("type"):
            case "text":
                self._open[index] = self._words_start("text", block)
            case "thinking":
                words = self._open[index] = self._words_start("thinking", block)
                self.assembly.seal(words, "signature", string(block.get("signature")))
            case "redacted_thinking":
                words = self._open[index] = self.assembly.words("thinking")
                self.assembly.seal(words, "redacted", string(block.get("data")))
            case "tool_use":
                self._open[index] = self._call_start(index, block)
            case kind:
                kind = string(kind)
                goes_back = kind == "server_tool_use" or kind in _SERVER_RESULTS
                own = self._open[index] = self.assembly.native(kind, dict(block), goes_back=goes_back)
                self._own.append(own)

    def _words_start(self, kind: Literal["text", "thinking"], block: Fields) -> Words:
        words = self.assembly.words(kind)
        self.assembly.say(words, string(block.get(kind)))
        self.assembly.mark("citations", block.get("citations"))
        return words

    def _call_start(self, index: int, block: Fields) -> ArrivingCall:
        if given := block.get("input"):  # `{}` on the official API, where fragments follow
            self._given[index] = json_text(given)
        return self.assembly.call(string(block.get("id")), string(block.get("name")))

    def _block_delta(self, payload: Fields) -> None:
        index, delta = _index(payload), fields(payload.get("delta"))
        if index not in self._open:
            raise broken(f"a delta for content block {index}, which is not open")
        part = self._open[index]
        match delta.get("type"), part:
            case "text_delta", Words(kind="text"):
                self.assembly.say(part, string(delta.get("text")))
            case "thinking_delta", Words(kind="thinking"):
                self.assembly.say(part, string(delta.get("thinking")))
            case "signature_delta", Words(kind="thinking"):
                self.assembly.seal(part, "signature", string(delta.get("signature")))
            case "input_json_delta", ArrivingCall():
                self.assembly.argue(part, string(delta.get("partial_json")))
            case "citations_delta", Words():
                self.assembly.mark("citations", [citation] if (citation := delta.get("citation")) else None)
            case "input_json_delta", Own():
                self._given[index] = self._given.get(index, "") + string(delta.get("partial_json"))
            case _, Own(kind="part"):
                part.kind = "unknown"  # in pieces that are put together in a way of their own
            case kind, _:
                self.assembly.leave_out(string(kind))

    def _stop(self, index: int, *, told: bool = True) -> None:
        part, given = self._open.pop(index, None), self._given.pop(index, "")
        if isinstance(part, Own) and given:
            _take_input(part, given)
        if isinstance(part, ArrivingCall) and not part.arguments.whole():
            self.assembly.argue(part, given)
        if isinstance(part, Words) and part.kind == "thinking" and part.seal is None and self._unsigned:
            self.assembly.seal(part, UNSIGNED, UNSIGNED)
        if part is not None and told:
            self.assembly.end(part)
        elif part is not None:
            self.assembly.break_off(part)

    def _pair(self) -> None:
        """Let no call of a provider's own tool go back without its result, and no result without its call."""
        values = [fields(own.value) for own in self._own]
        called = {string(value.get("id")) for value in values if value.get("type") == "server_tool_use"}
        answered = {string(value.get("tool_use_id")) for value in values}
        for own, value in zip(self._own, values, strict=True):
            own_id = string(value.get("id") or value.get("tool_use_id"))
            if own_id not in called & answered or not _SERVER_ID.fullmatch(own_id):
                own.kind = "unknown"

    def _stopped(self, delta: Fields) -> None:
        if reason := string(delta.get("stop_reason")):
            self.assembly.finish(reason)

    def _usage(self, usage: object) -> None:
        """Take the figures that are given, keep the others: they are cumulative, and not always all there."""
        for name, value in fields(usage).items():
            if (count := number(value)) is not None:
                self._figures[name] = count
        read = self._figures.get("cache_read_input_tokens", 0)
        written = self._figures.get("cache_creation_input_tokens", 0)
        fresh = self._figures.get("input_tokens", 0)  # without what was cached
        output = self._figures.get("output_tokens", 0)
        self.assembly.report_usage(Usage(fresh + read + written, output, read, written))


def _take_input(call: Own, text: str) -> None:
    """Put the input of a provider's own call, which came in pieces, where a whole block has it."""
    try:
        call.value = {**fields(call.value), "input": loaded(text)}
    except ValueError:
        call.kind = "unknown"


def _index(payload: Fields) -> int:
    index = number(payload.get("index"))
    if index is None:
        raise broken("a content block event without its index")
    return index
