"""Three hosts of one journal behind a client that sends each request to the next host, whoever owns the session."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from actors.hosts import RouterLimits
from actors.hosts.attempts import Forwarder, UnroutedAnswer
from actors.hosts.routing import RoutingTable, place
from actors.journal.storage.directory import Host
from actors.runtime.journal_admin import JournalAdmin
from actors.testing import Stall
from tests.hosts.support import MakeStorage, RoutedCluster, RoutedHost, asked, open_storage, routed_cluster
from tests.journal.postgres import Server

pytestmark = [
    pytest.mark.anyio,
    # on trio, httpcore2 leaves the generator of a response that is not read to its end to the garbage collector
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in.*PoolByteStream:pytest.PytestUnraisableExceptionWarning",
        "ignore:.*PoolByteStream.*:ResourceWarning",
    ),
]

LONG = 3600.0
"""Seconds of a lease that does not expire during a test."""
SESSIONS = [f"s{number}" for number in range(9)]
TEXTS = ["one", "two", "three", "four"]


@pytest.fixture(params=["sqlite", "postgres"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStorage:
    """Return a function that returns another storage of the same journal."""
    if request.param == "sqlite":
        return lambda: open_storage(str(tmp_path / "sessions.db"), LONG)
    server: Server = request.getfixturevalue("postgres")
    url = server.url(server.schema())
    return lambda: open_storage(url, LONG)


@pytest.fixture(autouse=True)
def frequent_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the list of hosts more often."""
    monkeypatch.setattr("actors.hosts.directory.PERIOD", 0.05)


@pytest.fixture
async def cluster(journal: MakeStorage) -> AsyncIterator[RoutedCluster]:
    async with routed_cluster(journal) as found:
        yield found


def assert_asked_once(host: RoutedHost, sessions: list[str] = SESSIONS, texts: list[str] = TEXTS) -> None:
    """Check that the log of each session contains each ask once, in order."""
    for session in sessions:
        assert asked(host.runtime, session) == [f"{session} {text}" for text in texts]


@pytest.mark.parametrize("answers_errors", [False, True])
async def test_a_client_without_knowledge_of_owners_sees_no_error(
    cluster: RoutedCluster, answers_errors: bool
) -> None:
    hosts = await cluster.start(3, answers_errors=answers_errors)
    await cluster.ask_all(hosts, SESSIONS, TEXTS)
    assert_asked_once(hosts[0])
    live = await hosts[0].runtime.journal.hosts()
    placed = {session: place(session, live, frozenset(), 1.0) for session in SESSIONS}
    for host in hosts:
        assert {*host.runtime.sessions} == {name for name, address in placed.items() if address == host.url}


async def test_a_client_sees_no_error_while_sessions_move(cluster: RoutedCluster) -> None:
    hosts = await cluster.start(3)
    await cluster.ask_all(hosts, SESSIONS, TEXTS[:1])
    moved = list[str]()

    async def move_all() -> None:
        for host, other in zip(hosts, [*hosts[1:], hosts[0]], strict=True):
            for session in [*host.runtime.sessions]:
                await host.runtime.hand_over(session, to=other.url)
                moved.append(session)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(move_all)
        tasks.start_soon(cluster.ask_all, hosts, SESSIONS, TEXTS[1:])
    assert {*moved} >= {*SESSIONS}
    assert_asked_once(hosts[0])


async def test_a_client_sees_no_error_while_a_host_leaves_and_another_joins(cluster: RoutedCluster) -> None:
    hosts = await cluster.start(3)
    await cluster.ask_all(hosts, SESSIONS, TEXTS[:1])
    *rest, first = sorted(hosts, key=lambda host: len(host.runtime.sessions))
    assert first.runtime.sessions
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.ask_all, [*rest], SESSIONS, TEXTS[1:3])
        await first.leave()
        *_, joined = await cluster.start()
    await cluster.ask_all([*rest, joined], SESSIONS, TEXTS[3:])
    assert_asked_once(joined)
    number = 0
    while not joined.runtime.sessions:  # as soon as the other host has read the list of hosts again
        number += 1
        await cluster.ask(rest[0], f"further-{number}", "Hello.")


async def test_sessions_move_to_a_host_that_joins_until_the_load_is_even(cluster: RoutedCluster) -> None:
    (first,) = await cluster.start(rebalance=0.02)
    await cluster.ask_all([first], SESSIONS, TEXTS[:1])
    _, joined = await cluster.start(rebalance=0.02)
    counts = [len(SESSIONS), 0]
    while max(counts) > 1.2 * len(SESSIONS) / 2:
        await cluster.ask_all([joined, first], SESSIONS[:1], ["again"])
        counts = [host.sessions for host in await joined.runtime.journal.hosts()]
    await cluster.ask_all([first, joined], SESSIONS[1:], TEXTS[1:])
    assert_asked_once(first, SESSIONS[1:])
    assert joined.runtime.sessions


