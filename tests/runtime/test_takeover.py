"""Hosts in several processes share a journal: a host that dies or stops is taken over, and writes nothing later."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import chain, pairwise
from pathlib import Path
from threading import Semaphore, Thread
from time import monotonic, sleep
from typing import Any

import anyio
import anyio.to_thread
import pytest

from actors import Runtime
from actors.core.log.events import LogEvent, SwitchApplied
from actors.errors import JournalUnavailable, SessionLeased
from actors.journal.storage import Claim, Entry, Storage
from actors.journal.storage.named import create_storage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite.locks import is_held
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.journal.postgres import Server, temporary_server
from tests.journal.storages import begin, to
from tests.runtime.forked import Forked
from tests.runtime.takeover_host import tools

LEASE = 1.5
"""Seconds. A test waits until the lease has expired."""


class Child:
    """A host in its own process."""

    def __init__(self, where: str, *program: str) -> None:
        self._process = Forked(*program)
        self.tell(where)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def tell(self, *words: object) -> None:
        """Send a command."""
        print(*words, file=self._process.stdin, flush=True)

    def read_words(self) -> list[str]:
        """Return the words of the next line of output, or none if the process has ended."""
        return self._process.stdout.readline().split()

    def ask(self, *words: object) -> list[str]:
        """Send a command, and return the answer."""
        self.tell(*words)
        return self.read_words()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        os.kill(self._process.pid, number)

    def stop(self, where: str) -> None:
        """Stop the process while it holds no file lock, which would block all others."""
        lock = Path(f"{where}-lock")
        while True:
            self._process.stop()
            if not lock.exists() or not is_held(lock):
                return
            self.signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill the process if it is running."""
        self._process.end()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the path or address of a journal that several processes can share."""
    if request.param == "sqlite":
        return str(tmp_path / "sessions.db")
    server: Server = request.getfixturevalue("postgres")
    return server.url(server.schema())


@pytest.fixture
def children(where: str) -> Iterator[list[Child]]:
    """Return two hosts that execute commands (`tests.runtime.takeover_child`)."""
    two = [Child(where, "tests.runtime.takeover_child", str(LEASE)) for _ in range(2)]
    assert [child.read_words() for child in two] == [["open"], ["open"]]
    yield two
    for child in two:
        child.end()


@pytest.fixture
def mine(where: str) -> Iterator[Storage]:
    """Return a storage of this process."""
    storage = create_storage(where, lease=600)
    yield storage
    storage.close()


def take_over(storage: Storage, session: str) -> Claim:
    """Claim a session of a dead host, at once or as soon as its lease has expired."""
    until = monotonic() + 60
    while True:
        try:
            return storage.claim(session)
        except SessionLeased as elsewhere:
            if monotonic() > until:
                raise
            sleep(min(elsewhere.seconds, LEASE) + 0.01)


@pytest.mark.requirement("PROMISE-6")
def test_a_killed_host_is_taken_over_without_loss_or_repetition(children: list[Child], mine: Storage) -> None:
    child, _ = children
    assert child.ask("claim", "one") == ["claimed", "1", "0"]
    child.tell("load", "one", 1)
    told = [child.read_words() for _ in range(50)]
    assert told == [[str(number)] for number in range(1, 51)]
    child.end()
    claim = take_over(mine, "one")
    log = mine.read("one")
    assert claim == Claim(2, len(log), claim.taken_from)
    assert claim.taken_from
    assert len(log) >= 50
    assert log == [to(str(number)) for number in range(len(log))]
    assert mine.append([Entry("one", 2, (to("mine"),))]) == [len(log) + 1]


@pytest.mark.requirement("PROMISE-6")
def test_a_suspended_host_writes_nothing_to_sessions_that_were_taken_over_meanwhile(
    where: str, children: list[Child], mine: Storage
) -> None:
    stopped, _ = children
    for session in ("one", "two"):
        assert stopped.ask("claim", session) == ["claimed", "1", "0"]
    assert stopped.ask("append", "one", 1, "before") == ["1"]
    stopped.stop(where)
    claim = take_over(mine, "one")
    assert claim == Claim(2, 1, claim.taken_from)
    assert claim.taken_from
    assert mine.claim("one") == Claim(3, 1)  # a second claim by the same host
    stopped.tell("append", "one", 1, "stale")
    stopped.tell("append", "two", 1, "own")
    stopped.tell("claim", "one")
    assert mine.append([Entry("one", 3, (to("live"),))]) == [2]
    stopped.signal(signal.SIGCONT)
    assert stopped.read_words() == ["fenced"]
    assert stopped.read_words() == ["1"]  # sessions that were not taken over can still be written
    assert stopped.read_words() == ["elsewhere"]
    assert mine.read("one") == [to("before"), to("live")]
    assert stopped.ask("beat") == ["beaten"]


def _numbers(lines: list[list[str]], what: str, session: str) -> list[int]:
    return [int(line[2]) for line in lines if line[:2] == [what, session]]


@pytest.mark.requirement("PROMISE-6")
def test_racing_claims_get_increasing_fencing_numbers_and_logs_keep_the_order_of_claims(
    children: list[Child], mine: Storage
) -> None:
    sessions = [f"s{number}" for number in range(8)]
    heard: list[list[list[str]]] = [[], []]

    def hear(child: Child, lines: list[list[str]]) -> None:
        while (line := child.read_words()) and line != ["done"]:
            lines.append(line)

    threads = [Thread(target=hear, args=pair) for pair in zip(children, heard, strict=True)]
    for seed, (child, thread) in enumerate(zip(children, threads, strict=True)):
        child.tell("race", seed, 500, *sessions)
        thread.start()
    for thread in threads:
        thread.join()
    for session in sessions:
        claimed = [_numbers(lines, "claimed", session) for lines in heard]
        written = [_numbers(lines, "wrote", session) for lines in heard]
        assert all(claimed)  # both children had claims
        assert all(after > before for fences in claimed for before, after in pairwise(fences))
        assert sorted(chain(*claimed)) == list(range(1, 1 + sum(map(len, claimed))))
        log = [int(event.target) for event in mine.read(session) if isinstance(event, SwitchApplied)]
        assert log == sorted(chain(*written))  # each event once, in the order of the claims


@pytest.mark.requirement("PROMISE-6")
def test_a_database_killed_and_restarted_under_load_loses_nothing(
    postgres: Server,
) -> None:
    with temporary_server() as server:
        server.start()
        storage = create_storage(server.url())
        told = dict.fromkeys(("one", "two", "three"), 0)
        fences = {session: storage.claim(session).fence for session in told}
        refusals, is_over, written = list[str](), list[bool](), Semaphore(0)

        def write() -> None:
            while not is_over:
                entries = [Entry(each, fences[each], (to(str(told[each])),)) for each in told]
                try:
                    outcomes = storage.append(entries)
                except Exception as error:
                    refusals.append(type(error).__name__)
                    continue
                for each, outcome in zip(told, outcomes, strict=True):
                    told[each] += 1
                    assert outcome == told[each]
                written.release()

        writer = Thread(target=write)
        writer.start()
        for _ in range(3):
            for _ in range(20):
                assert written.acquire(timeout=60)
            server.kill()
            server.start()
        is_over.append(True)
        writer.join()
        assert set(refusals) <= {"JournalUnavailable"}
        for session, events in told.items():
            assert storage.read(session) == [to(str(number)) for number in range(events)]
        storage.close()


def _read_when_available(storage: Storage) -> list[LogEvent]:
    """Read a log as soon as the database answers, which may take a while on a busy machine."""
    until = monotonic() + 60
    while True:
        try:
            return storage.read("one", 1)
        except JournalUnavailable:
            if monotonic() > until:
                raise


def test_writes_are_refused_while_a_stopped_database_does_not_answer(postgres: Server) -> None:
    with temporary_server() as server:
        server.start()
        storage = PostgresStorage(server.url(), lease=4, patience=0.1, statement_timeout=1.5)
        claim = begin(storage, "one")
        refusals = list[str]()

        def lose() -> None:
            for _ in range(2):
                try:
                    storage.append([Entry("one", claim.fence, (to("lost"),))])
                except JournalUnavailable as error:
                    refusals.append(str(error))

        server.freeze()
        writer = Thread(target=lose)
        writer.start()
        writer.join(60)
        server.thaw()
        writer.join()
        assert len(refusals) == 2
        assert _read_when_available(storage) == []
        assert storage.append([Entry("one", claim.fence, (to("kept"),))]) == [2]
        assert storage.read("one", 1) == [to("kept")]
        storage.close()


# Runtimes


def pay_in_turn(request: dict[str, Any]) -> Turn:
    """Call `note` when asked to pay, then `pay`; otherwise answer."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return Turn(Call("pay", {"amount": 5}))
    return Turn(Call("note", {"text": "paying"})) if "pay" in last["content"] else Turn(Say("Well."))


