"""Whatever the program's own functions raise, what called them says what comes of it, and the rest goes on."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import trio

from actors.kernel.host_code import call_host
from actors.kernel.parking import parking
from tests.host_code import tools
from tests.host_code.rows import ROWS, Bomb

PLAYS = (tools,)
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


def handled(_number: int, _frame: object) -> None:
    """Handle a signal as event loops do."""
    raise KeyboardInterrupt


def ending(_number: int, _frame: object) -> None:
    """Handle a signal as programs do that want to end in order."""
    sys.exit(0)


HANDLERS = {"python": signal.default_int_handler, "loop": handled, "program": ending}


@pytest.fixture(params=HANDLERS)
def delivered(request: pytest.FixtureRequest) -> Iterator[Callable[[], object]]:
    """Return what has a signal delivered, handled in one of the usual ways."""
    before = signal.signal(signal.SIGINT, HANDLERS[request.param])
    yield partial(signal.raise_signal, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.requirement("PROMISE-12")
def test_an_interrupt_that_a_signal_delivers_passes_and_one_that_is_raised_does_not(
    delivered: Callable[[], object],
) -> None:
    def interrupted() -> None:
        delivered()

    def grouped() -> None:
        try:
            delivered()
        except BaseException as error:
            raise BaseExceptionGroup("several", [ValueError("x"), error]) from None

    for work in (delivered, interrupted, grouped):
        with pytest.raises((KeyboardInterrupt, SystemExit, BaseExceptionGroup)):
            call_host(work, lambda _: None)
    for kind in KINDS.values():
        assert isinstance(call_host(Bomb(partial(kind, False)), lambda raised: raised), BaseException)
