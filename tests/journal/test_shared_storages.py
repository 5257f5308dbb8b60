"""Check the promises of storages that several hosts share: one host per session, and take-over after a lease.

Logs in memory have one host, so they are not here.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest
from msgspec.structs import replace

from actors.core.log.events import Closed
from actors.errors import Fenced, HostUnavailable, SessionLeased
from actors.journal.storage import Entry, Storage
from actors.journal.storage.directory import ClaimedSession, Host, HostStatus
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite import locks as sqlite_hosts
from tests.journal.postgres import Server
from tests.journal.storages import begin, to

LEASE = 10


@dataclass(frozen=True)
class Hosts:
    """Two hosts of one journal. `age` lets a number of seconds go by for the leases of both."""

    mine: Storage
    theirs: Storage
    age: Callable[[float], None]


def sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    now = [monotonic()]
    monkeypatch.setattr(sqlite_hosts, "monotonic", lambda: now[0])

    def age(seconds: float) -> None:
        now[0] += seconds

    path = tmp_path / "sessions.db"
    return Hosts(SqliteStorage(path, lease=LEASE), SqliteStorage(path, lease=LEASE), age)


def postgres(server: Server, stack: ExitStack) -> Hosts:
    schema = server.schema()
    connection = stack.enter_context(server.connect(schema))

    def age(seconds: float) -> None:
        connection.execute("UPDATE actors_host SET until = until - make_interval(secs => %s)", (seconds,))

    url = server.url(schema)
    return Hosts(PostgresStorage(url, lease=LEASE), PostgresStorage(url, lease=LEASE), age)


@pytest.fixture(params=["sqlite", "postgres"])
def hosts(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    with ExitStack() as stack:
        if request.param == "postgres":
            made = postgres(request.getfixturevalue("postgres"), stack)
        else:
            made = sqlite(tmp_path, monkeypatch)
        for storage in (made.mine, made.theirs):
            storage.open()
            stack.callback(storage.close)
        yield made


def test_two_storages_of_one_journal_count_as_two_hosts(hosts: Hosts) -> None:
    mine, theirs = hosts.mine, hosts.theirs
    claim = begin(mine, "one")
    for refused in (theirs.claim, theirs.delete):
        with pytest.raises(SessionLeased, match="belongs to host") as raised:
            refused("one")
        assert 0 < raised.value.seconds <= LEASE
    mine.append([Entry("one", claim.fence, (to("b"),))])
    assert len(theirs.read("one")) == 2
    mine.release("one", claim.fence)
    assert theirs.claim("one").fence == claim.fence + 1
    with pytest.raises(SessionLeased):
        mine.claim("one")
    theirs.close()
    assert mine.claim("one").last == 2


def test_an_expired_host_loses_only_the_sessions_that_another_host_claimed(
    hosts: Hosts,
) -> None:
    late, other = hosts.mine, hosts.theirs
    claims = {name: begin(late, name) for name in ("one", "two")}
    hosts.age(LEASE - 1)
    with pytest.raises(SessionLeased):
        other.claim("one")
    late.renew_lease()
    hosts.age(LEASE - 1)
    with pytest.raises(SessionLeased):
        other.claim("one")
    hosts.age(2)
    assert other.claim("one").fence == 2
    refused, written = late.append([Entry(name, claim.fence, (to("b"),)) for name, claim in claims.items()])
    assert (str(refused)[:31], written) == ("Session 'one' now has another w", 2)
    assert "fencing number 2 instead of 1" in str(refused)


def test_a_heartbeat_after_a_takeover_does_not_unfence_a_host(hosts: Hosts) -> None:
    late, other = hosts.mine, hosts.theirs
    stale = begin(late, "one")
    hosts.age(LEASE + 1)
    live = other.claim("one")
    other.append([Entry("one", live.fence, (to("live"),))])
    late.renew_lease()
    (outcome,) = late.append([Entry("one", stale.fence, (to("stale"),))])
    assert isinstance(outcome, Fenced)
    assert other.read("one", 1) == [to("live")]


MINE, THEIRS = HostStatus("http://mine"), HostStatus("http://theirs", lag=0.5)


def make_hosts(hosts: Hosts) -> tuple[str, str]:
    """Make both storages hosts with an address, and return the names of the hosts."""
    hosts.mine.renew_lease(MINE)
    hosts.theirs.renew_lease(THEIRS)
    named = {host.address: host.name for host in hosts.mine.hosts()}
    return named["http://mine"], named["http://theirs"]


def host_at(storage: Storage, address: str) -> Host | None:
    """Return the live host with this address."""
    return next((host for host in storage.hosts() if host.address == address), None)


def test_a_host_is_listed_with_its_address_its_sessions_and_its_lease(hosts: Hosts) -> None:
    assert list(hosts.mine.hosts()) == []
    name, _ = make_hosts(hosts)
    begin(hosts.mine, "one")
    begin(hosts.mine, "two")
    (mine,) = [host for host in hosts.theirs.hosts() if host.name == name]
    assert (mine.address, mine.state, mine.sessions, mine.lag) == ("http://mine", "serving", 2, 0.0)
    assert mine.remaining_lease is not None
    assert 0 < mine.remaining_lease <= LEASE
    hosts.mine.renew_lease(HostStatus("http://mine", "draining", 1.5))
    drained = host_at(hosts.theirs, "http://mine")
    assert drained is not None
    assert (drained.state, drained.lag) == ("draining", 1.5)
    hosts.age(LEASE + 1)
    hosts.theirs.renew_lease()
    assert [host.address for host in hosts.theirs.hosts()] == ["http://theirs"]


def test_hosts_are_listed_without_a_count_of_their_sessions(hosts: Hosts) -> None:
    make_hosts(hosts)
    begin(hosts.mine, "one")
    counted, uncounted = (hosts.theirs.hosts(count_sessions=each) for each in (True, False))
    assert {host.address: host.sessions for host in counted} == {"http://mine": 1, "http://theirs": 0}
    assert [replace(host, remaining_lease=None) for host in uncounted] == [
        replace(host, sessions=0, remaining_lease=None) for host in counted
    ]
    hosts.age(LEASE + 1)
    assert list(hosts.theirs.hosts(count_sessions=False)) == []


def test_a_host_without_an_address_is_listed_from_its_first_claim_until_it_closes(hosts: Hosts) -> None:
    begin(hosts.mine, "one")
    (host,) = hosts.theirs.hosts()
    assert (host.address, host.sessions) == ("", 1)
    assert hosts.theirs.find("one").owner == host.name  # type: ignore[union-attr]  # the session has a log
    hosts.mine.close()
    assert list(hosts.theirs.hosts()) == []


def test_a_refused_claim_names_the_address_of_the_owner(hosts: Hosts) -> None:
    make_hosts(hosts)
    begin(hosts.mine, "one")
    with pytest.raises(SessionLeased, match="at http://mine, whose lease") as raised:
        hosts.theirs.claim("one")
    assert raised.value.address == "http://mine"


def test_the_owner_of_a_session_is_checked_without_a_claim(hosts: Hosts) -> None:
    make_hosts(hosts)
    hosts.theirs.check_owner("one")
    claim = begin(hosts.mine, "one")
    hosts.mine.check_owner("one")
    with pytest.raises(SessionLeased, match="at http://mine, whose lease") as raised:
        hosts.theirs.check_owner("one")
    assert raised.value.address == "http://mine"
    hosts.age(LEASE + 1)
    hosts.theirs.check_owner("one")
    assert hosts.mine.append([Entry("one", claim.fence, (to("b"),))]) == [2]
    hosts.mine.renew_lease()
    hosts.mine.release("one", claim.fence)
    hosts.theirs.check_owner("one")
    assert hosts.theirs.find("one").owner is None  # type: ignore[union-attr]  # the session has a log


def test_an_assigned_session_belongs_to_its_new_host_at_once(hosts: Hosts) -> None:
    _, other = make_hosts(hosts)
    claim = begin(hosts.mine, "one")
    hosts.mine.assign("one", claim.fence, other)
    with pytest.raises(SessionLeased, match="http://theirs"):
        hosts.mine.claim("one")
    (outcome,) = hosts.mine.append([Entry("one", claim.fence, (to("stale"),))])
    assert isinstance(outcome, Fenced)
    hosts.mine.release("one", claim.fence)  # no effect: the claim is not the current one
    assert list(hosts.theirs.owned_sessions()) == [ClaimedSession("one", claim.fence + 1)]
    received = hosts.theirs.claim("one")
    assert (received.last, received.taken_from) == (1, "")
    assert received.fence > claim.fence + 1
    assert hosts.theirs.append([Entry("one", received.fence, (to("live"),))]) == [2]


def test_a_session_is_assigned_only_by_its_writer(hosts: Hosts) -> None:
    _, other = make_hosts(hosts)
    stale = begin(hosts.mine, "one")
    live = hosts.mine.claim("one")
    for name, fence in (("one", stale.fence), ("two", 1)):
        with pytest.raises(Fenced):
            hosts.mine.assign(name, fence, other)
    assert hosts.mine.append([Entry("one", live.fence, (to("b"),))]) == [2]


@pytest.mark.parametrize("why", ["draining", "expired", "closed", "unknown"])
def test_a_session_cannot_be_assigned_to_a_host_that_is_not_serving(hosts: Hosts, why: str) -> None:
    _, other = make_hosts(hosts)
    claim = begin(hosts.mine, "one")
    if why == "draining":
        hosts.theirs.renew_lease(HostStatus("http://theirs", "draining"))
    elif why == "expired":
        hosts.age(LEASE + 1)
        hosts.mine.renew_lease()
    elif why == "closed":
        hosts.theirs.close()
    else:
        other = "nobody:1:2"
    with pytest.raises(HostUnavailable, match="is gone or accepts no more sessions"):
        hosts.mine.assign("one", claim.fence, other)
    assert hosts.mine.append([Entry("one", claim.fence, (to("b"),))]) == [2]


def test_a_host_that_released_all_sessions_drains_and_may_write_until_the_next_claim(
    hosts: Hosts,
) -> None:
    name, _ = make_hosts(hosts)
    claims = {session: begin(hosts.mine, session) for session in ("one", "two")}
    hosts.theirs.claim("none")
    hosts.mine.release_all()
    assert list(hosts.mine.owned_sessions()) == []
    drained = host_at(hosts.theirs, "http://mine")
    assert drained is not None
    assert (drained.state, drained.sessions) == ("draining", 0)
    received = hosts.theirs.claim("one")
    refused, written = hosts.mine.append(
        [Entry(session, claim.fence, (to("b"),)) for session, claim in claims.items()]
    )
    assert isinstance(refused, Fenced)
    assert written == 2
    with pytest.raises(HostUnavailable):
        hosts.theirs.assign("one", received.fence, name)


def test_a_new_host_at_the_same_address_takes_over_without_waiting(hosts: Hosts) -> None:
    hosts.mine.renew_lease(MINE)
    stale = begin(hosts.mine, "one")
    hosts.theirs.renew_lease(MINE)
    received = hosts.theirs.claim("one")
    assert received.taken_from
    (outcome,) = hosts.mine.append([Entry("one", stale.fence, (to("stale"),))])
    assert isinstance(outcome, Fenced)
    assert [host.sessions for host in hosts.theirs.hosts()] == [1]


def test_the_open_sessions_of_a_host_are_listed_in_pages(hosts: Hosts) -> None:
    claims = {session: begin(hosts.mine, session) for session in ("a", "b", "c", "d")}
    hosts.mine.claim("empty")
    begin(hosts.theirs, "theirs")
    hosts.mine.append([Entry("b", claims["b"].fence, (Closed(),))])
    assert [owned.id for owned in hosts.mine.owned_sessions(limit=2)] == ["a", "c"]
    assert [owned.id for owned in hosts.mine.owned_sessions("c", 2)] == ["d"]
    assert list(hosts.mine.owned_sessions("d")) == []
    (mine,) = [host for host in hosts.mine.hosts() if host.sessions != 1]
    assert mine.sessions == 4  # including the session that has no log yet


def test_an_in_memory_journal_has_one_host_and_hands_over_no_session() -> None:
    storage = MemoryStorage()
    assert list(storage.hosts()) == []
    claim = begin(storage, "one")
    storage.renew_lease(MINE)
    assert list(storage.hosts()) == [Host("memory", "http://mine", "serving", 1, 0.0, None)]
    (uncounted,) = storage.hosts(count_sessions=False)
    assert uncounted.sessions == 0
    assert list(storage.owned_sessions()) == [ClaimedSession("one", claim.fence)]
    storage.check_owner("one")
    with pytest.raises(HostUnavailable):
        storage.assign("one", claim.fence, "memory")
    with pytest.raises(Fenced):
        storage.assign("one", claim.fence + 1, "other")
    storage.release_all()
    assert list(storage.owned_sessions()) == []