@asynccontextmanager
async def paying_runtime(where: str, backend: str, file: Path) -> AsyncIterator[tuple[Child, str]]:
    """Yield a runtime in its own process, whose session `trip` is paying, and its server's address."""
    server = OpenAIServer(pay_in_turn)
    async with serve(server):
        child = Child(where, "tests.runtime.takeover_host", str(LEASE), backend, server.base_url, str(file))
        try:
            assert await anyio.to_thread.run_sync(child.read_words) == ["paying"]
            yield child, server.base_url
        finally:
            child.end()
        assert server.refusals == []


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-7")
async def test_a_killed_runtime_is_taken_over_and_no_tool_runs_twice(
    where: str, tmp_path: Path, anyio_backend: str
) -> None:
    file = tmp_path / "ran"
    with anyio.fail_after(120):
        async with paying_runtime(where, anyio_backend, file) as (child, base_url):
            child.signal(signal.SIGKILL)
            async with Runtime(environ={"OPENAI_BASE_URL": base_url}, journal=where) as runtime:
                session = await runtime.resume("trip", tools=tools(file), wait=60)
                note, pay = (await session.ledger()).interactions()
                answer = await session.ask("And now?")
    assert (note.status, note.reason) == ("complete", None)
    assert (pay.status, pay.reason) == ("unknown", "outcome_unknown")
    assert answer.status == "complete"
    assert sorted(file.read_text().split()) == ["note", "pay"]


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_a_stopped_and_resumed_runtime_ends_only_the_sessions_that_were_taken_over(
    where: str, tmp_path: Path, anyio_backend: str
) -> None:
    file = tmp_path / "ran"
    with anyio.fail_after(120):
        async with paying_runtime(where, anyio_backend, file) as (child, base_url):
            child.stop(where)
            async with Runtime(environ={"OPENAI_BASE_URL": base_url}, journal=where) as runtime:
                session = await runtime.resume("trip", tools=tools(file), wait=60)
                before = (await session.ask("And now?")).status
                events = runtime._storage.read("trip")
                child.tell("go on")
                child.signal(signal.SIGCONT)
                heard = [await anyio.to_thread.run_sync(child.read_words) for _ in range(2)]
                assert runtime._storage.read("trip") == events
    assert before == "complete"
    assert heard == [["trip", "Fenced"], ["spare", "complete"]]
