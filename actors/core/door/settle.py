"""Settle: every call under an id of its own, every result to its call, and what finds none into words.

In:  attributed messages, whose ids may be empty, repeated or a provider's.
Out: the messages of the human and the model, and what became of each call.

A result answers the nearest earlier unanswered call of its id (`pairing`). Ids that are empty pair by place: the
results directly behind a message with its calls, where there are as many of one as of the other. Of several results
the first that is one stands (REQ-915-048); what is the same again is dropped, what differs is kept as a duplicate. A
result whose call nobody made is never guessed into a pair and never lost: the ledger's word for the call restores it,
else it is told ahead of the next human message.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from sys import intern

from actors.core.content import Block, Media, Message, Text, ToolCall, ToolResult
from actors.core.diagnostics import Notes
from actors.core.door.attribute import Placed
from actors.core.door.pairing import Unanswered
from actors.core.events import Interaction, Reason
from actors.core.form import replace
from actors.core.identity import RUNTIME, CallId, mint
from actors.core.jsonio import MAX_DEPTH, Json, parse_object, sanitised, unquote
from actors.core.ledger import Ledger


@dataclass(slots=True)
class _Known:
    """What the blocks say of one call, and why it has no result where it has none."""

    call: ToolCall
    results: list[ToolResult] = field(default_factory=list)
    missing: Reason = "lost"


class Settling:
    """Messages being settled, oldest first.

    Args:
        ledger: Knows calls that the messages do not hold any more.
        notes: Receives what was found and what was dropped.
        minted: Whether ids are a provider's, so that each call gets one of ours.
    """

    def __init__(self, ledger: Ledger, notes: Notes, *, minted: bool) -> None:
        self._ledger = ledger
        self._notes = notes
        self._minted = minted
        self._said: list[Message] = []
        self._known: dict[CallId, _Known] = {}
        self._taken: set[CallId] = set()
        self._coming: set[CallId] = set()
        self._early: dict[CallId, list[tuple[str, ToolResult]]] = {}
        self._open: Unanswered[CallId, CallId] = Unanswered()
        self._latest: dict[CallId, CallId] = {}
        self._by_place: deque[CallId] = deque()
        self._waiting: list[Text | Media] = []
        self._told: set[Block] = set()

    def remember(self, before: Iterable[Message], known: Ledger) -> None:
        """Take up the calls of the messages that stand before, and the orphans told there."""
        for message in before:
            self._open.next_message()
            if message.origin == RUNTIME:
                self._told.update(message.blocks)
            for call in message.calls:
                self._taken.add(call.id)
                seen = known.get(call.id)
                told = () if seen is None or seen.completion is None else (seen.completion, *seen.duplicates)
                self._known[call.id] = _Known(call, list(told), _missing(seen))
                first = CallId(call.id.rpartition("~")[0])
                original = first if first in self._taken else call.id
                self._latest[original] = call.id
                if not told:
                    self._open.add(original, call.id)

    def settled(self, pieces: Iterable[Placed]) -> list[Message]:
        """Return the normal messages."""
        placed = list(pieces)
        if not self._minted:
            self._coming = {_whole(call.id) for _, message in placed for call in message.calls}
        for number, (place, message) in enumerate(placed):
            if message.speaker == "tool":
                for result in message.results:
                    self._result(result, place)
                continue
            self._by_place.clear()
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

    def interactions(self) -> list[Interaction]:
        """Return what the blocks say of each call, in order of appearance.

        A call without a result is lost; of one that was running when the messages were taken, the outcome is unknown.
        """
        return [
            Interaction(
                call_id,
                intern(known.call.name),
                known.call.json,
                started=bool(known.results) or known.missing == "outcome_unknown",
                end=known.results[0] if known.results else None,
                cancelled=None if known.results else known.missing,
                duplicates=tuple(known.results[1:]),
            )
            for call_id, known in self._known.items()
        ]

    # ---- calls

    def _called(self, message: Message, *, by_place: bool) -> Message:
        """Return a model's message with its calls under ids of their own."""
        self._open.next_message()
        blocks = [
            self._call(block, by_place) if type(block) is ToolCall else block for block in message.blocks
        ]
        if all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
            return message
        return Message(message.speaker, blocks, message.turn, message.origin)

    def _call(self, call: ToolCall, by_place: bool) -> ToolCall:
        original = _whole(call.id)
        name = self._name(original)
        if not original:
            if by_place:
                self._by_place.append(name)
        else:
            self._open.add(original, name)
            self._latest[original] = name
        if name != original and not self._minted:
            self._notes.found("repeated_id", "canonical", original)
        kept = _under(name, call) if self._minted else _canonical(call, name, self._notes)
        self._taken.add(name)
        self._known[name] = _Known(kept)
        for place, result in self._early.pop(name, ()):
            self._answer(name, result, place)
        return kept

    def _name(self, original: CallId) -> CallId:
        """Return the id of a call: the next of ours; or its own, numbered where that is empty or was given before."""
        if self._minted:
            return mint(len(self._known) + 1)
        name, count = original, 1 if original else 0
        while not name or name in self._taken:
            count += 1
            name = CallId(f"{original}~{count}")
        return name

    # ---- results

    def _result(self, result: ToolResult, place: str) -> None:
        original = _whole(result.call_id)
        if not original:
            name = self._by_place.popleft() if self._by_place else None
        else:
            name = self._open.take(original) or self._latest.get(original)
        if name is not None:
            self._answer(name, result, place)
        elif original and original in self._coming:
            self._early.setdefault(original, []).append((place, result))
        elif result.status != "pending":
            self._orphan(original, result, place)

    def _answer(self, name: CallId, result: ToolResult, place: str) -> None:
        if result.status == "pending":
            if result.is_complete is False:
                self._known[name].missing = "outcome_unknown"
            return
        results = self._known[name].results
        again = any(_same(result, other) for other in results)
        if results:
            self._notes.dedupe.append((name, "duplicate" if again else "conflicting_duplicate"))
            self._notes.remarks.add(
                place, "another result for call %s kept as a duplicate", _said(result.call_id)
            )
        if not again:
            results.append(replace(result, call_id=name))

    def _orphan(self, call_id: CallId, result: ToolResult, place: str) -> None:
        known = self._ledger.get(call_id) if call_id else None  # an empty id names nothing
        if known is not None and known.late is not None:
            self._notes.dedupe.append(
                (call_id, "late")
            )  # its call was compacted away, and the ledger tells it
            return
        if known is not None and known.tool is not None:
            self._notes.found("restored_call", "canonical", call_id)
            call = ToolCall(call_id, known.tool, json=known.arguments or Json(b"{}"))
            self._said.append(self._called(Message("model", (call,)), by_place=False))
            self._open.take(call_id)
            self._answer(self._latest[call_id], result, place)
            return
        self._notes.found("orphan_result", "canonical", call_id)
        what, about = (
            ("result for unknown call %s", [_said(call_id)]) if call_id else ("result without a call id", [])
        )
        failed = ", which failed" if result.status == "error" else ""
        words = Text(f"[A tool result without its call{failed}: {unquote(result.rendered_json)}]")
        told: tuple[Text | Media, ...] = (words, *result.media)
        if self._told.issuperset(told):
            self._notes.dedupe.append((call_id, "duplicate"))
            self._notes.remarks.add(place, f"{what} left out: it is there already", *about)
            return
        self._notes.remarks.add(place, f"{what} kept as text", *about)
        self._told.update(told)
        self._waiting += told

    def _announce(self) -> None:
        """Tell what waits for the next human message, ahead of it."""
        if self._waiting:
            self._said.append(Message("human", tuple(self._waiting), origin=RUNTIME))
            self._waiting.clear()


