"""Objects of a turn, a session and its actors are freed at once, without the garbage collector.

The pauses of the collector grow with the number of live objects, so the collector should find nothing to do.
"""

import gc
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import anyio
import pytest

from actors import Session
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import openai, runtime_with

pytestmark = pytest.mark.anyio


@tool
async def search(query: str) -> str:
    """Search."""
    return f"Found {query}."


@tool
def read(path: str) -> str:
    """Read a file, in a thread."""
    return f"Read {path}."


@contextmanager
def collected_types() -> Iterator[list[str]]:
    """Yield a list that contains, after the block, our types that only the garbage collector could free.

    Only objects created in the block count. A first collection before it may only close the coroutines that hold
    garbage of earlier tests.
    """
    found: list[str] = []
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = [type(each) for each in gc.garbage]
        found += [kind.__qualname__ for kind in kinds if kind.__module__.startswith("actors.")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()  # without unfreezing, because the next tests would then scan a million objects


async def test_a_turn_with_tools_leaves_no_garbage() -> None:
    calls = Turn(Call("search", {"query": "a"}), Call("read", {"path": "b"}), Call("search", {"query": 1}))
    server = openai(calls, Turn(Say("Done.")), calls, Turn(Say("Done.")))
    async with runtime_with(gpt=server) as runtime:
        session = await runtime.open("gpt", tools=[search, read])
        await session.ask("Go.")  # initialises caches
        with collected_types() as found:
            assert (await session.ask("Go.")).status == "complete"
    assert found == []


async def test_a_deleted_session_leaves_no_garbage() -> None:
    server = openai(Turn(Call("search", {"query": "a"})), Turn(Say("Done.")))
    async with runtime_with(gpt=server) as runtime:
        with collected_types() as found:
            session = await runtime.open("gpt", tools=[search])
            assert (await session.ask("Go.")).status == "complete"
            await session.close()
            await runtime.journal.delete(session.id)
            del session
    assert found == []


async def test_a_session_referenced_by_its_own_tools_is_freed_after_deletion() -> None:
    async with runtime_with(gpt=openai()) as runtime:
        session = await runtime.open("gpt")
        await session.configure(tools=[_self_referencing_tool(session)])
        freed = ref(session)
        await session.close()
        await runtime.journal.delete(session.id)
        del session
        await anyio.lowlevel.checkpoint()
        gc.collect()
        assert freed() is None


def _self_referencing_tool(session: Session) -> Tool[[str], Coroutine[Any, Any, str]]:
    """Return a tool that references its own session."""

    @tool
    async def look_up(query: str) -> str:
        """Search the session."""
        return f"{query} in {session.id}"

    return look_up
