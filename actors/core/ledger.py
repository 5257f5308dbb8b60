"""The ledger: what became of every tool call, by canonical id.

It is a fold of events, and the fold is a join: what is known about a call only grows,

    pending  <  cancelled  <  a real completion

so events may be repeated and may arrive late or in any order. Only two things depend on the log's order,
because both sides claim the same place: of two real completions the first wins, and between a real
completion and a seal the first wins. A seal says that a synthetic result has been sent; what a tool
returns after it is kept as a late result and never takes the synthetic one's place.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, assert_never

from actors.core.content import Media, Status, ToolResult, in_words
from actors.core.events import (
    CallEvent,
    Cancelled,
    Denied,
    Failed,
    Reason,
    Refused,
    RequestSent,
    Returned,
    Scheduled,
    Started,
)
from actors.core.identity import CallId
from actors.core.jsonio import Json, mended
from actors.core.table import Table

# (content, error, is_complete, media): a completion at rest, as plain as a history's records.
_Completion: TypeAlias = tuple[Json | None, Json | None, bool | None, tuple[tuple[str, str, str], ...]]
# (tool, arguments, started, completion, cancelled, sealed, late, duplicates, denied)
_Record: TypeAlias = tuple[
    str | None,
    Json | None,
    bool,
    _Completion | None,
    Reason | None,
    Reason | None,
    _Completion | None,
    tuple[_Completion, ...],
    bool,
]

Answer: TypeAlias = tuple[Json, bool, tuple[Media, ...]]
"""A real result as a transcript shows it: its words as a JSON string literal, whether they are an error, its media."""

_NOTHING: _Record = (None, None, False, None, None, None, None, (), False)


@dataclass(frozen=True, slots=True)
class Interaction:
    """All that is known about one tool call.

    Args:
        call_id: Canonical id.
        tool: Name the model gave, or None while only its end is known.
        arguments: Arguments as JSON, or None likewise.
        started: Whether the tool is known to have begun.
        completion: The effective real completion: returned, failed, denied or refused; None without one.
        cancelled: Why the call was stopped, if it was.
        sealed: Reason code of the synthetic result that was sent for it, if one was.
        late: A real completion that came after the seal; the model gets it as a note.
        duplicates: Further real completions that differ from the effective one. Never emitted.
        denied: Whether the effective completion is a denial.
    """

    call_id: CallId
    tool: str | None = None
    arguments: Json | None = None
    started: bool = False
    completion: ToolResult | None = None
    cancelled: Reason | None = None
    sealed: Reason | None = None
    late: ToolResult | None = None
    duplicates: tuple[ToolResult, ...] = ()
    denied: bool = False

    @property
    def status(self) -> Status:
        """Pending, complete, error or cancelled."""
        if self.completion is not None:
            return self.completion.status
        return "pending" if (self.cancelled or self.sealed) is None else "cancelled"

    @property
    def reason(self) -> Reason | None:
        """Why the tool gave no result: the seal's reason, else `denied`, else the state's. None if it ran to its end.

        A denial is emitted, as the error it is; for the other reasons a synthetic result is.
        """
        if self.sealed is not None:
            return self.sealed
        if self.completion is not None:
            return "denied" if self.denied else None
        if self.cancelled is not None:
            return self.cancelled
        return "outcome_unknown" if self.started else "never_started"


class Source(Protocol):
    """Interactions that can be worked out at any time, from what is kept of them at rest."""

    @property
    def at_rest(self) -> "tuple[Any, ...]": ...  # Any: plain things, which the source alone reads
    def __iter__(self) -> Iterator[Interaction]: ...


class Ledger:
    """An immutable mapping from canonical call id to `Interaction`. `apply` returns the next ledger."""

    __slots__ = ("_source", "_table", "late")

    _table: Table[CallId, _Record]
    late: tuple[CallId, ...]
    """Calls with a late result, in the order in which those came."""

    def __init__(self, interactions: Iterable[Interaction] = ()) -> None:
        self._source: Source | None = None
        self._fill(interactions)

    @classmethod
    def deferred(cls, source: Source, interactions: Iterable[Interaction] | None = None) -> "Ledger":
        """Return the ledger of these interactions, which are read when it is first asked; until then it holds none.

        Where they are known already, they are given; the source is what it is at rest all the same.
        """
        ledger = cls.__new__(cls)
        ledger._source = source
        if interactions is not None:
            ledger._fill(interactions)
        return ledger

    @classmethod
    def of(cls, records: dict[CallId, _Record], late: tuple[CallId, ...]) -> "Ledger":
        """Return the ledger that was at rest."""
        ledger = cls.__new__(cls)
        ledger._source, ledger._table, ledger.late = None, Table(records), late
        return ledger

    @property
    def at_rest(self) -> "tuple[Any, ...]":  # Any: a dict of records and the late ones, or what the source is
        """The ledger as plain things; what its source is at rest, if it says no more than that."""
        if self._source is not None:
            return self._source.at_rest
        return dict(self._table.items()), self.late

    def known(self) -> "Ledger":
        """Return the ledger, which needs its source no more: that is about to change."""
        if self._source is not None:
            len(self)
            self._source = None
        return self

    def _fill(self, interactions: Iterable[Interaction]) -> None:
        known = tuple(interactions)
        self._table = Table({item.call_id: _record(item) for item in known})
        self.late = tuple(item.call_id for item in known if item.late is not None)

    def __getattr__(self, name: str) -> object:  # a slot that is empty yet: no cost to any other access
        if name not in Ledger.__slots__:
            raise AttributeError(name)
        assert self._source is not None
        self._fill(self._source)
        return getattr(self, name)

    def get(self, call_id: CallId) -> Interaction | None:
        """Return what is known about a call, or None."""
        record = self._table.get(call_id)
        return None if record is None else _interaction(call_id, record)

    def completion(self, call_id: CallId) -> ToolResult | None:
        """Return a call's effective real completion, sealed or not; what `get` would, and cheaper."""
        record = self._table.get(call_id)
        return None if record is None or record[3] is None else _result(call_id, record[3])

    def answer(self, call_id: CallId) -> Answer | None:
        """Return what a transcript answers a call with; None where nothing real came before its seal."""
        record = self._table.get(call_id)
        if record is None or record[5] is not None or (kept := record[3]) is None:
            return None
        content, error, _, media = kept
        held = tuple([Media(*item) for item in media]) if media else ()
        return in_words(content if error is None else error), error is not None, held

    def is_sealed(self, call_id: CallId) -> bool:
        """Say whether a synthetic result has been sent for a call."""
        record = self._table.get(call_id)
        return record is not None and record[5] is not None

    def __contains__(self, call_id: CallId) -> bool:
        return call_id in self._table

    def __len__(self) -> int:
        return len(self._table)

    def interactions(self) -> list[Interaction]:
        """Return every interaction, in order of first mention."""
        return [_interaction(call_id, record) for call_id, record in self._table.items()]

    def apply(self, *events: CallEvent | RequestSent) -> "Ledger":
        """Return the ledger that knows these events too. Knowing one already changes nothing."""
        changed: dict[CallId, _Record] = {}
        late = self.late
        for event in events:
            if isinstance(event, RequestSent):
                for call_id, reason in event.seals:
                    changed[call_id] = _sealed(self._now(call_id, changed), reason)
                continue
            before = self._now(event.call_id, changed)
            changed[event.call_id] = after = _told(before, event)
            if after[6] is not None and before[6] is None:
                late = (*late, event.call_id)
        if not changed:
            return self
        ledger = Ledger.__new__(Ledger)
        ledger._source, ledger._table, ledger.late = None, self._table.update(changed), late
        return ledger

    def _now(self, call_id: CallId, changed: dict[CallId, _Record]) -> _Record:
        return changed.get(call_id) or self._table.get(call_id) or _NOTHING

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return self._table == other._table

    __hash__ = None  # type: ignore[assignment]  # compared by value; never a key

    def __repr__(self) -> str:
        return f"<Ledger of {len(self)} calls>"


