"""The event loop keeps iterating while a long history is rendered for a new backend."""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors.core.check import check_fragment
from actors.core.history import compaction
from actors.core.history.history import History
from actors.core.lanes.lane import Rendered, Slices
from actors.core.render import STRIDE
from actors.core.session import export_file
from actors.core.session.lanes import Lanes
from actors.core.values.content import Message, Text
from actors.errors import CompactionFailed
from actors.renderer.renderer_actor import MAX_UNSLICED
from actors.session import compactor, user_input
from actors.testing import SERVER_ERROR, Say, Turn
from tests.commands.at_scale import extent
from tests.runtime.polls import counting_polls
from tests.runtime_support import bodies, openai, runtime_with

pytestmark = pytest.mark.anyio

MANY = extent(5000, 20_000)


@cache
def history(many: int) -> History:
    return History([Message("assistant" if n % 2 else "user", [Text("Yes.")]) for n in range(many)])


async def test_the_first_render_of_a_long_history_yields_to_the_event_loop_at_regular_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await anyio.lowlevel.checkpoint()
            beats += 1

    async with runtime_with(a=openai(Turn(Say("No.")))) as runtime:
        session = await runtime.open("a", messages=history(MANY))
        with anyio.fail_after(120), counting_polls() as polls:
            judge = check_fragment

            def count_and_judge(*arguments: object, **more: object) -> object:
                polls.note()
                return judge(*arguments, **more)  # type: ignore[arg-type]  # passes its arguments on

            monkeypatch.setattr("actors.core.lanes.lane.check_fragment", count_and_judge)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(beat)
                before = beats
                preview = await session.preview("a")
                during = beats - before
                tasks.cancel_scope.cancel()
            monkeypatch.undo()
        slices = -(-MANY // STRIDE)
        assert (polls.total >= slices, polls.most_at_once) == (True, 1)
        assert during >= slices - 1
        assert len(preview.body) > MANY


async def test_a_render_in_slices_sends_the_same_bytes_as_a_render_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many, sent = 2 * MAX_UNSLICED, list[object]()
    for long in (MAX_UNSLICED, 10 * many):
        monkeypatch.setattr("actors.renderer.renderer_actor.MAX_UNSLICED", long)
        server = openai(Turn(Say("No.")), Turn(Say("Never.")))
        async with runtime_with(a=server) as runtime:
            session = await runtime.open("a", messages=history(many))
            assert (await session.ask("And now?")).text == "No."
            assert (await session.ask("And then?")).text == "Never."
        sent.append([body["messages"] for body in bodies(server)])
    assert sent[0] == sent[1]


async def test_other_requests_wait_until_a_long_render_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rendering, under_way, most = Lanes.render_in_slices, 0, 0

    def count_renders(lanes: Lanes, *arguments: Any, **more: Any) -> Slices[Rendered]:  # Any: as it is called
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        rendered = yield from rendering(lanes, *arguments, **more)
        under_way -= 1
        return rendered

    monkeypatch.setattr(Lanes, "render_in_slices", count_renders)
    async with runtime_with(a=openai(Turn(Say("No.")))) as runtime:
        session = await runtime.open("a", messages=history(2 * MAX_UNSLICED))
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.preview, "a")
                tasks.start_soon(session.preview, "a")
                answer = await session.ask("And now?")
        assert (answer.text, most) == ("No.", 1)


def recording_thread(
    threads: list[threading.Thread], work: Callable[..., Any]
) -> Callable[..., Any]:  # Any: any function
    def record_and_call(*arguments: object, **more: object) -> object:
        threads.append(threading.current_thread())
        return work(*arguments, **more)

    return record_and_call


async def test_long_imports_are_read_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, filed = list[threading.Thread](), list[threading.Thread]()
    monkeypatch.setattr(user_input, "_pack_history", recording_thread(read, user_input._pack_history))
    monkeypatch.setattr(export_file, "import_logs", recording_thread(filed, export_file.import_logs))
    async with runtime_with(a=openai(Turn(Say("No.")))) as runtime:
        for many in (2, user_input.LONG, user_input.LONG + 1):
            session = await runtime.open("a", messages=[*history(many).since(0)])
            assert (await session.history()).length == many
        few = await runtime.open("a")
        for each in (few, await runtime.open("a", messages=history(20 * MAX_UNSLICED))):
            file = await runtime.journal.export(each.id)
            assert await runtime.journal.import_session(file, id=f"{each.id}-again") == f"{each.id}-again"
    here = threading.current_thread()
    assert [thread is here for thread in read] == [True, True, False, True]
    assert [thread is here for thread in filed] == [True, False]


@pytest.mark.parametrize("many", [compactor.LONG, compactor.LONG + 2])
async def test_the_compaction_of_a_long_history_searches_for_results_in_a_thread(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = list[threading.Thread]()
    monkeypatch.setattr(compaction, "results_to_trim", recording_thread(threads, compaction.results_to_trim))
    silent = openai(Turn(Say("Never.")), faults={0: SERVER_ERROR})  # without a summary the history stays long
    async with runtime_with(a=silent) as runtime:
        session = await runtime.open("a", messages=history(many))
        with pytest.raises(CompactionFailed):
            await session.compact()
    assert threads
    is_long = many > compactor.LONG
    assert {thread is threading.current_thread() for thread in threads} == {not is_long}
