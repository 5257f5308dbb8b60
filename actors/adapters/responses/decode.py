"""Decode answers in the OpenAI Responses format, and read foreign transcripts.

An answer is a list of items, which are messages, reasoning or calls. A stream sends each item as `output_item.added`,
deltas and `output_item.done`. It ends with `response.completed`, `response.incomplete` or `response.failed`.

Items are merged by id. Relays rewrite ids, so a delta with an unknown id belongs to the item at its `output_index` or,
failing that, to the latest item of its kind. `output_item.done` and the `output` of the last event contain complete
items. Their values override those from deltas, including names and call ids, because a relay may send only complete
items, and encrypted content may be partial in earlier events. Empty values do not override anything. A call that the
provider does not mark as finished is dropped, because truncated arguments may look complete.

If a reasoning item can be sent again, its JSON text is stored, reduced to the fields that the API accepts back. The
phase of a message is stored in a thinking block before its text, as `Thinking("", ProviderState("phase", ...))`. In
dialects that send items back with their ids, an item's id is stored in the same way (`"item"`).

In foreign transcripts, consecutive items from the model (reasoning, text, calls) form one message, as do consecutive
outputs. Items of an unknown type, references to stored items and items of the provider's own tools are kept as labelled
text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from actors.adapters.base import Decoder
from actors.adapters.calls import Slot, slot_of, without_placeholder
from actors.adapters.document import LongText
from actors.adapters.failure import answer_fault, cut_from_finish_reason
from actors.adapters.partial import Part, PartialCall, PartialText, ProviderPart
from actors.adapters.reading import TranscriptReader
from actors.adapters.wire import (
    Fields,
    WireObject,
    argument_text,
    as_array,
    as_long_string,
    as_object,
    as_string,
    whole_number,
)
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import JsonValue, dump, sanitise
from actors.core.dialects.dialect import ResponsesReasoning
from actors.core.transcript.transcript import REASONING_ID, flat_name
from actors.core.values.content import Media, MessageRole

_PROVIDER_TOOL_ITEMS = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "mcp_list_tools"}
)
"""Types of items from the provider's own tools that are sent back, always without their ids."""
_ARGUMENT_KEYS = {"function_call": "arguments", "custom_tool_call": "input"}
_ITEMS_WITH_IDS = ("message", *_ARGUMENT_KEYS)
_TEXT_TYPES = ("output_text", "refusal", None)
_PHASES = ("commentary", "final_answer")
_USAGE_FIELDS = {
    "input_tokens": (0,),
    "output_tokens": (1,),
    "cached_tokens": (2,),
    "cache_write_tokens": (3,),
}
_FINAL_STATUSES = ("completed", "incomplete", "failed", "cancelled")
_ITEM_KINDS = {
    "output_text": "message",
    "refusal": "message",
    "function_call_arguments": "function_call",
    "custom_tool_call_input": "custom_tool_call",
    "reasoning_summary_text": "reasoning",
    "reasoning_text": "reasoning",
}
"""The kind of item to which an event belongs, by the name of the event."""
_Place: TypeAlias = tuple[str, int | None]


@dataclass(slots=True)
class _Item:
    """An item that is still arriving, and the part that collects its content."""

    kind: str
    part: Part
    phase_seal: PartialText | None = None  # the thinking block that stores the message's phase
    id_seal: PartialText | None = None  # the thinking block that stores the item's id
    done: bool = False  # whether the complete item has arrived
    place: _Place | None = None  # the part of a reasoning item that received the latest text


