"""Retries after any failure and with any requested delay: no text is shown twice, and the wall clock is irrelevant."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from itertools import count, product
from random import Random

import anyio
import pytest
from trio.testing import MockClock

from actors.adapters.adapter import adapter
from actors.adapters.request import Request
from actors.core.data.persistent import Segments
from actors.core.dialects.profiles import dialect
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import TextEvent
from actors.core.values.identity import Binding
from actors.errors import ProviderFailed
from actors.kernel import System
from actors.provider.attempts import Answer, BrokenAnswer, Generated, Retries
from actors.provider.provider_actor import ProviderActor
from actors.provider.rounds import Endpoint, Generate
from actors.transport import Response, Timeouts
from tests.commands.at_scale import spread

BINDING = Binding("a", "openai_chat", "http://127.0.0.1:9/v1", "", "gpt")
PIECE = b'data: {"choices":[{"index":0,"delta":{"content":"Here "}}]}\n\n'
REST = (
    b'data: {"choices":[{"index":0,"delta":{"content":"it is."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
REFUSED = b'{"error":{"message":"no"}}'
STATUSES = (408, 409, 429, 500, 502, 503, 504, 529)
ASKED: tuple[tuple[dict[str, str], float | None], ...] = (
    ({}, None),
    ({"retry-after": "3"}, 3.0),
    ({"retry-after": "0"}, 0.0),
    ({"retry-after": "-5"}, 0.0),
    ({"retry-after": "2.5"}, 2.5),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "1e999"}, 86_400.0),
    ({"retry-after": "3600"}, 3600.0),
    ({"retry-after-ms": "1500"}, 1.5),
    ({"retry-after": "DATE+4"}, 4.0),
    ({"retry-after": "DATE-4"}, 0.0),
)
"""The headers of a response, and the seconds of delay that they request."""


@dataclass
class PlainResponse:
    """A response of `body` and `more`, after which the connection breaks if `breaks`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    breaks: bool = False
    more: bytes = b""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self.body
        yield self.more
        if self.breaks:
            raise ProviderFailed("the connection broke")


@dataclass
class FirstResponseTransport:
    """A transport with a given first response; all later ones are complete."""

    first: PlainResponse
    asked: list[float] = field(default_factory=list)

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        self.asked.append(anyio.current_time())
        if len(self.asked) == 1 and self.first.status == 0:
            raise ProviderFailed("no connection")
        yield self.first if len(self.asked) == 1 else PlainResponse(200, {}, PIECE + REST)

    async def close(self) -> None:
        """Close nothing."""


@dataclass
class CollectingSink:
    """A sink that collects events."""

    events: list[SessionEvent] = field(default_factory=list)
    is_watched: bool = True

    def put(self, event: SessionEvent) -> None:
        self.events.append(event)

    def close(self, error: Exception | None = None) -> None:
        """Do nothing."""

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextEvent))


async def generate(first: PlainResponse) -> tuple[Generated, str, list[float]]:
    """Send one request; return the outcome, the text shown, and the times of the tries."""
    transport, heard = FirstResponseTransport(first), CollectingSink()
    async with System() as system:
        codec, endpoint = adapter(dialect("openai_chat")), Endpoint(BINDING.endpoint, retries=Retries())
        actor = system.spawn(lambda: ProviderActor(codec, endpoint, transport, Random(1)), "provider/a/1")
        request = Request("/chat/completions", (), Segments.of(b"{}"))
        ended = await actor.ask(Generate("k", request, BINDING, 1, 1, 1, heard))
    return ended, heard.text, transport.asked


def headers_of(asked: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with their dates filled in."""
    return {
        name: formatdate(time.time() + float(value[4:]), usegmt=True) if value.startswith("DATE") else value
        for name, value in asked.items()
    }


BODIES = (REFUSED, b"", b"<html>no</html>", b'{"error":')


@pytest.mark.trio
@pytest.mark.parametrize("body", BODIES)
async def test_a_refusal_before_output_is_retried_after_the_requested_delay(
    autojump_clock: MockClock, body: bytes
) -> None:
    for status, (asked, seconds) in spread(list(product(STATUSES, ASKED)), BODIES.index(body)):
        ended, text, times = await generate(PlainResponse(status, headers_of(asked), body))
        if seconds is not None and seconds > Retries().longest_requested_wait:
            assert isinstance(ended, BrokenAnswer), (status, asked)
            assert (len(times), text) == (1, ""), (status, asked)
            continue
        assert isinstance(ended, Answer), (status, asked)
        assert (len(times), text, ended.message.text) == (2, "Here it is.", "Here it is."), (status, asked)
        waited = times[1] - times[0]
        # an HTTP date has no fractions, and the wall clock advances until it is read
        least, most = (0.25, 0.5) if seconds is None else (seconds - 2, seconds + 0.5)
        assert least <= waited <= most, (status, asked, waited)


@pytest.mark.trio
async def test_a_connection_that_cannot_be_made_is_retried(autojump_clock: MockClock) -> None:
    ended, text, times = await generate(PlainResponse(0, {}, b""))
    assert isinstance(ended, Answer)
    assert (len(times), text) == (2, "Here it is.")


@pytest.mark.trio
@pytest.mark.parametrize(
    "more",
    [b"", REST[:20], b'data: {"error":{"message":"overloaded","type":"server_error"}}\n\n'],
)
@pytest.mark.parametrize("breaks", [False, True])
async def test_a_failure_after_output_is_never_retried(
    autojump_clock: MockClock, more: bytes, breaks: bool
) -> None:
    ended, text, times = await generate(PlainResponse(200, {"retry-after": "1"}, PIECE, breaks, more))
    assert isinstance(ended, BrokenAnswer)
    assert ended.visible
    assert (len(times), text) == (1, "Here ")


@pytest.mark.trio
@pytest.mark.parametrize("years", [-10, 10])
async def test_a_jump_of_the_wall_clock_does_not_change_retry_delays(
    autojump_clock: MockClock, years: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [await generate(PlainResponse(status, {"retry-after": "3"}, REFUSED)) for status in STATUSES]
    begun, steps = time.time(), count()
    monkeypatch.setattr(time, "time", lambda: begun + next(steps) * years * 365 * 86_400)
    after = [await generate(PlainResponse(status, {"retry-after": "3"}, REFUSED)) for status in STATUSES]
    for (_, text, times), (_, later_text, later_times) in zip(before, after, strict=True):
        assert text == later_text
        assert abs((times[1] - times[0]) - (later_times[1] - later_times[0])) < 0.5
