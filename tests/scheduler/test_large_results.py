"""A result of any size costs its own session only: it is bounded, and read apart from the event loop if it is large."""

import threading
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from actors.config import RuntimeLimits
from actors.core.data.ingest import DEFAULT_LIMITS, ForeignValue, ingest
from actors.core.data.jsonio import Json
from actors.core.turn.tool_output import LARGE_PARTS, LARGE_TEXT, is_large, split_output
from actors.core.values.content import Media
from actors.scheduler import calls
from actors.testing import Call, Say, Turn
from actors.testing.images import png_base64
from actors.tools import tool
from tests.runtime_support import bodies, hosting, openai, results

ROWS = [{"id": number, "name": f"row {number}"} for number in range(20_000)]
ONE = Turn(Call("work", {}))


class Row(BaseModel):
    name: str = "x"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, False),
        ("x" * LARGE_TEXT, False),
        ("x" * (LARGE_TEXT + 1), True),
        (b"x" * (LARGE_TEXT + 1), True),
        (["x" * LARGE_TEXT, "y"], True),
        ({"a": {"b": ("x" * LARGE_TEXT, b"y")}}, True),
        ([0] * LARGE_PARTS, False),
        ([0] * (LARGE_PARTS + 1), True),
        ([[0] * 999, [0] * 999], False),
        ({"a": [0] * 1000, "b": {*range(1000)}}, True),
        (dict.fromkeys(range(LARGE_PARTS + 1)), True),
        (ROWS, True),
        ([[[]] * 10_000] * 10_000, True),
        (Row(), False),
    ],
)
def test_it_is_known_what_takes_long_to_read(value: object, expected: bool) -> None:
    assert is_large(value) is expected


def test_to_know_it_no_more_is_looked_at_than_that_much() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert is_large(endless)
    assert is_large([*[endless] * LARGE_PARTS, object()])


@pytest.mark.parametrize(
    "value", [ROWS[:10_100], "x" * 1_000_000, [1.5, None, True, {"a": {b"b"}}], {1: (2, 3)}]
)
def test_plain_data_is_read_alike_wherever_it_is_read(value: object) -> None:
    assert ingest(value, plain_only=True) == ingest(value)
    assert split_output(value, plain_only=True) == split_output(value)


class Text(str):
    def __len__(self) -> int:
        raise AssertionError("no code of the value's own is to run")


@pytest.mark.parametrize(
    "value", [Row(), object(), ValueError("x"), [{"a": Row()}], {Row: 1}, type("D", (dict,), {})()]
)
def test_what_has_code_of_its_own_is_not_plain(value: object) -> None:
    with pytest.raises(ForeignValue):
        ingest(value, plain_only=True)


def test_of_a_subclass_of_a_simple_type_nothing_but_the_value_is_read() -> None:
    assert ingest([Text("a")], plain_only=True).json == b'["a"]'


def test_a_list_of_more_than_may_be_kept_is_not_searched_for_media_beyond_that() -> None:
    most = DEFAULT_LIMITS.max_items
    image = Media("image/png", png_base64())
    beyond = [*["x"] * most, image]
    assert split_output(beyond) == (ingest(beyond).json, ())
    words, media = split_output([image, *["x"] * most])
    assert media == (image,)
    assert words.endswith(b'[1 more items cut]"')


# --- in a session ----------------------------------------------------------------------------------------


async def _result(value: object, limits: RuntimeLimits | None = None) -> str:
    @tool
    async def work() -> object:
        """Return it."""
        return value

    server = openai(ONE)
    async with hosting(a=server, limits=limits) as runtime:
        session = await runtime.open("a", tools=[work])
        await session.ask("Go.")
    (told,) = results(bodies(server)[-1]).values()
    return told


class Watched:
    """Notes in which thread results are read."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.threads: list[int] = []
        self.released = threading.Event()
        self.released.set()
        patch.setattr(calls, "split_output", self.read)

    def read(
        self, value: object, *limits: Any, **options: Any
    ) -> tuple[Json, tuple[Media, ...]]:  # Any: as `split_output`
        self.threads.append(threading.get_ident())
        assert self.released.wait(20)
        return split_output(value, *limits, **options)


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-8")
async def test_while_a_large_result_is_read_other_sessions_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    watched.released.clear()

    @tool
    async def work() -> object:
        """Return much."""
        return ROWS

    async with hosting(a=openai(ONE), b=openai(Turn(Say("Hello.")))) as runtime:
        one = await runtime.open("a", tools=[work])
        two = await runtime.open("b")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.ask, "Go.")
            while not watched.threads:
                await anyio.lowlevel.checkpoint()
            assert (
                await two.ask("Hi.")
            ).text == "Hello."  # the loop would stand still if the reader were here
            watched.released.set()
    assert threading.get_ident() not in watched.threads


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "here"),
    [
        ("short", [True]),
        ([0] * LARGE_PARTS, [True]),
        ("x" * (LARGE_TEXT + 1), [False]),
        ([*[0] * LARGE_PARTS, Row()], [False, True]),
    ],
)
async def test_small_results_and_those_with_code_of_their_own_are_read_in_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, value: object, here: list[bool]
) -> None:
    watched = Watched(monkeypatch)
    told = await _result(value)
    assert [thread == threading.get_ident() for thread in watched.threads] == here
    assert told.startswith(("short", "xxx", "[0"))


@pytest.mark.anyio
async def test_as_much_of_a_result_is_kept_as_the_limits_say_and_a_mark_says_what_is_gone() -> None:
    told = await _result("x" * 1_000_000, RuntimeLimits(result_bytes=2000))
    assert len(told) <= 2000
    assert "characters cut]" in told
    rows = await _result(ROWS, RuntimeLimits(result_bytes=2000))
    assert len(rows) <= 2000
    assert "more items cut]" in rows


@pytest.mark.anyio
async def test_a_cancel_while_a_large_result_is_read_loses_no_word_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(monkeypatch)
    watched.released.clear()

    @tool
    async def work() -> object:
        """Return much."""
        return "x" * (LARGE_TEXT + 1)

    async with hosting(a=openai(ONE)) as runtime:
        session = await runtime.open("a", tools=[work])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            while not watched.threads:
                await anyio.lowlevel.checkpoint()
            tasks.start_soon(session.cancel)
            watched.released.set()
        (known,) = (await session.ledger()).interactions()
    assert known.completion is not None
    assert known.completion.content == "x" * (LARGE_TEXT + 1)


@pytest.mark.anyio
async def test_a_large_result_in_a_task_that_its_tool_has_spoiled_is_kept_too() -> None:
    @tool
    async def work() -> object:
        """Leave a cancelled scope behind, which raises at every wait."""
        scope = anyio.CancelScope()
        scope.__enter__()
        scope.cancel()
        return "x" * (LARGE_TEXT + 1)

    server = openai(ONE)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[work])
        await session.ask("Go.")
    (told,) = results(bodies(server)[-1]).values()
    assert told == "x" * (LARGE_TEXT + 1)