class ResponsesDecoder(Decoder):
    """Decodes answers in the OpenAI Responses format. A body without streaming is processed like the last event of a
    stream.
    """

    ended: bool

    def reset_parts(self) -> None:
        super().reset_parts()
        self._items: list[_Item] = []
        self._by_id: dict[tuple[str, str], _Item] = {}  # by kind and id
        self._by_call_id: dict[tuple[str, str], _Item] = {}
        self._by_index: dict[tuple[str, Slot], _Item] = {}
        self._latest: dict[str, _Item] = {}  # by kind
        reasoning = self.dialect.reasoning
        self._keeps_ids = isinstance(reasoning, ResponsesReasoning) and reasoning.replay_item_ids == "all"

    def process_event(self, name: str, payload: Fields) -> None:
        kind = as_string(payload.get("type")) or name
        what, _, step = kind.removeprefix("response.").rpartition(".")
        if not kind.startswith("response."):
            if kind == "error" or payload.get("error"):
                self.raise_reported_error(payload)
        elif what in _ITEM_KINDS:
            self._process_piece(what, step, payload)
        elif what == "output_item" and step == "added":
            self._process_start(as_object(payload.get("item")), slot_of(payload.get("output_index")))
        elif what == "output_item" and step == "done":
            self._process_complete_item(as_object(payload.get("item")), slot_of(payload.get("output_index")))
        elif not what and step in _FINAL_STATUSES:
            self._process_end(as_object(payload.get("response")), step)

    def process_body(self, body: Fields) -> None:
        if body.get("error"):
            self.raise_reported_error(body)
        if not isinstance(body.get("output"), list):
            raise answer_fault("the body contains no response")
        self._process_end(body, "completed")

    def _process_end(self, response: Fields, event_status: str) -> None:
        status = as_string(response.get("status")) or event_status
        usage = as_object(response.get("usage"))
        self.update_usage({**usage, **as_object(usage.get("input_tokens_details"))}, _USAGE_FIELDS)
        self.record_withheld(response.get("input_transformations"))
        if status == "failed" or response.get("error"):
            self.raise_reported_error({"error": response.get("error") or {"message": "the response failed"}})
        if status not in ("completed", "incomplete"):
            raise answer_fault(f"the response ended with status {sanitise(status)[:40]!r}")
        self._merge_output(as_array(response.get("output")))
        if status == "incomplete":
            self.drop_unfinished_calls()
        reason = without_placeholder(as_object(response.get("incomplete_details")).get("reason"))
        self.record_finish_reason(reason if cut_from_finish_reason(reason) else status)
        self.end_all_parts([item.part for item in self._items if not item.part.done], may_fail=False)
        self.ended = True

    def _merge_output(self, output: Sequence[object]) -> None:
        """Merge the complete items in the last event with the items of the stream, and add items that the stream
        omitted.

        Relays use different ids and indices in the last event. An item with an unknown id is merged with the next
        compatible item of its kind.
        """
        told = [as_object(item) for item in output]
        known = [self._find_known_item(item) for item in told]
        left = [item for item in self._items if not any(item is each for each in known)]
        place = 0
        for whole, item in zip(told, known, strict=True):
            item = item or next((each for each in left if _is_compatible(each, whole)), None)
            if item is not None:
                left = [each for each in left if each is not item]
                self._complete_item(item, whole)
                place = self.position_after(item.part)
            else:
                count = self.position_after(None)
                self._complete_item(self._begin_item(whole, None), whole)
                place = self.move_parts(count, place)

    def _find_known_item(self, wire_item: Fields) -> _Item | None:
        """Return the known item that `wire_item`, a complete item, repeats. It is found by id or call id. Return None
        if there is none.

        The item with the same id takes precedence, unless only the item with the same call id is compatible.
        """
        kind = as_string(wire_item.get("type"))
        item = self._by_id.get((kind, without_placeholder(wire_item.get("id"))))
        other = self._by_call_id.get((kind, without_placeholder(wire_item.get("call_id"))))
        return (
            other
            if other and _is_compatible(other, wire_item) and not (item and _is_compatible(item, wire_item))
            else item
        )

    def _find_item(self, kind: str, item_id: object, index: Slot) -> _Item | None:
        """Return the item to which an event belongs: the item with the event's id or index, otherwise the latest
        unfinished item of this kind.
        """
        # Some relays send numbers as ids.
        key = kind, item_id if isinstance(item_id, str) else without_placeholder(item_id)
        if item := self._by_id.get(key) or self._by_index.get((kind, index)) or self._by_call_id.get(key):
            return item
        latest = self._latest.get(kind)
        return latest if latest is not None and not latest.done else None

    def _process_start(self, wire_item: Fields, index: Slot) -> None:
        """Process the start event of an item. A relay may repeat the event, or reuse the id of a finished item."""
        item = self._by_id.get((as_string(wire_item.get("type")), without_placeholder(wire_item.get("id"))))
        if item is None or item.done:
            item = self._begin_item(wire_item, index)
            if isinstance(item.part, PartialCall):
                self.add_arguments(item.part, self.arguments_text(wire_item.get(_ARGUMENT_KEYS[item.kind])))
        elif isinstance(item.part, PartialCall):
            self.identify_call(item.part, as_string(wire_item.get("call_id")), _tool_name_of(wire_item))

    def _begin_item(self, wire_item: Fields, index: Slot) -> _Item:
        kind = as_string(wire_item.get("type"))
        named = self.begin_text("thinking") if self._keeps_ids and kind in _ITEMS_WITH_IDS else None
        if kind == "message":
            phase = self.begin_text("thinking")
            item = _Item(kind, self.begin_text("text"), phase)
            self._store_phase(item, wire_item)
        elif kind == "reasoning":
            item = _Item(kind, self.begin_text("thinking"))
        elif kind in _ARGUMENT_KEYS:
            call = self.begin_call(
                without_placeholder(wire_item.get("call_id")), _tool_name_of(wire_item), index
            )
            call.free, call.namespace = (
                kind == "custom_tool_call",
                sanitise(as_string(wire_item.get("namespace"))),
            )
            item = _Item(kind, call)
        else:
            item = _Item(kind, self.add_native(kind, None, is_resendable=kind in _PROVIDER_TOOL_ITEMS))
        item.id_seal = named
        self._items.append(item)
        self._index_item(item, wire_item, index)
        return item

    def _index_item(self, item: _Item, wire_item: Fields, index: Slot) -> None:
        self._latest[item.kind] = item
        if item_id := without_placeholder(wire_item.get("id")):
            self._by_id[item.kind, item_id] = item
        if call_id := without_placeholder(wire_item.get("call_id")):
            self._by_call_id.setdefault((item.kind, call_id), item)
        if index is not None:
            self._by_index[item.kind, index] = item

    def _process_complete_item(self, wire_item: Fields, index: Slot) -> None:
        """Process a complete item of the stream, whether or not its deltas arrived."""
        kind, item = as_string(wire_item.get("type")), self._find_known_item(wire_item)
        if item is None or self._is_reused(item, wire_item, index):
            item = self._find_item(kind, "", index)
            if item is None or (item.done and not _is_compatible(item, wire_item)):
                item = self._begin_item(wire_item, index)
        self._complete_item(item, wire_item)

    def _is_reused(self, item: _Item, wire_item: Fields, index: Slot) -> bool:
        """Return True if a complete item reuses the id of the finished `item` at another index."""
        is_there = index is None or self._by_index.get((item.kind, index)) is item
        return item.done and not is_there and not _is_compatible(item, wire_item)

    def _complete_item(self, item: _Item, wire_item: Fields) -> None:
        if item.id_seal is not None:
            self.attach_seal(item.id_seal, "item", as_string(wire_item.get("id")))
            self.end_part(item.id_seal)
        match part := item.part:
            case PartialText(kind="text"):
                self._store_phase(item, wire_item)
                self.complete_text(part, *_message_texts(wire_item))
                self._process_message_extras(wire_item)
            case PartialText():
                self.complete_text(part, *_reasoning_texts(wire_item))
                self.attach_seal(part, "reasoning_item", _resendable_json(wire_item))
            case PartialCall():
                self.identify_call(
                    part,
                    as_string(wire_item.get("call_id")),
                    _tool_name_of(wire_item, part.namespace),
                    is_final=True,
                )
                self.complete_text(part, self.arguments_text(wire_item.get(_ARGUMENT_KEYS[item.kind])))
                part.is_marked_complete = (
                    item.kind == "custom_tool_call" and wire_item.get("status") == "completed"
                )
                part.is_closed = True
            case ProviderPart():
                _store_item(part, wire_item)
        item.done = True
        if isinstance(part, PartialCall) and wire_item.get("status") in ("incomplete", "in_progress"):
            part.done = False
        else:
            self.end_part(part)

    def _process_message_extras(self, message: Fields) -> None:
        """Process the fields of a message's parts other than text, such as annotations and logprobs."""
        for part in map(as_object, as_array(message.get("content"))):
            if part.get("type") not in _TEXT_TYPES:
                self.add_metadata(as_string(part.get("type")), [dict(part)])
            self.add_metadata("annotations", part.get("annotations"))
            self.count_omission_once("logprobs", part.get("logprobs"))

    def _store_phase(self, item: _Item, wire_item: Fields) -> None:
        phase = wire_item.get("phase")
        if item.phase_seal is not None and isinstance(phase, str) and phase in _PHASES:
            self.attach_seal(item.phase_seal, "phase", phase)
            self.end_part(item.phase_seal)

    def _process_piece(self, event_kind: str, step: str, payload: Fields) -> None:
        """Process a delta of an item, or its `done` event. An item without a start event begins here."""
        kind, index = _ITEM_KINDS[event_kind], slot_of(payload.get("output_index"))
        item = self._find_item(kind, payload.get("item_id"), index)
        if item is None:
            told = {"type": kind, "id": payload.get("item_id"), "name": payload.get("name")}
            item = self._begin_item(told, index)
        delta = payload.get("delta")
        match kind, step, item.part:
            case "message", "delta", PartialText(kind="text") as words:
                self.add_text(words, as_string(delta))
            case "message", "done", PartialText(kind="text") as words if not words.pieces.size:
                self.add_text(words, as_string(payload.get("text")) or as_string(payload.get("refusal")))
            case "reasoning", "delta", PartialText(kind="thinking") as words:
                place = event_kind, whole_number(payload.get("summary_index", payload.get("content_index")))
                if item.place not in (None, place) and words.pieces.size:
                    self.add_text(words, "\n\n")
                item.place = place
                self.add_text(words, as_string(delta))
            case _, "delta", PartialCall() as call if kind in _ARGUMENT_KEYS:
                self.add_arguments(call, self.arguments_text(delta))
            case _, "done", PartialCall() as call if kind in _ARGUMENT_KEYS:
                self.identify_call(call, "", _tool_name_of(payload, call.namespace), is_final=True)
                self.complete_text(
                    call, self.arguments_text(payload.get("arguments") or payload.get("input"))
                )
                self.end_part(call)
            case _:
                pass


