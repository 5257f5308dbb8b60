"""Forked workers hold none of their host's locks, so a killed host can be taken over at once."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import takewhile
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from actors import Runtime
from actors.errors import SessionLeased
from actors.journal.storage import Claim, Durability, Entry
from actors.journal.storage.sqlite import SqliteStorage
from actors.testing import OpenAIServer, serve
from tests.journal.storages import to
from tests.runtime.takeover_host import tools
from tests.runtime.test_takeover import Child, pay_in_turn

LEASE = 600.0
"""Seconds. No test waits for the lease to end, so a session that is taken over was free at once."""


class ForkingHost(Child):
    """A host in its own process, which forks workers. At its end, the workers are killed by their process ids."""

    def __init__(self, where: str, *program: str) -> None:
        super().__init__(where, *program)
        self._workers = list[int]()

    def read_worker_pid(self) -> None:
        """Read and remember the process id of a worker that the host has forked."""
        _, worker = self.read_words()
        self._workers.append(int(worker))

    def use_in_fork(self, path: Path) -> list[list[str]]:
        """Use the journal in a forked child; return the output."""
        self.tell("inherit", path)
        return list(takewhile(lambda words: words not in ([], ["ended"]), iter(self.read_words, None)))

    def has_living_workers(self) -> bool:
        """Return True if every worker is alive."""
        return all(Path(f"/proc/{worker}/stat").exists() for worker in self._workers)

    def end(self) -> None:
        super().end()
        for worker in self._workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def host(path: Path) -> Iterator[ForkingHost]:
    child = ForkingHost(str(path), "tests.runtime.takeover_child", str(LEASE))
    assert child.read_words() == ["open"]
    yield child
    child.end()


@pytest.mark.requirement("PROMISE-6")
@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_host_killed_in_a_write_is_taken_over_while_its_workers_live(
    durability: Durability, path: Path, host: ForkingHost
) -> None:
    assert host.ask("claim", "one") == ["claimed", "1", "0"]
    assert host.ask("append", "one", 1, "kept") == ["1"]
    host.tell("fork")
    host.read_worker_pid()
    assert host.ask("write", "one", 1) == ["writing"]
    Child.end(host)
    with closing(SqliteStorage(path, durability=durability)) as mine:
        claim = mine.claim("one")
        assert claim == Claim(2, 1, claim.taken_from)
        assert claim.taken_from
        assert mine.append([Entry("one", 2, (to("mine"),))]) == [2]
        assert mine.read("one") == [to("kept"), to("mine")]
    assert host.has_living_workers()


@pytest.mark.requirement("PROMISE-6")
def test_a_host_killed_between_writes_is_taken_over_while_workers_live(path: Path, host: ForkingHost) -> None:
    assert host.ask("claim", "one") == ["claimed", "1", "0"]
    for _ in range(3):
        host.tell("fork")
        host.read_worker_pid()
    assert host.ask("append", "one", 1, "kept") == ["1"]
    Child.end(host)
    with closing(SqliteStorage(path)) as mine:
        claim = mine.claim("one")
        assert claim == Claim(2, 1, claim.taken_from)
        assert claim.taken_from
    assert host.has_living_workers()


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_a_runtime_killed_with_a_process_pool_is_taken_over_at_once(
    path: Path, anyio_backend: str
) -> None:
    file = path.with_name("ran")
    with anyio.fail_after(120):
        async with serve(server := OpenAIServer(pay_in_turn)):
            program = (
                "tests.runtime.takeover_host",
                str(LEASE),
                anyio_backend,
                server.base_url,
                str(file),
                "forking",
            )
            host = ForkingHost(str(path), *program)
            try:
                await anyio.to_thread.run_sync(host.read_worker_pid)
                assert await anyio.to_thread.run_sync(host.read_words, abandon_on_cancel=True) == ["paying"]
                Child.end(host)
                async with Runtime(environ={"OPENAI_BASE_URL": server.base_url}, journal=path) as runtime:
                    session = await runtime.resume("trip", tools=tools(file))
                    assert (await session.ask("And now?")).status == "complete"
                assert host.has_living_workers()
            finally:
                host.end()
    assert sorted(file.read_text().split()) == ["note", "pay"]


def test_a_forked_child_can_neither_use_nor_close_the_journal_of_its_parent(
    path: Path, host: ForkingHost
) -> None:
    assert host.ask("claim", "one") == ["claimed", "1", "0"]
    *refusals, closed = host.use_in_fork(path)
    assert [method for method, *_ in refusals] == ["open", "sessions", "vacuum", "open"]
    for _, *why in refusals:
        assert " ".join(why).startswith(f"{path}: this process was forked while the file was open")
    assert closed == ["closed"]
    assert host.ask("append", "one", 1, "on") == ["1"]
    with closing(SqliteStorage(path)) as other:
        with pytest.raises(SessionLeased):
            other.claim("one")
        assert other.read("one") == [to("on")]


def test_a_forked_child_may_use_a_journal_closed_by_its_parent(path: Path, host: ForkingHost) -> None:
    host.tell("close")
    assert host.use_in_fork(path) == [["open"], ["sessions"], ["vacuum"], ["open"], ["closed"]]
