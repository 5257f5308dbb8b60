"""The table of host code: every public parameter that accepts a function, and a play in which the function raises.

A play passes a `Bomb` to the runtime, lets it be called, and asserts the promise of the calling place.
`tests.host_code.test_host_code` runs each play with every kind of exception.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.runtime_support import bodies, openai, restarted_actors, results, runtime_with


@dataclass
class Bomb:
    """A function that raises whenever it is called.

    Args:
        error: Returns a new exception each time.
    """

    error: Callable[[], BaseException]
    calls: int = 0

    def __call__(self, *_arguments: object, **_named: object) -> Any:  # Any: it never returns
        self.calls += 1
        raise self.error()


Play: TypeAlias = Callable[[Bomb], Awaitable[None]]

ROWS: dict[str, tuple[tuple[str, ...], Play]] = {}
"""Each play by its name, with the parameters that it covers."""


def row(*parameters: str) -> Callable[[Play], Play]:
    """Register a play as the row of these parameters."""

    def register(play: Play) -> Play:
        ROWS[play.__name__] = parameters, play
        return play

    return register


ONE = Turn(Call("work", {"name": "a"}))


@asynccontextmanager
async def check_unharmed(runtime: Runtime, session: Session) -> AsyncIterator[None]:
    """Run the block, then check that no actor was restarted, and that this session and a new one still work."""
    yield
    assert restarted_actors(runtime) == []
    assert (await session.ask("And now?")).status == "complete"
    other = await runtime.open("a")
    assert (await other.ask("And you?")).status == "complete"


async def result_of(work: Tool[..., Any], **opened: Any) -> str:  # Any: any function, and arguments of `open`
    """Return the result that the model sees for a call of a tool, after checking that nothing else was affected."""
    server = openai(ONE, Turn(Say("done")), Turn(Say("again")), Turn(Say("fine")))
    async with runtime_with(seconds=60, a=server) as runtime:
        session = await runtime.open("a", tools=[work], **opened)
        async with check_unharmed(runtime, session):
            assert (await session.ask("Do it.")).text == "done"
    (told,) = results(bodies(server)[1]).values()
    return str(told)
