"""Generate the conversations that the benchmarks use: blocks of 20 wire messages, and turns of 8 wire messages.

A block has 5 user messages, 8 assistant messages and 7 tool results. Three of the assistant messages have tool calls (5
in parallel, 1 and 1), and five have thinking. Tool results have 1 to 2 KB with quotes, tabs, newlines and some
non-ASCII characters. All texts differ. Results are ledger events rather than messages, as in a session.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from actors.adapters.adapter import Adapter, adapter
from actors.adapters.request import Settings
from actors.core.data.jsonio import JsonValue, dump, quote
from actors.core.data.persistent import Segments
from actors.core.dialects.profiles import dialect
from actors.core.history.history import History, extend
from actors.core.lanes.lane import Lane, Rendered, advance, empty_lane
from actors.core.ledger import Ledger
from actors.core.log.call_events import CallEvent, Returned, Scheduled, Started
from actors.core.render import RenderTarget, RenderWalk
from actors.core.transcript.diagnostics import Notes
from actors.core.transcript.transcript import RenderState
from actors.core.values.content import Block, Message, ProviderState, Text, Thinking, ToolCall, ToolResult
from actors.core.values.identity import Binding, CallId, mint
from actors.core.values.packed import pack

DIALECTS = ("openai_chat", "anthropic")
FAMILIES = (*DIALECTS, "openai_responses", "gemini", "bedrock")
"""One dialect per wire family."""
SIGNATURE = 560
"""Number of characters of a thinking signature."""

_WORDS = (
    'def render(self, "name"):\n\treturn {"path": "/srv/data/naïve.txt", "size": 4096}\n'
    "2026-11-21 12:00:07\tINFO\tworker 3: 'café' – 12 rows, 0 errors\n"
    '\t\tif value is not None and value != "":\n\t\t\tyield value\n'
    "Δ of the second run was below 0.5 %, so the result stands as it is. Rows without a date were left out "
    "of both, and so were those that came in twice; what was left agrees with the totals of last year.\n"
)
_SOURCE = _WORDS * 40


@dataclass(frozen=True, slots=True)
class Step:
    """A message and the ledger events of its calls."""

    message: Message
    events: tuple[CallEvent, ...] = ()


@dataclass(slots=True)
class Author:
    """A deterministic generator of a conversation on one binding. Equal seeds give equal conversations."""

    origin: Binding
    seed: int = 0
    calls: int = 0
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def opening(self) -> Step:
        """Return the first message of a conversation, a user message."""
        return self._user_step()

    def turn(self) -> list[Step]:
        """Return a turn of 8 wire messages, which ends with the next user message."""
        return [self._model_step(5, thinks=True), self._model_step(0), self._user_step()]

    def block(self) -> list[Step]:
        """Return a block of 20 wire messages, which ends with a user message."""
        steps = self.turn()
        for calls, thinks in ((1, True), (1, True)):
            steps += (self._model_step(calls, thinks=thinks), self._model_step(0), self._user_step())
        for _ in range(2):
            steps += (self._model_step(0, thinks=True), self._user_step())
        return steps

    def text(self, least: int, most: int) -> str:
        """Return a unique text of at least `least` and fewer than `most` characters."""
        size = self._random.randrange(least, most)
        start = self._random.randrange(len(_SOURCE) - most)
        return f"{self._random.getrandbits(64):016x} {_SOURCE[start : start + size - 17]}"

    def _user_step(self) -> Step:
        return Step(Message("user", (Text(self.text(100, 300)),)))

    def _model_step(self, calls: int, *, thinks: bool = False) -> Step:
        blocks: list[Block] = []
        if thinks:
            blocks.append(self._thinking())
        if not calls or thinks:
            blocks.append(Text(self.text(100, 400)))
        made = [self._new_call() for _ in range(calls)]
        events = tuple(event for call in made for event in self._call_events(call))
        return Step(Message("assistant", (*blocks, *made), 1, self.origin), events)

    def _thinking(self) -> Thinking:
        """Return reasoning with the provider state that the dialect of the origin uses, such as a signature."""
        text, signature = self.text(100, 400), self._random.randbytes(SIGNATURE // 2).hex()
        kind: str = dialect(self.origin.dialect).reasoning.carrier
        match kind:
            case "reasoning_item":
                summary: JsonValue = [{"type": "summary_text", "text": text}]
                item = {"type": "reasoning", "id": f"rs_{signature[:24]}", "summary": summary}
                data = dump({**item, "encrypted_content": signature}).decode()
            case "thought_signature":
                text, data = "", signature
            case "reasoning_content":
                data = kind
            case "reasoning_details":
                data = json.dumps([{"type": "reasoning.text", "text": text, "index": 0}], ensure_ascii=False)
            case "thinking_chunk":
                data = "{}"
            case _:
                kind, data = "signature", signature
        return Thinking(text, ProviderState(kind, quote(data), self.origin))

    def _new_call(self) -> ToolCall:
        self.calls += 1
        arguments = {"query": self.text(20, 60), "limit": self._random.randrange(100)}
        native = ProviderState("call_id", quote(f"call_{self._random.getrandbits(96):024x}"), self.origin)
        return ToolCall(mint(self.calls), "search", arguments, native=native)

    def _call_events(self, call: ToolCall) -> tuple[CallEvent, ...]:
        result = quote(self.text(1000, 2000))
        return Scheduled(call.id, call.name, call.json), Started(call.id), Returned(call.id, result)


def dialect_binding(name: str) -> Binding:
    """Return a binding whose dialect and backend have the name `name`."""
    return Binding(name, name, "https://api.example", "", "model-1")


def conversation_steps(author: Author, messages: int) -> Iterator[Step]:
    """Yield a conversation of about `messages` wire messages, which ends with a user message."""
    yield author.opening()
    for _ in range(messages // 20):
        yield from author.block()


class LiveConversation:
    """A conversation with its ledger and its lane for one binding, as in a session."""

    def __init__(self, origin: str, target: str, messages: int, seed: int = 0) -> None:
        self.author = Author(dialect_binding(origin), seed)
        self.codec: Adapter = adapter(dialect(target))
        self._prepared = self.codec.prepare(Settings(model="model-1"))
        self.target = RenderTarget(dialect_binding(target))
        self.history, self.ledger = History(), Ledger()
        self.lane: Lane = empty_lane(self.codec.dialect)
        self.append(list(conversation_steps(self.author, messages)))

    def append(self, steps: list[Step]) -> None:
        """Append messages to the history, and their call events to the ledger."""
        for step in steps:
            self.history = extend(self.history, (pack(step.message),))
            if step.events:
                self.ledger = self.ledger.apply(*step.events)

    def first_request(self) -> Segments:
        """Return the request body from an empty lane. The lane of this conversation does not change."""
        return self._request(self.render())

    def render(self) -> Rendered:
        """Render the transcript from an empty lane. The lane of this conversation does not change."""
        return self._render(empty_lane(self.codec.dialect))

    def render_walk(self) -> RenderWalk:
        """Return the render from an empty lane, without the judge."""
        codec = self.codec
        return RenderWalk(
            RenderState(), self.history, self.ledger, codec.dialect, codec.encoder, self.target, Notes()
        )

    def next_request(self) -> Segments:
        """Return the body of the next request, and advance the lane."""
        render = self._render(self.lane)
        self.lane = render.lane
        return self._request(render)

    def _render(self, lane: Lane) -> Rendered:
        codec = self.codec
        render = advance(lane, self.history, self.ledger, codec.dialect, codec.encoder, self.target)
        assert not render.report.faults, render.report.faults[0]
        return render

    def _request(self, render: Rendered) -> Segments:
        return self._prepared.request(render._segments, render._facts).segments


def imported_messages(steps: list[Step]) -> list[Message]:
    """Return a conversation as an import returns it, with tool results as messages."""
    messages: list[Message] = []
    for step in steps:
        messages.append(step.message)
        results = [
            ToolResult(event.call_id, content_json=event.content)
            for event in step.events
            if isinstance(event, Returned)
        ]
        if results:
            messages.append(Message("tool", results, 1))
    return messages


def content_bytes(messages: list[Message]) -> int:
    """Return the UTF-8 bytes of all content: texts, thinking, signatures, arguments and results."""
    return sum(_block_bytes(block) for message in messages for block in message.blocks)


def _block_bytes(block: Block) -> int:
    match block:
        case Text():
            return len(block.text.encode())
        case Thinking(seal=seal):
            return len(block.text.encode()) + (0 if seal is None else len(seal.data) - 2)
        case ToolCall(id=id, name=name, json=json):
            return len(id) + len(name) + len(json)
        case ToolResult():
            return len(block.call_id) + len(str(block.content).encode())
        case _:
            return 0


def call_ids(messages: list[Message]) -> list[CallId]:
    """Return the ids of all calls, in the order of the messages."""
    return [call.id for message in messages for call in message.calls]
