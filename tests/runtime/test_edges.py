"""Edge cases in the life of a runtime: cancellation on entry, two opens of one id, a cancelled close."""

import asyncio
from collections.abc import Sequence

import anyio
import pytest

from actors import Runtime
from actors.errors import KernelError, SessionExists
from actors.journal.storage import Appended, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.kernel import System
from actors.testing import OpenAIServer, Say, Stall, Turn, serve
from tests.runtime_support import actors

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("PROMISE-11")
async def test_a_runtime_entered_in_a_cancelled_scope_ends_at_once() -> None:
    with anyio.fail_after(60):
        for enter in (System, lambda: Runtime(environ={})):
            with anyio.CancelScope() as scope:
                scope.cancel()
                async with enter():
                    raise AssertionError("it was cancelled before")
            assert scope.cancelled_caught


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_native_cancellation_while_a_runtime_is_entered_ends_the_runtime() -> None:
    async def enter() -> None:
        async with Runtime(environ={}):
            await anyio.sleep_forever()

    for turns in range(6):
        task = asyncio.get_running_loop().create_task(enter())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=60)
        assert done == {task}


async def test_a_runtime_must_be_running_to_be_used_and_can_be_entered_only_once() -> None:
    runtime = Runtime(environ={"OPENAI_API_KEY": "k"})
    with pytest.raises(KernelError, match="not running"):
        await runtime.open("openai:m")
    async with runtime:
        pass
    with pytest.raises(KernelError, match="has exited"):
        await runtime.open("openai:m")
    with pytest.raises(KernelError, match="entered only once"):
        await runtime.__aenter__()


class BlockingStorage(MemoryStorage):
    """A storage that runs in a thread, as durable ones do."""

    blocking = True

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        return super().append(entries)


async def test_only_one_of_several_concurrent_opens_of_an_id_succeeds() -> None:
    refused: list[str] = []

    async def contend(runtime: Runtime) -> None:
        try:
            await runtime.open("openai:m", id="same")
        except SessionExists as error:
            refused.append(str(error))

    with anyio.fail_after(60):
        async with Runtime(environ={"OPENAI_API_KEY": "k"}, journal=BlockingStorage()) as runtime:
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(contend, runtime)
            assert list(runtime.sessions) == ["same"]
    assert len(refused) == 4


async def test_a_close_is_completed_even_if_its_caller_is_cancelled() -> None:
    with anyio.fail_after(60):
        async with Runtime(environ={"OPENAI_API_KEY": "k"}) as runtime:
            for _ in range(10):
                session = await runtime.open("openai:m")
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await session.close()
            while [name for name in actors(runtime) if name.startswith("session-")]:
                await anyio.lowlevel.checkpoint()
            assert list(runtime.sessions) == []


async def test_a_rotated_key_is_used_by_the_next_request() -> None:
    server = OpenAIServer([Turn(Say("one")), Turn(Say("two"))], api_key="sk-two")
    environ = {"OPENAI_API_KEY": "sk-one"}
    with anyio.fail_after(60):
        async with serve(server), Runtime(environ=environ) as runtime:
            environ["OPENAI_BASE_URL"] = server.base_url
            session = await runtime.open("openai:m")
            first = await session.ask("With the old key?", check=False)
            environ["OPENAI_API_KEY"] = "sk-two"
            second = await session.ask("With the new one?")
    assert (first.status, second.status) == ("failed", "complete")


async def test_a_running_round_is_stopped_when_its_session_ends() -> None:
    server = OpenAIServer([Turn(Say("x" * 4000))], faults={0: Stall(after_bytes=600)})
    with anyio.fail_after(60):
        async with serve(server), Runtime(environ={"OPENAI_BASE_URL": server.base_url}) as runtime:
            session = await runtime.open("openai:m")
            async with session.stream("Begin.") as events:
                async for event in events:
                    if event.type == "text":
                        break
                await session._lifecycle.close(in_order=False)  # as after too many crashes
            while any(cell.life and cell.life.children for cell in runtime._system.cells.values()):
                await anyio.lowlevel.checkpoint()


async def test_a_stream_yields_nothing_after_its_async_with_block() -> None:
    server = OpenAIServer([Turn(Say("words"))])
    with anyio.fail_after(60):
        async with serve(server), Runtime(environ={"OPENAI_BASE_URL": server.base_url}) as runtime:
            session = await runtime.open("openai:m")
            async with session.stream("Go.") as events:
                pass
            assert [event async for event in events] == []
