"""Move blocks to messages of the right role, give every call a unique id, and find the call that each result answers.

In:  messages in which any block may have any role. Their call ids may be empty, repeated or a provider's ids.
Out: the user and assistant messages, and a record of each call. Results without a call become text.

A tool call in a tool message belongs to the assistant (REQ-915-047); a result in an assistant or user message belongs
to the tools. A message with blocks of several roles is split where the role changes, and the order of the blocks is
unchanged.

`pairing` finds the call that a result answers. The first of several results counts (REQ-915-048). A later result is
dropped if it is equal, and kept as a duplicate if it is different. A result whose call is missing or not certain is
never lost: if the ledger knows the call, the call is restored, else the result becomes a note (labelled text) before
the next user message.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import is_
from sys import intern
from typing import TypeAlias, get_args

from actors.core.data.jsonio import MAX_DEPTH, Json, parse_object, quote, sanitise, unquote
from actors.core.data.record import replace
from actors.core.ledger import Ledger, closed_record
from actors.core.log.call_events import ToolCallRecord, result_of
from actors.core.normalize.pairing import TranscriptCall, TranscriptResult, pair_results
from actors.core.values.content import (
    Block,
    Code,
    Media,
    Message,
    MessageRole,
    ProviderBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import RUNTIME, CallId, mint, split_imported_id
from actors.core.values.intake import ReportBuilder

PositionedMessage: TypeAlias = tuple[str, Message]  # the original position of a message, and the message
BLOCK_AUTHORS: dict[type[Block], tuple[MessageRole, ...]] = {
    Text: ("user", "assistant"),
    Thinking: ("user", "assistant"),
    ToolCall: ("assistant",),
    ToolResult: ("tool",),
    Media: ("user", "assistant"),
    Code: ("user", "assistant"),
    ProviderBlock: ("user", "assistant"),
}
"""The roles that can write a block. A block in a message of another role is moved to the first role listed."""
_ROLES = get_args(MessageRole)
_BLOCKS_BY_ROLE: Mapping[str, frozenset[type[Block]]] = {
    role: frozenset(kind for kind, roles in BLOCK_AUTHORS.items() if role in roles) for role in _ROLES
}
"""The blocks that a role can write."""


def split_by_role(
    messages: Iterable[PositionedMessage], remarks: ReportBuilder
) -> Iterator[PositionedMessage]:
    """Split messages so that the role of each fits all of its blocks. Correct messages are unchanged."""
    for place, message in messages:
        if message.role not in _ROLES:
            remarks.add_finding("unknown_speaker")
            remarks.add(place, "unknown role %s replaced by user", f"{message.role!r:.40}")
            message = replace(message, role="user")
        for part in [message] if has_matching_role(message) else _split_message(message, remarks):
            yield place, part


def has_matching_role(message: Message) -> bool:
    """Return True if the message's role may contain every block of the message."""
    return message.role in _BLOCKS_BY_ROLE and _BLOCKS_BY_ROLE[message.role].issuperset(
        map(type, message.blocks)
    )


def _author_role(block: Block, role: MessageRole) -> MessageRole:
    said_by = BLOCK_AUTHORS[type(block)]
    return role if role in said_by else said_by[0]


def _split_message(message: Message, remarks: ReportBuilder) -> list[Message]:
    for block in message.blocks:
        if isinstance(block, ToolCall) and message.role != "assistant":
            remarks.add_finding("misplaced_call", block.id)
        elif isinstance(block, ToolResult) and message.role != "tool":
            remarks.add_finding("misplaced_result", block.call_id)
    parts = groupby(message.blocks, lambda block: _author_role(block, message.role))
    return [replace(message, role=role, blocks=tuple(blocks)) for role, blocks in parts]