async def test_a_host_moves_its_sessions_before_it_leaves(cluster: RoutedCluster) -> None:
    owner, other = await host_of(cluster, "one")
    await owner.leave()
    (live,) = await other.runtime.journal.hosts()
    assert (live.address, live.sessions) == (other.url, 1)


async def test_a_router_reads_hosts_without_a_count_of_their_sessions(
    cluster: RoutedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, counts = JournalAdmin.hosts, list[bool]()

    async def record(self: JournalAdmin, *, count_sessions: bool = True) -> Sequence[Host]:
        counts.append(count_sessions)
        return await read(self, count_sessions=count_sessions)

    monkeypatch.setattr(JournalAdmin, "hosts", record)
    await host_of(cluster, "one")
    assert {*counts} == {False}


async def test_repeated_requests_with_one_key_at_all_hosts_are_one_ask(cluster: RoutedCluster) -> None:
    hosts = await cluster.start(3)
    async with anyio.create_task_group() as tasks:
        for host in [*hosts, *hosts]:
            tasks.start_soon(cluster.ask, host, "one", "Hello.", "k")
    await cluster.ask(hosts[1], "one", "Hello.", "k")
    assert asked(hosts[0].runtime, "one") == ["Hello."]


@pytest.mark.parametrize("is_forwarded", [False, True])
async def test_an_ask_cancelled_by_its_host_continues_at_another_host(
    cluster: RoutedCluster, is_forwarded: bool
) -> None:
    owner, other = await host_of(cluster, "one")
    stalled = anyio.Event()

    def stall_once(_: int, body: object) -> Stall | None:
        if stalled.is_set() or "Again." not in str(body):
            return None
        stalled.set()
        return Stall(after_bytes=100)

    cluster.server.faults = stall_once
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.ask, other if is_forwarded else owner, "one", "Again.")
        await stalled.wait()
        await owner.runtime.hand_over("one", to=other.url, timeout=0)
    assert [*other.runtime.sessions] == ["one"]
    assert asked(other.runtime, "one") == ["Hello.", "Again."]


async def host_of(cluster: RoutedCluster, session: str) -> tuple[RoutedHost, RoutedHost]:
    """Start two hosts, and open a session. Return its owner and the other host."""
    hosts = await cluster.start(2)
    owner = (await cluster.ask(hosts[0], session, "Hello."))["host"]
    first, second = hosts if hosts[0].url == owner else hosts[::-1]
    return first, second


@asynccontextmanager
async def reading(cluster: RoutedCluster, host: RoutedHost, after: int = 0) -> AsyncIterator["Reader"]:
    """Read the events of the session `one` through a host, and close the connection at the end of the block."""
    headers = {"last-event-id": str(after)}
    async with cluster.client.stream("GET", f"{host.url}/sessions/one/events", headers=headers) as response:
        assert response.headers["content-type"] == "text/event-stream"
        async with aclosing(response.aiter_raw()) as pieces:
            yield Reader(pieces)


