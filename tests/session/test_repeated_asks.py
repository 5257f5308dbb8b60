"""Asks with a key: repeated on the same host, on another one, after a kill, and with another message."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from actors import Runtime, Session, tool
from actors.config import Config, FileSettings
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import AskStarted, LogEvent, RequestSent, TurnEnded
from actors.errors import ConfigError, InvalidIdentifier, KeyReused, QueueFull, SessionClosed
from actors.events import ApprovalDecision, CompleteEvent
from actors.journal.storage import Entry, Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.session.driver import AGAIN
from actors.strict.server import LoopbackServer
from actors.telemetry.otel import Tracing
from actors.testing import Call, Say, Turn, serve
from tests.runtime_support import Gate, assert_rebuilds, backend_at, bodies, log, openai
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

Start = Callable[[Storage], Runtime]


class City(BaseModel):
    """The form of an answer."""

    name: str


@tool(effects="once")
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


@asynccontextmanager
async def serving(server: LoopbackServer) -> AsyncIterator[Start]:
    """Run a server; yield a function that makes runtimes whose backend `a` it is."""
    with anyio.fail_after(60):
        async with serve(server):
            config = Config(FileSettings(backends={"a": backend_at(server)}), {})
            yield lambda storage: Runtime(config, journal=storage, seed=1)


def storage_with(events: list[LogEvent], session: str = "trip") -> MemoryStorage:
    """Return a storage with the log of a host that was killed after these events."""
    storage = MemoryStorage()
    claim = storage.claim(session)
    storage.append([Entry(session, claim.fence, tuple(decode_event(encode_event(each)) for each in events))])
    storage.release(session, claim.fence)
    return storage


def up_to(events: list[LogEvent], kind: type[LogEvent]) -> list[LogEvent]:
    """Return a log up to its last event of a kind."""
    last = max(index for index, event in enumerate(events) if isinstance(event, kind))
    return events[: last + 1]


def user_messages(body: dict[str, object]) -> list[object]:
    """Return the contents of the user's messages in a request."""
    messages = body["messages"]
    assert isinstance(messages, list)
    return [each["content"] for each in messages if each["role"] == "user"]


async def test_a_repeated_ask_returns_the_first_result_without_a_new_request() -> None:
    async with scripted("openai_chat", Turn(Say("Oslo.")), Turn(Say("Rome."))) as (server, _, session):
        first = await session.ask("Where?", key="k1")
        other = await session.ask("And now?")
        repeated = await session.ask("Where?", key="k1")
        assert (first.text, other.text) == ("Oslo.", "Rome.")
        fields = ("text", "status", "binding", "attempts", "rounds", "usage", "turn", "finish_reason")
        assert [getattr(repeated, name) for name in fields] == [getattr(first, name) for name in fields]
        assert len(bodies(server)) == 2


async def test_concurrent_asks_with_one_key_share_one_turn() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "one"})), Turn(Say("Done.")))
    async with scripted(server, tools=[gate.tool]) as (_, runtime, session):
        results: list[str] = []

        async def ask() -> None:
            results.append((await session.ask("Go.", key="k1")).text)

        async def read() -> None:
            async with session.stream("Go.", key="k1") as events:
                seen = [event async for event in events]
            assert "text" in {event.type for event in seen}
            results.extend([event.result.text for event in seen if isinstance(event, CompleteEvent)])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await gate.started("one")
            tasks.start_soon(ask)
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            gate.open("one")
        assert results == ["Done."] * 3
        assert len(bodies(server)) == 2
        assert sum(isinstance(event, AskStarted) for event in log(runtime, session)) == 1


async def test_a_repeated_ask_joins_the_queued_ask_with_the_same_key() -> None:
    gate = Gate()
    script = [Turn(Call("work", {"name": "one"})), Turn(Say("First.")), Turn(Say("Second."))]
    async with scripted("openai_chat", *script, tools=[gate.tool]) as (server, _, session):
        results: list[str] = []

        async def ask(words: str, key: str) -> None:
            results.append((await session.ask(words, key=key)).text)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "Go.", "k1")
            await gate.started("one")
            for _ in range(3):
                tasks.start_soon(ask, "And then?", "k2")
            await anyio.wait_all_tasks_blocked()
            gate.open("one")
        assert results == ["First.", "Second.", "Second.", "Second."]
        assert len(bodies(server)) == 3


