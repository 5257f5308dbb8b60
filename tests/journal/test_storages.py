"""The contract of every storage: numbering, one live writer, a directory, and complete deletion."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from actors.core.log.events import (
    Closed,
    LogEvent,
    Opened,
    SwitchApplied,
    TurnEnded,
    TurnPaused,
    TurnResumed,
    TurnStarted,
)
from actors.core.values.identity import Binding
from actors.errors import Fenced
from actors.journal.storage import NOTHING, Entry, Storage
from actors.journal.storage.clock import ObservedClock, observe
from actors.journal.storage.directory import SessionFilter
from tests.journal.storages import STORAGES, begin, open_storage, to

BINDING = Binding("a", "openai_chat", "http://x", "", "m")


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    storage = open_storage(request.param, request)
    storage.open()
    yield storage
    storage.close()


@pytest.mark.requirement("PROMISE-6")
def test_events_are_numbered_from_one_and_read_back_in_order(storage: Storage) -> None:
    one, two = storage.claim("one").fence, storage.claim("two").fence
    entries = [
        Entry("one", one, (to("a"), to("b"))),
        Entry("two", two, (to("c"),)),
        Entry("one", one, (to("d"),)),
    ]
    assert storage.append(entries) == [2, 1, 3]
    assert storage.read("one") == [to("a"), to("b"), to("d")]
    assert storage.read("one", after=2) == [to("d")]
    assert (storage.read("two"), storage.read("three")) == ([to("c")], [])


def test_a_claim_returns_the_last_number_of_the_log(storage: Storage) -> None:
    assert storage.claim("one").last == 0
    begin(storage, "one")
    assert storage.claim("one").last == 1


@pytest.mark.requirement("PROMISE-6")
def test_only_the_latest_claimant_may_write(storage: Storage) -> None:
    stale, other = begin(storage, "one"), begin(storage, "two")
    live = storage.claim("one")
    assert live.fence > stale.fence
    refused, written, also = storage.append(
        [
            Entry("one", stale.fence, (to("stale"),)),
            Entry("one", live.fence, (to("live"),)),
            Entry("two", other.fence, (to("other"),)),
        ]
    )
    assert isinstance(refused, Fenced)
    assert (written, also) == (2, 2)
    assert storage.read("one")[1:] == [to("live")]


def test_an_unclaimed_session_cannot_be_written(storage: Storage) -> None:
    (outcome,) = storage.append([Entry("one", 1, (to("a"),))])
    assert isinstance(outcome, Fenced)
    assert (storage.read("one"), storage.sessions()) == ([], [])


@pytest.mark.requirement("PROMISE-6")
def test_a_fencing_number_never_decreases(storage: Storage) -> None:
    fences = [begin(storage, "one").fence]
    for end in (storage.delete, lambda session: storage.release(session, fences[-1]), storage.delete):
        end("one")
        fences.append(storage.claim("one").fence)
    storage.close()
    storage.open()
    fences.append(storage.claim("one").fence)
    assert all(after > before for before, after in pairwise(fences))


def test_a_deleted_session_is_gone_and_its_writer_is_fenced(storage: Storage) -> None:
    claim, other = begin(storage, "one"), begin(storage, "two")
    storage.delete("one")
    (outcome,) = storage.append([Entry("one", claim.fence, (to("a"),))])
    assert isinstance(outcome, Fenced)
    assert storage.read("one") == []
    assert [stored.id for stored in storage.sessions()] == ["two"]
    assert storage.append([Entry("two", other.fence, (to("b"),))]) == [2]
    storage.delete("nobody")
    assert begin(storage, "one").last == 0


@pytest.mark.parametrize(
    ("events", "state", "target"),
    [
        ((), "idle", "a"),
        ((TurnStarted(1, 1, BINDING),), "running", "a"),
        ((TurnStarted(1, 1, BINDING), TurnPaused(1, ())), "awaiting", "a"),
        ((TurnStarted(1, 1, BINDING), TurnPaused(1, ()), TurnResumed(1)), "running", "a"),
        ((TurnStarted(1, 1, BINDING), TurnEnded(1, "complete"), SwitchApplied("b")), "idle", "b"),
        ((Closed(),), "closed", "a"),
    ],
)
def test_the_session_directory_has_the_state_of_each_session(
    storage: Storage, events: tuple[LogEvent, ...], state: str, target: str
) -> None:
    claim = begin(storage, "one", tenant="t")
    for event in events:
        storage.append([Entry("one", claim.fence, (event,))])
    (stored,) = storage.sessions()
    assert (stored.id, stored.tenant, stored.target, stored.state) == ("one", "t", target, state)
    assert stored.events == 1 + len(events)
    assert stored.bytes > 0
    assert stored.opened <= stored.used
    assert (stored.owner is None) == (state == "closed")  # the end of a session releases it


def test_a_release_removes_the_owner_and_a_stale_release_does_nothing(storage: Storage) -> None:
    stale = begin(storage, "one")
    live = storage.claim("one")
    storage.release("one", stale.fence)
    assert storage.sessions()[0].owner is not None
    storage.release("one", live.fence)
    assert storage.sessions()[0].owner is None


def test_the_session_directory_lists_a_tenants_sessions_in_pages_newest_first(storage: Storage) -> None:
    claims = {f"s{number}": begin(storage, f"s{number}", tenant="ab"[number % 2]) for number in range(7)}
    storage.append([Entry("s0", claims["s0"].fence, (to("again"),))])
    whole = storage.sessions()
    assert {stored.id for stored in whole} == set(claims)
    assert [stored.used for stored in whole] == sorted((stored.used for stored in whole), reverse=True)
    paged, page = list(whole[:0]), storage.sessions(limit=3)
    while page:
        paged += page
        page = storage.sessions(limit=3, after=page[-1].page)
    assert paged == whole
    assert {stored.id for stored in storage.sessions(SessionFilter("b"))} == {"s1", "s3", "s5"}
    assert storage.sessions(SessionFilter("")) == []


def test_a_claim_of_existing_sessions_only_creates_nothing_and_fences_no_writer(storage: Storage) -> None:
    assert storage.claim("one", existing=True).last == 0
    assert storage.claim("one").fence == 1
    assert storage.claim("one", existing=True) == NOTHING
    assert storage.append([Entry("one", 1, (to("a"),))]) == [1]
    assert storage.claim("one", existing=True).last == 1
    storage.delete("one")
    assert storage.claim("one", existing=True) == NOTHING


def test_a_journal_stores_the_trusted_time(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000
    monkeypatch.setattr("actors.journal.storage.postgres.hosts.server_time", lambda _: now)
    expected: ObservedClock | None = None
    for step, elapsed in (
        (0, 0),
        (1_000, 1_000),
        (10**6, 0),
        (4_000, 4_000),
        (10**6, 0),
        (-500, 0),
        (90_000, 90_000),
    ):
        now += step
        expected = observe(expected, now, elapsed)
        assert storage.record_clock(now, elapsed) == expected
        storage.vacuum()
        storage.close()
        storage.open()
    assert expected is not None
    assert expected.gaps == ()


def test_a_log_starts_with_its_first_written_event(storage: Storage) -> None:
    begin(storage, "one", target="b")
    (opened,) = storage.read("one")
    assert opened == Opened("one", "b")
