"""OpenAI Responses: an answer's bytes in, canonical events and a message out.

An answer is a list of items: messages, reasoning, calls. A stream tells each item as `output_item.added`, deltas and
`output_item.done`, and ends with one of `response.completed`, `response.incomplete` and `response.failed`. A delta
belongs to the item of its `item_id`; relays rewrite those, so an unknown one goes by its `output_index`, and one with
neither to the latest item of its kind. What `output_item.done` says is the whole item and has the last word: a relay
may send nothing else, and encrypted content may be a part of it before. A call that the provider does not call
finished is no call: cut arguments may read as good ones.

A reasoning item that can be sent again is sealed as the JSON text of the item, with nothing in it but what the
API takes back. The phase of a message is sealed beside it (`Thinking("", Seal("phase", ...))` in front of its text),
and so is the id of an item (`"item"`) where items go back with theirs.
"""

from dataclasses import dataclass
from typing import TypeAlias

from actors.adapters.arriving import ArrivingCall, Own, Part, Words
from actors.adapters.base import Decoder
from actors.adapters.failure import broken
from actors.adapters.wire import Fields, fields, items, number, string
from actors.core.content import Media
from actors.core.dialect import ResponsesReasoning
from actors.core.jsonio import JsonValue, dump, sanitised
from actors.core.projection import REASONING_ID, flat_name

_OWN = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "mcp_list_tools"}
)
"""Items of the provider's own tools that go back, without their id in any case."""
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
"""The kind of item that a delta is a piece of, and `done` the whole."""
_Place: TypeAlias = tuple[str, int | None]


@dataclass(slots=True)
class _Item:
    """An item that is arriving, and the part it becomes."""

    kind: str
    part: Part
    phase: Words | None = None  # where a message's phase is sealed
    named: Words | None = None  # where its id is, if it is to go back
    place: _Place | None = None  # the part of a reasoning item that the last words were of


class ResponsesDecoder(Decoder):
    """Reads events, and a whole body as items that come at once."""

    def begin(self) -> None:
        super().begin()
        self._by_id: dict[str, _Item] = {}
        self._by_index: dict[int | None, _Item] = {}
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
            self._begin(fields(payload.get("item")), number(payload.get("output_index")))
        elif what == "output_item" and step == "done":
            self._whole(fields(payload.get("item")), number(payload.get("output_index")))
        elif not what and step in _ENDS:
            self._end_response(fields(payload.get("response")), step)

    def body(self, body: Fields) -> None:
        if body.get("error"):
            self.report(body)
        if not isinstance(body.get("output"), list):
            raise broken("the body holds no response")
        self._end_response(body, "completed")

    def _end_response(self, response: Fields, told: str) -> None:
        status = string(response.get("status")) or told
        usage = fields(response.get("usage"))
        self.count({**usage, **fields(usage.get("input_tokens_details"))}, _FIGURES)
        self.report_withheld(response.get("input_transformations"))
        if status == "failed" or response.get("error"):
            self.report({"error": response.get("error") or {"message": "the response failed"}})
        if status not in ("completed", "incomplete"):
            raise broken(f"the response ended with status {sanitised(status)[:40]!r}")
        if not self._latest:  # else the stream has told them, and relays number them otherwise here
            for index, item in enumerate(items(response.get("output"))):
                self._whole(fields(item), index)
        if status == "incomplete":
            self.drop_unfinished_calls()
        self.finish(string(fields(response.get("incomplete_details")).get("reason")) or status)
        self.end_all()
        self.ended = True

    def _find(self, kind: str, item_id: str, index: int | None) -> _Item | None:
        if not item_id and index is None:
            return self._latest.get(kind)
        return self._by_id.get(item_id) or self._by_index.get(index)

    def _begin(self, told: Fields, index: int | None) -> _Item:
        kind, item_id = string(told.get("type")), string(told.get("id"))
        named = self.words("thinking") if self._keeps_ids and kind in _NAMED else None
        if kind == "message":
            phase = self.words("thinking")
            item = _Item(kind, self.words("text"), phase)
            self._seal_phase(item, told)
        elif kind == "reasoning":
            item = _Item(kind, self.words("thinking"))
        elif kind in _CALLS:
            call = self.call(string(told.get("call_id")), _name_of(told))
            call.free, call.namespace = kind == "custom_tool_call", sanitised(string(told.get("namespace")))
            item = _Item(kind, call)
        else:
            item = _Item(kind, self.native(kind, None, goes_back=kind in _OWN))
        item.named = named
        self._latest[kind] = item
        if item_id:
            self._by_id[item_id] = item
        if index is not None:
            self._by_index[index] = item
        return item

    def _whole(self, told: Fields, index: int | None) -> None:
        """Take a whole item, whatever was told of it before."""
        kind = string(told.get("type"))
        item = self._find(kind, string(told.get("id")), index)
        if item is None or item.kind != kind:
            item = self._begin(told, index)
        if item.named is not None:
            self.seal(item.named, "item", string(told.get("id")))
            self.end(item.named)
        match part := item.part:
            case Words(kind="text"):
                self._seal_phase(item, told)
                self.complete(part, _text_of(told))
                self._beside(told)
            case Words():
                self.complete(part, _thought_of(told))
                self.seal(part, "reasoning_item", _again(told))
            case ArrivingCall():
                self.identify(part, string(told.get("call_id")), _name_of(told))
                self.complete(part, string(told.get(_CALLS[item.kind])))
                part.told = kind == "custom_tool_call" and told.get("status") == "completed"
            case Own():
                _take_item(part, told)
        if isinstance(part, ArrivingCall) and told.get("status") in ("incomplete", "in_progress"):
            part.done = False
        else:
            self.end(part)

    def _beside(self, message: Fields) -> None:
        """Take what the parts of a message hold beside their words."""
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
        """Take a delta of an item, or its `done`; begin an item that was never announced."""
        kind, item_id = _OF_EVENT[what], string(payload.get("item_id"))
        index = number(payload.get("output_index"))
        item = self._find(kind, item_id, index)
        if item is None:
            item = self._begin({"type": kind, "id": item_id, "name": payload.get("name")}, index)
        delta = string(payload.get("delta"))
        match kind, step, item.part:
            case "message", "delta", Words(kind="text") as words:
                self.say(words, delta)
            case "message", "done", Words(kind="text") as words if not words.pieces.size:
                self.say(words, string(payload.get("text")) or string(payload.get("refusal")))
            case "reasoning", "delta", Words(kind="thinking") as words:
                place = what, number(payload.get("summary_index", payload.get("content_index")))
                if item.place not in (None, place) and words.pieces.size:
                    self.say(words, "\n\n")
                item.place = place
                self.say(words, delta)
            case _, "delta", ArrivingCall() as call if kind in _CALLS:
                self.argue(call, delta)
            case _, "done", ArrivingCall() as call if kind in _CALLS:
                self.identify(call, "", string(payload.get("name")))
                self.complete(call, string(payload.get("arguments")) or string(payload.get("input")))
                self.end(call)


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

    Relays leave the id out or make one up that is none. It goes back only if what follows has one too (OAR-03).
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
