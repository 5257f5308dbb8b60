"""Sessions on a Postgres journal whose server is killed and restarted while they work.

The runtime compares each session with its rebuilt log when it ends (`tests.runtime_support`).
"""

import signal
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from actors import ToolContext, tool
from actors.core.log.events import AskStarted
from actors.errors import JournalUnavailable
from actors.journal.storage.postgres import PostgresStorage
from actors.runtime.handle import Session
from actors.testing import Call, OpenAIServer, Say, Turn
from actors.tools import Tool
from tests.journal.postgres import PASSWORD, Server, require, temporary_server
from tests.runtime_support import assert_paired, bodies, restarted_actors, runtime_with

pytestmark = pytest.mark.anyio

SESSIONS, ASKS, KILLS = 4, 8, 2


@pytest.fixture(scope="module")
def stopped_server() -> Iterator[Server]:
    """A server for these tests, not running."""
    require()
    with temporary_server() as server:
        yield server


@pytest.fixture
def database(stopped_server: Server) -> Iterator[Server]:
    """The same server, running."""
    stopped_server.start()
    yield stopped_server
    stopped_server.stop(signal.SIGQUIT)


def _answer(request: dict[str, Any]) -> Turn:
    """Return an answer that uses the tool and then repeats the question."""
    if request["messages"][-1]["role"] == "tool":
        return Turn(Say("Done."))
    return Turn(Call("work", {"name": "a"}), Call("work", {"name": "b"}))


class Work:
    """The asks of several sessions, each repeated until it is answered."""

    def __init__(self) -> None:
        self.answered = anyio.Semaphore(0)
        self.runs: list[str] = []
        self.outage = anyio.Event()
        """Set once an ask was refused because the database was down. Each kill waits for a new refusal."""

    async def all(self, session: Session) -> None:
        """Make all asks of a session."""
        for number in range(ASKS):
            while not await self._is_answered(session, f"{session.id} {number}"):
                self.outage.set()
                await anyio.lowlevel.checkpoint()
            self.answered.release()

    async def _is_answered(self, session: Session, words: str) -> bool:
        try:
            return (await session.ask(words)).status == "complete"
        except JournalUnavailable:
            return False


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-6", "PROMISE-7")
async def test_database_restarts_lose_no_answer_and_repeat_no_tool(
    database: Server,
) -> None:
    all_work = Work()

    @tool
    async def work(context: ToolContext[object], name: str) -> str:
        """Work."""
        all_work.runs.append(context.idempotency_key)
        return name

    server = OpenAIServer(_answer)
    with anyio.fail_after(300):
        storage = PostgresStorage(database.url(database.schema()), patience=0.05)
        async with runtime_with(a=server, storage=storage) as runtime:
            sessions = [await runtime.open("a", id=f"s{number}", tools=[work]) for number in range(SESSIONS)]
            async with anyio.create_task_group() as tasks:
                for session in sessions:
                    tasks.start_soon(all_work.all, session)
                for _ in range(KILLS):
                    for _ in range(SESSIONS):
                        await all_work.answered.acquire()
                    all_work.outage = anyio.Event()
                    await anyio.to_thread.run_sync(database.kill)
                    await all_work.outage.wait()
                    await anyio.to_thread.run_sync(database.start)
            assert restarted_actors(runtime) == []
            for session in sessions:
                log = storage.read(session.id)
                said = [repr(event.message) for event in log if isinstance(event, AskStarted)]
                for number in range(ASKS):
                    assert any(f"{session.id} {number}" in words for words in said)
        storage.close()
    assert len(all_work.runs) == len(set(all_work.runs))
    for body in bodies(server):
        assert_paired(body)


@pytest.mark.requirement("PROMISE-6", "PROMISE-8")
async def test_sessions_refuse_work_while_the_database_is_down_and_then_continue(
    database: Server,
) -> None:
    """The same as `tests/journal/test_outages.py`, with a server that is down instead of a storage that reports it."""
    look = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"})
    server = OpenAIServer([Turn(Call("look", {})), *[Turn(Say("Done."))] * 4])
    with anyio.fail_after(120):
        storage = PostgresStorage(database.url(database.schema()), patience=0.05)
        async with runtime_with(a=server, storage=storage) as runtime:
            waits = await runtime.open("a", id="waits", tools=[look])
            assert (await waits.ask("Hello.")).status == "awaiting"
            idle = await runtime.open("a", id="idle")
            assert (await idle.ask("Hello.")).status == "complete"
            (call,) = [each.call.id for each in waits.pending]
            before = await idle.history()
            await anyio.to_thread.run_sync(database.stop)
            for _ in range(3):
                for use in (
                    lambda: idle.ask("Again?"),
                    lambda: idle.switch("a"),
                    lambda: waits.ask(results={call: 21}),
                    lambda: runtime.open("a", id="new"),
                    lambda: runtime.journal.delete("idle"),
                    lambda: runtime.resume("elsewhere"),
                    lambda: runtime.journal.list(),
                ):
                    with pytest.raises(JournalUnavailable) as raised:
                        await use()
                    assert PASSWORD not in str(raised.value)
            assert runtime.stats().journal.reason
            assert not runtime.stats().is_ready
            await anyio.to_thread.run_sync(database.start)
            assert list(runtime.sessions) == ["waits", "idle"]
            assert (await idle.ask("Again?")).status == "complete"
            assert (await idle.history()).since(0)[: before.length] == before.since(0)
            assert [each.call.id for each in waits.pending] == [call]
            assert (await waits.ask(results={call: 21})).status == "complete"
            assert runtime.stats().is_ready
            assert restarted_actors(runtime) == []
            assert sorted(each.id for each in await runtime.journal.list()) == ["idle", "waits"]
        storage.close()
