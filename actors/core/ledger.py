"""Record the completion of every tool call, by canonical id; the ledger actor and the renderer use it.

The ledger is a fold of events, and the fold is a join: the knowledge about a call only grows,

    pending  <  cancelled  <  a real completion

so events may repeat and may arrive late or in any order. The log's order matters only between rivals: the first of two
real completions wins, and so does the first of a real completion and a seal. A seal records that a request has carried
a synthetic result. A return value after the seal is a late result and never replaces the synthetic one.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar, Self, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import Json
from actors.core.data.persistent_map import NOTHING, PersistentMap
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
from actors.core.values.content import Media, in_words
from actors.core.values.identity import CallId

Answer: TypeAlias = tuple[Json, bool, tuple[Media, ...]]
"""A real result for a transcript: its text as a JSON string literal, True if it is an error, and its media."""


def is_repeated(end: object) -> bool:
    """Return True if a call's completion repeats earlier ones so often that repetition was detected."""
    return isinstance(end, Returned | Failed) and end.repeated


def closed_record(known: ToolCallRecord) -> ToolCallRecord:
    """Return a call's record for another session, which has sent nothing yet and runs no calls."""
    if known.end is not None:
        return replace(known, sealed=None)
    reason = "outcome_unknown" if known.reason == "running" else known.reason
    return replace(known, sealed=None, cancelled=reason)


class Ledger(Struct, frozen=True, gc=False, eq=False, init=False, metaclass=ConstructorMeta):
    """An immutable mapping from canonical call id to `ToolCallRecord`. `apply` returns the next version."""

    _known: PersistentMap[CallId, ToolCallRecord]
    late: tuple[CallId, ...]
    """Calls with a late result, in order of arrival."""
    size: int
    """Approximate memory in bytes."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return reduce_fields(self)

    def __new__(cls, interactions: Iterable[ToolCallRecord] = ()) -> Self:
        known = {item.call_id: item for item in interactions}
        late = tuple([item.call_id for item in known.values() if item.late is not None])
        return from_fields(
            cls, PersistentMap(known) if known else NOTHING, late, sum(map(_size, known.values()))
        )

    def get(self, call_id: CallId) -> ToolCallRecord | None:
        """Return the record of a call, or None."""
        return self._known.get(call_id)

    def _answer(self, call_id: CallId) -> Answer | None:
        """Return the real result for a transcript; None if there was none before the seal."""
        known = self._known.get(call_id)
        if known is None or known.sealed is not None or (end := known.end) is None:
            return None
        if type(end) is Returned:
            return in_words(end.content), False, end.media
        result = result_of(end)
        return result.rendered_json, result.error_json is not None, result.media

    def __contains__(self, call_id: CallId) -> bool:
        return self.get(call_id) is not None

    def __len__(self) -> int:
        return len(self._known)

    def interactions(self) -> list[ToolCallRecord]:
        """Return all records, in order of first mention."""
        return [item for _, item in self._known.items()]

    def apply(self, *events: CallEvent | RequestSent) -> "Ledger":
        """Return the ledger with these events applied. An event that is already known changes nothing."""
        changed: dict[CallId, ToolCallRecord] = {}
        late, size = self.late, self.size
        for event in events:
            if isinstance(event, RequestSent):
                for call_id, reason in event.seals:
                    changed[call_id] = _seal(self._current(call_id, changed), reason)
                continue
            call_id = event.call_id
            before = self._current(call_id, changed)
            changed[call_id], more = _apply_call_event(before, event)
            size += more
            if before.sealed is not None and before.end is None and changed[call_id].end is not None:
                late = (*late, call_id)
        return from_fields(Ledger, self._known.update(changed), late, size) if changed else self

    def _current(self, call_id: CallId, changed: dict[CallId, ToolCallRecord]) -> ToolCallRecord:
        return changed.get(call_id) or self._known.get(call_id) or ToolCallRecord(call_id)

    def __eq__(self, other: object) -> bool:
        return self._known == other._known if isinstance(other, Ledger) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other  # Struct's own `__ne__` compares identities

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # compared by value; never a key

    def __repr__(self) -> str:
        return f"<Ledger of {len(self)} calls>"


CALL = 400
"""Approximate bytes of Python objects per call, in addition to its arguments and results."""


def _size(known: ToolCallRecord) -> int:
    said = CALL + len(known.arguments or b"")
    ends = (() if known.end is None else (result_of(known.end),)) + known.duplicates
    return said + sum(
        len(end.content_json or b"") + len(end.error_json or b"") + _media(end.media) for end in ends
    )


def _media(media: tuple[Media, ...]) -> int:
    return sum([len(item.data) for item in media]) if media else 0


def _apply_call_event(known: ToolCallRecord, event: CallEvent) -> tuple[ToolCallRecord, int]:
    """Return the record after an event, and the number of bytes that it adds."""
    match event:
        case Scheduled(tool=tool, arguments=arguments):
            more = 0 if known.tool else CALL + len(arguments)
            return replace(known, tool=known.tool or tool, arguments=known.arguments or arguments), more
        case Started(effects=effects):
            return replace(known, started=True, effects=effects), 0
        case Cancelled(reason=reason):
            return replace(known, cancelled=known.cancelled or reason), 0
        case _:
            return _add_completion(known, event)


def _add_completion(known: ToolCallRecord, event: Completion) -> tuple[ToolCallRecord, int]:
    """Add a real completion: the first counts, one after a seal is late, a different one is a duplicate."""
    more = len(event.content) + _media(event.media) if isinstance(event, Returned) else len(event.error)
    if known.end is None:
        return replace(known, end=event), more
    new = event.result
    if new == result_of(known.end) or new in known.duplicates:
        return known, 0
    return replace(known, duplicates=(*known.duplicates, new)), more


def _seal(known: ToolCallRecord, reason: Reason) -> ToolCallRecord:
    """Seal a call's synthetic result, unless a real completion or a seal came first."""
    return known if known.end is not None or known.sealed is not None else replace(known, sealed=reason)


NO_CALLS = Ledger()
"""The empty ledger, shared because it is immutable."""
