"""Check the promises of storages that several hosts share: one host per session, and take-over after a lease.

Logs in memory have one host, so they are not here.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from actors.errors import Fenced, SessionLeased
from actors.journal.storage import Entry, Storage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite import hosts as sqlite_hosts
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


def test_two_storages_of_one_journal_are_two_hosts(hosts: Hosts) -> None:
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


def test_an_expired_host_loses_claimed_sessions_and_keeps_the_others(
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
