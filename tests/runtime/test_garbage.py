"""What a turn, a session and its actors leave behind is gone at once, with nothing for the garbage collector to find.

Its pauses grow with all that is alive, so it should have no reason to come.
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
from tests.runtime_support import hosting, openai

pytestmark = pytest.mark.anyio


@tool
async def search(query: str) -> str:
    """Search."""
    return f"Found {query}."


@tool
def read(path: str) -> str:
    """Read, in a thread."""
    return f"Read {path}."


@contextmanager
def collecting() -> Iterator[list[str]]:
    """Give a list; when the block is left, it has the types of ours that only the collector could free.

    Only what was made in the block counts. What an earlier test left behind may become garbage here: a first round of
    the collector may do no more than close the coroutines that hold it.
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
        gc.enable()  # what is frozen stays so: else a million objects that were collected as tests come along


async def test_a_turn_with_tools_leaves_nothing_to_the_garbage_collector() -> None:
    calls = Turn(Call("search", {"query": "a"}), Call("read", {"path": "b"}), Call("search", {"query": 1}))
    server = openai(calls, Turn(Say("Done.")), calls, Turn(Say("Done.")))
    async with hosting(gpt=server) as runtime:
        session = await runtime.open("gpt", tools=[search, read])
        await session.ask("Go.")  # what is made at its first use has been made
        with collecting() as found:
            assert (await session.ask("Go.")).status == "complete"
    assert found == []


async def test_a_session_that_is_closed_and_deleted_leaves_none_of_its_actors_to_the_garbage_collector() -> (
    None
):
    server = openai(Turn(Call("search", {"query": "a"})), Turn(Say("Done.")))
    async with hosting(gpt=server) as runtime:
        with collecting() as found:
            session = await runtime.open("gpt", tools=[search])
            assert (await session.ask("Go.")).status == "complete"
            await session.close()
            await runtime.journal.delete(session.id)
            del session
    assert found == []


async def test_a_session_that_its_own_tools_refer_to_is_freed_once_it_is_deleted() -> None:
    async with hosting(gpt=openai()) as runtime:
        session = await runtime.open("gpt")
        await session.configure(tools=[_looking_up(session)])
        freed = ref(session)
        await session.close()
        await runtime.journal.delete(session.id)
        del session
        await anyio.lowlevel.checkpoint()
        gc.collect()
        assert freed() is None


def _looking_up(session: Session) -> Tool[[str], Coroutine[Any, Any, str]]:
    """Return a tool that looks into its own session."""

    @tool
    async def look_up(query: str) -> str:
        """Search what was said."""
        return f"{query} in {session.id}"

    return look_up
