"""One failover under two hosts. Their sessions ask, sleep, run a tool or are just opened when the server fails."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from json import dumps

import anyio
import anyio.to_thread
from msgspec import Struct

from actors import Runtime, tool
from actors.journal.storage.postgres import PostgresStorage
from actors.testing import Call, OpenAIServer, Say, Turn
from actors.tools import Tool
from tests.commands.failover_matrix.callers import Caller
from tests.commands.failover_matrix.judge import Found, judge
from tests.commands.failover_matrix.site import Failure, Replication, Site
from tests.runtime.test_hibernation import hibernate
from tests.runtime_support import Json, runtime_with

LEASES: Mapping[Failure, float] = {"kill": 30.0, "silence": 4.0, "restore": 30.0}
"""The lease in seconds. A host abandons a server that is silent for half of it."""
PATIENCE = 60.0
"""Seconds within which a host has connected to the next server."""
SECONDS = 240
"""The longest time for one cell."""
READERS = 120
"""Seconds after which every reader has received each loss that its caller received."""
KINDS = ("busy", "idle", "asleep", "tool", "external")
"""The activity of a session when the server fails: it asks all the time, is idle or asleep, runs a tool, or waits for
an external result. A session opened last is `late`.
"""
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)


class Cell(Struct, frozen=True):
    """A combination of the matrix."""

    replication: Replication
    failure: Failure

    @property
    def loses(self) -> bool:
        """True if the replacement server lacks acknowledged writes."""
        return self.replication == "lagging" or self.failure == "restore"


class _Gate:
    """A gate that can hold tools."""

    def __init__(self) -> None:
        self._opened = anyio.Event()
        self._opened.set()
        self.waiting = 0

    def close(self) -> None:
        """Hold arriving tools from now on."""
        self._opened = anyio.Event()

    def open(self) -> None:
        """Let all tools pass."""
        self._opened.set()

    async def pass_through(self) -> None:
        """Wait until the gate is open."""
        self.waiting += 1
        await self._opened.wait()


class _Host(Struct):
    """A runtime, and the callers of its sessions by activity."""

    name: str
    runtime: Runtime
    gate: _Gate
    callers: dict[str, Caller] = {}

    async def open(self, kind: str) -> Caller:
        """Open a session, with a tool if its activity uses one."""

        @tool(effects="idempotent")
        async def work() -> str:
            """Work."""
            await self.gate.pass_through()
            return "worked" * 5000

        tools = {"tool": [work], "external": [LOOK]}.get(kind, [])
        session = await self.runtime.open("a", id=f"{self.name}-{kind}", tools=tools)
        caller = self.callers[kind] = Caller(session)
        return caller


def _answer(request: Json) -> Turn:
    """Call the session's tool once per question, if the session has a tool."""
    last = request["messages"][-1]
    for kind, name in (("-tool: ", "work"), ("-external: ", "look")):
        if last["role"] == "user" and kind in dumps(last):
            return Turn(Call(name, {}))
    return Turn(Say("Done."))


@asynccontextmanager
async def _host(url: str, name: str, lease: float) -> AsyncIterator[_Host]:
    storage = PostgresStorage(url, lease=lease, patience=PATIENCE)
    async with runtime_with(a=OpenAIServer(_answer), storage=storage) as runtime:
        yield _Host(name, runtime, _Gate(), {})
    storage.close()


async def play(site: Site, cell: Cell, *, failovers: int = 1) -> Found:
    """Play a cell with this many failovers under the same hosts; return the findings.

    Afterwards the server that took over last is active, and no other runs.

    Raises:
        AssertionError: A promise was broken.
    """
    schema = await anyio.to_thread.run_sync(site.primary.schema)
    async with AsyncExitStack() as stack:
        stack.enter_context(anyio.fail_after(SECONDS * failovers))
        url, lease = site.url(schema), LEASES[cell.failure]
        hosts = [await stack.enter_async_context(_host(url, name, lease)) for name in ("one", "two")]
        async with anyio.create_task_group() as readers:
            for host in hosts:
                for kind in KINDS:
                    readers.start_soon((await host.open(kind)).read)
            for number in range(failovers):
                await _fail_over(site, cell, hosts, number, readers)
                await anyio.to_thread.run_sync(site.clear)
            callers = [caller for host in hosts for caller in host.callers.values()]
            with anyio.fail_after(READERS):
                while any(caller.is_reader_late for caller in callers):  # noqa: ASYNC110  there is no event to wait for
                    await anyio.sleep(0.001)
            readers.cancel_scope.cancel()
        return await judge(callers, cell.loses, site.url(schema))


async def _fail_over(
    site: Site, cell: Cell, hosts: Sequence[_Host], number: int, readers: anyio.abc.TaskGroup
) -> None:
    """Keep all callers active before, during and after a failure."""
    await anyio.to_thread.run_sync(site.replicate, cell.replication)
    for host in hosts:
        for kind in KINDS:
            await host.callers[kind].ask_until_answered()
    await anyio.to_thread.run_sync(site.begin_window, cell.replication, cell.failure)
    late = f"late-{number}"
    for host in hosts:
        readers.start_soon((await host.open(late)).read)
        for kind in (*KINDS, late):
            await host.callers[kind].ask_until_answered()
        await host.callers["external"].ask_and_pause()
        await hibernate(host.callers["asleep"].session)
    is_over = anyio.Event()
    async with anyio.create_task_group() as asking:
        for host in hosts:
            await _start_asks(host, asking, is_over)
        await anyio.to_thread.run_sync(site.fail, cell.failure)
        await anyio.to_thread.run_sync(site.take_over, cell.failure)
        is_over.set()
        for host in hosts:
            host.gate.open()
            for kind in ("idle", "asleep", "external", late):
                asking.start_soon(host.callers[kind].ask_until, is_over.is_set)
    for host in hosts:
        if host.callers[late].is_over:
            await _reopen(host, late)


async def _start_asks(host: _Host, asking: anyio.abc.TaskGroup, is_over: anyio.Event) -> None:
    """Make one session wait for its tool, and another ask all the time."""
    host.gate.close()
    before = host.gate.waiting
    asking.start_soon(host.callers["tool"].ask_until, is_over.is_set)
    busy = host.callers["busy"]
    asked = busy.asked
    asking.start_soon(busy.ask_until, is_over.is_set)
    while host.gate.waiting == before or busy.asked < asked + 2:  # noqa: ASYNC110  there is no event to wait for
        await anyio.sleep(0.001)


async def _reopen(host: _Host, kind: str) -> None:
    """Reopen a session that ended because its claim was lost."""
    session = await host.runtime.open("a", id=host.callers[kind].name)
    assert (await session.ask("Are you there?")).status == "complete"
