"""Exceptions of the program's functions affect only the operation that called them."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import FunctionType
from typing import TypedDict, Unpack

import pytest
import trio

from actors.kernel.event_loop import event_loop
from actors.telemetry import logger
from tests.host_code import environments, routers, services, telemetry, tools
from tests.host_code.rows import ROWS, Bomb
from tests.host_code.signatures import code_parameters, parameters_of

PLAYS = (tools, telemetry, environments, services, routers)
"""The modules with the rows."""


def stray_cancellation(*, is_trio: bool) -> BaseException:
    """Return a cancellation that no scope requested."""
    return trio.Cancelled._create(source="unknown") if is_trio else asyncio.CancelledError("stray")


def exception_group(*, is_trio: bool) -> BaseException:
    """Return a group with exceptions of all kinds."""
    return BaseExceptionGroup(
        "several", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), stray_cancellation(is_trio=is_trio)]
    )


KINDS: dict[str, Callable[[bool], BaseException]] = {
    "exception": lambda _: KeyError("boom"),
    "exit": lambda _: SystemExit(3),
    "interrupt": lambda _: KeyboardInterrupt(),
    "generator_exit": lambda _: GeneratorExit(),
    "cancelled": lambda is_trio: stray_cancellation(is_trio=is_trio),
    "group": lambda is_trio: exception_group(is_trio=is_trio),
}
OF_ANY_LOOP = dict.fromkeys(("exception", "exit", "interrupt", "generator_exit"), pytest.mark.alternating)
"""Kinds that both event loops treat alike; cancellations are different exceptions."""


@pytest.mark.anyio
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=OF_ANY_LOOP.get(kind, ())) for kind in KINDS])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.requirement("PROMISE-12", "PROMISE-8")
async def test_an_exception_of_host_code_affects_only_the_operation_that_ran_the_code(
    name: str, kind: str
) -> None:
    _, play = ROWS[name]
    is_trio = event_loop().cancelled is trio.Cancelled
    await play(Bomb(partial(KINDS[kind], is_trio)))


UNNAMED = {"type of a tool's parameter", "a handler of the logger `actors`"}
"""Code that is not the value of a parameter."""


def test_every_public_parameter_that_accepts_code_has_a_row_in_the_test_table() -> None:
    rows = {parameter for parameters, _ in ROWS.values() for parameter in parameters}
    found = code_parameters()
    assert found - rows == set(), "add a row for each, whose play passes a function that raises"
    assert rows - found == UNNAMED, "these no longer accept code"


def test_a_new_public_parameter_that_accepts_code_is_detected() -> None:
    class Options(TypedDict, total=False):
        on_end: Callable[[], object]
        seconds: float

    class Fresh:
        def __init__(
            self, hooks: tuple[Callable[..., int], ...] | None = None, *, name: str = ""
        ) -> None: ...

        def use(
            self, clients: Sequence[AbstractAsyncContextManager[int]], **options: Unpack[Options]
        ) -> None: ...

    assert [*parameters_of(Fresh)] == ["Fresh.hooks", "Fresh.use.clients", "Fresh.use.on_end"]


def test_every_function_that_logs_an_event_catches_exceptions() -> None:
    events = [
        value
        for name, value in vars(logger).items()
        if isinstance(value, FunctionType) and value.__module__ == logger.__name__ and name[0] != "_"
    ]
    unguarded = [each.__name__ for each in events if each.__code__.co_name != "log_safely"]
    assert events
    assert unguarded == []
