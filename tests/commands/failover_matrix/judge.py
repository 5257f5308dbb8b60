"""Judge the losses of a failover and their reports.

The log has every event that a reader received and every message that was answered. If an event or message is missing,
its loss was reported to the reader or caller before any later event or answer. The log records each loss at its place.
`actors sessions fsck` finds the recorded losses and no other damage. If the replication allows no loss, no event is
lost, and no loss is reported.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing

import anyio.to_thread
from msgspec import Struct

from actors.core.log.events import AskStarted, EventsLost, LogEvent
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.postgres.check import JournalTables
from tests.commands.failover_matrix.callers import Answered, Caller, Lost, Seen
from tests.commands.killing.host import line


class Found(Struct, frozen=True):
    """The numbers of lost events that readers had received, of lost answers and sessions, and of reported losses."""

    events: int
    asks: int
    sessions: int
    losses: int


async def judge(callers: Sequence[Caller], loses: bool, url: str) -> Found:
    """Compare the records of callers with the logs.

    Raises:
        AssertionError: A promise was broken.
    """
    logs = await anyio.to_thread.run_sync(_logs, url)
    events = asks = 0
    for caller in callers:
        log = (
            [] if caller.is_over else logs[caller.name]
        )  # otherwise the log belongs to a later session of this name
        lines = set() if caller.is_over else {said async for said in _lines(caller)}
        missing = _missing(caller, log, lines)
        events, asks = events + missing[0], asks + missing[1]
        _assert_named(caller, log)
    ended = sum(caller.is_over for caller in callers)
    losses = sum(len(caller.losses) for caller in callers)
    if loses:
        assert min(events, asks, ended) > 0
    else:
        assert (events, asks, ended, losses) == (0, 0, 0, 0)
    await anyio.to_thread.run_sync(_assert_checked, url, logs)
    return Found(events, asks, ended, losses)


def _logs(url: str) -> dict[str, list[LogEvent]]:
    storage = PostgresStorage(url)
    try:
        return {stored.id: storage.read(stored.id) for stored in storage.sessions()}
    finally:
        storage.close()


async def _lines(caller: Caller) -> AsyncIterator[bytes]:
    async for event in caller.session.events(follow=False):
        if (said := line(event)) is not None:
            yield said


def _missing(caller: Caller, log: Sequence[LogEvent], lines: set[bytes]) -> tuple[int, int]:
    """Return the numbers of received events and answered asks that are lost; each must be reported in time."""
    events = asks = 0
    for place, note in enumerate(caller.notes):
        if isinstance(note, Seen) and note.line not in lines:
            assert _is_reported_to_reader(caller, place, note.number), (caller.name, note.line)
            events += 1
        elif isinstance(note, Answered) and not _is_in_log(note.words, log):
            assert _is_reported_to_caller(caller, place, log), (caller.name, note.words)
            asks += 1
    return events, asks


def _is_reported_to_reader(caller: Caller, place: int, number: int) -> bool:
    """Return True if the reader learned of the loss of this event before another event received its number."""
    for note in caller.notes[place + 1 :]:
        if isinstance(note, Lost) and note.to == "reader":
            return not note.first or note.first <= number <= note.last
        if isinstance(note, Seen) and note.number < number:
            return False
    return False


def _is_reported_to_caller(caller: Caller, place: int, log: Sequence[LogEvent]) -> bool:
    """Return True if the caller learned of a loss after this record and before an answer that the log has."""
    for note in caller.notes[place + 1 :]:
        if isinstance(note, Lost) and note.to == "caller":
            return True
        if isinstance(note, Answered) and _is_in_log(note.words, log):
            return False
    return False


def _is_in_log(words: str, log: Sequence[LogEvent]) -> bool:
    return any(words.encode() in event.message for event in log if isinstance(event, AskStarted))


def _assert_named(caller: Caller, log: Sequence[LogEvent]) -> None:
    """Check that the log records exactly the losses that the caller learned of, each at its place."""
    named = {(event.first, event.last) for event in log if isinstance(event, EventsLost)}
    assert named == {(loss.first, loss.last) for loss in caller.losses if loss.first}, caller.name
    assert all(log[first - 1] == EventsLost(first, last) for first, last in named), caller.name


def _assert_checked(url: str, logs: Mapping[str, Sequence[LogEvent]]) -> None:
    """Check that `actors sessions fsck` finds exactly the losses that a log records."""
    lost = [
        f"session {name!r}, record {number}: events {event.first} to {event.last} were acknowledged"
        for name, log in logs.items()
        for number, event in enumerate(log, 1)
        if isinstance(event, EventsLost)
    ]
    with closing(JournalTables(url)) as tables:
        damage = [each.what for each in tables.damage()]
    assert len(damage) == len(lost), damage
    assert all(any(each in found for found in damage) for each in lost), damage
