"""Decode the answers of OpenAI Responses, and read foreign transcripts.

An answer is a list of items: messages, reasoning, calls. A stream has each item as `output_item.added`, deltas and
`output_item.done`, and ends with one of `response.completed`, `response.incomplete` and `response.failed`. Items are
merged by id. Relays rewrite the ids, so a delta with an unknown id is assigned by its `output_index`, and one with
neither to the latest item of its kind. `output_item.done` and the `output` of the last event hold complete items,
which override the deltas, names and call ids included: a relay may send nothing else, and encrypted content may be
partial before. An empty value overrides nothing. A call that the provider does not mark as finished is dropped,
because cut arguments may look complete.

A reasoning item that can be sent again is sealed as the JSON text of the item, reduced to the fields that the API
accepts back. The phase of a message is sealed before its text, as `Thinking("", ProviderState("phase", ...))`. So is
the id of an item (`"item"`), for dialects that send items back with their ids.

In foreign transcripts, consecutive items of the model (reasoning, text, calls) form one message, and so do
consecutive outputs. Items of an unknown type are kept as labelled text, and so are references to stored items and
items of the provider's own tools, which are not calls of the client.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from actors.adapters.base import Decoder
from actors.adapters.calls import Slot, real_word, slot_of
from actors.adapters.classify import cut_of_finish
from actors.adapters.document import LongText
from actors.adapters.failure import answer_fault
from actors.adapters.partial import Own, Part, PartialCall, PartialText
from actors.adapters.reading import TranscriptReader
from actors.adapters.wire import Fields, WireObject, argument_text, fields, items, long_string, number, string
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import JsonValue, dump, sanitise
from actors.core.dialects.dialect import ResponsesReasoning
from actors.core.transcript.projection import REASONING_ID, flat_name
from actors.core.values.content import Media, MessageRole

_OWN = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "mcp_list_tools"}
)
"""Items of the provider's own tools that are sent back, always without their id."""
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_NAMED = ("message", *_CALLS)
_WORDS = ("output_text", "refusal", None)
_PHASES = ("commentary", "final_answer")
_FIGURES = {"input_tokens": (0,), "output_tokens": (1,), "cached_tokens": (2,), "cache_write_tokens": (3,)}
_ENDS = ("completed", "incomplete", "failed", "cancelled")
_OF_EVENT = {
    "output_text": "message",
    "refusal": "message",
    "function_call_arguments": "function_call",
    "custom_tool_call_input": "custom_tool_call",
    "reasoning_summary_text": "reasoning",
    "reasoning_text": "reasoning",
}
"""The kind of item that a delta, or a `done` event, belongs to."""
_Place: TypeAlias = tuple[str, int | None]


@dataclass(slots=True)
class _Item:
    """An arriving item, and its part."""

    kind: str
    part: Part
    phase: PartialText | None = None  # holds the seal of a message's phase
    named: PartialText | None = None  # holds the seal of its id, if ids are sent back
    done: bool = False  # whether the complete item has arrived
    place: _Place | None = None  # the place of the latest text inside a reasoning item