def _is_compatible(item: _Item, wire_item: Fields) -> bool:
    """Return True if the complete item `wire_item` may be the same item as `item`, which arrived with a different id.

    Both must have the same kind, and their fields must not conflict.
    """
    if item.kind != wire_item.get("type"):
        return False
    part = item.part
    if isinstance(part, PartialCall):
        whole, name = (
            argument_text(wire_item.get(_ARGUMENT_KEYS[item.kind])),
            _tool_name_of(wire_item, part.namespace),
        )
        return part.wire_name in ("", name) and part.pieces.remainder_of([whole]) is not None
    if not isinstance(part, PartialText) or part.kind != "text":
        return True
    # Relays strip whitespace from texts, so it is ignored.
    return "".join(map(str, _message_texts(wire_item))).strip().startswith(part.pieces.join().strip())


def _store_item(part: ProviderPart, item: Fields) -> None:
    """Store a complete item of a provider tool, without its id. A generated image becomes media instead."""
    if item.get("type") == "image_generation_call" and (data := as_string(item.get("result"))):
        part.value = Media(f"image/{sanitise(as_string(item.get('output_format')) or 'png')}", sanitise(data))
        return
    part.value = {key: value for key, value in item.items() if key != "id"}
    if item.get("status") in ("incomplete", "in_progress"):
        part.kind = "unknown"


