"""Cancel a function at each of its awaits in turn, in every way in which a caller can be cancelled.

A cancel scope and a native cancellation on asyncio take effect while the function waits. On asyncio, a native
cancellation may also arrive after the awaited future has completed and before the task runs, so that the result is
lost. trio has no such moment.
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
Driven: TypeAlias = Generator[Any, Any, object]  # Any: traps and answers of the event loop

MOST = 200
"""Awaits after which a function must have returned."""


async def cancels(work: Work) -> AsyncGenerator[tuple[Way, int]]:
    """Cancel `work` at its first await, at its second, and so on, in every way; yield after each, for checks.

    The last run in each way is not cancelled, because it has no such await.
    """
    for way in ways():
        for number in range(1, MOST):
            was_cancelled = await _cancel_at(number, way, work)
            yield way, number
            if not was_cancelled:
                break
        else:
            raise AssertionError(f"the work awaits more than {MOST} times")


def ways() -> tuple[Way, ...]:
    """Return the ways in which the running event loop cancels."""
    is_asyncio = isinstance(current_token().native_token, asyncio.AbstractEventLoop)
    return ("scope", "native", "answered") if is_asyncio else ("scope",)


async def _cancel_at(number: int, way: Way, work: Work) -> bool:
    """Run `work` and cancel it at await `number`; return True if it reached that await."""
    struck = list[object]()
    if way == "scope":
        with anyio.CancelScope() as scope:

            def strike(trap: object) -> None:
                struck.append(trap)
                scope.cancel()

            await _drive(_await(work), number, strike)
        return bool(struck)

    def strike_natively(trap: object) -> None:
        struck.append(trap)
        if way == "answered" and isinstance(trap, asyncio.Future):
            trap.add_done_callback(lambda _: task.cancel())  # before the callback that wakes the task
        elif way == "answered":
            asyncio.get_running_loop().call_soon(task.cancel)
        else:
            task.cancel()

    async def run() -> None:
        await _drive(_await(work), number, strike_natively)

    task = asyncio.create_task(run())
    with suppress(asyncio.CancelledError):
        await task
    return bool(struck)


async def _await(work: Work) -> object:
    return await work()


@types.coroutine
def _drive(work: Coroutine[Any, Any, object], number: int, strike: Callable[[object], object]) -> Driven:
    """Drive the coroutine as the event loop does; call `strike` with its trap at await `number`."""
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
