"""Play generated conversations as session logs and check the requests that the session sends.

A log is simulated without actors: the messages of a conversation enter the history one by one, the ledger's
records enter as call events at random moments, and at random moments a request is sent to one of two
bindings, as the session would: rendered, judged, its seals written with `RequestSent`, then adopted.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from hypothesis import settings

from actors.adapters.adapter import adapter
from actors.adapters.request import Settings
from actors.core.check import check
from actors.core.data.jsonio import Json, sanitise
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.history.history import History
from actors.core.lanes.lane import Rendered, advance, empty_lane, results_to_seal
from actors.core.ledger import Ledger
from actors.core.log.call_events import (
    CallEvent,
    Cancelled,
    Failed,
    Returned,
    Scheduled,
    Started,
    ToolCallRecord,
)
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import AskStarted, EpochBegan, LogEvent, Opened, RequestSent, RoundEnded
from actors.core.render import RenderTarget, ThinkingPolicy
from actors.core.session.lanes import Lanes
from actors.core.session.state import SessionState
from actors.core.transcript.transcript import Encoder
from actors.core.values.content import Media, Message, ToolResult
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import pack
from actors.strict.rules import ServerSettings as HostSettings
from actors.testing import (
    AnthropicSettings,
    BedrockSettings,
    CompatibleSettings,
    GeminiProfile,
    GeminiSettings,
    ResponsesSettings,
    validate,
)
from tests.commands.at_scale import share
from tests.generated.histories import READERS

VENDORS = tuple([name for name, profile in PROFILES.items() if profile.family == "openai_chat"][1:])
TRUSTING: dict[str, HostSettings] = {
    **dict.fromkeys(
        ("anthropic", "vertex_anthropic", "bedrock_anthropic"), AnthropicSettings(signatures="trust")
    ),
    "openai_responses": ResponsesSettings(signatures="trust"),
    "gemini": GeminiSettings(signatures="trust"),
    "vertex": GeminiSettings(signatures="trust", vertex=True),
    "gemini_2": GeminiSettings(GeminiProfile(signatures=False), signatures="trust"),
    "bedrock": BedrockSettings(signatures="trust"),
    **dict.fromkeys(VENDORS, CompatibleSettings(signatures="trust")),
}
"""Settings of the strict rules, by dialect, for bodies whose signatures no host has made."""
_LANES = (
    "openai_chat",
    "anthropic",
    "openai_responses",
    "gemini",
    "bedrock",
    "mistral",
    "kimi",
    "openrouter",
)
BINDINGS = tuple(READERS[name] for name in _LANES)
"""Bindings whose lanes remember different things; the other profiles keep nothing that these do not."""
ELSEWHERE = Binding("elsewhere", "openai_chat", "https://elsewhere.example", "account-1", "other")
"""A third binding, to whom the seals that a generated ledger begins with were sent."""


def examples(count: int) -> settings:
    """Return Hypothesis settings with the configured share of `count` examples."""
    return settings(max_examples=share(count))


def rules(binding: Binding, policy: ThinkingPolicy = "native") -> tuple[Dialect, Encoder, RenderTarget]:
    """Return the render rules of a binding."""
    profile = dialect(binding.dialect)
    return profile, adapter(profile).encoder, RenderTarget(binding, policy)


def render_at_once(
    messages: Iterable[Message] | History,
    ledger: Ledger,
    binding: Binding,
    policy: ThinkingPolicy = "native",
) -> Rendered:
    """Render a conversation at once. A normalized history may be rendered for several bindings."""
    said = messages if isinstance(messages, History) else History(messages, ledger)
    profile, encoder, reader = rules(binding, policy)
    return advance(empty_lane(profile), said, ledger, profile, encoder, reader)


def body(rendered: Rendered) -> bytes:
    """Return the request body of a rendered lane."""
    return adapter(rendered.dialect).request(rendered._segments, Settings(model="any"), rendered._facts).body


def find_refusal(rendered: Rendered) -> str | None:
    """Return the fault that the judge or the strict server finds in a rendered lane, or None."""
    sent = body(rendered)
    for fault in (*rendered.report.faults, *check(sent, rendered.dialect)):
        return f"judge: {fault}"
    name = rendered.dialect.name
    refusal = validate(sent, name, mode="strict", settings=TRUSTING.get(name))
    return None if refusal is None else f"server: {refusal.rule} {refusal.message}"


def text(rendered: Rendered) -> bytes:
    """Return the bytes of a lane without the end of its last message."""
    return b"".join(rendered.lane._segments)


# ---- a log


@dataclass
class Simulated:
    """A session that writes its log and records its requests."""

    log: list[LogEvent] = field(default_factory=list)
    state: SessionState = field(default_factory=SessionState)
    lanes: Lanes = field(default_factory=lambda: Lanes(rules))
    sent: list[tuple[Binding, int, Rendered]] = field(default_factory=list)

    def write(self, *events: LogEvent) -> None:
        for event in events:
            self.log.append(event)
            before, self.state = self.state, self.state.apply(event)
            self.lanes.apply(event, before, self.state)

    def render(self, binding: Binding) -> Rendered:
        return self.lanes.render(binding, self.state.history, self.state.ledger)

    def send(self, binding: Binding) -> Rendered:
        """Send a request: seals and all."""
        rendered = self.render(binding)
        if rendered.new_epoch is not None:
            self.write(rendered.new_epoch)
        epoch, cursor = rendered.lane._state.epoch, len(self.state.history)
        sealed = results_to_seal(rendered, self.state.ledger)
        self.write(RequestSent(1, len(self.sent) + 1, binding, epoch, cursor, sealed))
        self.sent.append((binding, epoch, rendered))
        return rendered

    def restart(self, binding: Binding, *, plain: bool) -> None:
        """Begin an epoch of a binding's lane."""
        epoch = self.lanes.of(binding)._state.epoch + 1
        self.write(EpochBegan(binding, epoch, "refusal" if plain else "thinking", plain))