class ResponsesDecoder(Decoder):
    """Reads events, and a complete body as items."""

    ended: bool

    def begin(self) -> None:
        super().begin()
        self._items: list[_Item] = []
        self._by_id: dict[tuple[str, str], _Item] = {}  # by kind and id
        self._by_call_id: dict[tuple[str, str], _Item] = {}
        self._by_index: dict[tuple[str, Slot], _Item] = {}
        self._latest: dict[str, _Item] = {}  # by kind
        reasoning = self.dialect.reasoning
        self._keeps_ids = isinstance(reasoning, ResponsesReasoning) and reasoning.replay_item_ids == "all"

    def event(self, name: str, payload: Fields) -> None:
        kind = string(payload.get("type")) or name
        what, _, step = kind.removeprefix("response.").rpartition(".")
        if not kind.startswith("response."):
            if kind == "error" or payload.get("error"):
                self.report(payload)
        elif what in _OF_EVENT:
            self._piece(what, step, payload)
        elif what == "output_item" and step == "added":
            self._take_start(fields(payload.get("item")), slot_of(payload.get("output_index")))
        elif what == "output_item" and step == "done":
            self._take_complete(fields(payload.get("item")), slot_of(payload.get("output_index")))
        elif not what and step in _ENDS:
            self._end_response(fields(payload.get("response")), step)

    def body(self, body: Fields) -> None:
        if body.get("error"):
            self.report(body)
        if not isinstance(body.get("output"), list):
            raise answer_fault("the body holds no response")
        self._end_response(body, "completed")

    def _end_response(self, response: Fields, told: str) -> None:
        status = string(response.get("status")) or told
        usage = fields(response.get("usage"))
        self.count({**usage, **fields(usage.get("input_tokens_details"))}, _FIGURES)
        self.report_withheld(response.get("input_transformations"))
        if status == "failed" or response.get("error"):
            self.report({"error": response.get("error") or {"message": "the response failed"}})
        if status not in ("completed", "incomplete"):
            raise answer_fault(f"the response ended with status {sanitise(status)[:40]!r}")
        self._merge(items(response.get("output")))
        if status == "incomplete":
            self.drop_unfinished_calls()
        reason = real_word(fields(response.get("incomplete_details")).get("reason"))
        self.finish(reason if cut_of_finish(reason) else status)
        self.end_all([item.part for item in self._items if not item.part.done], fails=False)
        self.ended = True

    def _merge(self, output: Sequence[object]) -> None:
        """Merge the items of the last event: each is an item of the stream, or one that the stream omitted.

        Relays use other ids and indices here. An item without a known id is the next compatible item of its kind.
        """
        told = [fields(item) for item in output]
        known = [self._item_by_id(item) for item in told]
        left = [item for item in self._items if not any(item is each for each in known)]
        place = 0
        for whole, item in zip(told, known, strict=True):
            item = item or next((each for each in left if _may_be(each, whole)), None)
            if item is not None:
                left = [each for each in left if each is not item]
                self._take_whole(item, whole)
                place = self.place_of(item.part)
            else:
                count = self.place_of(None)
                self._take_whole(self._begin(whole, None), whole)
                place = self.move_parts(count, place)

    def _item_by_id(self, told: Fields) -> _Item | None:
        """Return the item with the id of a complete item; by call id if only that one is compatible."""
        kind = string(told.get("type"))
        item = self._by_id.get((kind, real_word(told.get("id"))))
        other = self._by_call_id.get((kind, real_word(told.get("call_id"))))
        return other if other and _may_be(other, told) and not (item and _may_be(item, told)) else item

    def _find(self, kind: str, item_id: object, index: Slot) -> _Item | None:
        """Return the item of an event, by id, index or position."""
        key = kind, item_id if isinstance(item_id, str) else real_word(item_id)  # placeholders are not keys
        if item := self._by_id.get(key) or self._by_index.get((kind, index)) or self._by_call_id.get(key):
            return item
        latest = self._latest.get(kind)
        return latest if latest is not None and not latest.done else None

    def _take_start(self, told: Fields, index: Slot) -> None:
        """Process the start of an item. A relay may repeat it, or reuse the id of an ended item."""
        item = self._by_id.get((string(told.get("type")), real_word(told.get("id"))))
        if item is None or item.done:
            item = self._begin(told, index)
            if isinstance(item.part, PartialCall):
                self.argue(item.part, self.arguments(told.get(_CALLS[item.kind])))
        elif isinstance(item.part, PartialCall):
            self.identify(item.part, string(told.get("call_id")), _name_of(told))

    def _begin(self, told: Fields, index: Slot) -> _Item:
        kind = string(told.get("type"))
        named = self.words("thinking") if self._keeps_ids and kind in _NAMED else None
        if kind == "message":
            phase = self.words("thinking")
            item = _Item(kind, self.words("text"), phase)
            self._seal_phase(item, told)
        elif kind == "reasoning":
            item = _Item(kind, self.words("thinking"))
        elif kind in _CALLS:
            call = self.call(real_word(told.get("call_id")), _name_of(told), index)
            call.free, call.namespace = kind == "custom_tool_call", sanitise(string(told.get("namespace")))
            item = _Item(kind, call)
        else:
            item = _Item(kind, self.native(kind, None, goes_back=kind in _OWN))
        item.named = named
        self._items.append(item)
        self._note(item, told, index)
        return item

    def _note(self, item: _Item, told: Fields, index: Slot) -> None:
        self._latest[item.kind] = item
        if item_id := real_word(told.get("id")):
            self._by_id[item.kind, item_id] = item
        if call_id := real_word(told.get("call_id")):
            self._by_call_id.setdefault((item.kind, call_id), item)
        if index is not None:
            self._by_index[item.kind, index] = item

    def _take_complete(self, told: Fields, index: Slot) -> None:
        """Process a complete item, whatever its deltas were."""
        kind, item = string(told.get("type")), self._item_by_id(told)
        if item is None or self._is_reused(item, told, index):
            item = self._find(kind, "", index)
            if item is None or (item.done and not _may_be(item, told)):
                item = self._begin(told, index)
        self._take_whole(item, told)

    def _is_reused(self, item: _Item, told: Fields, index: Slot) -> bool:
        """Return True if an ended item's id is reused for another item at another index."""
        is_there = index is None or self._by_index.get((item.kind, index)) is item
        return item.done and not is_there and not _may_be(item, told)

    def _take_whole(self, item: _Item, told: Fields) -> None:
        if item.named is not None:
            self.seal(item.named, "item", string(told.get("id")))
            self.end(item.named)
        match part := item.part:
            case PartialText(kind="text"):
                self._seal_phase(item, told)
                self.complete(part, *_texts_of(told))
                self._take_other_fields(told)
            case PartialText():
                self.complete(part, *_thoughts_of(told))
                self.seal(part, "reasoning_item", _resendable(told))
            case PartialCall():
                self.identify(
                    part, string(told.get("call_id")), _name_of(told, part.namespace), is_final=True
                )
                self.complete(part, self.arguments(told.get(_CALLS[item.kind])))
                part.told = item.kind == "custom_tool_call" and told.get("status") == "completed"
                part.is_closed = True
            case Own():
                _take_item(part, told)
        item.done = True
        if isinstance(part, PartialCall) and told.get("status") in ("incomplete", "in_progress"):
            part.done = False
        else:
            self.end(part)

    def _take_other_fields(self, message: Fields) -> None:
        """Process the fields of a message's parts other than text."""
        for part in map(fields, items(message.get("content"))):
            if part.get("type") not in _WORDS:
                self.mark(string(part.get("type")), [dict(part)])
            self.mark("annotations", part.get("annotations"))
            self.leave_out_once("logprobs", part.get("logprobs"))

    def _seal_phase(self, item: _Item, told: Fields) -> None:
        phase = told.get("phase")
        if item.phase is not None and isinstance(phase, str) and phase in _PHASES:
            self.seal(item.phase, "phase", phase)
            self.end(item.phase)

    def _piece(self, what: str, step: str, payload: Fields) -> None:
        """Process a delta of an item, or its `done` event; begin an item that was never announced."""
        kind, index = _OF_EVENT[what], slot_of(payload.get("output_index"))
        item = self._find(kind, payload.get("item_id"), index)
        if item is None:
            told = {"type": kind, "id": payload.get("item_id"), "name": payload.get("name")}
            item = self._begin(told, index)
        delta = payload.get("delta")
        match kind, step, item.part:
            case "message", "delta", PartialText(kind="text") as words:
                self.say(words, string(delta))
            case "message", "done", PartialText(kind="text") as words if not words.pieces.size:
                self.say(words, string(payload.get("text")) or string(payload.get("refusal")))
            case "reasoning", "delta", PartialText(kind="thinking") as words:
                place = what, number(payload.get("summary_index", payload.get("content_index")))
                if item.place not in (None, place) and words.pieces.size:
                    self.say(words, "\n\n")
                item.place = place
                self.say(words, string(delta))
            case _, "delta", PartialCall() as call if kind in _CALLS:
                self.argue(call, self.arguments(delta))
            case _, "done", PartialCall() as call if kind in _CALLS:
                self.identify(call, "", _name_of(payload, call.namespace), is_final=True)
                self.complete(call, self.arguments(payload.get("arguments") or payload.get("input")))
                self.end(call)
            case _:
                pass


