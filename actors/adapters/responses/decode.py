"""OpenAI Responses: an answer's bytes in, canonical events and a message out.

An answer is a list of items: messages, reasoning, calls. A stream tells each item as `output_item.added`, deltas and
`output_item.done`, and ends with one of `response.completed`, `response.incomplete` and `response.failed`. A delta
belongs to the item of its `item_id`; relays rewrite those, so an unknown one goes by its `output_index`, and one with
neither to the latest item of its kind. What `output_item.done` says is the whole item and has the last word: a relay
may send nothing else, and encrypted content may be a part of it before. A call that the provider does not call
finished is no call: cut arguments may read as good ones.

A reasoning item that can be sent again is sealed as the JSON text of the item, with nothing in it but what the
API takes back. The phase of a message is sealed beside it (`Thinking("", Seal("phase", ...))` in front of its text).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from actors.adapters.arriving import ArrivingCall, Own, Part, Words
from actors.adapters.assembly import Assembly
from actors.adapters.base import AnswerReader
from actors.adapters.failure import broken
from actors.adapters.wire import Fields, fields, items, number, string
from actors.core.content import Media
from actors.core.dialect import Dialect
from actors.core.jsonio import JsonValue, dump, sanitised
from actors.core.projection import REASONING_ID, flat_name
from actors.core.stream import Usage

_OWN = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "mcp_list_tools"}
)
"""Items of the provider's own tools that go back, without their id as all others."""
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_WORDS = ("output_text", "refusal", None)
_PHASES = ("commentary", "final_answer")
_OF_EVENT = {
    "response.output_text": "message",
    "response.refusal": "message",
    "response.content_part": "message",
    "response.function_call_arguments": "function_call",
    "response.custom_tool_call_input": "custom_tool_call",
    "response.reasoning_summary_part": "reasoning",
    "response.reasoning_summary_text": "reasoning",
    "response.reasoning_text": "reasoning",
}
"""The kind of item an event is about, where the item itself was never announced."""


@dataclass(slots=True)
class _Item:
    """An item that is arriving.

    Args:
        kind: Its type.
        part: What it becomes.
        phase: Where a message's phase is sealed.
        place: The part of a reasoning item that the last words were of.
    """

    kind: str
    part: Part
    phase: Words | None = None
    place: tuple[str, int | None] | None = None


_Place: TypeAlias = tuple[str, int | None]


@dataclass(slots=True)
class _Items:
    """The items so far, under each name an event may give them."""

    by_id: dict[str, _Item] = field(default_factory=dict)
    by_index: dict[int, _Item] = field(default_factory=dict)
    latest: dict[str, _Item] = field(default_factory=dict)

    def find(self, kind: str, item_id: str, index: int | None) -> _Item | None:
        if not item_id and index is None:
            return self.latest.get(kind)
        found = self.by_id.get(item_id) if item_id else None
        return self.by_index.get(index) if found is None and index is not None else found

    def name(self, item: _Item, item_id: str, index: int | None) -> None:
        if item_id:
            self.by_id[item_id] = item
        if index is not None:
            self.by_index[index] = item
        self.latest[item.kind] = item