def simulate(
    messages: Sequence[Message], ledger: Ledger, seed: int, bindings: Sequence[Binding] = BINDINGS
) -> Simulated:
    """Play a conversation as a session, with requests, and a few new epochs, at random moments.

    The conversation is normalized first. Calls recovered from its blocks that the ledger lacks become events too.
    """
    random = Random(seed)
    session = Simulated()
    session.write(Opened("s", "openai"))
    came = History(messages, ledger)
    known = [
        *ledger.interactions(),
        *(item for item in came.ledger.interactions() if item.call_id not in ledger),
    ]
    news: list[list[LogEvent]] = [list(interaction_events(interaction)) for interaction in known]
    for number, message in enumerate(came.since(0)):
        while news and random.random() < 0.4:
            session.write(*_take_events(news, random))
        spoken = (
            AskStarted(number, pack(message))
            if message.role == "user"
            else RoundEnded(1, 1, pack(message) if message.blocks else None)
        )
        session.write(spoken)
        if random.random() < 0.4:
            session.send(random.choice(bindings))
        if random.random() < 0.05:
            session.restart(random.choice(bindings), plain=random.random() < 0.5)
    while news:
        session.write(*_take_events(news, random))
    for binding in (*bindings, bindings[0]):
        session.send(binding)
    return session


def find_fault(session: Simulated) -> str | None:
    """Return the first fault in the requests of a session, or None.

    Each must be accepted, and begin with the bytes that the same epoch of its lane sent before.
    """
    earlier: dict[tuple[Binding, int], bytes] = {}
    for number, (binding, epoch, rendered) in enumerate(session.sent):
        if (why := find_refusal(rendered)) is not None:
            return f"request {number}, to {binding.dialect}: {why}"
        if not text(rendered).startswith(earlier.get((binding, epoch), b"")):
            return f"request {number}, to {binding.dialect}: it does not begin with the one before"
        earlier[binding, epoch] = text(rendered)
    return None


def _take_events(news: list[list[LogEvent]], random: Random) -> list[LogEvent]:
    """Take the next event of a call, or all its remaining events."""
    events = news.pop(random.randrange(len(news)))
    if random.random() < 0.5 and len(events) > 1:
        news.append(events[1:])
        return events[:1]
    return events


def interaction_events(known: ToolCallRecord) -> Iterable[CallEvent | RequestSent]:
    """Return the events that produce this interaction in a ledger, with ids in their stored form."""
    call_id = CallId(sanitise(known.call_id))
    if known.tool is not None:
        yield Scheduled(call_id, sanitise(known.tool), known.arguments or Json(b"{}"))
    if known.started:
        yield Started(call_id)
    if known.cancelled is not None:
        yield Cancelled(call_id, known.cancelled)
    if known.completion is not None:
        yield completion_event(call_id, known.completion)
    if known.sealed is not None:
        yield RequestSent(1, 0, ELSEWHERE, 0, 0, ((call_id, known.sealed),))
    if known.late is not None:
        yield completion_event(call_id, known.late)
    for duplicate in known.duplicates:
        yield completion_event(call_id, duplicate)


