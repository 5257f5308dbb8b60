"""Responses that never end: error bodies are cut off, and silent streams are aborted after a timeout."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest
from trio.testing import MockClock

from actors.adapters.adapter import adapter
from actors.adapters.request import Request
from actors.config import BackendLimits, PoolSettings
from actors.core.data.persistent import Segments
from actors.core.dialects.profiles import dialect
from actors.kernel import System
from actors.provider import rounds
from actors.provider.attempts import Answer, BrokenAnswer, Generated, Retries
from actors.provider.provider_actor import ProviderActor
from actors.provider.rounds import Endpoint, Generate
from actors.strict.loopback import HttpRequest, LoopbackAnswer
from actors.testing import Flood, OpenAIServer, Say, Turn
from actors.transport import Response, Timeouts
from benchmarks.storms import BINDING
from tests.runtime_support import NO_RETRIES, openai, runtime_with
from tests.scripted import scripted

ERROR = b'{"error":{"message":"down for repair","type":"server_error"}}'
TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":null}]}\n\n'
EMPTY = b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}\n\n'
COMMENT = b": ping\n\n"
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
WHOLE = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}'


@dataclass
class SlowResponse:
    """A response whose pieces are `seconds` apart; unless it ends, its last piece repeats a thousand times."""

    status: int
    pieces: Sequence[bytes]
    seconds: float = 5.0
    ends: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for piece in self.pieces:
            yield piece
            await anyio.sleep(self.seconds)
        for _ in range(0 if self.ends else 1000):
            yield self.pieces[-1]
            await anyio.sleep(self.seconds)


@dataclass
class SingleResponseTransport:
    """A transport with a single response."""

    answer: SlowResponse

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        yield self.answer

    async def close(self) -> None:
        """Close nothing."""


async def generate(answer: SlowResponse, silence: float | None = None) -> tuple[Generated, float]:
    """Send one request; return the outcome, and the seconds that it took."""
    endpoint = Endpoint(BINDING.endpoint, retries=Retries(attempts=1), silence_timeout=silence)
    async with System() as system:
        codec = adapter(dialect("openai_chat"))
        actor = system.spawn(
            lambda: ProviderActor(codec, endpoint, SingleResponseTransport(answer)), "provider/a/1"
        )
        request = Request("/chat/completions", (), Segments.of(b"{}"))
        begun = anyio.current_time()
        ended = await actor.ask(Generate("k", request, BINDING, 1, 1, 1))
        return ended, anyio.current_time() - begun


@pytest.mark.trio
@pytest.mark.parametrize("seconds", [0.1, 0.5, 60.0])
async def test_an_error_body_is_read_for_two_seconds_at_most(
    autojump_clock: MockClock, seconds: float
) -> None:
    ended, took = await generate(SlowResponse(503, [ERROR, b" "], seconds, ends=False))
    assert isinstance(ended, BrokenAnswer)
    assert (ended.failure.status, ended.failure.message) == (503, "down for repair")
    assert 1.9 <= took <= 2.1


@pytest.mark.trio
async def test_an_error_body_that_ends_is_read_completely(autojump_clock: MockClock) -> None:
    ended, took = await generate(SlowResponse(400, [ERROR[:20], ERROR[20:]], 0.5))
    assert isinstance(ended, BrokenAnswer)
    assert ended.failure.message == "down for repair"
    assert took <= 1.1


@pytest.mark.trio
@pytest.mark.parametrize("piece", [COMMENT, EMPTY], ids=["comments", "empty deltas"])
@pytest.mark.parametrize("begins", [[], [TEXT]], ids=["from the beginning", "in the middle"])
async def test_a_silent_stream_is_aborted_after_its_silence_timeout(
    autojump_clock: MockClock, begins: list[bytes], piece: bytes
) -> None:
    ended, took = await generate(SlowResponse(200, [*begins, piece], ends=False), silence=30.0)
    assert isinstance(ended, BrokenAnswer)
    assert ended.failure.message == "The stream sent no content for 30 s."
    assert (ended.failure.kind, ended.visible) == ("transient", bool(begins))
    assert 30 <= took <= 30.1


@pytest.mark.trio
@pytest.mark.parametrize("silence", [None, 8.0])
async def test_a_slow_stream_with_content_is_read_completely(
    autojump_clock: MockClock, silence: float | None
) -> None:
    ended, _ = await generate(SlowResponse(200, [TEXT, COMMENT, TEXT, EMPTY, TEXT, COMMENT, END]), 11.0)
    assert isinstance(ended, Answer)
    assert ended.message.text == "okokok"


@pytest.mark.trio
async def test_without_a_silence_timeout_any_silence_is_allowed(autojump_clock: MockClock) -> None:
    ended, took = await generate(SlowResponse(200, [*([COMMENT] * 100), TEXT, END]))
    assert isinstance(ended, Answer)
    assert took >= 500


@pytest.mark.trio
async def test_an_answer_that_is_not_streamed_has_no_silence_timeout(autojump_clock: MockClock) -> None:
    ended, _ = await generate(SlowResponse(200, [WHOLE[:10], *([b" "] * 20), WHOLE[10:]]), silence=30.0)
    assert isinstance(ended, Answer)
    assert ended.message.text == "ok"


class EndlessErrorServer(OpenAIServer):
    """A server that answers with an error whose body never ends."""

    def answer(self, request: HttpRequest) -> LoopbackAnswer:
        headers = (("content-type", "application/json"),)
        return LoopbackAnswer(503, headers, (ERROR, b" "), streamed=True, ending="repeat")


@pytest.mark.alternating
@pytest.mark.anyio
async def test_a_pool_continues_after_an_endless_error_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MAX_ERROR_SECONDS", 1.0)
    pools = {"pool": PoolSettings(members=("a", "b"))}
    async with runtime_with(a=EndlessErrorServer(), b=openai(Turn(Say("I can."))), pools=pools) as runtime:
        answer = await (await runtime.open("pool")).ask("Hello.", check=False)
    assert (answer.text, answer.attempts[0].error) == ("I can.", "down for repair")


@pytest.mark.anyio
async def test_a_request_is_abandoned_if_its_server_sends_only_pings() -> None:
    server = openai(Turn(Say("Never.")), faults={0: Flood(1, COMMENT)})
    limits = BackendLimits(attempts=1, silence_timeout=0.1)
    async with scripted(server, backend=limits) as (_, _, session):
        answer = await session.ask("Hello.", check=False)
    assert (answer.status, NO_RETRIES.silence_timeout) == ("failed", None)
    assert "sent no content" in answer.error
