"""A router sends a request to a remembered owner only while the journal, if it can be read, lists the owner as live."""

from collections.abc import Sequence

import pytest

from actors.errors import HostUnavailable, JournalUnavailable, SessionLeased
from actors.hosts import RouterLimits
from actors.hosts.directory import HostDirectory, HostSearch
from actors.hosts.routing import Rejection, RoutingTable
from actors.journal.storage.directory import Host

pytestmark = pytest.mark.anyio

LIVE, LEFT, HERE = "http://live", "http://left", "http://here"
HOSTS = [Host(LIVE, LIVE, "serving", 0, 0.0, 10.0)]
LOST = Rejection("lost", HostUnavailable("no answer"))


class Knowledge:
    """What a router knows: the owner of the session `s`, and the live hosts; None if the journal cannot be read."""

    def __init__(self, owner: str, hosts: Sequence[Host] | None) -> None:
        self.hosts, self.now = hosts, 100.0
        self.table = RoutingTable(RouterLimits())
        self.table.record_owner("s", owner)
        self.directory = HostDirectory(self._read, lambda: self.now)

    async def _read(self) -> Sequence[Host]:
        if self.hosts is None:
            raise JournalUnavailable("no connection")
        return self.hosts

    def search(self) -> HostSearch:
        return HostSearch("s", HERE, self.table, self.directory)


async def test_an_owner_that_is_not_a_live_host_is_forgotten() -> None:
    known = Knowledge(LEFT, HOSTS)
    assert await known.search().next_address() == LIVE
    assert known.table.owner("s") is None


@pytest.mark.parametrize("owner", [LIVE, HERE])
async def test_a_request_is_sent_to_a_live_owner_and_to_this_host_as_owner(owner: str) -> None:
    assert await Knowledge(owner, HOSTS).search().next_address() == owner


@pytest.mark.parametrize("hosts", [None, ()])
async def test_a_request_is_sent_to_its_owner_while_no_list_of_hosts_can_be_read(
    hosts: Sequence[Host] | None,
) -> None:
    assert await Knowledge(LEFT, hosts).search().next_address() == LEFT


async def test_a_request_is_sent_to_its_owner_while_the_list_of_hosts_is_not_current() -> None:
    known = Knowledge(LEFT, HOSTS)
    await known.directory.hosts()
    known.hosts, known.now = None, 200.0
    assert await known.search().next_address() == LEFT


async def test_an_owner_that_loses_a_request_twice_counts_as_one_host() -> None:
    """Otherwise, it would count as two hosts when it loses the request again."""
    search = Knowledge(LIVE, [Host("process", LIVE, "serving", 0, 0.0, 10.0)]).search()
    assert await search.next_address() == LIVE
    search.reject(Rejection("leased", SessionLeased("leased", address=LIVE), LIVE))
    assert await search.next_address() == LIVE
    search.reject(LOST)
    assert search._route._lost == {(LIVE, "process")}


async def test_this_host_is_avoided_after_it_has_lost_the_request() -> None:
    search = Knowledge(HERE, HOSTS).search()
    assert await search.next_address() == HERE
    search.reject(LOST)
    assert await search.next_address() == LIVE
    search.reject(Rejection("leased", SessionLeased("leased", address=HERE), HERE))
    assert await search.next_address() == LIVE


async def test_a_request_is_sent_to_an_owner_that_a_host_has_just_named() -> None:
    """The owner may have joined after the list was read."""
    known = Knowledge(LIVE, HOSTS)
    search = known.search()
    assert await search.next_address() == LIVE
    search.reject(Rejection("leased", SessionLeased("leased", address="http://new"), "http://new"))
    assert await search.next_address() == "http://new"