def _may_be(item: _Item, told: Fields) -> bool:
    """Return True if the complete item `told` matches `item`, which arrived under another id.

    The items match if they are of the same kind and no field conflicts.
    """
    if item.kind != told.get("type"):
        return False
    part = item.part
    if isinstance(part, PartialCall):
        whole, name = argument_text(told.get(_CALLS[item.kind])), _name_of(told, part.namespace)
        return part.wire_name in ("", name) and part.pieces.rest_of([whole]) is not None
    if not isinstance(part, PartialText) or part.kind != "text":
        return True
    return "".join(map(str, _texts_of(told))).strip().startswith(part.pieces.join().strip())  # relays trim


def _take_item(own: Own, item: Fields) -> None:
    """Store a complete item of the provider's own. A generated image becomes media; other items lose their id."""
    if item.get("type") == "image_generation_call" and (data := string(item.get("result"))):
        own.value = Media(f"image/{sanitise(string(item.get('output_format')) or 'png')}", sanitise(data))
        return
    own.value = {key: value for key, value in item.items() if key != "id"}
    if item.get("status") in ("incomplete", "in_progress"):
        own.kind = "unknown"


def _name_of(call: Fields, namespace: str = "") -> str:
    """Return a tool's name, prefixed by its namespace; empty for a placeholder."""
    name = real_word(call.get("name"))
    return flat_name(string(call.get("namespace")) or namespace, name) if name else ""


