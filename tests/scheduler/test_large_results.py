"""Large results: their size is limited, and they are converted in a thread, so other sessions are not delayed."""

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
from tests.runtime_support import bodies, openai, results, runtime_with
from tests.scripted import scripted

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
def test_values_that_take_long_to_convert_are_detected_as_large(value: object, expected: bool) -> None:
    assert is_large(value) is expected


def test_only_a_bounded_part_of_a_value_is_inspected_to_detect_a_large_value() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert is_large(endless)
    assert is_large([*[endless] * LARGE_PARTS, object()])


@pytest.mark.parametrize(
    "value", [ROWS[:10_100], "x" * 1_000_000, [1.5, None, True, {"a": {b"b"}}], {1: (2, 3)}]
)
def test_plain_data_is_converted_equally_in_a_thread(value: object) -> None:
    assert ingest(value, plain_only=True) == ingest(value)
    assert split_output(value, plain_only=True) == split_output(value)


class HostileStr(str):
    def __len__(self) -> int:
        raise AssertionError("no code of the value's own is to run")


@pytest.mark.parametrize(
    "value", [Row(), object(), ValueError("x"), [{"a": Row()}], {Row: 1}, type("D", (dict,), {})()]
)
def test_values_with_custom_methods_do_not_count_as_plain_data(value: object) -> None:
    with pytest.raises(ForeignValue):
        ingest(value, plain_only=True)


def test_a_subclass_of_str_is_converted_without_running_its_code() -> None:
    assert ingest([HostileStr("a")], plain_only=True).json == b'["a"]'


def test_the_search_for_media_in_a_result_stops_at_the_item_limit() -> None:
    most = DEFAULT_LIMITS.max_items
    image = Media("image/png", png_base64())
    beyond = [*["x"] * most, image]
    assert split_output(beyond) == (ingest(beyond).json, ())
    words, media = split_output([image, *["x"] * most])
    assert media == (image,)
    assert words.endswith(b'[1 more items cut]"')


# --- in a session


async def _result(value: object, limits: RuntimeLimits | None = None) -> str:
    @tool
    async def work() -> object:
        """Return the value."""
        return value

    async with scripted("openai_chat", ONE, tools=[work], limits=limits) as (server, _, session):
        await session.ask("Go.")
    (told,) = results(bodies(server)[-1]).values()
    return told


class WatchedConversion:
    """Records the threads in which results are converted."""

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
async def test_other_sessions_continue_while_a_large_result_is_converted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = WatchedConversion(monkeypatch)
    watched.released.clear()

    @tool
    async def work() -> object:
        """Return a large value."""
        return ROWS

    async with runtime_with(a=openai(ONE), b=openai(Turn(Say("Hello.")))) as runtime:
        one = await runtime.open("a", tools=[work])
        two = await runtime.open("b")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.ask, "Go.")
            while not watched.threads:
                await anyio.lowlevel.checkpoint()
            assert (
                await two.ask("Hi.")
            ).text == "Hello."  # would never return if the conversion blocked the loop
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
async def test_small_and_custom_results_are_converted_in_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, value: object, here: list[bool]
) -> None:
    watched = WatchedConversion(monkeypatch)
    told = await _result(value)
    assert [thread == threading.get_ident() for thread in watched.threads] == here
    assert told.startswith(("short", "xxx", "[0"))


@pytest.mark.anyio
async def test_a_result_is_cut_at_its_limit_with_a_visible_mark() -> None:
    told = await _result("x" * 1_000_000, RuntimeLimits(result_bytes=2000))
    assert len(told) <= 2000
    assert "characters cut]" in told
    rows = await _result(ROWS, RuntimeLimits(result_bytes=2000))
    assert len(rows) <= 2000
    assert "more items cut]" in rows


@pytest.mark.anyio
async def test_a_cancel_during_the_conversion_of_a_result_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = WatchedConversion(monkeypatch)
    watched.released.clear()

    @tool
    async def work() -> object:
        """Return a large value."""
        return "x" * (LARGE_TEXT + 1)

    async with scripted("openai_chat", ONE, tools=[work]) as (_, _, session):
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
async def test_a_large_result_is_kept_even_if_its_task_is_in_a_cancelled_scope() -> None:
    @tool
    async def work() -> object:
        """Leave a cancelled scope open, which raises at every await."""
        scope = anyio.CancelScope()
        scope.__enter__()
        scope.cancel()
        return "x" * (LARGE_TEXT + 1)

    async with scripted("openai_chat", ONE, tools=[work]) as (server, _, session):
        await session.ask("Go.")
    (told,) = results(bodies(server)[-1]).values()
    assert told == "x" * (LARGE_TEXT + 1)
