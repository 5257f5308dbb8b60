"""The table of host code: every function that a public signature accepts, and a play in which it raises.

A row is a play: it hands a `Bomb` to the runtime where the public signature takes a function, lets it be called, and
asserts what the place that calls it promises. `tests.host_code.test_host_code` plays each with every kind of error.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.runtime_support import bodies, hosting, openai, restarted, results


@dataclass
class Bomb:
    """A function that raises what it is told to, whatever it is called with.

    Args:
        error: Returns a new one each time.
    """

    error: Callable[[], BaseException]
    calls: int = 0

    def __call__(self, *_arguments: object, **_named: object) -> Any:  # Any: it never returns
        self.calls += 1
        raise self.error()


Play: TypeAlias = Callable[[Bomb], Awaitable[None]]

ROWS: dict[str, tuple[tuple[str, ...], Play]] = {}
"""Each play by its name, with the parameters whose function it lets raise."""


def row(*parameters: str) -> Callable[[Play], Play]:
    """Add a play to the table, as the row of these parameters."""

    def added(play: Play) -> Play:
        ROWS[play.__name__] = parameters, play
        return play

    return added


ONE = Turn(Call("work", {"name": "a"}))


@asynccontextmanager
async def sound(runtime: Runtime, session: Session) -> AsyncIterator[None]:
    """Let a session be used, and see that no actor was restarted, and that it and another take an ask afterwards."""
    yield
    assert restarted(runtime) == []
    assert (await session.ask("And now?")).status == "complete"
    other = await runtime.open("a")
    assert (await other.ask("And you?")).status == "complete"


async def said_of(work: Tool[..., Any], **opened: Any) -> str:  # Any: any function, and arguments of `open`
    """Return what the model is told of a call of a tool, while nothing else comes of it."""
    server = openai(ONE, Turn(Say("done")), Turn(Say("again")), Turn(Say("fine")))
    async with hosting(seconds=60, a=server) as runtime:
        session = await runtime.open("a", tools=[work], **opened)
        async with sound(runtime, session):
            assert (await session.ask("Do it.")).text == "done"
    (told,) = results(bodies(server)[1]).values()
    return str(told)
