"""The provider actor: retries only where they can help, keeps its limits, and survives any failure."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import anyio
import anyio.lowlevel
import pytest
import trio.testing

from actors.adapters.adapter import adapter
from actors.adapters.request import Request, Settings, ToolSpec
from actors.config import BackendLimits
from actors.core.data.jsonio import dump
from actors.core.data.persistent import Segments
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.stream_events.ask_events import CompleteEvent, ErrorEvent
from actors.core.stream_events.round_events import TextEvent
from actors.core.values.content import Message, Text, ToolCall
from actors.core.values.identity import Binding
from actors.errors import ProviderFailed
from actors.kernel.system import System
from actors.provider.admission import Pace
from actors.provider.attempts import Answer, BrokenAnswer, Generated, Retries
from actors.provider.provider_actor import Abort, Counters, ProviderActor
from actors.provider.rounds import LINGER, Endpoint, Generate
from actors.strict.server import LoopbackServer
from actors.testing import (
    OVERLOADED,
    SERVER_ERROR,
    Call,
    Disconnect,
    ErrorInStream,
    Garbage,
    InjectedFault,
    MalformedEvent,
    Say,
    Stall,
    Status,
    Think,
    Turn,
    strict_server,
)
from actors.transcripts import render
from actors.transport import HttpTransport, Response, Timeouts, Transport
from tests.runtime_support import (
    Gate,
    anthropic,
    bodies,
    gather_events,
    openai,
    restarted_actors,
    runtime_with,
)
from tests.scripted import scripted

EVERYWHERE = pytest.mark.anyio
MakeServer = Callable[..., LoopbackServer]
SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])
ANSWER = Turn(Say("Here it is. " * 10))


# ---- retries, in virtual time


@dataclass
class ScriptedTransport:
    """A transport that answers with a list of responses, and records when it was asked."""

    answers: list[tuple[int, dict[str, str], bytes]]
    asked: list[float] = field(default_factory=list)

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        self.asked.append(anyio.current_time())
        await anyio.lowlevel.checkpoint()
        status, extra, body = self.answers[min(len(self.asked), len(self.answers)) - 1]
        yield Plain(status, extra, body)

    async def close(self) -> None:
        return None


@dataclass
class Plain:
    status: int
    headers: Mapping[str, str]
    body: bytes

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self.body


BINDING = Binding("a", "openai_chat", "http://127.0.0.1:9/v1", "", "gpt")
WHOLE = b'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
GOOD = (200, {"content-type": "text/event-stream"}, WHOLE)


def error_response(status: int, **headers: str) -> tuple[int, dict[str, str], bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, b'{"error":{"message":"no","type":"server_error"}}'


async def generate(
    answers: list[tuple[int, dict[str, str], bytes]],
    retries: Retries | None = None,
    transport: type[ScriptedTransport] = ScriptedTransport,
) -> tuple[Generated, list[float]]:
    """Send one request; return the outcome, and the seconds between the tries."""
    server = transport(answers)
    endpoint = Endpoint(BINDING.endpoint, retries=retries or Retries(attempts=4))
    async with System() as system:
        codec = adapter(dialect("openai_chat"))
        actor = system.spawn(lambda: ProviderActor(codec, endpoint, server, Random(1)), "p")
        request = Request("/chat/completions", (), Segments.of(b"{}"))
        generated = await actor.ask(Generate("k", request, BINDING, 1, 1, 1))
    return generated, [later - earlier for earlier, later in pairwise(server.asked)]


@pytest.mark.trio
async def test_a_retry_waits_for_the_delay_that_the_provider_requests(
    autojump_clock: trio.testing.MockClock,
) -> None:
    generated, waits = await generate(
        [error_response(429, retry_after="7"), error_response(503, retry_after_ms="1500"), GOOD]
    )
    assert isinstance(generated, Answer)
    first, second = waits
    assert 7 <= first <= 7.5
    assert 1.5 <= second <= 2


@pytest.mark.trio
async def test_delays_between_attempts_double_up_to_the_ceiling(
    autojump_clock: trio.testing.MockClock,
) -> None:
    generated, waits = await generate(
        [error_response(500)], Retries(attempts=8, first_wait=0.5, longest_wait=8)
    )
    assert isinstance(generated, BrokenAnswer)
    assert len(waits) == 7
    for wait, most in zip(waits, (0.5, 1, 2, 4, 8, 8, 8), strict=True):
        assert most / 2 <= wait <= most


@pytest.mark.trio
async def test_the_runtime_does_not_wait_for_a_requested_delay_beyond_its_waiting_limit(
    autojump_clock: trio.testing.MockClock,
) -> None:
    generated, waits = await generate([error_response(429, retry_after="3600"), GOOD])
    assert isinstance(generated, BrokenAnswer)
    assert generated.failure.retry_after == 3600
    assert waits == []


@pytest.mark.trio
async def test_a_waiting_retry_leaves_its_slot_to_other_requests(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = ScriptedTransport([error_response(503, retry_after="7"), GOOD])
    endpoint = Endpoint(BINDING.endpoint, retries=Retries(attempts=4), pace=Pace(1))
    ends: list[tuple[str, float]] = []

    async with System() as system, anyio.create_task_group() as tasks:
        codec = adapter(dialect("openai_chat"))
        actor = system.spawn(lambda: ProviderActor(codec, endpoint, server, Random(1)), "p")
        request = Request("/chat/completions", (), Segments.of(b"{}"))

        async def ask(key: str) -> None:
            await actor.ask(Generate(key, request, BINDING, 1, 1, 1))
            ends.append((key, anyio.current_time()))

        start = anyio.current_time()
        tasks.start_soon(ask, "first")
        while not server.asked:
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(ask, "second")
        await trio.testing.wait_all_tasks_blocked(0.1)
        assert [key for key, at in ends if at < start + 7] == ["second"]
    assert [key for key, _ in ends] == ["second", "first"]


@pytest.mark.trio
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_an_error_that_a_retry_cannot_fix_is_not_retried(
    autojump_clock: trio.testing.MockClock, status: int
) -> None:
    generated, waits = await generate([error_response(status), GOOD])
    assert isinstance(generated, BrokenAnswer)
    assert waits == []


@pytest.mark.trio
async def test_a_rate_limit_without_a_retry_delay_is_retried_as_often_as_other_errors(
    autojump_clock: trio.testing.MockClock,
) -> None:
    recovered, waits = await generate([error_response(429)] * 3 + [GOOD])
    assert isinstance(recovered, Answer)
    assert 2 <= sum(waits) <= 3.5
    refused, waits = await generate([error_response(429)])
    assert isinstance(refused, BrokenAnswer)
    assert len(waits) == 3


@pytest.mark.trio
async def test_the_call_number_of_a_call_in_a_failed_answer_is_not_reused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    call = b'{"index":0,"id":"c","type":"function","function":{"name":"work","arguments":"{}"}}'
    told = (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[%b]}}]}\n\ndata: {"error":{"message":"no"}}\n\n'
    )
    generated, _ = await generate([(200, {}, told % call)], Retries(attempts=1))
    assert isinstance(generated, BrokenAnswer)
    assert generated.calls == 1


async def _counters_after(answer: bytes) -> Mapping[str, int]:
    binding = Binding("a", "openai_responses", BINDING.endpoint, "", "gpt")
    async with System() as system:
        codec = adapter(dialect("openai_responses"))
        endpoint = Endpoint(binding.endpoint)
        actor = system.spawn(
            lambda: ProviderActor(codec, endpoint, ScriptedTransport([(200, {}, answer)])), "p"
        )
        generated = await actor.ask(
            Generate("k", Request("/responses", (), Segments.of(b"{}")), binding, 1, 1, 1)
        )
        assert isinstance(generated, Answer)
        return await actor.ask(Counters())


@EVERYWHERE
@pytest.mark.requirement("U-08")
async def test_reasoning_withheld_by_a_provider_is_counted_as_a_refusal() -> None:
    told = b'data: {"type":"response.completed","response":{"output":[],"input_transformations":%b}}\n\n'
    withheld = b'[{"type":"reasoning","action":"removed","reason":"prefix_mismatch","id":"rs_1"}]'
    assert (await _counters_after(told % withheld))["tool_api_400_total"] == 1
    assert "tool_api_400_total" not in await _counters_after(told % b"[]")


async def _counters_after_abort(after: float = 0) -> Mapping[str, int]:
    transport, endpoint = (
        ScriptedTransport([error_response(500)]),
        Endpoint(BINDING.endpoint, retries=Retries(attempts=20)),
    )
    codec, request = adapter(dialect("openai_chat")), Request("/chat/completions", (), Segments.of(b"{}"))
    async with System() as system:
        actor = system.spawn(lambda: ProviderActor(codec, endpoint, transport), "p")
        actor.send_nowait(Generate("k", request, BINDING, 1, 1, 1))
        if after:
            await anyio.sleep(after)
        actor.send_nowait(Abort("k"))
        await anyio.sleep(3600)  # virtual time, in which the round has ended
        return await actor.ask(Counters())


@pytest.mark.trio
async def test_an_abort_never_overtakes_the_round_that_it_stops(
    autojump_clock: trio.testing.MockClock,
) -> None:
    counters = await _counters_after_abort()
    assert counters["aborted"] == 1


@pytest.mark.trio
@pytest.mark.requirement("U-08")
@pytest.mark.parametrize(("after", "retries"), [(0.1, 0), (0.6, 1)])
async def test_a_retry_is_counted_when_it_is_sent(
    autojump_clock: trio.testing.MockClock, after: float, retries: int
) -> None:
    """The first retry delay is a quarter to half a second, and the second retry delay is twice as long."""
    counters = await _counters_after_abort(after)
    assert (counters["requests"], counters["retries"]) == (1 + retries, retries)


@dataclass
class TornResponse(Plain):
    """A response whose connection breaks after its body."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self.body
        raise ProviderFailed("the connection broke")