def _tool_name_of(call: Fields, namespace: str = "") -> str:
    """Return a call's tool name, prefixed by its namespace, or "" for a placeholder such as `null`."""
    name = without_placeholder(call.get("name"))
    return flat_name(as_string(call.get("namespace")) or namespace, name) if name else ""


def _message_texts(item: Fields) -> list[str | LongText]:
    """Return the texts of a message item, including refusals, because they count as text by the model."""
    content = item.get("content")
    parts = map(as_object, as_array(content))
    texts = [as_long_string(part.get("text")) or as_long_string(part.get("refusal")) for part in parts]
    return [as_long_string(content), *texts]


def _reasoning_texts(item: Fields) -> list[str | LongText]:
    parts = map(as_object, (*as_array(item.get("summary")), *as_array(item.get("content"))))
    texts = [text for part in parts if (text := as_long_string(part.get("text")))]
    return [piece for text in texts for piece in ("\n\n", text)][1:]


def _resendable_json(item: Fields) -> str:
    """Return a reasoning item as JSON text that can be sent again, or "" if it has no encrypted content (OAR-05).

    An item with only an id cannot be sent, because the API would not find it. Relays omit the id or replace it with an
    invalid one. The id is sent back only if the next item has an id as well (OAR-03).
    """
    item_id, state = as_string(item.get("id")), as_string(item.get("encrypted_content"))
    if not state:
        return ""
    named: dict[str, JsonValue] = {"id": item_id} if REASONING_ID.fullmatch(item_id) else {}
    again: dict[str, JsonValue] = {"type": "reasoning", **named, "summary": _text_parts(item, "summary")}
    if content := _text_parts(item, "content"):
        again["content"] = content
    return dump({**again, "encrypted_content": state}).decode()


