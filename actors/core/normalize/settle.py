"""Give every call a unique id and every result its call; results without a call become text.

In:  attributed messages; their ids may be empty, repeated or a provider's.
Out: the user and assistant messages, and a record of each call.

`pairing` chooses the call that a result answers. The first of several results counts (REQ-915-048); an equal one is
dropped, and a different one is kept as a duplicate. A result whose call is missing or not certain is never lost: if
the ledger knows the call, the call is restored, else the result becomes a note (labelled text) before the next user
message.
"""

from collections.abc import Iterable, Iterator
from sys import intern

from actors.core.data.jsonio import MAX_DEPTH, Json, parse_object, quote, sanitise, unquote
from actors.core.data.record import replace
from actors.core.ledger import Ledger, closed_record
from actors.core.log.call_events import ToolCallRecord, result_of
from actors.core.normalize.attribute import Placed, attribute
from actors.core.normalize.pairing import CallPlace, ResultPlace, pair
from actors.core.values.content import Block, Media, Message, Text, ToolCall, ToolResult
from actors.core.values.identity import RUNTIME, CallId, mint, split_key
from actors.core.values.intake import ReportBuilder


class Normalizer:
    """The normalization of a list of messages, oldest first.

    `ledger` knows calls that the messages no longer contain. `minted` says that ids are a provider's, so each call
    gets a canonical id.
    """

    def __init__(self, ledger: Ledger, remarks: ReportBuilder, *, minted: bool) -> None:
        self.remarks = remarks
        self._ledger = ledger
        self._minted = minted
        self._said: list[Message] = []
        self._known: dict[CallId, ToolCallRecord] = {}
        self._calls: list[CallPlace] = []  # those of the preceding messages, then those to settle
        self._results: list[ResultPlace] = []
        self._names: list[CallId] = []  # canonical ids, by position in `_calls`
        self._ids: set[str] = set()
        self._about: Iterator[int | None] = iter(())
        self._count = 0  # of messages
        self._behind = -1  # the number of the message that the next results directly follow
        self._completions: dict[CallId, set[tuple[object, ...]]] = {}  # of calls with several results
        self._early: dict[int, list[tuple[str, ToolResult]]] = {}
        self._latest: dict[CallId, CallId] = {}
        self._restored: dict[CallId, CallId] = {}
        self._waiting: list[Text | Media] = []
        self._told: set[Block] = set()

    def remember(self, before: Iterable[Message], known: Ledger) -> None:
        """Register the calls of the preceding messages, and the notes in them."""
        for message in before:
            self._behind = self._count
            if message.origin == RUNTIME:
                self._told.update(message.blocks)
            for call in message.calls:
                seen = self._known[call.id] = closed_record(known.get(call.id) or _lost_record(call))
                first = CallId(call.id.rpartition("~")[0])
                original = first if first in self._known else call.id
                self._latest[original] = call.id
                self._names.append(call.id)
                self._calls.append(CallPlace(original, call.name, self._count, _completions(seen)))
            self._count += 1

    def run(self, pieces: Iterable[Placed]) -> list[Message]:
        placed = list(attribute(pieces, self.remarks))
        self._survey(message for _, message in placed)
        for place, message in placed:
            if message.role == "tool":
                for result in message.results:
                    self._result(result, place)
                continue
            if message.role == "user":
                self._announce()
            self._said.append(self._settle_calls(message) if message.calls else message)
        self._announce()
        return self._said

    def _survey(self, messages: Iterable[Message]) -> None:
        """Choose the call of each result, before anything is changed."""
        for message in messages:
            if message.role != "tool":
                self._behind = self._count
            for call in message.calls:
                self._calls.append(CallPlace(sanitise(call.id), call.name, self._count))
            for result in message.results:
                if result.status != "pending":
                    key, tool = self._key(result)
                    says = _completion_fields(result)
                    self._results.append(ResultPlace(key, tool, says, self._count, self._behind))
            self._count += 1
        self._ids = {call.id for call in self._calls}
        self._about = iter(pair(self._calls, self._results, early=not self._minted))

    def _key(self, result: ToolResult) -> tuple[CallId, str]:
        """Return a result's call id and its tool name ("" if the transcript did not name the tool).

        `result_key` joined the id and the name on import.
        """
        if not self._minted:
            return CallId(sanitise(result.call_id)), ""
        return split_key(result.call_id)

    def ledger(self, known: Ledger) -> Ledger:
        """Return `known` with a record of each call in the messages, in order of appearance."""
        return Ledger([*known.interactions(), *self._known.values()])

    def _settle_calls(self, message: Message) -> Message:
        blocks = [self._settle_call(block) if type(block) is ToolCall else block for block in message.blocks]
        if all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
            return message
        return Message(message.role, blocks, message.turn, message.origin)

    def _settle_call(self, call: ToolCall) -> ToolCall:
        """Settle a call that results may be paired with, including results that preceded it."""
        call, position = self._call(call), len(self._names)
        self._names.append(call.id)
        for place, result in self._early.pop(position, ()):
            self._answer(call.id, result, place)
        return call

    def _call(self, call: ToolCall) -> ToolCall:
        original = CallId(sanitise(call.id))  # lone surrogates have no bytes
        name = self._name(original)
        if original:
            self._latest[original] = name
        if name != original and not self._minted:
            self.remarks.add_finding("repeated_id", original)
        if name != call.id:
            call = replace(call, id=name)
        if not self._minted:  # decoding a provider's call already made its arguments an object
            call = self._canonical(call)
        self._known[name] = _lost_record(call)
        return call

    def _name(self, original: CallId) -> CallId:
        """Return a call's new id: the next canonical one; or its own, numbered if that is empty or used."""
        if self._minted:
            return mint(len(self._known) + 1)
        name, count = original, 1 if original else 0
        while not name or name in self._known:
            count += 1
            name = CallId(f"{original}~{count}")
        return name

    def _canonical(self, call: ToolCall) -> ToolCall:
        text, size = call.json.decode("utf-8", "replace"), len(call.json)
        if text.startswith("{") and parse_object(text, max_bytes=size, max_depth=MAX_DEPTH) is not None:
            return call
        self.remarks.add_finding("malformed_arguments", call.id)
        raw = quote(text) if call.raw_json is None else call.raw_json
        return replace(call, raw_json=raw, json=Json(b"{}"), is_free=False)

    def _result(self, result: ToolResult, place: str) -> None:
        key, tool = self._key(result)
        if result.status == "pending":
            self._note_pending(key, result)
            return
        position = next(self._about)
        if position is None:
            self._orphan(key, tool, result, place)
        elif position < len(self._names):
            self._answer(self._names[position], result, place)
        else:
            self._early.setdefault(position, []).append((place, result))

    def _note_pending(self, key: CallId, result: ToolResult) -> None:
        """Record a call that was running when the messages were exported."""
        name = self._latest.get(key)
        if name is not None and result.is_complete is False and self._known[name].end is None:
            self._known[name] = replace(self._known[name], started=True, cancelled="outcome_unknown")

    def _answer(self, name: CallId, result: ToolResult, place: str) -> None:
        key, tool = self._key(result)
        known, kept = self._known[name], replace(result, call_id=name)
        if known.completion is None:
            self._known[name] = replace(known, started=True, end=kept, cancelled=None)
        else:
            said = self._completions.setdefault(name, set(_completions(known)))
            again = _completion_fields(kept) in said
            said.add(_completion_fields(kept))
            self.remarks.dedupe.append((name, "duplicate" if again else "conflicting_duplicate"))
            self.remarks.add(place, "another result for call %s kept as a duplicate", _quote(key or tool))
            if not again:
                self._known[name] = replace(known, duplicates=(*known.duplicates, kept))

    def _orphan(self, key: CallId, tool: str, result: ToolResult, place: str) -> None:
        """Settle a result whose call is missing or not certain."""
        known = self._ledger.get(key) if key else None  # an empty id names nothing
        if known is not None and known.late is not None:
            # A compaction removed the call, and rendering takes the late result from the ledger.
            self.remarks.dedupe.append((key, "late"))
        elif (name := self._restored.get(key)) is not None:
            self._answer(name, result, place)
        elif known is not None and known.tool is not None and key not in self._ids:
            self.remarks.add_finding("restored_call", key)
            call = self._call(ToolCall(key, known.tool, json=known.arguments or Json(b"{}")))
            self._restored[key] = call.id
            self._said.append(Message("assistant", (call,)))
            self._answer(call.id, result, place)
        else:
            self._tell(key, tool, result, place)

    def _tell(self, key: CallId, tool: str, result: ToolResult, place: str) -> None:
        """Turn a result whose call is unknown into a note, once."""
        self.remarks.add_finding("orphan_result", key)
        what, about = _describe(key, tool, is_known=key in self._ids)
        failed = ", which failed" if result.status == "error" else ""
        words = Text(f"[A tool result without its call{failed}: {unquote(result.rendered_json)}]")
        told: tuple[Text | Media, ...] = (words, *result.media)
        if self._told.issuperset(told):
            self.remarks.dedupe.append((key, "duplicate"))
            self.remarks.add(place, f"{what} left out: it is there already", *about)
            return
        self.remarks.add(place, f"{what} kept as text", *about)
        self._told.update(told)
        self._waiting += told

    def _announce(self) -> None:
        """Append the waiting notes as a message before the next user message."""
        if self._waiting:
            self._said.append(Message("user", tuple(self._waiting), origin=RUNTIME))
            self._waiting.clear()


def _lost_record(call: ToolCall) -> ToolCallRecord:
    return ToolCallRecord(call.id, intern(call.name), call.json, cancelled="lost")


def _describe(key: str, tool: str, *, is_known: bool) -> tuple[str, tuple[str, ...]]:
    """Return the report line for a result without its call, and the values in it."""
    if key and is_known:
        return "result of id %s, without a certain call,", (_quote(key),)
    if key or tool:
        return "result for unknown call %s", (_quote(key or tool),)
    return "result without a call id", ()


def _quote(text: str) -> str:
    return repr(text)[:80]


def _completion_fields(result: ToolResult) -> tuple[object, ...]:
    """Return the fields of a result that distinguish completions; the source's own flags are ignored."""
    return result.content_json, result.error_json, result.media


def _completions(known: ToolCallRecord) -> tuple[tuple[object, ...], ...]:
    """Return all completions of a call so far, duplicates included."""
    first = () if known.end is None else (result_of(known.end),)
    return tuple(map(_completion_fields, (*first, *known.duplicates)))