class Reader:
    """The events that a client has received."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self.text = ""

    async def until(self, words: str, times: int = 1) -> None:
        """Read until the text contains the words so many times."""
        while self.text.count(words) < times:
            self.text += (await anext(self._pieces)).decode()

    async def rest(self) -> None:
        """Read until the response ends."""
        async for piece in self._pieces:
            self.text += piece.decode()

    @property
    def last(self) -> int:
        """The number of the last event."""
        return max(int(line[4:]) for line in self.text.splitlines() if line.startswith("id: "))


async def test_events_are_forwarded_as_they_occur_and_continue_at_another_host(
    cluster: RoutedCluster,
) -> None:
    owner, other = await host_of(cluster, "one")
    async with reading(cluster, other) as first:
        await first.until("event: complete")
        await cluster.ask(other, "one", "Again.")
        await first.until("event: complete", 2)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(owner.leave)
            await first.rest()  # the stream ends, because the session leaves its host
    await cluster.ask(other, "one", "At another host.")
    async with reading(cluster, other, first.last) as second:
        await second.until("event: complete")
    assert "At another host." in second.text
    assert "Again." not in second.text


async def test_a_forwarded_event_stream_ends_as_soon_as_the_forwarding_host_begins_to_leave(
    cluster: RoutedCluster,
) -> None:
    owner, other = await host_of(cluster, "one")
    stalled = anyio.Event()

    def stall(_: int, body: object) -> Stall | None:
        if stalled.is_set() or "Wait." not in str(body):
            return None
        stalled.set()
        return Stall(after_bytes=100)

    cluster.server.faults = stall
    busy = await other.runtime.open("a", id="busy")
    async with reading(cluster, other) as events, anyio.create_task_group() as tasks:
        await events.until("event: complete")
        tasks.start_soon(busy.ask, "Wait.")
        await stalled.wait()
        tasks.start_soon(other.leave)
        await events.rest()
        assert "busy" in other.runtime.sessions  # the drain has not ended
        await busy.cancel()
    assert "one" in owner.runtime.sessions


async def test_a_client_that_disconnects_ends_the_forwarded_request(cluster: RoutedCluster) -> None:
    owner, other = await host_of(cluster, "one")
    async with reading(cluster, other) as events:
        await events.until("event: complete")
        assert not owner.app.left.is_set()
    await owner.app.left.wait()


async def test_a_body_above_the_limit_is_rejected_before_the_application_sees_it(
    cluster: RoutedCluster,
) -> None:
    (host,) = await cluster.start(limits=RouterLimits(max_body=100))
    url = f"{host.url}/sessions/one/ask"
    response = await cluster.client.post(url, json={"text": "x" * 100})
    assert response.status_code == 413
    assert response.json() == {"error": "The body of a request for a session is limited to 100 bytes"}
    assert host.app.requests == []
    await cluster.ask(host, "one", "x" * 80)


async def test_a_forwarded_request_is_not_forwarded_again_and_names_the_owner(cluster: RoutedCluster) -> None:
    owner, other = await host_of(cluster, "one")
    url, count = f"{other.url}/sessions/one/ask", len(owner.app.requests)
    response = await cluster.client.post(url, json={"text": "Hi."}, headers={"actors-forwards": "1"})
    assert response.status_code == 421
    assert response.headers["actors-owner"] == owner.url
    assert len(owner.app.requests) == count


async def test_a_forwarded_request_has_the_key_and_the_address_of_the_client(cluster: RoutedCluster) -> None:
    owner, other = await host_of(cluster, "one")
    sent = {
        "x-forwarded-for": "203.0.113.9",
        "te": "trailers",
        "x-mine": "1",
        "connection": "close, x-hop",
        "x-hop": "1",
    }
    url = f"{other.url}/sessions/one/ask?a=%2F&b"
    await cluster.client.post(url, json={"text": "Hi."}, headers=sent)
    await cluster.client.post(url, json={"text": "Hi."}, headers={**sent, "idempotency-key": "mine"})
    first, second = ({**dict(scope["headers"])} for scope in owner.app.requests[-2:])
    assert owner.app.requests[-1]["query_string"] == b"a=%2F&b"
    addresses = [value for name, value in owner.app.requests[-2]["headers"] if name == b"x-forwarded-for"]
    assert addresses == [b"203.0.113.9, 192.0.2.1"]
    assert first[b"x-mine"] == b"1"
    assert not {b"te", b"x-hop"} & {*first}
    assert len(first[b"idempotency-key"]) == 32
    assert second[b"idempotency-key"] == b"mine"


async def test_a_request_without_a_session_is_answered_by_the_host_that_receives_it(
    cluster: RoutedCluster,
) -> None:
    for host in await cluster.start(2):
        response = await cluster.client.post(f"{host.url}/status", content=b"{}")
        assert response.json() == {"host": host.url}
        assert "idempotency-key" not in dict(host.app.requests[-1]["headers"])


async def test_a_server_that_refuses_a_request_does_not_own_its_session(
    cluster: RoutedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer comes from the server or a proxy, so it says nothing about the session."""

    async def refuse(*_: object) -> UnroutedAnswer:
        return UnroutedAnswer(431, "The headers are too long")

    owners = list[str]()
    monkeypatch.setattr(Forwarder, "forward", refuse)
    monkeypatch.setattr(RoutingTable, "record_owner", lambda _, session, address: owners.append(address))
    here, other = await cluster.start(2)
    live = await here.runtime.journal.hosts()
    session = next(name for name in SESSIONS if place(name, live, frozenset(), 1.0) == other.url)
    response = await cluster.client.post(f"{here.url}/sessions/{session}/ask", json={"text": "Hi."})
    assert (response.status_code, response.json()) == (431, {"error": "The headers are too long"})
    assert owners == []


async def test_a_request_ends_with_503_if_no_host_accepts_it_in_time(
    cluster: RoutedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="actors")
    limits = RouterLimits(deadline=0.1, max_delay=0.02)
    (host,) = await cluster.start(limits=limits)
    await host.runtime.drain()
    response = await cluster.client.post(f"{host.url}/sessions/one/ask", json={"text": "Hi."})
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert "actors-rejection" not in response.headers
    assert "No host can answer" in json.loads(response.text)["error"]
    (line,) = (record.getMessage() for record in caplog.records if "request_given_up" in record.getMessage())
    assert "draining" in line