@dataclass
class TearingTransport(ScriptedTransport):
    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        async with super().send(url, headers, segments, timeouts) as response:
            yield TornResponse(response.status, response.headers, b'{"error":{"mess')


@pytest.mark.trio
@pytest.mark.parametrize(("status", "tries"), [(401, 1), (400, 1), (429, 4), (500, 4)])
async def test_a_truncated_error_body_is_classified_by_its_status(
    autojump_clock: trio.testing.MockClock, status: int, tries: int
) -> None:
    _, waits = await generate([error_response(status)], transport=TearingTransport)
    assert len(waits) + 1 == tries


async def _generate_lingering() -> Generated:
    """Ask a server that completes its answer and keeps the connection open beyond the total timeout."""
    transport = LingeringTransport([GOOD])
    endpoint = Endpoint(BINDING.endpoint, timeouts=Timeouts(total=LINGER / 2), retries=Retries(attempts=1))
    codec, request = adapter(dialect("openai_chat")), Request("/chat/completions", (), Segments.of(b"{}"))
    async with System() as system:
        actor = system.spawn(lambda: ProviderActor(codec, endpoint, transport), "p")
        return await actor.ask(Generate("k", request, BINDING, 1, 1, 1))


@dataclass
class OpenResponse(Plain):
    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self.body
        await anyio.sleep_forever()


