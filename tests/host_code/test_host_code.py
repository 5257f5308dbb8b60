"""Whatever the program's own functions raise, what called them says what comes of it, and the rest goes on."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
import trio

from actors.kernel.parking import parking
from tests.host_code import environments, telemetry, tools
from tests.host_code.rows import ROWS, Bomb

PLAYS = (tools, telemetry, environments)
"""The modules with the rows."""


def stray(*, is_trio: bool) -> BaseException:
    """Return a cancellation that nobody asked for."""
    return trio.Cancelled._create(source="unknown") if is_trio else asyncio.CancelledError("stray")


def several(*, is_trio: bool) -> BaseException:
    """Return a group of all kinds."""
    return BaseExceptionGroup(
        "several", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), stray(is_trio=is_trio)]
    )


KINDS: dict[str, Callable[[bool], BaseException]] = {
    "exception": lambda _: KeyError("boom"),
    "exit": lambda _: SystemExit(3),
    "interrupt": lambda _: KeyboardInterrupt(),
    "generator_exit": lambda _: GeneratorExit(),
    "cancelled": lambda is_trio: stray(is_trio=is_trio),
    "group": lambda is_trio: several(is_trio=is_trio),
}


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.requirement("PROMISE-12", "PROMISE-8")
async def test_host_code_that_raises_spoils_nothing_but_what_it_was_asked_for(name: str, kind: str) -> None:
    _, play = ROWS[name]
    is_trio = parking().cancelled is trio.Cancelled
    await play(Bomb(partial(KINDS[kind], is_trio)))