def _text_parts(item: Fields, key: str) -> list[JsonValue]:
    kind = "summary_text" if key == "summary" else "reasoning_text"
    texts = (as_string(as_object(part).get("text")) for part in as_array(item.get(key)))
    return [{"type": kind, "text": text} for text in texts]


_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool message")
# Types of items that are not part of the conversation, or that only their provider can read.
_OMITTED_ITEMS = ("additional_tools", "compaction", "compaction_summary", "compaction_trigger")


class ItemsReader(TranscriptReader):
    """Reads transcripts in the OpenAI Responses format."""

    container: ClassVar[str] = "input"
    instructors: ClassVar[Sequence[str]] = ("system", "developer")
    stray_message: ClassVar[str] = "entry that is no item"

    def read_item(self, item: WireObject) -> None:
        kind, role = item.read_text("type"), item.fields.get("role")
        # A message may omit its type, and a tool message of Chat Completions has no type.
        if not kind and "role" in item.fields:
            kind = "tool message" if role == "tool" else "message"
        self.begin_message(_item_role(kind, role), joins=True)
        item.has_value("status", "completed")
        match kind:
            case "message":
                self.read_message(item.read_text("role"), item)
            case "reasoning":
                self._read_reasoning(item)
            case "function_call" | "custom_tool_call":
                free, key = kind == "custom_tool_call", item.read_id("call_id", "id")
                given = (
                    item.read_value("input", "arguments") if free else item.read_value("arguments", "input")
                )
                self.add_call(key, item.read_text("name"), given, item.read_text("namespace"), free=free)
            case "item_reference":
                self.add_as_text("reference to an item that its provider keeps", item.read_value("id"))
            case "image_generation_call" if data := item.read_text("result"):
                self.note_oddity("image from the provider's own tool kept as an image of the model")
                self.add_block(Media(f"image/{item.read_text('output_format') or 'png'}", data))
            case _ if kind in _OUTPUTS:
                item.has_value("role", "tool")
                key = item.read_id("call_id", "tool_call_id")
                name = flat_name(item.read_text("namespace"), item.read_text("name"))
                if item.has_value("status", "in_progress", "incomplete") and not item.fields.get("output"):
                    self.add_pending_result(key, name)
                else:
                    self.add_result(key, *self.read_result_content(item, "output", "content"), name=name)
            case _ if kind in _OMITTED_ITEMS:
                self.note_oddity(f"item of type {kind!r} left out")
                item.read_all()
            case _:
                self.add_as_text(f"item of type {kind[:40]!r}", item.read_all())

    def _read_reasoning(self, item: WireObject) -> None:
        """Add reasoning. If the item has encrypted content, the complete item is stored with the reasoning."""
        parts = [
            part
            for part in (*item.read_list("summary"), *item.read_list("content"))
            if isinstance(part, WireObject)
        ]
        for part in parts:
            part.has_value("type", "summary_text", "reasoning_text")
        words = "\n\n".join(text for part in parts if (text := part.read_text("text")))
        state = ingest(item.read_all()).json.decode() if item.fields.get("encrypted_content") else ""
        self.add_thinking(words, "reasoning_item", state)


def _item_role(kind: str, role: object) -> MessageRole:
    if kind in _OUTPUTS:
        return "tool"
    if kind == "message":
        return "assistant" if role == "assistant" else "user"
    is_models = kind.endswith("_call") or kind in ("reasoning", "mcp_list_tools", "mcp_approval_request")
    return "assistant" if is_models else "user"
