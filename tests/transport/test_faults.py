"""The fault matrix over real sockets: any server behaviour leads to an answer or a typed failure, and frees its slot.

Each transport here has one slot, so the good answer at the end of a test shows that the fault released it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import anyio
import pytest

from actors.core.data.persistent import Segments
from actors.errors import ProviderFailed
from actors.transport import HttpTransport, Timeouts
from tests.transport.support import (
    BODY,
    GOOD,
    HEADERS,
    SECRET,
    SOON,
    Answering,
    Peer,
    answer_correctly,
    fetch,
    raw,
    read_body,
)

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
EARLY_HINT = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
Then = Literal["close", "reset", "stall"]

ANSWERS = {
    "a body of known length": (GOOD, b"Yes."),
    "no reason phrase": (b"HTTP/1.1 200\r\ncontent-length: 4\r\n\r\nYes.", b"Yes."),
    "chunks": (CHUNKED + b"2\r\nYe\r\n2\r\ns.\r\n0\r\n\r\n", b"Yes."),
    "chunks with extensions": (CHUNKED + b'4;name="value"\r\nYes.\r\n0;end\r\n\r\n', b"Yes."),
    "trailers": (CHUNKED + b"4\r\nYes.\r\n0\r\nchecksum: 1\r\nusage: 2\r\n\r\n", b"Yes."),
    "after informational answers": (
        b"HTTP/1.1 100 Continue\r\n\r\n" + EARLY_HINT + EARLY_HINT + GOOD,
        b"Yes.",
    ),
    "an empty body": (OK + b"content-length: 0\r\n\r\n", b""),
    "a body that ends with the connection": (OK + b"connection: close\r\n\r\nYes.", b"Yes."),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nYes.", b"Yes."),
    "two equal lengths": (
        OK + b"content-length: 4\r\ncontent-length: 4\r\n\r\nYes.",
        b"Yes.",
    ),
}


def server_sending(said: bytes, then: Then, *, bytewise: bool = False) -> Answering:
    """Return a server that sends these bytes to its first client, and answers all others correctly."""

    async def answer(peer: Peer) -> None:
        if peer.number:
            await answer_correctly(peer)
            return
        await peer.request()
        await (peer.trickle(said) if bytewise else peer.say(said))
        if then == "reset":
            peer.reset()
        elif then == "stall":
            await peer.wait_closed()

    return answer


@pytest.mark.parametrize("bytewise", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("name", ANSWERS)
async def test_framing_and_packet_boundaries_do_not_change_an_answer(name: str, bytewise: bool) -> None:
    said, body = ANSWERS[name]
    transport = HttpTransport(connections=1)
    async with raw(server_sending(said, "close", bytewise=bytewise)) as server:
        first = await fetch(transport, server.url)
        second = await fetch(transport, server.url)
        await transport.close()
    assert (first.status, first.body) == (200, body)
    assert (second.status, second.body) == (200, b"Yes.")


@dataclass(frozen=True)
class Bad:
    """The bytes of a server before it closes, resets or falls silent, and the client's error."""

    said: bytes
    why: str
    then: Then = "close"