def _missing(seen: Interaction | None) -> Reason:
    """Return why a call has no result that was known before: what was running then may have ended since."""
    if seen is None or seen.reason is None:
        return "lost"
    return "outcome_unknown" if seen.reason == "running" else seen.reason


def _said(call_id: str) -> str:
    """Return an id as a note has it: what pairs by name begins with a NUL."""
    return repr(call_id.removeprefix("\0"))[:80]


def _whole(call_id: str) -> CallId:
    """Return an id as it is kept: lone surrogates have no bytes."""
    return CallId(call_id if call_id.isascii() else sanitised(call_id))


def _canonical(call: ToolCall, name: CallId, notes: Notes) -> ToolCall:
    """Return a call under its own id, its arguments a JSON object."""
    text = call.json.decode("utf-8", "replace")
    if text.startswith("{") and parse_object(text, max_bytes=len(call.json), max_depth=MAX_DEPTH) is not None:
        return _under(name, call)
    notes.found("malformed_arguments", "canonical", name)
    raw = text if call.raw is None else call.raw
    return replace(call, id=name, raw=raw, json=Json(b"{}"))


def _under(name: CallId, call: ToolCall) -> ToolCall:
    return call if name == call.id else replace(call, id=name)


def _same(one: ToolResult, other: ToolResult) -> bool:
    """Say whether two blocks hold the same completion, whatever their source said of it besides."""
    return (one.content_json, one.error_json, one.media) == (
        other.content_json,
        other.error_json,
        other.media,
    )
