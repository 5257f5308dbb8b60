"""Compaction on request, before the context window is full, and after a request was too long."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, get_args

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import fields

from actors import Compaction, CompactionResult, Media, Runtime, Tool, tool
from actors.config import Config, FileSettings
from actors.config.settings import PoolSettings
from actors.core.log.events import Compacted, RequestSent, ResultsTrimmed, TurnEnded
from actors.core.turn.steps import Outcome
from actors.core.values.progress import Cause
from actors.core.values.stream import Usage
from actors.errors import CompactionFailed
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.handle import Session
from actors.session.inflight import stopped_outcome
from actors.strict.faults import DIALECTS, window_faults
from actors.strict.rules.base import Json
from actors.strict.server import LoopbackServer, serve
from actors.testing import SERVER_ERROR, Call, OpenAIServer, Say, Script, Stall, Status, Think, Turn
from actors.testing.images import png
from tests.runtime_support import (
    assert_paired,
    assert_rebuilds,
    backend_at,
    blocks,
    bodies,
    log,
    openai,
    runtime_with,
)
from tests.scripted import scripted
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

USUAL = Compaction()
LONG = "line of a file\n" * 200


@tool
async def read(path: str) -> str:
    """Read a file."""
    return f"{path}: {LONG}"


def host(name: str, most: int | None = None) -> LoopbackServer:
    """Return the strictest server of a dialect, with a context window of `most` tokens."""
    server = strict_host(name, Script(answer_request), host=name)
    if most is not None:
        server.faults = window_faults(name, most)
    return server


def answer_request(request: Json) -> Turn:
    """Return a summary, a call of `read` or a final text, depending on the last instruction in the request."""
    said = json.dumps(request)
    marks = "Write that summary now", "Please read ", "line of a file", "was left out here", "Done."
    last = max(marks, key=said.rfind)
    if last == marks[0]:
        return Turn(Say("The user had files read. hist_tool_1 was long."))
    if last == marks[1]:
        path = said[said.rfind(last) + len(last) :].partition(".")[0]
        return Turn(Call("read", {"path": path}))
    return Turn(Say("Done."))


async def talk(session: Session, turns: int, first: int = 1) -> None:
    """Ask the model to read one file in each of `turns` turns."""
    for number in range(first, first + turns):
        answer = await session.ask(f"Please read f{number}.")
        assert (answer.status, answer.text) == ("complete", "Done."), answer.error


@asynccontextmanager
async def runtime_with_windows(
    compaction: Compaction = USUAL,
    /,
    pools: Mapping[str, PoolSettings] | None = None,
    **servers: tuple[LoopbackServer, int | None],
) -> AsyncIterator[Runtime]:
    """Run the servers, each with the context window that its backend declares."""
    hosts = {name: server for name, (server, _) in servers.items()}
    with anyio.fail_after(60):
        async with serve(*hosts.values()):
            backends = {
                name: backend_at(server).model_copy(update={"context": most})
                for name, (server, most) in servers.items()
            }
            config = Config(FileSettings(backends=backends, pools=dict(pools or {})), {})
            async with Runtime(config, seed=1, compaction=compaction) as runtime:
                yield runtime
                for name in runtime.sessions:
                    await assert_rebuilds(runtime, runtime.session(name))


@pytest.mark.requirement("REQ-915-026", "REQ-915-028", "PROMISE-1", "PROMISE-2", "PROMISE-14")
@pytest.mark.parametrize("name", ["openai_chat", "anthropic"])
async def test_compacting_a_session_shortens_the_history_and_the_next_request_is_accepted(name: str) -> None:
    async with scripted(host(name), tools=[read]) as (server, runtime, session):
        await talk(session, 4)
        before = blocks(bodies(server)[-1])
        made = await session.compact()
        assert (made.messages, made.results, made.error) == (6, 0, "")
        assert made.usage.cache_read_tokens > 0
        asked = bodies(server)[-1]
        await talk(session, 1, first=5)
        history, ledger = await session.history(), await session.ledger()
        (event,) = [event for event in log(runtime, session) if isinstance(event, Compacted)]
    assert (event.start, event.stop) == (0, 6)
    assert blocks(asked)[: len(before)] == before  # so that the request reads the provider's cache
    assert asked["tools"] == bodies(server)[0]["tools"]
    # another value would miss the cache
    assert asked.get("tool_choice") == ("none" if name == "openai_chat" else None)
    assert "hist_tool_1 was long" in history[0].text
    assert "read (hist_tool_2)." in history[0].text
    assert all(item.completion is not None for item in ledger.interactions())
    assert_paired(bodies(server)[-1])
    assert LONG not in str(bodies(server)[-1]["messages"][0])


@pytest.mark.alternating
@pytest.mark.long
@pytest.mark.requirement("PROMISE-1", "PROMISE-3")
@pytest.mark.parametrize("name", DIALECTS)
async def test_a_request_that_was_too_long_is_retried_with_a_shorter_history(name: str) -> None:
    server = host(name, 4500)
    async with runtime_with_windows(a=(server, None)) as runtime:
        session = await runtime.open("a", tools=[read])
        await talk(session, 9)
        shrunk = [event for event in log(runtime, session) if isinstance(event, ResultsTrimmed | Compacted)]
        ledger = await session.ledger()
    assert shrunk
    assert server.refusals == []
    assert all(item.completion is not None for item in ledger.interactions())
    refused = [exchange for exchange in server.requests if exchange.status == 400]
    assert 1 <= len(refused) <= 4


@pytest.mark.parametrize("name", ["openai_chat", "anthropic"])
async def test_compaction_before_the_window_is_full_avoids_too_long_requests(name: str) -> None:
    server = host(name, 6000)
    async with runtime_with_windows(
        Compaction(threshold=0.6, large_result_bytes=100_000), a=(server, 6000)
    ) as runtime:
        session = await runtime.open("a", tools=[read])
        await talk(session, 14)
        events = log(runtime, session)
    assert [exchange.status for exchange in server.requests if exchange.status != 200] == []
    assert 1 <= sum(isinstance(event, Compacted) for event in events) <= 6
    asides = [event for event in events if isinstance(event, RequestSent) and event.is_for_summary]
    assert len(asides) == sum(isinstance(event, Compacted) for event in events)


@tool(name="read")
async def scan(path: str) -> list[str | Media]:
    """Scan a page."""
    pages = (Media.from_bytes(png(note=f"{path} {n}" * 500), "image/png") for n in range(3))
    return ["line of a file", *pages]


@pytest.mark.parametrize(
    ("name", "window", "reads", "told"),
    [
        ("openai_chat", 6000, read, "was left out here"),
        ("anthropic", 9000, scan, "and 3 attachments: it was long"),
    ],
    ids=["long results", "files of an assumed size"],
)
async def test_no_summary_is_written_if_trimming_large_results_saves_enough(
    name: str, window: int, reads: Tool[Any, Any], told: str
) -> None:
    server = host(name, window if reads is read else None)
    async with runtime_with_windows(
        Compaction(threshold=0.6, large_result_bytes=1000, keep_turns=1), a=(server, window)
    ) as runtime:
        session = await runtime.open("a", tools=[reads])
        await talk(session, 6)
        events = log(runtime, session)
    assert any(isinstance(event, ResultsTrimmed) for event in events)
    assert not any(isinstance(event, Compacted) for event in events)
    assert told in str(bodies(server)[-1])


async def test_before_a_switch_to_a_smaller_window_the_backend_with_the_larger_window_compacts() -> None:
    large, small = host("anthropic"), host("openai_chat", 3500)
    async with runtime_with_windows(
        Compaction(keep_turns=1), large=(large, 200_000), small=(small, 3500)
    ) as runtime:
        session = await runtime.open("large", tools=[read])
        await talk(session, 6)
        asked = large.received
        await session.switch("small")
        answer = await session.ask("Please read f7.")
        await session.switch("large")
        again = await session.ask("Please read f8.")
    assert (answer.status, answer.binding.backend) == ("complete", "small"), answer.error
    assert [attempt.binding.backend for attempt in answer.attempts] == ["large", "small"]
    assert [exchange.status for exchange in small.requests] == [200, 200]
    assert large.received == asked + 3
    assert again.status == "complete"
    assert large.refusals == []


async def test_a_long_message_is_sent_after_a_summary_of_the_earlier_messages() -> None:
    """The request for the summary has as many messages as the rejected one, but is a different request."""
    server = host("openai_chat", 3000)
    async with runtime_with_windows(a=(server, None)) as runtime:
        session = await runtime.open("a")
        answers = [await session.ask(f"{number}: " + "word " * 1500) for number in (1, 2)]
        history = await session.history()
    assert [answer.status for answer in answers] == ["complete"] * 2, answers[1].error
    assert [exchange.status for exchange in server.requests] == [200, 400, 200, 200]
    assert history[0].text.startswith("[Summary of the conversation so far.]")
    assert history[1].text.startswith("2: word")


async def test_a_history_that_is_still_too_long_is_shortened_again() -> None:
    """Four turns and a long question are too long even if only one earlier turn is kept."""
    server = host("openai_chat", 3500)
    async with runtime_with_windows(Compaction(keep_turns=2), a=(server, None)) as runtime:
        session = await runtime.open("a", tools=[read])
        for _ in range(4):
            await session.ask("word " * 500)
        answer = await session.ask("Please read f1. " + "word " * 1700)
        said = (await session.history())[1].text
        summaries = [event for event in log(runtime, session) if isinstance(event, Compacted)]
    assert (answer.status, len(answer.attempts)) == ("complete", 1), answer.error
    assert said.startswith("Please read f1. word")  # only this turn was kept
    assert len(summaries) == 2
    assert server.refusals == []


@pytest.mark.parametrize("by", [None, "third"])
async def test_a_history_too_long_for_the_current_backend_is_compacted_by_another_backend(
    by: str | None,
) -> None:
    """The windows are unknown. Half of the history is too long for a summary by the smaller backend."""
    large, small, third = host("anthropic"), host("openai_chat", 3500), host("mistral")
    made = Compaction(keep_turns=1, summarizer=by)
    async with runtime_with_windows(
        made, large=(large, None), small=(small, None), third=(third, None)
    ) as runtime:
        session = await runtime.open("large", tools=[read])
        for _ in range(3):
            await session.ask("word " * 3000)
        await session.switch("small")
        answer = await session.ask("Please read f1.")
    writer = by or "large"
    assert (answer.status, answer.text, answer.binding.backend) == ("complete", "Done.", "small"), (
        answer.error
    )
    ends = [(attempt.binding.backend, attempt.status) for attempt in answer.attempts]
    assert ends == [("small", "handed_over"), (writer, "handed_over"), ("small", "complete")]
    assert [len(server.requests) for server in (large, third)] == ([4, 0] if by is None else [3, 1])
    assert large.refusals == third.refusals == []


async def test_if_no_summary_can_be_written_results_are_trimmed_instead() -> None:
    async with scripted(host("openai_chat"), tools=[read]) as (server, _, session):
        await talk(session, 4)
        said = await session.history()
        server.faults = lambda number, request: SERVER_ERROR
        made = await session.compact()
        assert (made.messages, made.results) == (0, 4)
        assert made.error
        assert await session.history() == said
        with pytest.raises(CompactionFailed, match="was not compacted"):
            await session.compact()
        server.faults = {}
        await talk(session, 1, first=5)
    assert "was left out here" in str(bodies(server)[-1])


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.requirement("REQ-915-026", "PROMISE-2")
@pytest.mark.parametrize("name", ["openai_chat", "anthropic", "openai_responses", "gemini", "bedrock"])
@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (Turn(Say("Let me look again."), Call("read", {"path": "x"})), "called a tool and wrote no summary"),
        (Turn(Say("word " * 4_000), fragment=1000), "longer than the messages that it replaces"),
        (Turn(Say(" \n ")), "wrote no summary"),
        (Turn(Think("What did they say?")), "wrote no summary"),
    ],
    ids=["tool", "longer", "blank", "thought"],
)
async def test_an_answer_that_is_not_a_summary_is_not_used_as_a_summary(
    name: str, turn: Turn, why: str
) -> None:
    def answer_with_turn(request: Json) -> Turn:
        usual = answer_request(request)
        return turn if "hist_tool_1 was long" in str(usual) else usual

    server = strict_host(name, Script(answer_with_turn), host=name)
    async with scripted(server, tools=[read]) as (_, _, session):
        await talk(session, 3)
        made = await session.compact()
        assert (made.messages, made.results) == (0, 3)
        assert why in made.error
        await talk(session, 1, first=4)
        assert (await session.history())[0].text == "Please read f1."
        # calls in an unusable summary are not recorded
        assert len((await session.ledger()).interactions()) == 4


async def test_a_filtered_summary_is_discarded_and_a_truncated_summary_is_labelled() -> None:
    cut = iter(["content_filter", "length"])

    def answer_with_cut(request: Json) -> Turn:
        usual = answer_request(request)
        is_summary = "hist_tool_1 was long" in str(usual)
        return Turn(Say("The user had"), stop=next(cut)) if is_summary else usual

    async with scripted(OpenAIServer(Script(answer_with_cut)), tools=[read]) as (_, _, session):
        await talk(session, 3)
        made = await session.compact()
        assert (made.messages, made.error) == (0, "the model wrote an incomplete summary (filter)")
        assert (await session.compact()).messages == 3
        assert "The user had [It was cut here.]" in (await session.history())[0].text


async def test_a_history_with_little_to_summarise_is_not_compacted() -> None:
    """The system prompt alone almost reaches the threshold, so summarising each previous turn would save nothing."""
    server = host("openai_chat")
    async with runtime_with_windows(Compaction(threshold=0.6), a=(server, 6000)) as runtime:
        session = await runtime.open("a", system="A rule. " * 1800)
        for _ in range(6):
            assert not (await session.preview("a")).compacts
            assert len((await session.ask("How are you?")).attempts) == 1
    assert len(server.requests) == 6


async def test_the_current_backend_summarises_if_the_previous_backend_is_gone() -> None:
    storage, one, two = MemoryStorage(), host("openai_chat"), host("anthropic")
    async with runtime_with(one=one, storage=storage) as runtime:
        await talk(await runtime.open("one", tools=[read], id="trip"), 3)
    async with runtime_with(two=two, storage=storage) as runtime:
        session = await runtime.resume("trip", tools=[read], target="two")
        assert (await session.compact()).messages == 3
    assert len(two.requests) == 1


async def test_an_ask_whose_request_is_too_long_even_after_compaction_fails_with_the_reason() -> None:
    server = host("openai_chat", 1200)
    async with runtime_with_windows(a=(server, None)) as runtime:
        session = await runtime.open("a", tools=[read])
        answer = await session.ask("word " * 2000, check=False)
        assert answer.status == "failed"
        assert "nothing is left to shorten" in answer.error
        assert answer.attempts[-1].cause is not None
        assert answer.attempts[-1].cause.kind == "overflow"


async def test_a_session_recovers_from_an_oversized_message_by_fork_or_larger_window() -> None:
    small, large = host("openai_chat", 1200), host("anthropic")
    async with runtime_with_windows(
        Compaction(keep_turns=0), small=(small, None), large=(large, None)
    ) as runtime:
        session = await runtime.open("small", tools=[read])
        await talk(session, 1)
        seq = len(log(runtime, session))
        for words in ("word " * 2000, "Hello?"):
            answer = await session.ask(words, check=False)
            assert (answer.status, answer.attempts[-1].cause) == ("failed", Cause("overflow", 400))
        fork = await runtime.resume(await runtime.journal.fork(session.id, at=seq), tools=[read])
        await talk(fork, 1, first=2)
        await session.switch("large")
        assert (await session.ask("Hello?")).status == "complete"
        assert (await session.compact()).messages > 4
        await session.switch("small")
        await talk(session, 1, first=2)
    assert small.refusals == large.refusals == []


async def test_a_pool_fails_over_if_a_shortened_request_is_still_too_long() -> None:
    too_long = Status(
        400, message="This model's maximum context length is 100 tokens.", code="context_length_exceeded"
    )
    one, two = host("openai_chat"), host("anthropic")
    async with runtime_with(a=one, b=two, pools={"p": PoolSettings(members=("a", "b"))}) as runtime:
        session = await runtime.open("p", tools=[read])
        await talk(session, 3)
        one.faults = dict.fromkeys(range(one.received, one.received + 8), too_long)
        answer = await session.ask("Please read f4.")
        shrunk = [event for event in log(runtime, session) if isinstance(event, ResultsTrimmed | Compacted)]
    assert shrunk
    assert (answer.status, answer.binding.backend) == ("complete", "b"), answer.error


async def test_a_compaction_waits_for_the_running_ask() -> None:
    server, began, go = host("openai_chat"), anyio.Event(), anyio.Event()

    @tool(name="read")
    async def slow(path: str) -> str:
        """Read a file."""
        began.set()
        await go.wait()
        return path

    async with scripted(server, tools=[slow]) as (_, runtime, session), anyio.create_task_group() as tasks:
        assert (await session.compact()).error == "nothing is left to shorten"
        done: list[str] = []

        async def compact() -> None:
            await session.compact()
            done.append("compacted")

        async def ask() -> None:
            await session.ask("Please read f1.")
            done.append("asked")

        tasks.start_soon(ask)
        await began.wait()
        tasks.start_soon(compact)
        await anyio.wait_all_tasks_blocked()
        assert done == []
        go.set()
        while len(done) < 2:
            await anyio.lowlevel.checkpoint()
        assert done == ["asked", "compacted"]
        ends = [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert ends == ["complete"] * 3


async def test_a_summary_counts_in_the_usage_and_attempts_of_its_ask() -> None:
    server = host("openai_chat", 6000)
    async with runtime_with_windows(
        Compaction(threshold=0.6, large_result_bytes=100_000), a=(server, 6000)
    ) as runtime:
        session = await runtime.open("a", tools=[read])
        answers = [await session.ask(f"Please read f{number}.") for number in range(8)]
        told = [event async for event in session.events(follow=False)]
    (first, *_) = [answer for answer in answers if len(answer.attempts) > 1]
    assert [attempt.status for attempt in first.attempts] == ["handed_over", "complete"]
    assert first.rounds == 3
    assert first.usage.input_tokens > sum(answer.usage.input_tokens for answer in answers[:1])
    assert "compacted" in {event.type for event in told}


async def test_a_compaction_can_be_cancelled_at_any_moment() -> None:
    for steps in range(0, 60, 5):
        server, came = host("openai_chat"), list[CompactionResult]()
        async with scripted(server, tools=[read]) as (_, _, session):
            await talk(session, 3)
            server.faults = {server.received: Stall()}  # a request for a summary gets no answer

            async def compact(session: Session, came: list[CompactionResult]) -> None:
                came.append(await session.compact())

            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(compact, session, came)
                    for _ in range(steps):
                        await anyio.lowlevel.checkpoint()
                    while not await session.cancel() and not came:
                        await anyio.lowlevel.checkpoint()
        assert [made.messages for made in came] == [0], steps


async def test_a_cancelled_compaction_leaves_the_history_unchanged() -> None:
    server = host("openai_chat")
    async with scripted(server, tools=[read]) as (_, runtime, session), anyio.create_task_group() as tasks:
        await talk(session, 3)
        asked, said = server.received, await session.history()
        server.faults = lambda number, request: Stall()
        came: list[CompactionResult] = []

        async def compact() -> None:
            came.append(await session.compact())

        tasks.start_soon(compact)
        while server.received == asked:
            await anyio.lowlevel.checkpoint()
        assert await session.cancel()
        while not came:
            await anyio.lowlevel.checkpoint()
        assert came == [CompactionResult(error="the compaction was cancelled")]
        assert await session.history() == said
        assert not any(isinstance(event, ResultsTrimmed | Compacted) for event in log(runtime, session))


@pytest.mark.parametrize("outcome", [kind for kind in get_args(Outcome) if "usage" in kind.__struct_fields__])
def test_a_cancelled_turn_reports_the_usage_of_its_last_outcome(
    outcome: Any,
) -> None:  # Any: a step's outcome, by its class
    used = Usage(7, 1)
    given: dict[str, Any] = {
        field.name: None for field in fields(outcome) if field.required
    }  # Any: its fields
    assert stopped_outcome(outcome(**{**given, "usage": used})).usage == used


@pytest.mark.requirement("REQ-915-026")
async def test_corrections_are_counted_across_a_compaction() -> None:
    no = Turn(Say("no"))
    first = openai(*[Turn(Say("Done."))] * 4, no, Turn(Say("A summary.")), faults={5: Status(401)})
    second = openai(no, no, Turn(Say("never")))
    pools = {"both": PoolSettings(members=("a", "b"))}
    async with runtime_with_windows(pools=pools, a=(first, None), b=(second, 1_500)) as runtime:
        session = await runtime.open("both")
        for _ in range(4):
            await session.ask("Word after word. " * 100)
        answer = await session.ask("How many?", output=int, max_corrections=2, check=False)
        expected = "the answer does not have the required format: it is not one JSON value"
        assert (answer.status, answer.error) == ("failed", expected)
        assert sum(isinstance(event, Compacted) for event in log(runtime, session)) == 1
        assert len(bodies(second)) == 2


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-1", "PROMISE-14")
@pytest.mark.parametrize("name", DIALECTS)
async def test_a_turn_longer_than_the_window_trims_results_that_its_model_has_seen(name: str) -> None:
    """The first ask has no history to summarise, and only the sum of its short results exceeds the window."""

    def read_next_file(request: Json) -> Turn:
        text = json.dumps(request)
        last = max((number for number in range(9) if f"f{number}.txt: " in text), default=-1)
        thought = [Think("On we go.")] if name == "anthropic" else []
        return Turn(Say("Done.")) if last == 8 else Turn(*thought, Call("read", {"path": f"f{last + 1}.txt"}))

    server = strict_host(name, Script(read_next_file), host=name)
    server.faults = window_faults(name, 4500)
    async with runtime_with_windows(a=(server, None)) as runtime:
        session = await runtime.open("a", tools=[read])
        answer = await session.ask("Read them all.")
        marked = [event for event in log(runtime, session) if isinstance(event, ResultsTrimmed)]
        interactions = (await session.ledger()).interactions()
    assert (answer.status, answer.text) == ("complete", "Done."), answer.error
    assert server.refusals == []
    assert [item.call_id for item in interactions if item.completion is None] == []
    assert len(interactions) == 9  # no file was read twice
    assert marked
    assert {why for event in marked for _, why in event.results} == {"old"}


async def test_a_long_turn_compacts_each_time_its_window_is_full() -> None:
    """One request may compact three times at most, and thirty files fill more than three windows."""

    def read_next_file(request: Json) -> Turn:
        text = json.dumps(request)
        last = max((number for number in range(30) if f"f{number}.txt: " in text), default=-1)
        return Turn(Say("Done.")) if last == 29 else Turn(Call("read", {"path": f"f{last + 1}.txt"}))

    server = openai(faults=window_faults("openai_chat", 4500))
    server.script = Script(read_next_file)
    async with runtime_with_windows(a=(server, None)) as runtime:
        session = await runtime.open("a", tools=[read])
        answer = await session.ask("Read them all.", max_rounds=40)
        marked = [event for event in log(runtime, session) if isinstance(event, ResultsTrimmed)]
    assert (answer.status, answer.text) == ("complete", "Done."), answer.error
    assert len(marked) > 3
    assert server.refusals == []