@dataclass
class LingeringTransport(ScriptedTransport):
    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        async with super().send(url, headers, segments, timeouts) as response:
            yield OpenResponse(response.status, response.headers, WHOLE)


@pytest.mark.trio
async def test_a_complete_answer_is_returned_even_if_its_timeout_passes_afterwards(
    autojump_clock: trio.testing.MockClock,
) -> None:
    generated = await _generate_lingering()
    assert isinstance(generated, Answer)
    assert generated.message.text == "ok"


@dataclass
class PaddedResponse(Plain):
    """A response that sends blank lines before its answer."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for piece in (b"\n", b"", b" \r\n", self.body):
            yield piece


@dataclass
class PaddingTransport(ScriptedTransport):
    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        async with super().send(url, headers, segments, timeouts) as response:
            yield PaddedResponse(response.status, response.headers, self.answers[0][2])


@pytest.mark.trio
@pytest.mark.parametrize(
    "body", [WHOLE, b'{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}']
)
async def test_blank_lines_before_an_answer_do_not_decide_its_format(
    autojump_clock: trio.testing.MockClock, body: bytes
) -> None:
    generated, _ = await generate([(200, {}, body)], Retries(attempts=1), transport=PaddingTransport)
    assert isinstance(generated, Answer)
    assert generated.message.text == "ok"


# ---- over the loopback interface


@EVERYWHERE
@SERVERS
@pytest.mark.parametrize(
    "fault", [SERVER_ERROR, OVERLOADED, Disconnect(), Garbage(), Status(429, retry_after="0")]
)
@pytest.mark.usefixtures("short_waits")
async def test_a_failure_before_output_is_retried_invisibly(
    make_server: MakeServer, fault: InjectedFault
) -> None:
    server = make_server(ANSWER, faults={0: fault})
    async with scripted(server, backend=BackendLimits(attempts=2)) as (_, _, session):
        events = await gather_events(session, "Tell me.")
        assert isinstance(events[-1], CompleteEvent)
        visible = "".join(event.text for event in events if isinstance(event, TextEvent))
        assert visible == events[-1].result.text == "Here it is. " * 10
        tried, served = events[-1].result.attempts
        assert (tried.status, tried.wait, served.status) == ("retried", 0, "complete")
        assert tried.error
        assert tried.cause is not None
        assert served.wait > 0
    assert server.received == 2
    first, second = bodies(server)
    assert first == second


@EVERYWHERE
@SERVERS
@pytest.mark.parametrize("fault", [Disconnect(after_bytes=1200), ErrorInStream(after_events=6)])
async def test_a_failure_after_output_is_not_retried(make_server: MakeServer, fault: InjectedFault) -> None:
    server = make_server(ANSWER, faults={0: fault})
    async with scripted(server, backend=BackendLimits(attempts=4)) as (_, _, session):
        events = await gather_events(session, "Tell me.")
        assert isinstance(events[-1], ErrorEvent)
        visible = "".join(event.text for event in events if isinstance(event, TextEvent))
        assert visible
        assert (await session.history())[-1].text.startswith(visible)
    assert server.received == 1


@EVERYWHERE
@SERVERS
@pytest.mark.requirement("PROMISE-7")
@pytest.mark.usefixtures("short_waits")
async def test_a_stream_that_breaks_inside_a_call_is_retried_and_the_call_runs_once(
    make_server: MakeServer,
) -> None:
    gate, name = Gate(), "a" * 3000
    gate.open(name)
    server = make_server(Turn(Call("work", {"name": name})), faults={0: Disconnect(after_bytes=3000)})
    async with scripted(server, tools=[gate.tool], backend=BackendLimits(attempts=2)) as (_, _, session):
        assert (await session.ask("Do it.")).status == "complete"
        assert gate.runs == [name]
        (only,) = (await session.ledger()).interactions()
        assert (only.call_id, only.status) == ("hist_tool_1", "complete")


@EVERYWHERE
@SERVERS
async def test_a_malformed_stream_event_is_a_failure(make_server: MakeServer) -> None:
    async with scripted(make_server(ANSWER, faults={0: MalformedEvent(after_events=1)})) as (_, _, session):
        answer = await session.ask("Tell me.", check=False)
        assert answer.status == "failed"
        assert (await session.ask("Again.")).status == "complete"


@EVERYWHERE
@pytest.mark.parametrize(
    ("limits", "after_bytes"),
    [
        (BackendLimits(attempts=1, first_byte_timeout=0.05), None),
        (BackendLimits(attempts=1, idle_timeout=0.05), 700),
        (BackendLimits(attempts=1, timeout=0.05), 700),
        (BackendLimits(attempts=1, timeout=0.05), None),
    ],
)
@pytest.mark.requirement("PROMISE-9")
async def test_a_silent_server_is_abandoned_after_its_timeout(
    limits: BackendLimits, after_bytes: int | None
) -> None:
    server = openai(ANSWER, faults={0: Stall(after_bytes=after_bytes)})
    async with scripted(server, backend=limits) as (_, _, session):
        answer = await session.ask("Tell me.", check=False)
        assert answer.status == "failed"
        assert answer.error


class CountingTransport(HttpTransport):
    """The real transport, with a count of concurrent requests."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            async with super().send(url, headers, segments, timeouts) as response:
                yield response
        finally:
            self.now -= 1