async def test_a_repeated_ask_on_another_host_returns_the_result_from_the_log(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    server = openai(Turn(Say('{"name": "Oslo"}')))
    async with serving(server) as start:
        async with start(SqliteStorage(path)) as runtime:
            session = await runtime.open("a", id="trip")
            assert (await session.ask("Where?", key="k1", output=City)).output == City(name="Oslo")
        async with start(SqliteStorage(path)) as runtime:
            session = await runtime.resume("trip")
            repeated = await session.ask("Where?", key="k1", output=City)
            assert (repeated.status, repeated.output) == ("complete", City(name="Oslo"))
            async with session.stream("Where?", key="k1", output=City) as events:
                kinds = [event.type async for event in events]
            assert (kinds[0], kinds[-1]) == ("ask_started", "complete")
    assert len(bodies(server)) == 1


async def test_an_ask_interrupted_by_a_kill_continues_in_a_further_turn() -> None:
    server = openai(Turn(Call("pay", {"amount": 5})), Turn(Say("Paid.")), Turn(Say("It is paid.")))
    async with serving(server) as start:
        async with start(MemoryStorage()) as runtime:
            session = await runtime.open("a", id="trip", tools=[pay])
            await session.ask("Pay 5.", key="k1")
            events = up_to(log(runtime, session), RequestSent)
        async with start(storage_with(events)) as runtime:
            session = await runtime.resume("trip", tools=[pay])
            assert await _asked(session, "Pay 5.", "k1") == ("complete", "It is paid.")
            assert await _asked(session, "Pay 5.", "k1") == ("complete", "It is paid.")
            await assert_rebuilds(runtime, session)
    assert len(bodies(server)) == 3
    assert user_messages(bodies(server)[-1]) == ["Pay 5."]
    assert server.refusals == []


async def test_an_answer_whose_turn_end_is_not_in_the_log_is_requested_again() -> None:
    server = openai(Turn(Say("Oslo.")), Turn(Say("Oslo, again.")))
    async with serving(server) as start:
        async with start(MemoryStorage()) as runtime:
            session = await runtime.open("a", id="trip")
            await session.ask("Where?", key="k1")
            events: list[LogEvent] = [
                each for each in log(runtime, session) if not isinstance(each, TurnEnded)
            ]
        async with start(storage_with(events)) as runtime:
            session = await runtime.resume("trip")
            assert await _asked(session, "Where?", "k1") == ("complete", "Oslo, again.")
            await assert_rebuilds(runtime, session)
    assert user_messages(bodies(server)[-1]) == ["Where?", AGAIN]
    assert server.refusals == []


async def test_an_ask_cancelled_by_exiting_its_runtime_continues_when_repeated(tmp_path: Path) -> None:
    path, gate = tmp_path / "sessions.db", Gate()
    server = openai(Turn(Call("work", {"name": "one"})), Turn(Say("Done.")))
    async with serving(server) as start:
        async with start(SqliteStorage(path)) as runtime:
            session = await runtime.open("a", id="trip", tools=[gate.tool])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_asked, session, "Go.", "k1")
                await gate.started("one")
                tasks.cancel_scope.cancel()
        async with start(SqliteStorage(path)) as runtime:
            session = await runtime.resume("trip", tools=[gate.tool])
            assert await _asked(session, "Go.", "k1") == ("complete", "Done.")
    assert user_messages(bodies(server)[-1]) == ["Go."]


async def test_an_ask_cancelled_by_its_caller_stays_cancelled_when_repeated() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "one"})))
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_asked, session, "Go.", "k1")
            await gate.started("one")
            await session.cancel()
        assert (await _asked(session, "Go.", "k1"))[0] == "cancelled"
        assert len(bodies(server)) == 1


async def test_an_interrupted_ask_is_sent_again_after_a_later_ask() -> None:
    server = openai(*[Turn(Say(text)) for text in ("Oslo.", "Rome.", "Oslo, again.")])
    async with serving(server) as start:
        async with start(MemoryStorage()) as runtime:
            session = await runtime.open("a", id="trip")
            await session.ask("Where?", key="k1")
            events = up_to(log(runtime, session), RequestSent)
        async with start(storage_with(events)) as runtime:
            session = await runtime.resume("trip")
            assert (await session.ask("And now?")).text == "Rome."
            for _ in range(2):
                assert await _asked(session, "Where?", "k1") == ("complete", "Oslo, again.")
    assert len(bodies(server)) == 3
    assert user_messages(bodies(server)[-1]) == ["Where?", "And now?", "Where?"]


