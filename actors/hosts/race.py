"""Run work that another event may interrupt, such as the end of a client's connection."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


class Interrupted(Exception):
    """The interruption occurred before the work was done. The work was cancelled."""


async def run_unless(interruption: Callable[[], Awaitable[object]], work: Callable[[], Awaitable[T]]) -> T:
    """Run work, and cancel it if `interruption` returns first.

    Raises:
        Interrupted: `interruption` returned first.
        Exception: Raised by `work`.
    """
    results, errors = list[T](), list[Exception]()

    async def watch() -> None:
        await interruption()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        try:
            results.append(await work())
        except Exception as error:
            errors.append(error)  # raised outside of the task group, which would wrap it
        tasks.cancel_scope.cancel()
    if errors:
        raise errors[0]
    if not results:
        raise Interrupted
    return results[0]