def _texts_of(item: Fields) -> list[str | LongText]:
    """Return the texts of a message item. Refusals are included: they are text of the model."""
    content = item.get("content")
    parts = map(fields, items(content))
    texts = [long_string(part.get("text")) or long_string(part.get("refusal")) for part in parts]
    return [long_string(content), *texts]


def _thoughts_of(item: Fields) -> list[str | LongText]:
    parts = map(fields, (*items(item.get("summary")), *items(item.get("content"))))
    texts = [text for part in parts if (text := long_string(part.get("text")))]
    return [piece for text in texts for piece in ("\n\n", text)][1:]


def _resendable(item: Fields) -> str:
    """Return a reasoning item in the form that can be sent again; empty if it cannot: an id alone is not found
    (OAR-05).

    Relays omit the id or replace it by an invalid one. The id is sent back only if the next item has one too
    (OAR-03).
    """
    item_id, state = string(item.get("id")), string(item.get("encrypted_content"))
    if not state:
        return ""
    named: dict[str, JsonValue] = {"id": item_id} if REASONING_ID.fullmatch(item_id) else {}
    again: dict[str, JsonValue] = {"type": "reasoning", **named, "summary": _parts(item, "summary")}
    if content := _parts(item, "content"):
        again["content"] = content
    return dump({**again, "encrypted_content": state}).decode()


def _parts(item: Fields, key: str) -> list[JsonValue]:
    kind = "summary_text" if key == "summary" else "reasoning_text"
    texts = (string(fields(part).get("text")) for part in items(item.get(key)))
    return [{"type": kind, "text": text} for text in texts]


_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool message")
# Not part of the conversation, or readable only by its provider.
_LEFT_OUT = ("additional_tools", "compaction", "compaction_summary", "compaction_trigger")


class ItemsReading(TranscriptReader):
    """Reads a Responses transcript."""

    container: ClassVar[str] = "input"
    instructors: ClassVar[Sequence[str]] = ("system", "developer")
    stray_message: ClassVar[str] = "entry that is no item"

    def message(self, item: WireObject) -> None:
        kind, role = item.text("type"), item.fields.get("role")
        # A message may omit its type; a tool message of Chat Completions has none.
        if not kind and "role" in item.fields:
            kind = "tool message" if role == "tool" else "message"
        self.begin(_role(kind, role), joins=True)
        item.has_value("status", "completed")
        match kind:
            case "message":
                self.read_message(item.text("role"), item)
            case "reasoning":
                self._reasoning(item)
            case "function_call" | "custom_tool_call":
                free, key = kind == "custom_tool_call", item.native_id("call_id", "id")
                given = item.take("input", "arguments") if free else item.take("arguments", "input")
                self.call(key, item.text("name"), given, item.text("namespace"), free=free)
            case "item_reference":
                self.fold("reference to an item that its provider keeps", item.take("id"))
            case "image_generation_call" if data := item.text("result"):
                self.note("image made by its provider's tool kept as an image of the model's")
                self.say(Media(f"image/{item.text('output_format') or 'png'}", data))
            case _ if kind in _OUTPUTS:
                item.has_value("role", "tool")
                key = item.native_id("call_id", "tool_call_id")
                name = flat_name(item.text("namespace"), item.text("name"))
                if item.has_value("status", "in_progress", "incomplete") and not item.fields.get("output"):
                    self.pending(key, name)
                else:
                    self.result(key, *self.spread(item, "output", "content"), name=name)
            case _ if kind in _LEFT_OUT:
                self.note(f"item of type {kind!r} left out")
                item.whole()
            case _:
                self.fold(f"item of type {kind[:40]!r}", item.whole())

    def _reasoning(self, item: WireObject) -> None:
        """Add reasoning, sealed as the complete item if it holds more than text."""
        parts = [
            part for part in (*item.each("summary"), *item.each("content")) if isinstance(part, WireObject)
        ]
        for part in parts:
            part.has_value("type", "summary_text", "reasoning_text")
        words = "\n\n".join(text for part in parts if (text := part.text("text")))
        state = ingest(item.whole()).json.decode() if item.fields.get("encrypted_content") else ""
        self.think(words, "reasoning_item", state)


def _role(kind: str, role: object) -> MessageRole:
    if kind in _OUTPUTS:
        return "tool"
    if kind == "message":
        return "assistant" if role == "assistant" else "user"
    is_models = kind.endswith("_call") or kind in ("reasoning", "mcp_list_tools", "mcp_approval_request")
    return "assistant" if is_models else "user"
