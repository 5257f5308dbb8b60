"""Record how every tool call ended, by canonical call id. The ledger actor and the renderer use this module.

The ledger is computed by applying events one after another. The state of a call only moves to the right:

    pending  <  cancelled  <  a real completion

Events may therefore repeat, arrive late or arrive in any order. The order of the log matters in two cases only. Of two
real completions, the first counts. And a seal, which records that a request has carried a synthetic result, counts only
if no real completion came before it. A return value that arrives after the seal is a late result and never replaces the
synthetic result.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar, Self, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import Json
from actors.core.data.persistent import NOTHING, PersistentMap
from actors.core.data.record import ConstructorMeta, from_fields, reduce_fields, replace
from actors.core.log.call_events import (
    CallEvent,
    Cancelled,
    Completion,
    Failed,
    Reason,
    Returned,
    Scheduled,
    Started,
    ToolCallRecord,
    result_of,
)
from actors.core.log.events import RequestSent
from actors.core.values.content import Media, transcript_text
from actors.core.values.identity import CallId

Answer: TypeAlias = tuple[Json, bool, tuple[Media, ...]]
"""A real result for a transcript: the text as a JSON string literal, True for an error, and the media."""


def is_repeated(event: object) -> bool:
    """Return True if `event` completes a call that was detected as a repeat of earlier calls with the same result."""
    return isinstance(event, Returned | Failed) and event.repeated


def closed_record(record: ToolCallRecord) -> ToolCallRecord:
    """Return a call's record for a new session that starts with a copy of the history and does not run the call.

    The new session has sent no synthetic result yet, so the seal is removed. A call without a real completion is marked
    as cancelled.
    """
    if record.end is not None:
        return replace(record, sealed=None)
    reason = "outcome_unknown" if record.reason == "running" else record.reason
    return replace(record, sealed=None, cancelled=reason)


class Ledger(Struct, frozen=True, gc=False, eq=False, init=False, metaclass=ConstructorMeta):
    """An immutable mapping from canonical call id to `ToolCallRecord`. `apply` returns an updated ledger."""

    _known: PersistentMap[CallId, ToolCallRecord]
    late: tuple[CallId, ...]
    """Ids of the calls with a late result, in order of arrival."""
    size: int
    """Approximate memory use of the ledger, in bytes."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return reduce_fields(self)

    def __new__(cls, interactions: Iterable[ToolCallRecord] = ()) -> Self:
        known = {item.call_id: item for item in interactions}
        late = tuple([item.call_id for item in known.values() if item.late is not None])
        return from_fields(
            cls, PersistentMap(known) if known else NOTHING, late, sum(map(_record_bytes, known.values()))
        )

    def get(self, call_id: CallId) -> ToolCallRecord | None:
        """Return the record of a call, or None if the ledger does not know the call."""
        return self._known.get(call_id)

    def _answer(self, call_id: CallId) -> Answer | None:
        """Return a call's real result in the form that transcripts contain.

        Return None if the call has no real result, or if a request has already sent a synthetic result for it.
        """
        known = self._known.get(call_id)
        if known is None or known.sealed is not None or (end := known.end) is None:
            return None
        if type(end) is Returned:
            return transcript_text(end.content), False, end.media
        result = result_of(end)
        return result.rendered_json, result.error_json is not None, result.media

    def __contains__(self, call_id: CallId) -> bool:
        return self.get(call_id) is not None

    def __len__(self) -> int:
        return len(self._known)

    def interactions(self) -> list[ToolCallRecord]:
        """Return the records of all calls, in the order in which events first mentioned them."""
        return [item for _, item in self._known.items()]

    def apply(self, *events: CallEvent | RequestSent) -> "Ledger":
        """Return the ledger with these events applied. An event that was applied before changes nothing."""
        changed: dict[CallId, ToolCallRecord] = {}
        late, size = self.late, self.size
        for event in events:
            if isinstance(event, RequestSent):
                for call_id, reason in event.seals:
                    changed[call_id] = _seal(self._current_record(call_id, changed), reason)
                continue
            call_id = event.call_id
            before = self._current_record(call_id, changed)
            changed[call_id], more = _apply_call_event(before, event)
            size += more
            if before.sealed is not None and before.end is None and changed[call_id].end is not None:
                late = (*late, call_id)
        return from_fields(Ledger, self._known.update(changed), late, size) if changed else self

    def _current_record(self, call_id: CallId, changed: dict[CallId, ToolCallRecord]) -> ToolCallRecord:
        return changed.get(call_id) or self._known.get(call_id) or ToolCallRecord(call_id)

    def __eq__(self, other: object) -> bool:
        return self._known == other._known if isinstance(other, Ledger) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other  # needed because Struct defines `__ne__` by identity

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # ledgers are compared by value and never hashed

    def __repr__(self) -> str:
        return f"<Ledger of {len(self)} calls>"


CALL = 400
"""Approximate bytes of Python objects per call, in addition to the bytes of its arguments and results."""


def _record_bytes(record: ToolCallRecord) -> int:
    results = (() if record.end is None else (result_of(record.end),)) + record.duplicates
    return (
        CALL
        + len(record.arguments or b"")
        + sum(
            len(result.content_json or b"") + len(result.error_json or b"") + _media_bytes(result.media)
            for result in results
        )
    )


def _media_bytes(media: tuple[Media, ...]) -> int:
    return sum([len(item.data) for item in media]) if media else 0


def _apply_call_event(record: ToolCallRecord, event: CallEvent) -> tuple[ToolCallRecord, int]:
    """Return the call's record after the event, and the number of bytes by which the record grows."""
    match event:
        case Scheduled(tool=tool, arguments=arguments):
            more = 0 if record.tool else CALL + len(arguments)
            return replace(record, tool=record.tool or tool, arguments=record.arguments or arguments), more
        case Started(effects=effects):
            return replace(record, started=True, effects=effects), 0
        case Cancelled(reason=reason):
            return replace(record, cancelled=record.cancelled or reason), 0
        case _:
            return _add_completion(record, event)


def _add_completion(record: ToolCallRecord, event: Completion) -> tuple[ToolCallRecord, int]:
    """Add a real completion. The first completion counts; a later, different completion is recorded as a duplicate."""
    more = len(event.content) + _media_bytes(event.media) if isinstance(event, Returned) else len(event.error)
    if record.end is None:
        return replace(record, end=event), more
    new = event.result
    if new == result_of(record.end) or new in record.duplicates:
        return record, 0
    return replace(record, duplicates=(*record.duplicates, new)), more


def _seal(record: ToolCallRecord, reason: Reason) -> ToolCallRecord:
    """Record that a call's synthetic result was sent. A call with a real completion or an earlier seal is unchanged."""
    return record if record.end is not None or record.sealed is not None else replace(record, sealed=reason)


NO_CALLS = Ledger()
"""The empty ledger. It is shared, because ledgers are immutable."""