async def test_an_interrupted_ask_that_was_rewound_is_sent_again() -> None:
    server = openai(Turn(Say("Hello.")), Turn(Say("Oslo.")), Turn(Say("Oslo, again.")))
    async with serving(server) as start:
        async with start(MemoryStorage()) as runtime:
            session = await runtime.open("a", id="trip")
            before = await session.ask("Hello?")
            await session.ask("Where?", key="k1")
            events = up_to(log(runtime, session), RequestSent)
        async with start(storage_with(events)) as runtime:
            session = await runtime.resume("trip")
            assert await session.rewind(before.turn) == 1
            assert await _asked(session, "Where?", "k1") == ("complete", "Oslo, again.")
            await assert_rebuilds(runtime, session)
    assert user_messages(bodies(server)[-1]) == ["Hello?", "Where?"]


async def test_a_compaction_does_not_end_an_interrupted_ask() -> None:
    server = openai(*[Turn(Say(text)) for text in ("One.", "Two.", "Oslo.", "Summary.", "Oslo, again.")])
    async with serving(server) as start:
        async with start(MemoryStorage()) as runtime:
            session = await runtime.open("a", id="trip")
            for text in ("First?", "Second?"):
                await session.ask(text)
            await session.ask("Where?", key="k1")
            events = up_to(log(runtime, session), RequestSent)
        async with start(storage_with(events)) as runtime:
            session = await runtime.resume("trip")
            assert (await session.compact()).messages
            first, repeated = [await session.ask("Where?", key="k1") for _ in range(2)]
            assert (first.text, first.status) == ("Oslo, again.", "complete")
            assert [attempt.status for attempt in first.attempts] == ["interrupted", "complete"]
            assert (repeated.attempts, repeated.usage) == (first.attempts, first.usage)
            await assert_rebuilds(runtime, session)
    assert sum("Where?" in str(content) for content in user_messages(bodies(server)[-1])) == 1


async def test_a_repeated_ask_whose_turn_pauses_again_is_answered() -> None:
    gate = Gate()
    server = openai(*[Turn(Call("work", {"name": name})) for name in ("one", "two")], Turn(Say("Done.")))
    async with scripted(server, tools=[replace(gate.tool, approval="ask")]) as (_, _, session):
        first = await session.ask("Go.", key="k1")
        statuses: list[str] = []

        async def approve() -> None:
            approvals = {first.pending_calls[0].id: ApprovalDecision("allow")}
            statuses.append((await session.ask(approvals=approvals)).status)

        async def repeat() -> None:
            statuses.append((await _asked(session, "Go.", "k1"))[0])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approve)
            await gate.started("one")
            tasks.start_soon(repeat)
            await anyio.wait_all_tasks_blocked()
            gate.open("one")
        assert statuses == ["awaiting"] * 2


async def test_repeated_asks_end_with_their_first_ask_when_the_session_closes() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "one"})))
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        ends: list[str] = []

        async def ask(words: str, key: str) -> None:
            try:
                ends.append((await _asked(session, words, key))[0])
            except SessionClosed:
                ends.append("closed")

        async with anyio.create_task_group() as tasks:
            for words, key in (("Go.", "k1"), ("And then?", "k2")):
                tasks.start_soon(ask, words, key)
                await gate.started("one")
                tasks.start_soon(ask, words, key)
                await anyio.wait_all_tasks_blocked()
            await session.close()
        assert sorted(ends) == ["cancelled", "cancelled", "closed", "closed"]


async def test_repeated_asks_are_refused_if_the_queued_first_ask_is_refused() -> None:
    gate, refused = Gate(), list[QueueFull]()
    server = openai(Turn(Call("work", {"name": "one"})))
    async with scripted(server, tools=[replace(gate.tool, approval="ask")]) as (_, _, session):
        assert (await session.ask("Go.")).status == "awaiting"

        async def ask() -> None:
            with pytest.raises(QueueFull) as caught:
                await session.ask("And then?", key="k2", timeout=0.2)
            refused.append(caught.value)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                tasks.start_soon(ask)
        assert len(refused) == 2


async def test_the_number_of_waiting_repeated_asks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.session.repeats.MAX_REPEATED", 1)
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "one"})), Turn(Say("Done.")))
    async with scripted(server, tools=[gate.tool]) as (_, _, session), anyio.create_task_group() as tasks:
        tasks.start_soon(_asked, session, "Go.", "k1")
        await gate.started("one")
        tasks.start_soon(_asked, session, "Go.", "k1")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(QueueFull, match="1 repeated asks already wait"):
            await session.ask("Go.", key="k1")
        gate.open("one")