LONG = b"x" * 300_000
BAD = {
    "nothing, closed": Bad(b"", "without an answer"),
    "nothing, reset": Bad(b"", "broke|without an answer", "reset"),
    "nothing, silence": Bad(b"", "waiting for an answer took longer than 0.3 s", "stall"),
    "half a status line": Bad(b"HTTP/1.1 2", "closed the connection before the response was complete"),
    "half a head": Bad(OK + b"content-le", "closed the connection before the response was complete"),
    "half a head, reset": Bad(OK + b"content-le", "broke|ended", "reset"),
    "half a head, silence": Bad(OK + b"content-le", "waiting for an answer took longer", "stall"),
    "only an informational answer": Bad(EARLY_HINT, "closed the connection before the response was complete"),
    "an informational answer and silence": Bad(EARLY_HINT, "waiting for an answer took longer", "stall"),
    "half a body": Bad(GOOD[:-2], "closed the connection before the response was complete"),
    "half a body, reset": Bad(GOOD[:-2], "broke|ended", "reset"),
    "a body shorter than its length": Bad(GOOD[:-2], "waiting for more of the answer took", "stall"),
    "half a chunk": Bad(CHUNKED + b"8\r\nYes.", "closed the connection before the response was complete"),
    "half a chunk's length": Bad(
        CHUNKED + b"4\r\nYes.\r\n1", "closed the connection before the response was complete"
    ),
    "no last chunk": Bad(
        CHUNKED + b"4\r\nYes.\r\n", "closed the connection before the response was complete"
    ),
    "unfinished trailers": Bad(
        CHUNKED + b"4\r\nYes.\r\n0\r\nusage: 2\r\n", "before the response was complete"
    ),
    "silence after a chunk": Bad(CHUNKED + b"4\r\nYes.\r\n", "waiting for more of the answer", "stall"),
    "TLS": Bad(b"\x15\x03\x01\x00\x02\x02\x46", "not HTTP"),
    "another protocol": Bad(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not HTTP"),
    "a page without headers": Bad(b"<html>no</html>\r\n\r\n", "not HTTP"),
    "an impossible status": Bad(b"HTTP/1.1 9999 OK\r\n\r\n", "not HTTP"),
    "a header without a colon": Bad(OK + b"nonsense\r\n\r\n", "not HTTP"),
    "a header with a NUL": Bad(OK + b"a: \x00\r\n\r\n", "not HTTP"),
    "a header that repeats the key": Bad(OK + f"Bearer {SECRET}\r\n\r\n".encode(), "not HTTP"),
    "two lengths": Bad(OK + b"content-length: 4\r\ncontent-length: 5\r\n\r\nYes.", "not HTTP"),
    "a negative length": Bad(OK + b"content-length: -4\r\n\r\nYes.", "not HTTP"),
    "a length of 5,000 digits": Bad(OK + b"content-length: " + b"9" * 5000 + b"\r\n\r\n", "not HTTP"),
    "a chunk without a length": Bad(CHUNKED + b"zz\r\nYes.\r\n", "not HTTP"),
    "a chunk longer than its length": Bad(CHUNKED + b"2\r\nYes.\r\n0\r\n\r\n", "not HTTP"),
    "a compressed transfer": Bad(OK + b"transfer-encoding: gzip, chunked\r\n\r\n", "not HTTP"),
    "a protocol switch": Bad(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n", "not HTTP"),
    "an endless head": Bad(OK + b"a: " + LONG, "not HTTP|broke", "stall"),
    "an endless status line": Bad(b"HTTP/1.1 200 " + LONG, "not HTTP|broke", "stall"),
    "endless trailers": Bad(CHUNKED + b"0\r\na: " + LONG, "not HTTP|broke", "stall"),
    "an endless chunk extension": Bad(CHUNKED + b"4;" + LONG, "not HTTP|broke", "stall"),
    "a compressed body": Bad(
        OK + b"content-encoding: br\r\ncontent-length: 4\r\n\r\nYes.", "compression was not requested"
    ),
    "two encodings, one hidden": Bad(
        OK + b"content-encoding: gzip\r\ncontent-encoding: identity\r\ncontent-length: 4\r\n\r\nYes.",
        "compression was not requested",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_an_invalid_answer_raises_a_typed_error_and_frees_its_slot(name: str) -> None:
    bad = BAD[name]
    transport = HttpTransport(connections=1)
    async with raw(server_sending(bad.said, bad.then)) as server:
        with pytest.raises(ProviderFailed, match=bad.why) as failed:
            await fetch(transport, server.url, SOON)
        assert (await fetch(transport, server.url)).body == b"Yes."
        await transport.close()
    said = f"{failed.value!r} {failed.value.__cause__!r}"
    assert server.url in said
    assert SECRET not in said
    assert "\\n" not in said


def server_dripping(before: bytes, drop: bytes) -> Answering:
    async def answer(peer: Peer) -> None:
        if peer.number:
            await answer_correctly(peer)
            return
        await peer.request()
        await peer.say(before)
        await peer.drip(drop)

    return answer


DRIPS = {
    "a head": (OK + b"a: ", b"x", "waiting for an answer took"),
    "informational answers": (b"", EARLY_HINT, "waiting for an answer took"),
    "a chunk's length": (CHUNKED + b"4\r\nYes.\r\n", b"0", "waiting for more of the answer took|not HTTP"),
    "an extension": (CHUNKED + b"4\r\nYes.\r\n1;", b"x", "waiting for more of the answer took"),
    "trailers": (CHUNKED + b"4\r\nYes.\r\n0\r\n", b"a: b\r\n", "waiting for more of the answer took"),
}


@pytest.mark.parametrize("name", DRIPS)
async def test_bytes_without_content_do_not_extend_a_timeout(name: str) -> None:
    before, drop, why = DRIPS[name]
    transport = HttpTransport(connections=1)
    async with raw(server_dripping(before, drop)) as server:
        with pytest.raises(ProviderFailed, match=why):
            await fetch(transport, server.url, SOON)
        assert (await fetch(transport, server.url)).body == b"Yes."
        await transport.close()


async def test_an_endless_answer_ends_at_its_timeout() -> None:
    transport = HttpTransport(connections=1)
    async with raw(server_dripping(CHUNKED, b"1\r\nx\r\n")) as server:
        with pytest.raises(ProviderFailed, match=r"the exchange took longer than 0.3 s"):
            await fetch(transport, server.url, Timeouts(total=0.3))
        assert (await fetch(transport, server.url)).body == b"Yes."
        await transport.close()


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_connection_that_ends_at_any_byte_frees_its_slot(reset: bool) -> None:
    said = CHUNKED + b"2\r\nYe\r\n2\r\ns.\r\n0\r\n\r\n"
    transport, failed = HttpTransport(connections=1), 0
    for cut in range(len(said)):
        async with raw(server_sending(said[:cut], "reset" if reset else "close")) as server:
            with pytest.raises(ProviderFailed):
                await fetch(transport, server.url)
            failed += 1
            assert (await fetch(transport, server.url)).body == b"Yes."
    await transport.close()
    assert failed == len(said)


# ---- answers before the request was sent completely

HUGE = [b"x" * 4_000_000, b"y" * 100, b"z" * 12_000_000]
TOO_LARGE = b"HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 5\r\n\r\nlarge"


def server_answering_early(after: Callable[[Peer], object]) -> Answering:
    async def answer(peer: Peer) -> None:
        if peer.number:
            await answer_correctly(peer)
            return
        await peer.head()
        await peer.say(TOO_LARGE)
        await after(peer)  # type: ignore[misc]

    return answer


async def hold_silently(peer: Peer) -> None:
    """Keep the connection and read nothing more until the test ends."""
    await anyio.sleep_forever()


@pytest.mark.parametrize("after", [hold_silently, Peer.wait_closed], ids=["stops reading", "keeps reading"])
async def test_an_early_answer_is_read_before_a_long_request_is_completely_sent(
    after: Callable[[Peer], object],
) -> None:
    transport = HttpTransport(connections=1)
    async with raw(server_answering_early(after)) as server:
        answered = await fetch(transport, server.url, segments=HUGE)
        assert (answered.status, answered.body) == (413, b"large")
        assert (await fetch(transport, server.url)).body == b"Yes."
        assert len(server.peers) == 2
        await transport.close()


async def test_an_early_answer_is_read_beyond_the_timeouts_of_its_unfinished_request() -> None:
    async def answer(peer: Peer) -> None:
        await peer.head()
        await peer.say(TOO_LARGE[:-3])
        for _ in range(60):
            await peer.stream.receive()
        await anyio.sleep(0.4)
        await peer.say(TOO_LARGE[-3:])
        await anyio.sleep_forever()

    transport = HttpTransport()
    async with raw(answer) as server:
        short = Timeouts(first_byte=0.1, write=0.1, idle=10)
        async with transport.send(server.url, HEADERS, Segments.of(*HUGE), short) as response:
            assert (response.status, await read_body(response)) == (413, b"large")
        await transport.close()


async def test_sending_to_a_server_that_stops_reading_times_out() -> None:
    async def answer(peer: Peer) -> None:
        if peer.number:
            await answer_correctly(peer)
            return
        await peer.head()
        await anyio.sleep_forever()

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        with pytest.raises(ProviderFailed, match="sending the request took longer"):
            await fetch(transport, server.url, SOON, segments=HUGE)
        assert (await fetch(transport, server.url)).body == b"Yes."
        await transport.close()


async def test_a_long_request_arrives_unchanged_and_its_connection_is_kept() -> None:
    received: list[bytes] = []

    async def answer(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            received.append(request.partition(b"\r\n\r\n")[2])
            await peer.say(GOOD)

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        for segments in (HUGE, [b"a", b"", b"b" * 70_000], [BODY[:9], BODY[9:]], []):
            assert (await fetch(transport, server.url, segments=segments)).body == b"Yes."
            assert received.pop() == b"".join(segments)
        await transport.close()
    assert len(server.peers) == 1


# ---- kept connections


async def test_data_after_an_answer_is_not_read_as_the_next_answer() -> None:
    forged = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"

    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.say(GOOD + (forged if peer.number == 0 else b""))
        await peer.wait_closed()

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        bodies = [(await fetch(transport, server.url)).body for _ in range(2)]
        await transport.close()
    assert bodies == [b"Yes."] * 2
    assert len(server.peers) == 2


async def test_data_on_an_idle_connection_is_not_read_as_the_next_answer() -> None:
    rests, said = anyio.Event(), anyio.Event()

    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.say(GOOD)
        if peer.number == 0:
            await rests.wait()
            await peer.say(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
            said.set()
        await peer.wait_closed()

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        await fetch(transport, server.url)
        rests.set()
        await said.wait()
        assert (await fetch(transport, server.url)).status == 200
        await transport.close()
    assert len(server.peers) == 2


async def test_an_idle_connection_that_was_closed_is_not_used() -> None:
    closed = anyio.Event()
    requests: list[bytes] = []

    async def answer(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            requests.append(request)
            await peer.say(GOOD)
            if peer.number == 0:
                await peer.stream.aclose()
                closed.set()
                return

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        await fetch(transport, server.url)
        await closed.wait()
        assert (await fetch(transport, server.url)).body == b"Yes."
        await transport.close()
    assert (len(server.peers), len(requests)) == (2, 2)


async def test_a_request_is_not_sent_again_after_the_first_byte_of_an_answer() -> None:
    requests: list[bytes] = []

    async def answer(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            requests.append(request)
            if len(requests) == 2:
                await peer.say(b"H")
                return
            await peer.say(GOOD)

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        await fetch(transport, server.url)
        with pytest.raises(ProviderFailed, match="closed the connection before the response was complete"):
            await fetch(transport, server.url)
        await transport.close()
    assert (len(server.peers), len(requests)) == (1, 2)


async def test_a_repeated_request_uses_a_new_connection_even_if_idle_connections_exist() -> None:
    arrived = anyio.Event()

    async def answer(peer: Peer) -> None:
        await peer.request()
        if peer.number == 2:
            arrived.set()
        await arrived.wait()
        await peer.say(GOOD)
        await peer.request()

    transport = HttpTransport()
    async with raw(answer) as server:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(fetch, transport, server.url)
        assert (await fetch(transport, server.url)).body == b"Yes."
        await transport.close()
    assert len(server.peers) == 4


async def test_a_long_request_is_sent_again_over_a_new_connection() -> None:
    async def answer(peer: Peer) -> None:
        if peer.number:
            await answer_correctly(peer)
            return
        await peer.request()
        await peer.say(GOOD)
        await peer.head()
        await peer.stream.receive()
        peer.reset()

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        await fetch(transport, server.url)
        assert (await fetch(transport, server.url, segments=HUGE)).body == b"Yes."
        await transport.close()
    assert len(server.peers) == 2


async def test_reading_a_response_after_its_context_manager_exited_raises_an_error() -> None:
    transport = HttpTransport()
    async with raw(answer_correctly) as server:
        async with transport.send(server.url, HEADERS, Segments.of(BODY), SOON) as response:
            pass
        with pytest.raises(ProviderFailed, match="was closed before its end"):
            await anext(response.chunks())
        await transport.close()