def _told(record: _Record, event: CallEvent) -> _Record:
    """Return what is known of a call once `event` is known too."""
    tool, arguments = record[:2]
    match event:
        case Scheduled(tool=name, arguments=json):
            return (tool or name, arguments or json, *record[2:])
        case Started():
            return (tool, arguments, True, *record[3:])
        case Returned(content=content, media=media):
            return _completed(record, (content, None, True, _plain(media)))
        case Cancelled(reason=reason):
            return (*record[:4], record[4] or reason, *record[5:])
        case Failed(error=error) | Refused(error=error):
            return _completed(record, (None, error, None, ()))
        case Denied(error=error):
            return _completed(record, (None, error, None, ()), denied=True)
        case _:
            assert_never(event)


def _completed(record: _Record, new: _Completion, *, denied: bool = False) -> _Record:
    """Add a real completion: the first is effective, one after a seal is late, a different one is kept."""
    tool, arguments, started, completion, cancelled, sealed, late, duplicates, was_denied = record
    first = completion if sealed is None else late
    if first is None:
        if sealed is None:
            completion, was_denied = new, denied
        else:
            late = new
    elif new != first and new not in duplicates:
        duplicates = (*duplicates, new)
    return (tool, arguments, started, completion, cancelled, sealed, late, duplicates, was_denied)


def _sealed(record: _Record, reason: Reason) -> _Record:
    """Seal a call's synthetic result; without effect where a real completion or a seal came first."""
    if record[3] is not None or record[5] is not None:
        return record
    return (*record[:5], reason, *record[6:])


def _record(item: Interaction) -> _Record:
    return (
        item.tool,
        item.arguments,
        item.started,
        _at_rest(item.completion),
        item.cancelled,
        item.sealed,
        _at_rest(item.late),
        tuple(kept for kept in map(_at_rest, item.duplicates) if kept is not None),
        item.denied,
    )


def _at_rest(result: ToolResult | None) -> _Completion | None:
    if result is None:
        return None
    return (result.content_json, result.error_json, result.is_complete, _plain(result.media))


def _plain(media: tuple[Media, ...]) -> tuple[tuple[str, str, str], ...]:
    if not media:
        return ()
    return tuple([(_whole(item.mime), _whole(item.data), _whole(item.url)) for item in media])


def _whole(text: str) -> str:
    return text if text.isascii() else mended(text)  # as a log would hold it


def _result(call_id: CallId, kept: _Completion) -> ToolResult:
    content, error, complete, media = kept
    held = tuple([Media(*item) for item in media]) if media else ()
    return ToolResult(call_id, content_json=content, error_json=error, is_complete=complete, media=held)


def _interaction(call_id: CallId, record: _Record) -> Interaction:
    tool, arguments, started, completion, cancelled, sealed, late, duplicates, denied = record
    return Interaction(
        call_id,
        tool,
        arguments,
        started,
        None if completion is None else _result(call_id, completion),
        cancelled,
        sealed,
        None if late is None else _result(call_id, late),
        tuple(_result(call_id, kept) for kept in duplicates),
        denied,
    )