async def test_a_repeated_ask_that_waits_reports_its_pending_calls_and_then_its_answer() -> None:
    gate = Gate()
    script = [Turn(Call("work", {"name": "one"})), Turn(Say("Done."))]
    server = openai(*script)
    async with scripted(server, tools=[replace(gate.tool, approval="ask")]) as (_, _, session):
        first = await session.ask("Go.", key="k1")
        repeated = await session.ask("Go.", key="k1")
        assert (repeated.status, repeated.pending_calls) == ("awaiting", first.pending_calls)
        texts: list[str] = []

        async def approve() -> None:
            approvals = {first.pending_calls[0].id: ApprovalDecision("allow")}
            texts.append((await session.ask(approvals=approvals)).text)

        async def repeat() -> None:
            texts.append((await session.ask("Go.", key="k1")).text)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approve)
            await gate.started("one")
            tasks.start_soon(repeat)
            await anyio.wait_all_tasks_blocked()
            gate.open("one")
        assert texts == ["Done."] * 2
        assert len(bodies(server)) == 2


async def test_a_shared_ask_continues_for_the_other_callers_if_one_is_cancelled() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "one"})), Turn(Say("Done.")))
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        texts: list[str] = []

        async def repeat() -> None:
            texts.append((await session.ask("Go.", key="k1")).text)

        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as first:

                async def give_up() -> None:
                    await gate.started("one")
                    tasks.start_soon(repeat)
                    await anyio.wait_all_tasks_blocked()
                    first.cancel()

                tasks.start_soon(give_up)
                await session.ask("Go.", key="k1")
            gate.open("one")
        assert texts == ["Done."]
        assert len(bodies(server)) == 2


@pytest.mark.parametrize("checkpoints", range(6))
async def test_a_shared_ask_continues_if_a_caller_is_cancelled_during_its_submission(
    checkpoints: int,
) -> None:
    async with scripted("openai_chat", Turn(Say("Done."))) as (server, _, session):
        texts: list[str] = []

        async def repeat() -> None:
            texts.append((await session.ask("Go.", key="k1")).text)

        async def give_up() -> None:
            with scope:
                await session.ask("Go.", key="k1")

        scope = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up)
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(repeat)
            for _ in range(checkpoints):
                await anyio.lowlevel.checkpoint()
            scope.cancel()
        assert texts == ["Done."]
        assert len(bodies(server)) == 1
        assert await _asked(session, "Go.", "k1") == ("complete", "Done.")


async def test_an_ask_shared_by_several_callers_is_traced_once() -> None:
    gate, exporter, provider = Gate(), InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(tracer_provider=provider)
    server = openai(Turn(Call("work", {"name": "one"})), Turn(Say("Done.")))
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, tracing=tracing, seed=1) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[gate.tool])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_asked, session, "Go.", "k1")
                await gate.started("one")
                tasks.start_soon(_asked, session, "Go.", "k1")
                await anyio.wait_all_tasks_blocked()
                gate.open("one")
            assert await _asked(session, "Go.", "k1") == ("complete", "Done.")
    spans = Counter(span.name for span in exporter.get_finished_spans())
    assert spans == {"invoke_agent": 3, "chat gpt-5.2": 2, "execute_tool work": 1}


async def test_an_ask_key_cannot_be_combined_with_results() -> None:
    async with scripted("openai_chat") as (_, _, session):
        with pytest.raises(ConfigError, match="key= cannot be combined"):
            await session.ask(results={"call": 1}, key="k1")  # type: ignore[call-overload]


async def test_an_ask_key_cannot_be_reused_for_another_message() -> None:
    async with scripted("openai_chat", Turn(Say("Oslo."))) as (server, _, session):
        await session.ask("Where?", key="k1")
        with pytest.raises(KeyReused, match="'k1' belongs to an ask with another message"):
            await session.ask("Who?", key="k1")
        with pytest.raises(KeyReused):
            await session.ask("Where?", key="k1", output=City)
        assert len(bodies(server)) == 1


@pytest.mark.parametrize(
    ("key", "error"),
    [("", InvalidIdentifier), ("k" * 201, InvalidIdentifier), ("a\nb", InvalidIdentifier), (5, ConfigError)],
)
async def test_an_ask_key_must_be_a_short_printable_string(key: str, error: type[ConfigError]) -> None:
    async with scripted("openai_chat") as (_, _, session):
        with pytest.raises(error, match="key= takes "):
            await session.ask("Where?", key=key)


async def _asked(session: Session, words: str, key: str) -> tuple[str, str]:
    result = await session.ask(words, key=key, check=False)
    return result.status, result.text
