"""Our adapter and transport against the strict server over HTTP: paths, streams, faults, on both backends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest

from actors.adapters.adapter import Adapter, adapter
from actors.adapters.classify import classify
from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault, Failure
from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import Json
from actors.core.dialects.profiles import dialect
from actors.core.history.history import History
from actors.core.lanes.lane import advance, empty_lane
from actors.core.ledger import Ledger
from actors.core.render import RenderTarget
from actors.core.values.content import Message, Text, ToolResult
from actors.core.values.identity import Binding
from actors.testing import (
    OVERLOADED,
    Call,
    Disconnect,
    ErrorInStream,
    GeminiProfile,
    GeminiServer,
    GeminiSettings,
    InjectedFault,
    MalformedEvent,
    Say,
    Status,
    Think,
    Turn,
    serve,
)
from actors.transport import HttpTransport, Timeouts

pytestmark = pytest.mark.anyio

TOOLS = (ToolSpec("read", "Read.", Json(b'{"type":"object","properties":{"p":{"type":"string"}}}')),)
STEP = Turn(Think("hm"), Say("Looking."), Call("read", {"p": "/a"}), Call("read", {"p": "/b"}))
HELLO = Message("user", [Text("Hello.")])


@dataclass
class Line:
    """One binding over HTTP."""

    codec: Adapter
    binding: Binding
    transport: HttpTransport
    url: str

    async def ask(self, messages: list[Message], *, stream: bool = True) -> Message | Failure:
        profile = self.codec.dialect
        rendered = advance(
            empty_lane(profile),
            History(messages),
            Ledger(),
            profile,
            self.codec.encoder,
            RenderTarget(self.binding),
        )
        settings = Settings(model=self.binding.model, tools=TOOLS, system="Be brief.", stream=stream)
        made = self.codec.request(rendered._segments, settings)
        headers = (("x-goog-api-key", "key"),)
        decoder = decode(profile, self.binding, stream=stream, first_call=1 + 10 * len(messages), turn=1)
        async with self.transport.send(self.url + made.path, headers, made.segments, Timeouts()) as response:
            chunks = [chunk async for chunk in response.chunks()]
            if response.status != 200:
                return classify(response.status, response.headers, b"".join(chunks), profile, now=0.0)
            try:
                for chunk in chunks:
                    decoder.feed(chunk)
                return decoder.close()
            except AnswerFault as fault:
                return fault.failure


@asynccontextmanager
async def line(server: GeminiServer, name: str = "gemini") -> AsyncIterator[Line]:
    with anyio.fail_after(60):
        async with serve(server):
            transport = HttpTransport()
            binding = Binding("b", name, server.endpoint, "account-1", "gemini-test")
            yield Line(adapter(dialect(name)), binding, transport, server.endpoint)
            await transport.close()


def answers(said: Message) -> Message:
    return Message("tool", [ToolResult(call.id, "ok") for call in said.calls])


@pytest.mark.alternating
@pytest.mark.parametrize("name", ["gemini", "vertex", "gemini_2"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_tool_conversation_is_completed(name: str, stream: bool) -> None:
    settings = GeminiSettings(models={"gemini-test": GeminiProfile(signatures=name != "gemini_2")})
    server = GeminiServer(
        [STEP, STEP], vertex=name == "vertex", settings=settings, api_key="key", write_bytes=3
    )
    async with line(server, name) as backend:
        messages = [HELLO]
        for _ in range(2):
            said = await backend.ask(messages, stream=stream)
            assert isinstance(said, Message)
            assert (said.text, len(said.calls)) == ("Looking.", 2)
            messages += [said, answers(said)]
        last = await backend.ask(messages, stream=stream)
        assert isinstance(last, Message)
        assert last.text == "ok"
    assert server.refusals == []


async def test_failures_over_http_are_classified() -> None:
    faults: dict[int, InjectedFault] = {
        0: Status(429),
        1: OVERLOADED,
        2: ErrorInStream(after_events=2, message="Overloaded now"),
        3: Disconnect(after_bytes=300),
        4: MalformedEvent(after_events=1),
    }
    async with line(GeminiServer([STEP], faults=faults)) as backend:
        kinds = []
        for number in range(4):
            try:
                failure = await backend.ask([HELLO])
            except Exception:  # a connection that breaks is the transport's error
                assert number == 3
                continue
            assert isinstance(failure, Failure)
            kinds.append((failure.kind, failure.retry_after))
        assert kinds == [("rate_limit", 31.0), ("transient", None), ("transient", None)]
        garbled = await backend.ask([HELLO])
        assert isinstance(garbled, Failure)
        assert garbled.action == "retry"
        said = await backend.ask([HELLO])
        assert isinstance(said, Message)
        assert len(said.calls) == 2


@pytest.mark.parametrize("stream", [True, False])
async def test_a_malformed_call_has_no_content_and_is_retried(
    stream: bool,
) -> None:
    async with line(GeminiServer([Turn(stop="MALFORMED_FUNCTION_CALL"), STEP])) as backend:
        failure = await backend.ask([HELLO], stream=stream)
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.action) == ("model_fault", "retry")
        assert isinstance(await backend.ask([HELLO], stream=stream), Message)


async def test_a_rejected_key_or_model_or_path_is_not_classified_as_a_transcript_fault() -> None:
    for server in (
        GeminiServer(api_key="another"),
        GeminiServer(settings=GeminiSettings(models={"gemini-3": GeminiProfile()})),
        GeminiServer(vertex=True),
    ):
        async with line(server) as backend:
            backend.url = server.base_url
            failure = await backend.ask([HELLO])
            assert isinstance(failure, Failure)
            assert failure.action == "next_backend"
