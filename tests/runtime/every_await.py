"""Cancels a piece of work at each of its awaits, one after the other, in every way in which a caller can go away.

A cancelled scope strikes while the work waits. On asyncio a native cancellation does so too; and it may come when the
work has been answered and does not run yet, so that the answer is lost. trio knows no such moment.
"""

import asyncio
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import anyio
from anyio.lowlevel import current_token

Way: TypeAlias = Literal["scope", "native", "answered"]
Work: TypeAlias = Callable[[], Awaitable[object]]
Driven: TypeAlias = Generator[Any, Any, object]  # Any: the event loop's own traps and answers

MOST = 200
"""Awaits after which a piece of work has to be over."""


async def cancels(work: Work) -> AsyncGenerator[tuple[Way, int]]:
    """Cancel the work at its first await, at its second, and so on, in every way; give each, to look at what is left.

    The last time of each way it is not cancelled, having no such await.
    """
    for way in ways():
        for number in range(1, MOST):
            was_cancelled = await _cancelled_at(number, way, work)
            yield way, number
            if not was_cancelled:
                break
        else:
            raise AssertionError(f"the work awaits more than {MOST} times")


def ways() -> tuple[Way, ...]:
    """Return the ways in which the running event loop cancels."""
    is_asyncio = isinstance(current_token().native_token, asyncio.AbstractEventLoop)
    return ("scope", "native", "answered") if is_asyncio else ("scope",)


async def _cancelled_at(number: int, way: Way, work: Work) -> bool:
    """Do the work and cancel it at that await; say whether it came so far."""
    struck = list[object]()
    if way == "scope":
        with anyio.CancelScope() as scope:

            def strike(trap: object) -> None:
                struck.append(trap)
                scope.cancel()

            await _driven(_begun(work), number, strike)
        return bool(struck)

    def strike_natively(trap: object) -> None:
        struck.append(trap)
        if way == "answered" and isinstance(trap, asyncio.Future):
            trap.add_done_callback(lambda _: task.cancel())  # ahead of the one that wakes the task
        elif way == "answered":
            asyncio.get_running_loop().call_soon(task.cancel)
        else:
            task.cancel()

    async def run() -> None:
        await _driven(_begun(work), number, strike_natively)

    task = asyncio.create_task(run())
    with suppress(asyncio.CancelledError):
        await task
    return bool(struck)


async def _begun(work: Work) -> object:
    return await work()


@types.coroutine
def _driven(work: Coroutine[Any, Any, object], number: int, strike: Callable[[object], object]) -> Driven:
    """Drive the work as the event loop does; call `strike` with what it waits for at that await."""
    answer: Any = None
    failure: BaseException | None = None
    while True:
        try:
            trap = work.send(answer) if failure is None else work.throw(failure)
        except StopIteration as over:
            return over.value
        number -= 1
        if not number:
            strike(trap)
        answer = failure = None
        try:
            answer = yield trap
        except BaseException as raised:
            failure = raised
