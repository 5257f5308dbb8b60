"""Settle: every call under an id of its own, every result to its call, and what finds none into words.

In:  attributed messages, whose ids may be empty, repeated or a provider's.
Out: the messages of the human and the model, and what became of each call.

A result answers the nearest earlier unanswered call of its id (`pairing`). Ids that are empty pair by place: the
results directly behind a message with its calls, where there are as many of one as of the other. Of several results
the first that is one stands (REQ-915-048); what is the same again is dropped, what differs is kept as a duplicate. A
result whose call nobody made is never guessed into a pair and never lost: the ledger's word for the call restores it,
else it is told ahead of the next human message.
"""

from collections.abc import Iterable
from itertools import takewhile
from sys import intern

from actors.core.content import Block, Media, Message, Text, ToolCall, ToolResult
from actors.core.door.attribute import Placed, attributed
from actors.core.door.pairing import Unanswered
from actors.core.events import Interaction
from actors.core.form import replace
from actors.core.identity import RUNTIME, CallId, mint
from actors.core.intake import Remarks
from actors.core.jsonio import MAX_DEPTH, Json, parse_object, sanitised, unquote
from actors.core.ledger import Ledger, closed


class Settling:
    """Messages being settled, oldest first.

    The ledger knows calls that the messages no longer hold. `minted`: ids are a provider's, so each call gets ours.
    """

    def __init__(self, ledger: Ledger, remarks: Remarks, *, minted: bool) -> None:
        self.remarks = remarks
        self._ledger = ledger
        self._minted = minted
        self._said: list[Message] = []
        self._known: dict[CallId, Interaction] = {}
        self._coming: set[CallId] = set()
        self._early: dict[CallId, list[tuple[str, ToolResult]]] = {}
        self._open = Unanswered()
        self._latest: dict[CallId, CallId] = {}
        self._waiting: list[Text | Media] = []
        self._told: set[Block] = set()

    def remember(self, before: Iterable[Message], known: Ledger) -> None:
        """Take up the calls of the messages that stand before, and the orphans told there."""
        for message in before:
            self._open.next_message()
            if message.origin == RUNTIME:
                self._told.update(message.blocks)
            for call in message.calls:
                seen = self._known[call.id] = closed(known.get(call.id) or _lost(call))
                first = CallId(call.id.rpartition("~")[0])
                original = first if first in self._known else call.id
                self._latest[original] = call.id
                if seen.end is None:
                    self._open.add(original, call.id)

    def settled(self, pieces: Iterable[Placed]) -> list[Message]:
        placed = list(attributed(pieces, self.remarks))
        if not self._minted:
            self._coming = {CallId(sanitised(call.id)) for _, message in placed for call in message.calls}
        for number, (place, message) in enumerate(placed):
            if message.speaker == "tool":
                for result in message.results:
                    self._result(result, place)
                continue
            if message.speaker == "human":
                self._announce()
            elif calls := message.calls:
                unnamed = sum(not call.id for call in calls)
                behind = placed[number + 1 :] if unnamed else []
                results = takewhile(lambda piece: piece[1].speaker == "tool", behind)
                in_step = unnamed == sum(not each.call_id for _, m in results for each in m.results)
                message = self._called(message, by_place=bool(unnamed) and in_step)
            self._said.append(message)
        self._announce()
        return self._said

    def ledger(self, known: Ledger) -> Ledger:
        """Return what was known, with what the blocks say of each call, in order of appearance."""
        return Ledger([*known.interactions(), *self._known.values()])

    def _called(self, message: Message, *, by_place: bool) -> Message:
        self._open.next_message()
        blocks = [
            self._call(block, by_place) if type(block) is ToolCall else block for block in message.blocks
        ]
        if all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
            return message
        return Message(message.speaker, blocks, message.turn, message.origin)

    def _call(self, call: ToolCall, by_place: bool) -> ToolCall:
        original = CallId(sanitised(call.id))  # lone surrogates have no bytes
        name = self._name(original)
        if original or by_place:
            self._open.add(original, name)
        if original:
            self._latest[original] = name
        if name != original and not self._minted:
            self.remarks.found("repeated_id", original)
        if name != call.id:
            call = replace(call, id=name)
        if not self._minted:  # what a provider's call was given is an object since it was read
            call = self._canonical(call)
        self._known[name] = _lost(call)
        for place, result in self._early.pop(name, ()):
            self._answer(name, result, place)
        return call

    def _name(self, original: CallId) -> CallId:
        """Return the id of a call: the next of ours; or its own, numbered where that is empty or was given before."""
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
        self.remarks.found("malformed_arguments", call.id)
        return replace(call, raw=text if call.raw is None else call.raw, json=Json(b"{}"))

    def _result(self, result: ToolResult, place: str) -> None:
        original = CallId(sanitised(result.call_id))
        name = self._open.take(original) or self._latest.get(original)
        if name is not None:
            self._answer(name, result, place)
        elif original and original in self._coming:
            self._early.setdefault(original, []).append((place, result))
        elif result.status != "pending":
            self._orphan(original, result, place)

    def _answer(self, name: CallId, result: ToolResult, place: str) -> None:
        known, kept = self._known[name], replace(result, call_id=name)
        if result.status == "pending":
            if result.is_complete is False and known.end is None:
                # It was running when the messages were taken.
                self._known[name] = replace(known, started=True, cancelled="outcome_unknown")
        elif (first := known.completion) is None:
            self._known[name] = replace(known, started=True, end=kept, cancelled=None)
        else:
            again = _completing(kept) in map(_completing, (first, *known.duplicates))
            self.remarks.dedupe.append((name, "duplicate" if again else "conflicting_duplicate"))
            self.remarks.add(place, "another result for call %s kept as a duplicate", _named(result.call_id))
            if not again:
                self._known[name] = replace(known, duplicates=(*known.duplicates, kept))

    def _orphan(self, call_id: CallId, result: ToolResult, place: str) -> None:
        known = self._ledger.get(call_id) if call_id else None  # an empty id names nothing
        if known is not None and known.late is not None:
            # Its call was compacted away, and the ledger tells it.
            self.remarks.dedupe.append((call_id, "late"))
        elif known is not None and known.tool is not None:
            self.remarks.found("restored_call", call_id)
            call = ToolCall(call_id, known.tool, json=known.arguments or Json(b"{}"))
            self._said.append(self._called(Message("model", (call,)), by_place=False))
            self._open.take(call_id)
            self._answer(self._latest[call_id], result, place)
        else:
            self._tell(call_id, result, place)

    def _tell(self, call_id: CallId, result: ToolResult, place: str) -> None:
        """Turn a result whose call nobody knows into words, once."""
        self.remarks.found("orphan_result", call_id)
        what = "result for unknown call %s" if call_id else "result without a call id"
        about = (_named(call_id),) if call_id else ()
        failed = ", which failed" if result.status == "error" else ""
        words = Text(f"[A tool result without its call{failed}: {unquote(result.rendered_json)}]")
        told: tuple[Text | Media, ...] = (words, *result.media)
        if self._told.issuperset(told):
            self.remarks.dedupe.append((call_id, "duplicate"))
            self.remarks.add(place, f"{what} left out: it is there already", *about)
            return
        self.remarks.add(place, f"{what} kept as text", *about)
        self._told.update(told)
        self._waiting += told

    def _announce(self) -> None:
        """Tell what waits for the next human message, ahead of it."""
        if self._waiting:
            self._said.append(Message("human", tuple(self._waiting), origin=RUNTIME))
            self._waiting.clear()


def _lost(call: ToolCall) -> Interaction:
    return Interaction(call.id, intern(call.name), call.json, cancelled="lost")


def _named(call_id: str) -> str:
    """Return an id as a note has it: what pairs by name begins with a NUL."""
    return repr(call_id.removeprefix("\0"))[:80]


def _completing(result: ToolResult) -> tuple[object, ...]:
    """Return what a result completes its call with, whatever its source said of it besides."""
    return result.content_json, result.error_json, result.media
