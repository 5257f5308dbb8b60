"""Interrupts: one that a signal delivers is meant for the program, one that its code raises is that code's failure."""

import asyncio
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial
from types import coroutine
from typing import ClassVar, Literal

import anyio
import pytest
import trio

from actors.core.data.ingest import ingest
from actors.kernel.event_loop import event_loop
from actors.kernel.host_code import await_host, call_host
from actors.runtime.runtime import Runtime
from actors.testing import Say, Turn, serve
from actors.tools import tool
from tests.host_code.rows import ONE, Bomb
from tests.host_code.test_host_code import KINDS, stray
from tests.runtime_support import openai


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


class Struck:
    """A value that an interrupt strikes when it is read: the one that `raising` delivers or raises."""

    def __init__(self, raising: Callable[[], object]) -> None:
        self._raising = raising

    def __repr__(self) -> str:
        self._raising()
        return "read"


def test_an_interrupt_that_a_signal_delivers_passes_where_values_are_read(
    delivered: Callable[[], object],
) -> None:
    for value in (Struck(delivered), [1, {"key": Struck(delivered)}], {Struck(delivered)}):
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            ingest(value)
    assert ingest(Struck(lambda: sys.exit(0))).marks == ("repr_failed",)


class StruckType:
    """The type of a parameter whose schema cannot be made: an interrupt strikes when it is tried once more."""

    tries: ClassVar[Iterator[Callable[[], object]]]

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> object:
        next(cls.tries)()
        raise LookupError


def test_an_interrupt_that_a_signal_delivers_passes_where_a_tool_is_made(
    delivered: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(what: StruckType) -> None:
        """Work."""

    monkeypatch.setattr(StruckType, "tries", iter([lambda: None, delivered]), raising=False)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        tool(work)


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["body", "rule", "hook"])
@pytest.mark.requirement("PROMISE-12")
async def test_an_interrupt_that_strikes_the_programs_code_leaves_the_runtime_with_it(
    where: str, delivered: Callable[[], object]
) -> None:
    def rule(_: object) -> Literal["allow"]:
        if where == "rule":
            delivered()
        return "allow"

    @tool(approval=rule)
    async def work(name: str) -> str:
        """Work."""
        if where == "body":
            delivered()
        raise LookupError(name)

    def hook(_: object) -> None:
        if where == "hook":
            delivered()

    async def play(url: str) -> None:
        async with Runtime(environ={"OPENAI_BASE_URL": url}, on_tool_error=hook, seed=1) as runtime:
            session = await runtime.open("openai:gpt", tools=[work])
            await session.ask("Do it.")

    with anyio.fail_after(60):
        async with serve(server := openai(ONE, Turn(Say("done")))):
            with pytest.raises((KeyboardInterrupt, SystemExit)):
                await play(server.base_url)


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-12")
async def test_a_cancellation_that_was_asked_for_passes_and_one_that_is_raised_does_not() -> None:
    taken: list[BaseException] = []
    is_trio = event_loop().cancelled is trio.Cancelled

    async def raises() -> None:
        raise stray(is_trio=is_trio)

    await await_host(raises, taken.append)
    assert len(taken) == 1
    with anyio.CancelScope() as scope:
        scope.cancel()
        await await_host(anyio.sleep_forever, taken.append)
    assert scope.cancelled_caught
    assert len(taken) == 1


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-12")
async def test_a_native_cancellation_of_asyncio_passes() -> None:
    if event_loop().cancelled is trio.Cancelled:
        return  # it has none
    taken: list[BaseException] = []
    task = asyncio.create_task(await_host(anyio.sleep_forever, taken.append))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert taken == []


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-12")
async def test_the_end_of_a_coroutine_passes_and_one_that_is_raised_does_not() -> None:
    taken: list[BaseException] = []

    async def raises() -> None:
        raise GeneratorExit

    await await_host(raises, taken.append)
    assert len(taken) == 1
    waiting = await_host(_suspended, taken.append)
    waiting.send(None)
    waiting.close()
    assert len(taken) == 1


@coroutine
def _suspend() -> Generator[None, None, None]:
    yield


async def _suspended() -> None:
    await _suspend()