class ResponsesReader(AnswerReader):
    """Reads events, and a whole body as items that come at once."""

    def __init__(self, assembly: Assembly, dialect: Dialect) -> None:
        super().__init__(assembly, dialect)
        self._items = _Items()
        self._events: dict[str, Callable[[Fields], None]] = {
            "response.output_item.added": self._added,
            "response.output_item.done": self._done,
            "response.output_text.delta": self._text_delta,
            "response.output_text.done": self._text_done,
            "response.refusal.delta": self._text_delta,
            "response.refusal.done": self._text_done,
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.function_call_arguments.done": self._arguments_done,
            "response.custom_tool_call_input.delta": self._arguments_delta,
            "response.custom_tool_call_input.done": self._arguments_done,
            "response.reasoning_summary_text.delta": self._thought_delta,
            "response.reasoning_text.delta": self._thought_delta,
            "response.completed": self._response_ended,
            "response.incomplete": self._response_ended,
            "response.failed": self._response_ended,
            "response.cancelled": self._response_ended,
            "error": self.report,
        }

    def event(self, name: str, payload: Fields) -> None:
        kind = string(payload.get("type")) or name
        read = self._events.get(kind)
        if read is not None:
            read({**payload, "type": kind})
        elif not kind.startswith("response.") and payload.get("error"):
            self.report(payload)

    def body(self, body: Fields) -> None:
        if body.get("error"):
            self.report(body)
        if not isinstance(body.get("output"), list):
            raise broken("the body holds no response")
        self._end(body)

    # --- the response -------------------------------------------------------------------------------

    def _response_ended(self, payload: Fields) -> None:
        response = fields(payload.get("response"))
        told = string(payload.get("type")).removeprefix("response.")
        self._end({**response, "status": string(response.get("status")) or told})

    def _end(self, response: Fields) -> None:
        status = string(response.get("status")) or "completed"
        self._usage(response.get("usage"))
        self.assembly.report_withheld(response.get("input_transformations"))
        if status == "failed" or response.get("error"):
            self.report({"error": response.get("error") or {"message": "the response failed"}})
        if status not in ("completed", "incomplete"):
            raise broken(f"the response ended with status {sanitised(status)[:40]!r}")
        if not self._items.latest:  # else the stream has told them, and relays number them otherwise here
            for index, item in enumerate(items(response.get("output"))):
                self._whole(fields(item), index)
        if status == "incomplete":
            self.assembly.drop_unfinished_calls()
        reason = string(fields(response.get("incomplete_details")).get("reason"))
        self.assembly.finish(reason or status)
        self.assembly.end_all()
        self.ended = True

    def _usage(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        cached = fields(usage.get("input_tokens_details"))
        self.assembly.report_usage(
            Usage(
                number(usage.get("input_tokens")) or 0,
                number(usage.get("output_tokens")) or 0,
                number(cached.get("cached_tokens")) or 0,
                number(cached.get("cache_write_tokens")) or 0,
            )
        )

    # --- items --------------------------------------------------------------------------------------

    def _added(self, payload: Fields) -> None:
        told = fields(payload.get("item"))
        self._begin(told, number(payload.get("output_index")))

    def _done(self, payload: Fields) -> None:
        self._whole(fields(payload.get("item")), number(payload.get("output_index")))

    def _of(self, payload: Fields) -> _Item:
        """Return the item an event is about; begin one that was never announced."""
        kind = _OF_EVENT[string(payload.get("type")).rpartition(".")[0]]
        item_id, index = string(payload.get("item_id")), number(payload.get("output_index"))
        found = self._items.find(kind, item_id, index)
        if found is not None:
            return found
        return self._begin({"type": kind, "id": item_id, "name": payload.get("name")}, index)

    def _begin(self, told: Fields, index: int | None) -> _Item:
        kind = string(told.get("type"))
        if kind == "message":
            phase = self.assembly.words("thinking")
            item = _Item(kind, self.assembly.words("text"), phase)
            self._seal_phase(item, told)
        elif kind == "reasoning":
            item = _Item(kind, self.assembly.words("thinking"))
        elif kind in _CALLS:
            call = self.assembly.call(string(told.get("call_id")), _name_of(told))
            call.free, call.namespace = kind == "custom_tool_call", sanitised(string(told.get("namespace")))
            item = _Item(kind, call)
        else:
            item = _Item(kind, self.assembly.native(kind, None, goes_back=kind in _OWN))
        self._items.name(item, string(told.get("id")), index)
        return item

    def _whole(self, told: Fields, index: int | None) -> None:
        """Take a whole item, whatever was told of it before."""
        kind = string(told.get("type"))
        item = self._items.find(kind, string(told.get("id")), index)
        if item is None or item.kind != kind:
            item = self._begin(told, index)
        part = item.part
        match part:
            case Words(kind="text"):
                self._seal_phase(item, told)
                self.assembly.complete(part, _text_of(told))
                self._beside(told)
            case Words():
                self.assembly.complete(part, _thought_of(told))
                self.assembly.seal(part, "reasoning_item", _again(told))
            case ArrivingCall():
                self.assembly.identify(part, string(told.get("call_id")), _name_of(told))
                self.assembly.settle(part, string(told.get(_CALLS[item.kind])))
            case Own():
                _take_item(part, told)
        if isinstance(part, ArrivingCall):
            part.told = kind == "custom_tool_call" and told.get("status") == "completed"
        if isinstance(part, ArrivingCall) and told.get("status") in ("incomplete", "in_progress"):
            part.done = False
        else:
            self.assembly.end(part)

    def _beside(self, message: Fields) -> None:
        """Take what the parts of a message hold beside their words."""
        for part in map(fields, items(message.get("content"))):
            if part.get("type") not in _WORDS:
                self.assembly.mark(string(part.get("type")), [dict(part)])
            self.assembly.mark("annotations", part.get("annotations"))
            self.assembly.leave_out_once("logprobs", part.get("logprobs"))

    def _seal_phase(self, item: _Item, told: Fields) -> None:
        phase = told.get("phase")
        if item.phase is not None and isinstance(phase, str) and phase in _PHASES:
            self.assembly.seal(item.phase, "phase", phase)
            self.assembly.end(item.phase)

    # --- deltas -------------------------------------------------------------------------------------

    def _text_delta(self, payload: Fields) -> None:
        part = self._of(payload).part
        if isinstance(part, Words) and part.kind == "text":
            self.assembly.say(part, string(payload.get("delta")))

    def _text_done(self, payload: Fields) -> None:
        part = self._of(payload).part
        if isinstance(part, Words) and part.kind == "text" and not part.pieces.size:
            self.assembly.say(part, string(payload.get("text")) or string(payload.get("refusal")))

    def _arguments_delta(self, payload: Fields) -> None:
        part = self._of(payload).part
        if isinstance(part, ArrivingCall):
            self.assembly.argue(part, string(payload.get("delta")))

    def _arguments_done(self, payload: Fields) -> None:
        part = self._of(payload).part
        if isinstance(part, ArrivingCall):
            self.assembly.identify(part, "", string(payload.get("name")))
            self.assembly.settle(part, string(payload.get("arguments")) or string(payload.get("input")))
            self.assembly.end(part)

    def _thought_delta(self, payload: Fields) -> None:
        item = self._of(payload)
        if not isinstance(item.part, Words) or item.part.kind != "thinking":
            return
        kind = string(payload.get("type"))
        place: _Place = kind, number(payload.get("summary_index", payload.get("content_index")))
        if item.place not in (None, place) and item.part.pieces.size:
            self.assembly.say(item.part, "\n\n")
        item.place = place
        self.assembly.say(item.part, string(payload.get("delta")))


def _take_item(own: Own, item: Fields) -> None:
    """Take a whole item of the provider's own. A generated image is a medium; of the others the id stays behind."""
    if item.get("type") == "image_generation_call" and (data := string(item.get("result"))):
        own.value = Media(f"image/{sanitised(string(item.get('output_format')) or 'png')}", sanitised(data))
        return
    own.value = {key: value for key, value in item.items() if key != "id"}
    if item.get("status") in ("incomplete", "in_progress"):
        own.kind = "unknown"


def _name_of(call: Fields) -> str:
    """Return a tool's name, that of its namespace in front of it."""
    return flat_name(string(call.get("namespace")), string(call.get("name")))


def _text_of(item: Fields) -> str:
    """Return the words of a message item, refusals too: they are what the model said."""
    parts = map(fields, items(item.get("content")))
    return "".join(string(part.get("text")) or string(part.get("refusal")) for part in parts)


def _thought_of(item: Fields) -> str:
    parts = map(fields, (*items(item.get("summary")), *items(item.get("content"))))
    return "\n\n".join(text for part in parts if (text := string(part.get("text"))))


def _again(item: Fields) -> str:
    """Return a reasoning item as it may be sent again, empty if it may not: by id alone it is not found (OAR-05).

    Relays leave the id out or make one up that is none. The item goes back without one in any case (OAR-03).
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