def completion_event(call_id: CallId, result: ToolResult) -> CallEvent:
    """Return the event of a real completion."""
    if result.error_json is not None:
        return Failed(call_id, result.error_json)
    media = tuple(
        Media(sanitise(item.media_type), sanitise(item.data), sanitise(item.url)) for item in result.media
    )
    return Returned(call_id, result.content_json or Json(b"null"), media)


def reread_log(log: Iterable[LogEvent]) -> list[LogEvent]:
    """Return the log as read back from storage."""
    return [decode_event(encode_event(event)) for event in log]


# ---- an independent parser of bodies


@dataclass
class Seen:
    """The contents of a request body in order: `("call", id)`, `("result", id)` or `("words", text)`."""

    items: list[tuple[str, str]] = field(default_factory=list)

    @property
    def calls(self) -> list[str]:
        return [value for kind, value in self.items if kind == "call"]

    @property
    def results(self) -> list[str]:
        return [value for kind, value in self.items if kind == "result"]


def parse_body(sent: bytes) -> Seen:
    """Parse a body of any family."""
    found = Seen()
    read = json.loads(sent)
    if "contents" in read:
        found.items.extend(_parts(read["contents"]))
    for message in read.get("input", ()):
        found.items.extend(_of_responses(message))
    for message in read.get("messages", ()):
        if message["role"] == "tool":
            found.items.append(("result", message["tool_call_id"]))
            continue
        content = message.get("content") or []
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            found.items.append(_item(block))
        for call in message.get("tool_calls", ()):
            found.items.append(("call", call["id"]))
    return found


def _of_responses(item: dict[str, Any]) -> list[tuple[str, str]]:  # Any: an item of a body under test
    match item["type"]:
        case "function_call":
            return [("call", item["call_id"])]
        case "function_call_output":
            return [("result", item["call_id"])]
        case "message":
            content = item["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            return [_item(part) for part in parts]
        case _:
            return [("words", item["type"])]


def _parts(contents: list[Any]) -> Iterable[tuple[str, str]]:  # Any: contents of a body under test
    """Return the items of Gemini `contents`. Calls and results pair by position, so their ids are numbers."""
    counts = {"functionCall": count(), "functionResponse": count()}
    for part in (part for content in contents for part in content["parts"]):
        held = next((key for key in counts if key in part), None)
        if held is None:
            yield "words", part.get("text", "")
        else:
            yield "call" if held == "functionCall" else "result", str(next(counts[held]))


def _item(block: dict[str, Any]) -> tuple[str, str]:  # Any: a block of a body under test
    match block:
        case {"type": "tool_use", "id": call_id} | {"toolUse": {"toolUseId": call_id}}:
            return "call", call_id
        case {"type": "tool_result", "tool_use_id": call_id} | {"toolResult": {"toolUseId": call_id}}:
            return "result", call_id
        case _:
            return "words", block.get("text", block.get("type", ""))


# ---- expected results, by independent rules


def owed_results(messages: Sequence[Message], ledger: Ledger) -> list[ToolResult]:
    """Return the real results that a transcript must contain, each once, for histories without repeated call ids.

    For a call, this is the result after its seal, else the result in the ledger, else the first real result block.
    For a result without its call, this is the result in the ledger if the ledger knows the call, else each different
    result. A late result is owed even if its call is no longer in the history.
    """
    made = {call.id for message in messages for call in message.calls}
    blocks: dict[CallId, list[ToolResult]] = {call_id: [] for call_id in made}
    for message in messages:
        for result in message.results:
            if result.status != "pending":
                blocks.setdefault(result.call_id, []).append(result)
    gone = [ledger.get(call_id) for call_id in ledger.late if call_id not in blocks]
    return [item.late for item in gone if item is not None and item.late is not None] + [
        result
        for call_id, given in blocks.items()
        for result in _owed_result(call_id, given, call_id in made, ledger)
    ]


def _owed_result(call_id: CallId, given: list[ToolResult], is_made: bool, ledger: Ledger) -> list[ToolResult]:
    known = ledger.get(call_id)
    if not is_made and known is not None and known.late is not None:
        return [known.late]  # recorded in the ledger, whatever the removed block contained
    if not is_made and (known is None or known.tool is None or not given):
        return list({(one.content_json, one.error_json, one.media): one for one in given}.values())
    if known is not None and known.sealed is not None:
        return [known.late] if known.late is not None else given[:1]
    if known is not None and known.completion is not None:
        return [known.completion]
    return given[:1]
