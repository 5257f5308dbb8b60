"""Approvals of calls, and lines from the keyboard."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from actors.cli.conversation import Answer, Approvals, call_text, parse_answer
from actors.cli.terminal import Keyboard
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId

pytestmark = pytest.mark.anyio


def _call(name: str, **arguments: str) -> ToolCall:
    return ToolCall(CallId("c1"), name, dict(arguments))


@pytest.mark.parametrize(
    ("line", "word"),
    [("y", "yes"), (" YES ", "yes"), ("a", "always"), ("", "no"), ("yep", "no"), ("n", "no"), ("sure", "no")],
)
def test_any_answer_except_a_clear_yes_denies_the_call(line: str, word: Answer) -> None:
    assert parse_answer(line) == word


def test_the_description_of_a_call_has_its_arguments_and_no_escape_sequence() -> None:
    assert call_text(_call("pay", to="x\x1b[2J\ny")) == "pay(to='x\\x1b[2J\\ny')"


async def test_a_tool_approved_with_always_is_not_asked_again() -> None:
    asked: list[str] = []

    async def ask(words: str) -> Answer:
        asked.append(words)
        return "always" if "book" in words else "no"

    approve = Approvals("ask", ask)
    assert [await approve(_call(name)) for name in ("book", "book", "pay", "pay")] == [
        True,
        True,
        False,
        False,
    ]
    assert asked == ["book()", "pay()", "pay()"]


async def test_approvals_are_requested_one_at_a_time() -> None:
    answer, asked = anyio.Event(), list[str]()

    async def ask(words: str) -> Answer:
        asked.append(words)
        await answer.wait()
        return "always"

    approve = Approvals("ask", ask)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(approve, _call("book"))
        await anyio.wait_all_tasks_blocked()
        assert asked == ["book()"]
        answer.set()
    assert asked == ["book()"]  # the others waited, and "always" then applied to them


async def test_a_call_is_denied_and_counted_if_nobody_can_be_asked_for_approval() -> None:
    approve = Approvals("ask", None)
    assert await approve(_call("book")) is False
    assert approve.denied == ["book"]
    assert await Approvals("allow", None)(_call("book")) is True
    assert await Approvals("deny", None)(_call("book")) is False


@contextmanager
def _typed_input(*pieces: bytes) -> Iterator[int]:
    reading, writing = os.pipe()
    for piece in pieces:
        os.write(writing, piece)
    os.close(writing)
    try:
        yield reading
    finally:
        os.close(reading)


async def test_a_last_line_without_newline_is_read() -> None:
    with _typed_input("a\r\nb\n\ncafé".encode()) as descriptor:
        keyboard = Keyboard(descriptor)
        with anyio.fail_after(30):
            assert [await keyboard.read_line() for _ in range(5)] == ["a", "b", "", "café", None]


async def test_waiting_for_a_line_of_input_can_be_cancelled() -> None:
    reading, writing = os.pipe()
    try:
        with anyio.move_on_after(0) as scope:
            await Keyboard(reading).read_line()
        assert scope.cancelled_caught
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("path", ["/dev/null", __file__])
async def test_input_lines_can_be_read_from_files_and_the_null_device(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        line = await Keyboard(descriptor).read_line()
    finally:
        os.close(descriptor)
    assert line == (None if path == "/dev/null" else '"""Approvals of calls, and lines from the keyboard."""')
