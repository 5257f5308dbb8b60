"""The log ends that the journal expects, and the losses that it reports."""

import pytest

from actors.core.log.events import EventsLost
from actors.errors import JournalBehind
from actors.journal.health import ClaimedLogs
from actors.journal.storage import Claim, Entry
from tests.journal.storages import to

TWO = (to("a"), to("b"))


@pytest.fixture
def ends() -> ClaimedLogs:
    """The ends of a session that was claimed after its third event."""
    made = ClaimedLogs()
    made.record_claim("one", Claim(2, 3))
    return made


def test_each_entry_of_an_append_states_the_last_event_number_that_its_writer_knows(
    ends: ClaimedLogs,
) -> None:
    entries = [Entry("one", 2, TWO), Entry("other", 1, TWO), Entry("one", 1, TWO), Entry("one", 2, TWO)]
    assert [entry.after for entry in ends.add_predecessors(entries)] == [3, None, 3, 5]
    ends.record_write("one", 7)
    assert [entry.after for entry in ends.add_predecessors(entries[:1])] == [7]
    ends.forget("one")
    assert [entry.after for entry in ends.add_predecessors(entries[:1])] == [None]


def test_a_loss_is_reported_once_and_in_full_after_repeated_rollbacks(ends: ClaimedLogs) -> None:
    ends.record_write("one", 9)
    for first in (6, 6, 4):
        ends.record_loss(JournalBehind("", session="one", first=first, last=9 if first == 6 else 5), 2)
    entry = ends.pending_loss("one")
    assert entry == Entry("one", 2, (EventsLost(4, 9),), 3)
    ends.confirm_loss(entry)
    assert ends.pending_loss("one") is None
    assert [each.after for each in ends.add_predecessors([Entry("one", 2, TWO)])] == [4]


def test_a_log_that_lacks_acknowledged_events_is_reported_as_behind(ends: ClaimedLogs) -> None:
    error = ends.missing_events_error("one", 1)
    assert isinstance(error, JournalBehind)
    assert (error.first, error.last) == (2, 3)
    assert ends.missing_events_error("one", 3) is None
    assert ends.missing_events_error("other", 0) is None
