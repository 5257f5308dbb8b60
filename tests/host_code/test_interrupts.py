"""Interrupts: one from a signal is passed to the program, one raised by host code is that code's failure."""

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
from tests.host_code.test_host_code import KINDS, stray_cancellation
from tests.runtime_support import openai


def raise_interrupt(_number: int, _frame: object) -> None:
    """Handle a signal as event loops do."""
    raise KeyboardInterrupt


def exit_program(_number: int, _frame: object) -> None:
    """Handle a signal as programs that exit cleanly do."""
    sys.exit(0)


HANDLERS = {"python": signal.default_int_handler, "loop": raise_interrupt, "program": exit_program}


@pytest.fixture(params=HANDLERS)
def deliver_signal(request: pytest.FixtureRequest) -> Iterator[Callable[[], object]]:
    """Return a function that delivers a signal, which is handled in one of the usual ways."""
    before = signal.signal(signal.SIGINT, HANDLERS[request.param])
    yield partial(signal.raise_signal, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.requirement("PROMISE-12")
def test_an_interrupt_from_a_signal_propagates_but_an_interrupt_raised_by_host_code_does_not(
    deliver_signal: Callable[[], object],
) -> None:
    def nested_delivery() -> None:
        deliver_signal()

    def grouped_delivery() -> None:
        try:
            deliver_signal()
        except BaseException as error:
            raise BaseExceptionGroup("several", [ValueError("x"), error]) from None

    for work in (deliver_signal, nested_delivery, grouped_delivery):
        with pytest.raises((KeyboardInterrupt, SystemExit, BaseExceptionGroup)):
            call_host(work, lambda _: None)
    for kind in KINDS.values():
        assert isinstance(call_host(Bomb(partial(kind, False)), lambda raised: raised), BaseException)


class InterruptingValue:
    """A value whose repr calls `raising`, which delivers or raises an interrupt."""

    def __init__(self, raising: Callable[[], object]) -> None:
        self._raising = raising

    def __repr__(self) -> str:
        self._raising()
        return "read"


def test_an_interrupt_from_a_signal_propagates_while_values_are_read(
    deliver_signal: Callable[[], object],
) -> None:
    for value in (
        InterruptingValue(deliver_signal),
        [1, {"key": InterruptingValue(deliver_signal)}],
        {InterruptingValue(deliver_signal)},
    ):
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            ingest(value)
    assert ingest(InterruptingValue(lambda: sys.exit(0))).marks == ("repr_failed",)


class InterruptingType:
    """The type of a parameter whose schema cannot be generated; the second attempt is interrupted."""

    tries: ClassVar[Iterator[Callable[[], object]]]

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> object:
        next(cls.tries)()
        raise LookupError


def test_an_interrupt_from_a_signal_propagates_while_a_tool_is_defined(
    deliver_signal: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(what: InterruptingType) -> None:
        """Work."""

    monkeypatch.setattr(InterruptingType, "tries", iter([lambda: None, deliver_signal]), raising=False)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        tool(work)


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["body", "rule", "hook"])
@pytest.mark.requirement("PROMISE-12")
async def test_an_interrupt_from_a_signal_during_host_code_propagates_out_of_the_runtime(
    where: str, deliver_signal: Callable[[], object]
) -> None:
    def rule(_: object) -> Literal["allow"]:
        if where == "rule":
            deliver_signal()
        return "allow"

    @tool(approval=rule)
    async def work(name: str) -> str:
        """Work."""
        if where == "body":
            deliver_signal()
        raise LookupError(name)

    def hook(_: object) -> None:
        if where == "hook":
            deliver_signal()

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
async def test_a_requested_cancellation_propagates_but_a_cancellation_raised_by_host_code_does_not() -> None:
    taken: list[BaseException] = []
    is_trio = event_loop().cancelled is trio.Cancelled

    async def raise_stray() -> None:
        raise stray_cancellation(is_trio=is_trio)

    await await_host(raise_stray, taken.append)
    assert len(taken) == 1
    with anyio.CancelScope() as scope:
        scope.cancel()
        await await_host(anyio.sleep_forever, taken.append)
    assert scope.cancelled_caught
    assert len(taken) == 1


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-12")
async def test_a_native_cancellation_of_asyncio_propagates() -> None:
    if event_loop().cancelled is trio.Cancelled:
        return  # trio has none
    taken: list[BaseException] = []
    task = asyncio.create_task(await_host(anyio.sleep_forever, taken.append))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert taken == []


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-12")
async def test_generator_exit_propagates_if_a_coroutine_is_closed_but_not_if_host_code_raises_it() -> None:
    taken: list[BaseException] = []

    async def raise_exit() -> None:
        raise GeneratorExit

    await await_host(raise_exit, taken.append)
    assert len(taken) == 1
    waiting = await_host(_wait_suspended, taken.append)
    waiting.send(None)
    waiting.close()
    assert len(taken) == 1


@coroutine
def _suspend() -> Generator[None, None, None]:
    yield


async def _wait_suspended() -> None:
    await _suspend()