@EVERYWHERE
@pytest.mark.requirement("PROMISE-9")
async def test_concurrent_requests_are_limited_per_backend() -> None:
    crowd = CountingTransport()
    async with runtime_with(a=openai(), transport=crowd, backend=BackendLimits(concurrency=3)) as runtime:
        sessions = [await runtime.open("a") for _ in range(20)]
        async with anyio.create_task_group() as tasks:
            for session in sessions:
                tasks.start_soon(session.ask, "Hello.")
    assert (crowd.most, crowd.now) == (3, 0)


class BuggyTransport(HttpTransport):
    """The real transport; its first `count` requests raise an unexpected exception."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        if self.count:
            self.count -= 1
            raise ZeroDivisionError("a bug")
        async with super().send(url, headers, segments, timeouts) as response:
            yield response


@EVERYWHERE
@pytest.mark.requirement("PROMISE-8")
async def test_a_bug_in_one_round_fails_only_that_round() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "a"})), Turn(Say("Done.")))
    async with runtime_with(a=server, transport=(bursting := BuggyTransport(0))) as runtime:
        calm, unlucky = await runtime.open("a", tools=[gate.tool]), await runtime.open("a")
        async with calm.stream("Do it.") as events:
            await gate.started("a")
            bursting.count = 1
            answer = await unlucky.ask("Hello.", check=False)
            assert (answer.status, "ZeroDivisionError" in answer.error) == ("failed", True)
            gate.open("a")
            assert [event async for event in events][-1].type == "complete"
        assert (await unlucky.ask("Hello.")).status == "complete"
        assert restarted_actors(runtime) == []


@pytest.mark.sampled(2)
@pytest.mark.alternating
@EVERYWHERE
@pytest.mark.parametrize("name", PROFILES)
async def test_a_json_body_in_answer_to_a_streaming_request_is_accepted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = strict_server(name, [Turn(Say("Wait."), Call("work", {"name": "a"})), Turn(Say("Done."))])
    monkeypatch.setattr(server, "_is_streamed", lambda request, parsed: False)
    (gate := Gate()).open("a")
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        answer = await session.ask("Do it.")
        assert (answer.status, answer.text, server.refusals) == ("complete", "Done.", [])


@EVERYWHERE
async def test_the_message_of_an_error_document_with_status_200_is_reported() -> None:
    told = b'{"error":{"message":"The model is overloaded.","type":"overloaded_error"}}'
    async with scripted(openai(ANSWER, faults={0: Garbage(told)})) as (_, _, session):
        answer = await session.ask("Tell me.", check=False)
        assert (answer.status, answer.error) == ("failed", "The model is overloaded.")


class TrailingTransport(HttpTransport):
    """The real transport, which calls `then` after the last byte of a body."""

    def __init__(self, then: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.then = then

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        async with super().send(url, headers, segments, timeouts) as response:
            yield _TrailingResponse(response, self.then)


class _TrailingResponse:
    def __init__(self, response: Response, then: Callable[[], Awaitable[None]]) -> None:
        self.status, self.headers = response.status, response.headers
        self.response, self.then = response, then

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self.response.chunks()) as chunks:
            async for chunk in chunks:
                yield chunk
        await self.then()


async def break_connection() -> None:
    raise ProviderFailed("the connection broke")


@EVERYWHERE
@SERVERS
@pytest.mark.parametrize("then", [anyio.sleep_forever, break_connection])
@pytest.mark.requirement("PROMISE-9")
async def test_an_answer_ends_at_its_end_marker(
    make_server: MakeServer, then: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.provider.rounds.LINGER", 0.01)
    async with runtime_with(a=make_server(ANSWER), transport=TrailingTransport(then)) as runtime:
        answer = await (await runtime.open("a")).ask("Tell me.")
        assert (answer.status, answer.error) == ("complete", "")


SHAPE = ToolSpec("work", "Work.", dump({"type": "object", "properties": {"name": {"type": "string"}}}))


async def _generate_once(
    server: LoopbackServer, transport: Transport, *, stream: bool
) -> tuple[Answer, Counter[str]]:
    """Send one request through an actor, streaming or not; return the answer and the counters."""
    name = "anthropic" if "messages" in str(server._paths) else "openai_chat"
    codec = adapter(dialect(name))
    binding = Binding("a", name, server.base_url, "", "m")
    rendered = render(History([Message("user", (Text("Do it."),))]), Ledger(), dialect(name))
    settings = Settings(model="m", tools=(SHAPE,), stream=stream)
    request = codec.request(rendered._segments, settings)
    async with System() as system:
        endpoint = Endpoint(server.base_url, stream=stream)
        actor = system.spawn(lambda: ProviderActor(codec, endpoint, transport), "p")
        generated = await actor.ask(Generate("k", request, binding, 1, 1, 1))
        counters = Counter(dict(await actor.ask(Counters())))
    assert isinstance(generated, Answer)
    return generated, counters


@EVERYWHERE
@SERVERS
@pytest.mark.requirement("U-09", "U-10")
async def test_an_answer_without_streaming_yields_the_same_message(make_server: MakeServer) -> None:
    from actors.testing import serve

    said = Turn(Think("hm"), Say("Wait."), Call("work", {"name": "a"}), Call("work", {"name": "b"}))
    transport = HttpTransport()
    with anyio.fail_after(60):
        async with serve(one := make_server(said), two := make_server(said)):
            streamed, first = await _generate_once(one, transport, stream=True)
            whole, second = await _generate_once(two, transport, stream=False)
            await transport.close()
    assert [type(block) for block in streamed.message.blocks] == [type(b) for b in whole.message.blocks]
    assert streamed.message.text == whole.message.text == "Wait."
    pairs = zip(streamed.message.calls, whole.message.calls, strict=True)
    assert all((a.id, a.name, a.json) == (b.id, b.name, b.json) for a, b in pairs)
    assert all(isinstance(call, ToolCall) for call in whole.message.calls)
    assert (streamed.usage, streamed.finish) == (whole.usage, whole.finish)
    assert first == second == Counter(requests=1, answer=1)
    assert one.refusals == two.refusals == []


@EVERYWHERE
async def test_a_transport_error_is_one_line_without_secrets() -> None:
    transport: Transport = HttpTransport()
    sending: AbstractAsyncContextManager[Response] = transport.send(
        "http://127.0.0.1:1/v1", (("authorization", "Bearer sk-secret"),), Segments.of(b"{}"), Timeouts()
    )
    with anyio.fail_after(60), pytest.raises(ProviderFailed) as failed:
        await sending.__aenter__()
    await transport.close()
    assert "127.0.0.1:1" in str(failed.value)
    assert "\n" not in str(failed.value)
    assert "secret" not in repr(failed.value)
