"""One session with tools that moves between real servers, and its checks, which hold whatever the model says.

A small model may call no tool, call it wrongly, or make its server fail; none of that is checked. The checks: no
request is refused for its structure, every call is closed, sent messages are sent again unchanged, and the session can
be rebuilt.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import anyio

from actors.config import BackendLimits, BackendSettings, Config, FileSettings
from actors.config.dialects import custom_dialect
from actors.config.providers import PROVIDERS, Kind
from actors.core.data.persistent import Segments
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import validate
from actors.transcripts import check
from actors.transport import HttpTransport, Response, Timeouts
from tests.renderer.marks import without_marks
from tests.runtime_support import assert_rebuilds, blocks

WORDS = (
    "What is the weather in Oslo? Call the tool weather.",
    "And in Rome? Call the tool weather again.",
    "Which of the two is warmer? Call the tool note with your answer, and then tell me.",
    "Thank you. Say goodbye in one sentence.",
)
PATIENCE = BackendLimits(first_byte_timeout=300.0, idle_timeout=300.0, attempts=1)
"""Seconds; a small machine is slow with a long prompt."""


@dataclass(frozen=True)
class Live:
    """A server for one dialect.

    Args:
        kind: The kind of backend.
        base_url: Its address.
        model: The name of its model.
        wants: Its requirements beyond the profile of its kind, as fields of a `[dialects.NAME]` table.
        stream: Whether its answers are streamed.
    """

    kind: Kind
    base_url: str
    model: str
    wants: Mapping[str, Any] = field(default_factory=dict)  # Any: each field has its own type
    stream: bool = True

    @property
    def base(self) -> str:
        """The name of the profile that its own is based on."""
        return PROVIDERS[self.kind].dialect

    @property
    def table(self) -> dict[str, Any]:  # Any: as above
        """The server's `[dialects.NAME]` table."""
        return {"base": self.base, **self.wants}

    @property
    def profile(self) -> Dialect:
        """The server's dialect."""
        return custom_dialect("live", self.table)


@dataclass(frozen=True)
class Sent:
    """A request as sent, and the status of its answer."""

    url: str
    body: bytes
    status: int


@dataclass
class RecordingTransport(HttpTransport):
    """The real transport, with a record of the sent requests."""

    sent: list[Sent] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Send as the real transport does."""
        async with super().send(url, headers, segments, timeouts) as response:
            self.sent.append(Sent(url, b"".join(segments), response.status))
            yield response


@dataclass
class Talk:
    """The result of a conversation.

    Args:
        answers: The status, text and error of each ask.
        sent: Every request.
        history: The final conversation.
    """

    answers: list[tuple[str, str, str]]
    sent: list[Sent]
    history: History


def weather(city: str) -> dict[str, object]:
    """Current weather of a city."""
    return {"city": city, "celsius": {"Oslo": 4, "Rome": 19}.get(city, 11)}


def note(text: str) -> str:
    """Store a note."""
    if not text.strip():
        raise ValueError("a note needs words")
    return "noted"


async def hold(servers: Sequence[Live], *, rounds: int = 1, seconds: float = 1800.0) -> Talk:
    """Hold the conversation, each ask with the next server, `rounds` times over `WORDS`; check and return it."""
    transport = RecordingTransport()
    with anyio.fail_after(seconds):
        async with Runtime(_config(servers), transport=transport, seed=1) as runtime:
            session = await runtime.open("b0", tools=[weather, note], system="Answer in one short sentence.")
            answers: list[tuple[str, str, str]] = []
            for number, words in enumerate(WORDS * rounds):
                await session.switch(f"b{number % len(servers)}")
                async with session.stream(words) as events:
                    told = [event async for event in events]
                end = told[-1]
                assert end.type in ("complete", "error")
                answers.append((end.result.status, end.result.text, end.result.error))
                await _assert_closed(session)
            await assert_rebuilds(runtime, session)
            talk = Talk(answers, transport.sent, await session.history())
    _assert_sound(talk, servers)
    return talk


def _config(servers: Sequence[Live]) -> Config:
    backends = {
        f"b{number}": BackendSettings.model_validate(
            {
                "kind": server.kind,
                "model": server.model,
                "base_url": server.base_url,
                "max_tokens": 512,
                "dialect": f"d{number}",
                "stream": server.stream,
                "limits": PATIENCE,
            }
        )
        for number, server in enumerate(servers)
    }
    dialects = {f"d{number}": server.table for number, server in enumerate(servers)}
    return Config(FileSettings(backends=backends, dialects=dialects), {})


async def _assert_closed(session: Session) -> None:
    """Check that every call has a completion or a recorded reason for its absence."""
    ledger = await session.ledger()
    for call_id in [call.id for message in await session.history() for call in message.calls]:
        known = ledger.get(call_id)
        assert known is not None, call_id
        assert known.status != "pending", known


def _assert_sound(talk: Talk, servers: Sequence[Live]) -> None:
    refused = [(sent.url, sent.status, sent.body) for sent in talk.sent if 400 <= sent.status < 500]
    assert not refused, refused  # not `==`, which would search for differences in long bodies
    assert [answer for answer in talk.answers if answer[0] == "complete"] != [], talk.answers
    for server in servers:
        sent = [each.body for each in talk.sent if _is_for(each, server)]
        assert sent != [], server
        for body in sent:
            assert check(body, server.profile) == []
            assert validate(body, server.base) is None
        for before, after in pairwise(
            [blocks(json.loads(without_marks(body, server.base))) for body in sent]
        ):
            assert after[: len(before)] == before


_PATHS = {"openai_responses": "/responses", "anthropic": "/v1/messages"}


def _is_for(sent: Sent, server: Live) -> bool:
    """Return True if a request was sent to this server: one base URL may serve several protocols, streamed and not."""
    path = _PATHS.get(server.kind, "/chat/completions")
    streams = json.loads(sent.body).get("stream", False) == server.stream
    return sent.url == server.base_url + path and streams