class Normalizer:
    """The normalization of a list of messages, oldest first.

    Args:
        ledger: The authoritative ledger, with calls that the messages may no longer contain.
        remarks: The report to which the normalization adds its findings.
        mint_ids: True if the call ids come from a provider, so that each call gets a new canonical id.
    """

    def __init__(self, ledger: Ledger, remarks: ReportBuilder, *, mint_ids: bool) -> None:
        self.remarks = remarks
        self._ledger = ledger
        self._mint_ids = mint_ids
        self._normal: list[Message] = []
        self._known: dict[CallId, ToolCallRecord] = {}
        self._calls: list[
            TranscriptCall
        ] = []  # the calls of the preceding messages, then the calls to normalize
        self._results: list[TranscriptResult] = []
        self._new_ids: list[CallId] = []  # canonical ids, by position in `_calls`
        self._ids: set[str] = set()
        self._answered_calls: Iterator[int | None] = iter(())
        self._count = 0  # number of messages so far
        self._after_message = -1  # the number of the message that the next results directly follow
        # the distinct results of each call that has more than one result
        self._completions: dict[CallId, set[tuple[object, ...]]] = {}
        self._early: dict[int, list[tuple[str, ToolResult]]] = {}
        self._latest: dict[CallId, CallId] = {}
        self._restored: dict[CallId, CallId] = {}
        self._waiting: list[Text | Media] = []
        self._noted: set[Block] = set()

    def register_preceding(self, before: Iterable[Message], known: Ledger) -> None:
        """Register the calls and the notes of `before`, the messages that precede the messages to normalize.

        `known` contains the results of these calls.
        """
        for message in before:
            self._after_message = self._count
            if message.origin == RUNTIME:
                self._noted.update(message.blocks)
            for call in message.calls:
                seen = self._known[call.id] = closed_record(known.get(call.id) or _record_of_lost_call(call))
                first = CallId(call.id.rpartition("~")[0])
                original = first if first in self._known else call.id
                self._latest[original] = call.id
                self._new_ids.append(call.id)
                self._calls.append(TranscriptCall(original, call.name, self._count, _completions(seen)))
            self._count += 1

    def normalize_messages(self, messages: Iterable[PositionedMessage]) -> list[Message]:
        """Return messages in normal form. Each input message comes with its position in the transcript."""
        placed = list(split_by_role(messages, self.remarks))
        self._pair_results(message for _, message in placed)
        for place, message in placed:
            if message.role == "tool":
                for result in message.results:
                    self._settle_result(result, place)
                continue
            if message.role == "user":
                self._append_notes()
            self._normal.append(self._settle_calls(message))
        self._append_notes()
        return self._normal

    def _pair_results(self, messages: Iterable[Message]) -> None:
        """Find the call of each result, before any id is changed."""
        for message in messages:
            if message.role != "tool":
                self._after_message = self._count
                for call in message.calls:
                    self._calls.append(TranscriptCall(sanitise(call.id), call.name, self._count))
            for result in message.results if message.role == "tool" else ():
                if result.status != "pending":
                    key, tool = self._original_id_and_tool(result)
                    says = _completion_fields(result)
                    self._results.append(TranscriptResult(key, tool, says, self._count, self._after_message))
            self._count += 1
        self._ids = {call.id for call in self._calls}
        self._answered_calls = iter(pair_results(self._calls, self._results, allow_early=not self._mint_ids))

    def _original_id_and_tool(self, result: ToolResult) -> tuple[CallId, str]:
        """Return a result's call id and its tool name ("" if the transcript did not name the tool).

        During the import, `imported_call_id` joined the id and the name.
        """
        if not self._mint_ids:
            return CallId(sanitise(result.call_id)), ""
        return split_imported_id(result.call_id)

    def merged_ledger(self, known: Ledger) -> Ledger:
        """Return `known` with a record of each call in the normalized messages, in order of appearance."""
        return Ledger([*known.interactions(), *self._known.values()])

    def _settle_calls(self, message: Message) -> Message:
        if ToolCall not in map(type, message.blocks):
            return message
        blocks = [self._settle_call(block) if type(block) is ToolCall else block for block in message.blocks]
        if all(map(is_, blocks, message.blocks)):
            return message
        return Message(message.role, blocks, message.turn, message.origin)

    def _settle_call(self, call: ToolCall) -> ToolCall:
        """Return a call with its new id, and record the results that preceded the call."""
        call, position = self._normalize_call(call), len(self._new_ids)
        self._new_ids.append(call.id)
        for place, result in self._early.pop(position, ()):
            self._record_answer(call.id, result, place)
        return call

    def _normalize_call(self, call: ToolCall) -> ToolCall:
        original = CallId(sanitise(call.id))  # lone surrogates cannot be encoded in UTF-8
        name = self._new_id(original)
        if original:
            self._latest[original] = name
        if name != original and not self._mint_ids:
            self.remarks.add_finding("repeated_id", original)
        if name != call.id:
            call = replace(call, id=name)
        if (
            not self._mint_ids
        ):  # the decoder of a provider's calls already ensures that arguments are an object
            call = self._with_valid_arguments(call)
        self._known[name] = _record_of_lost_call(call)
        return call

    def _new_id(self, original: CallId) -> CallId:
        """Return the next canonical id if ids are minted, else the call's own id.

        If the call's own id is empty or already used, a number is appended to it.
        """
        if self._mint_ids:
            return mint(len(self._known) + 1)
        name, count = original, 1 if original else 0
        while not name or name in self._known:
            count += 1
            name = CallId(f"{original}~{count}")
        return name

    def _with_valid_arguments(self, call: ToolCall) -> ToolCall:
        text, size = call.json.decode("utf-8", "replace"), len(call.json)
        if text.startswith("{") and parse_object(text, max_bytes=size, max_depth=MAX_DEPTH) is not None:
            return call
        self.remarks.add_finding("malformed_arguments", call.id)
        raw = quote(text) if call.raw_json is None else call.raw_json
        return replace(call, raw_json=raw, json=Json(b"{}"), is_free=False)

    def _settle_result(self, result: ToolResult, where: str) -> None:
        key, tool = self._original_id_and_tool(result)
        if result.status == "pending":
            self._note_pending(key, result)
            return
        position = next(self._answered_calls)
        if position is None:
            self._settle_unmatched(key, tool, result, where)
        elif position < len(self._new_ids):
            self._record_answer(self._new_ids[position], result, where)
        else:
            self._early.setdefault(position, []).append((where, result))

    def _note_pending(self, key: CallId, result: ToolResult) -> None:
        """Record that a call was still running when the messages were exported."""
        name = self._latest.get(key)
        if name is not None and result.is_complete is False and self._known[name].end is None:
            self._known[name] = replace(self._known[name], started=True, cancelled="outcome_unknown")

    def _record_answer(self, call_id: CallId, result: ToolResult, where: str) -> None:
        known, kept = self._known[call_id], replace(result, call_id=call_id)
        if known.completion is None:
            self._known[call_id] = replace(known, started=True, end=kept, cancelled=None)
        else:
            said = self._completions.setdefault(call_id, set(_completions(known)))
            again = _completion_fields(kept) in said
            said.add(_completion_fields(kept))
            key, tool = self._original_id_and_tool(result)
            self.remarks.dedupe.append((call_id, "duplicate" if again else "conflicting_duplicate"))
            self.remarks.add(where, "another result for call %s kept as a duplicate", _quote(key or tool))
            if not again:
                self._known[call_id] = replace(known, duplicates=(*known.duplicates, kept))

    def _settle_unmatched(self, key: CallId, tool: str, result: ToolResult, where: str) -> None:
        """Restore the call of a result from the ledger, or keep the result as a note if the call is not certain."""
        known = self._ledger.get(key) if key else None  # an empty id identifies no call
        if known is not None and known.late is not None:
            # A compaction removed the call; the renderer reads the late result from the ledger.
            self.remarks.dedupe.append((key, "late"))
        elif (name := self._restored.get(key)) is not None:
            self._record_answer(name, result, where)
        elif known is not None and known.tool is not None and key not in self._ids:
            self.remarks.add_finding("restored_call", key)
            call = self._normalize_call(ToolCall(key, known.tool, json=known.arguments or Json(b"{}")))
            self._restored[key] = call.id
            self._normal.append(Message("assistant", (call,)))
            self._record_answer(call.id, result, where)
        else:
            self._add_note(key, tool, result, where)

    def _add_note(self, key: CallId, tool: str, result: ToolResult, where: str) -> None:
        """Turn a result whose call is unknown into a note. Drop the result if an earlier note contains the same one."""
        self.remarks.add_finding("orphan_result", key)
        what, about = _describe_unmatched(key, tool, is_known=key in self._ids)
        failed = ", which failed" if result.status == "error" else ""
        words = Text(f"[A tool result without its call{failed}: {unquote(result.rendered_json)}]")
        note: tuple[Text | Media, ...] = (words, *result.media)
        if self._noted.issuperset(note):
            self.remarks.dedupe.append((key, "duplicate"))
            self.remarks.add(where, f"{what} omitted, because it occurred before", *about)
            return
        self.remarks.add(where, f"{what} kept as text", *about)
        self._noted.update(note)
        self._waiting += note

    def _append_notes(self) -> None:
        """Append the waiting notes as one user message, before the next user message is added."""
        if self._waiting:
            self._normal.append(Message("user", tuple(self._waiting), origin=RUNTIME))
            self._waiting.clear()


def _record_of_lost_call(call: ToolCall) -> ToolCallRecord:
    return ToolCallRecord(call.id, intern(call.name), call.json, cancelled="lost")


def _describe_unmatched(key: str, tool: str, *, is_known: bool) -> tuple[str, tuple[str, ...]]:
    """Describe a result that has no call, for the report. Return a format string and its values."""
    if key and is_known:
        return "result with ambiguous call id %s", (_quote(key),)
    if key or tool:
        return "result for unknown call %s", (_quote(key or tool),)
    return "result without a call id", ()


def _quote(text: str) -> str:
    return repr(text)[:80]


def _completion_fields(result: ToolResult) -> tuple[object, ...]:
    """Return the fields by which two results are compared: all except the call id and `is_complete`."""
    return result.content_json, result.error_json, result.media


def _completions(known: ToolCallRecord) -> tuple[tuple[object, ...], ...]:
    """Return the compared fields of every result of a call so far, duplicates included."""
    first = () if known.end is None else (result_of(known.end),)
    return tuple(map(_completion_fields, (*first, *known.duplicates)))
