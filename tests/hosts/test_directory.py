"""The list of hosts is read at most once per period, for all requests together."""

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest

from actors.core.data.record import replace
from actors.errors import JournalUnavailable
from actors.hosts.directory import MIN_PERIOD, PERIOD, HostDirectory
from actors.journal.storage.directory import Host

pytestmark = pytest.mark.anyio

HOSTS = [Host(name, f"http://{name}", "serving", 0, 0.0, 10.0) for name in ("a", "b")]


class Journal:
    """A journal whose clock, list of hosts and failure the test sets."""

    def __init__(self) -> None:
        self.now, self.reads = 100.0, 0
        self.hosts: Sequence[Host] = HOSTS
        self.is_failing = False
        self.directory = HostDirectory(self.read, lambda: self.now)

    async def read(self) -> Sequence[Host]:
        self.reads += 1
        await anyio.lowlevel.checkpoint()
        if self.is_failing:
            raise JournalUnavailable("no connection")
        return self.hosts


async def test_concurrent_readers_share_one_read_per_period() -> None:
    journal, found = Journal(), list[Sequence[Host]]()

    async def read() -> None:
        found.append(await journal.directory.hosts())

    for reads in (1, 2):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(read)
        assert (journal.reads, len(found)) == (reads, 10 * reads)
        journal.now += PERIOD - 0.001
        await read()
        assert journal.reads == reads
        found.pop()
        journal.now += 0.001
    assert found == [HOSTS] * 20


async def test_a_cancelled_reader_leaves_the_read_to_the_next_reader() -> None:
    journal = Journal()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await journal.directory.hosts()
    with anyio.fail_after(10):
        assert await journal.directory.hosts() == HOSTS


async def test_the_last_list_of_hosts_stays_in_use_while_the_journal_cannot_be_read() -> None:
    journal = Journal()
    await journal.directory.hosts()
    journal.is_failing, journal.hosts = True, []
    journal.now += PERIOD
    assert await journal.directory.hosts() == HOSTS
    assert await journal.directory.hosts() == HOSTS
    assert journal.reads == 2
    journal.is_failing = False
    journal.now += PERIOD
    assert await journal.directory.hosts() == []


async def test_a_list_read_before_the_question_does_not_prove_that_a_host_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The host may have joined in the meantime."""
    monkeypatch.setattr("actors.hosts.directory.PERIOD", 0.001)
    begun, ended, reads, gone = anyio.Event(), anyio.Event(), list[int](), list[str]()

    async def read() -> Sequence[Host]:
        reads.append(len(reads))
        if len(reads) == 1:
            begun.set()
            await ended.wait()
            return HOSTS[:1]
        return HOSTS

    directory = HostDirectory(read)

    async def wait() -> None:
        await directory.wait_gone("http://b")
        gone.append("b")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(directory.hosts)
            await begun.wait()
            tasks.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            ended.set()
            while len(reads) < 3:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert gone == []


async def test_a_host_is_gone_when_a_current_list_lacks_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.hosts.directory.PERIOD", 0.001)
    journal = Journal()
    gone = list[str]()

    async def wait() -> None:
        await journal.directory.wait_gone("http://b")
        gone.append("b")

    async def read_again() -> None:
        reads = journal.reads
        while journal.reads < reads + 2:
            journal.now += PERIOD
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await read_again()
            journal.is_failing, journal.hosts = True, HOSTS[:1]
            await read_again()
            assert gone == []
            journal.is_failing = False
            journal.now += PERIOD
    assert gone == ["b"]


@pytest.mark.parametrize(("lease", "seconds"), [(PERIOD / 2, PERIOD / 2), (MIN_PERIOD / 2, MIN_PERIOD)])
async def test_the_list_of_hosts_is_read_again_when_one_of_its_leases_has_expired(
    lease: float, seconds: float
) -> None:
    journal = Journal()
    journal.hosts = [HOSTS[0], replace(HOSTS[1], remaining_lease=lease)]
    await journal.directory.hosts()
    journal.now += seconds - 0.001
    await journal.directory.hosts()
    assert journal.reads == 1
    journal.now += 0.002
    await journal.directory.hosts()
    assert journal.reads == 2


async def test_all_waiters_learn_from_one_read_that_a_host_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.hosts.directory.PERIOD", 3600.0)
    journal = Journal()
    journal.hosts = HOSTS[:1]
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(journal.directory.wait_gone, "http://b")
            await anyio.wait_all_tasks_blocked()
            assert await journal.directory.hosts() == HOSTS[:1]
    assert journal.reads == 1
