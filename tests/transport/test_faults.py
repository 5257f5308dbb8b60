"""The fault matrix over real sockets: whatever a server says, there is an answer or a typed failure, and then room.

Each transport here has one place, so that the good answer at the end shows that the fault gave it back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import anyio
import pytest

from actors.core.data.segments import Segments
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
    asked,
    polite,
    raw,
    whole,
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
    "informational answers before": (
        b"HTTP/1.1 100 Continue\r\n\r\n" + EARLY_HINT + EARLY_HINT + GOOD,
        b"Yes.",
    ),
    "an empty body": (OK + b"content-length: 0\r\n\r\n", b""),
    "the connection's end as the body's": (OK + b"connection: close\r\n\r\nYes.", b"Yes."),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nYes.", b"Yes."),
    "the length said twice alike": (
        OK + b"content-length: 4\r\ncontent-length: 4\r\n\r\nYes.",
        b"Yes.",
    ),
}


def saying(said: bytes, then: Then, *, bytewise: bool = False) -> Answering:
    """Return a server that says this to its first client, and answers all others well."""

    async def answer(peer: Peer) -> None:
        if peer.number:
            await polite(peer)
            return
        await peer.request()
        await (peer.trickle(said) if bytewise else peer.say(said))
        if then == "reset":
            peer.reset()
        elif then == "stall":
            await peer.gone()

    return answer


@pytest.mark.parametrize("bytewise", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_is_the_same_however_it_is_framed_and_cut(name: str, bytewise: bool) -> None:
    said, body = ANSWERS[name]
    transport = HttpTransport(connections=1)
    async with raw(saying(said, "close", bytewise=bytewise)) as server:
        first = await asked(transport, server.url)
        second = await asked(transport, server.url)
        await transport.close()
    assert (first.status, first.body) == (200, body)
    assert (second.status, second.body) == (200, b"Yes.")


@dataclass(frozen=True)
class Bad:
    """What a server says before it closes, resets or falls silent, and what the client says of that."""

    said: bytes
    why: str
    then: Then = "close"


LONG = b"x" * 300_000
BAD = {
    "nothing, closed": Bad(b"", "without an answer"),
    "nothing, reset": Bad(b"", "broke|without an answer", "reset"),
    "nothing, silence": Bad(b"", "waiting for an answer took longer than 0.3 s", "stall"),
    "half a status line": Bad(b"HTTP/1.1 2", "ended before the answer did"),
    "half a head": Bad(OK + b"content-le", "ended before the answer did"),
    "half a head, reset": Bad(OK + b"content-le", "broke|ended", "reset"),
    "half a head, silence": Bad(OK + b"content-le", "waiting for an answer took longer", "stall"),
    "an informational answer and no other": Bad(EARLY_HINT, "ended before the answer did"),
    "an informational answer and silence": Bad(EARLY_HINT, "waiting for an answer took longer", "stall"),
    "half a body": Bad(GOOD[:-2], "ended before the answer did"),
    "half a body, reset": Bad(GOOD[:-2], "broke|ended", "reset"),
    "a body shorter than its length": Bad(GOOD[:-2], "waiting for more of the answer took", "stall"),
    "half a chunk": Bad(CHUNKED + b"8\r\nYes.", "ended before the answer did"),
    "half a chunk's length": Bad(CHUNKED + b"4\r\nYes.\r\n1", "ended before the answer did"),
    "no last chunk": Bad(CHUNKED + b"4\r\nYes.\r\n", "ended before the answer did"),
    "no end of the trailers": Bad(CHUNKED + b"4\r\nYes.\r\n0\r\nusage: 2\r\n", "ended before"),
    "silence after a chunk": Bad(CHUNKED + b"4\r\nYes.\r\n", "waiting for more of the answer", "stall"),
    "TLS": Bad(b"\x15\x03\x01\x00\x02\x02\x46", "not HTTP"),
    "another protocol": Bad(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not HTTP"),
    "a page without a head": Bad(b"<html>no</html>\r\n\r\n", "not HTTP"),
    "an impossible status": Bad(b"HTTP/1.1 9999 OK\r\n\r\n", "not HTTP"),
    "a header without a colon": Bad(OK + b"nonsense\r\n\r\n", "not HTTP"),
    "a header with a NUL": Bad(OK + b"a: \x00\r\n\r\n", "not HTTP"),
    "a header that repeats the key": Bad(OK + f"Bearer {SECRET}\r\n\r\n".encode(), "not HTTP"),
    "two lengths": Bad(OK + b"content-length: 4\r\ncontent-length: 5\r\n\r\nYes.", "not HTTP"),
    "a negative length": Bad(OK + b"content-length: -4\r\n\r\nYes.", "not HTTP"),
    "a length of 5,000 digits": Bad(OK + b"content-length: " + b"9" * 5000 + b"\r\n\r\n", "not HTTP"),
    "a chunk of no length": Bad(CHUNKED + b"zz\r\nYes.\r\n", "not HTTP"),
    "a chunk longer than said": Bad(CHUNKED + b"2\r\nYes.\r\n0\r\n\r\n", "not HTTP"),
    "a compressed transfer": Bad(OK + b"transfer-encoding: gzip, chunked\r\n\r\n", "not HTTP"),
    "a change of protocol": Bad(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n", "not HTTP"),
    "a head without end": Bad(OK + b"a: " + LONG, "not HTTP|broke", "stall"),
    "a status line without end": Bad(b"HTTP/1.1 200 " + LONG, "not HTTP|broke", "stall"),
    "trailers without end": Bad(CHUNKED + b"0\r\na: " + LONG, "not HTTP|broke", "stall"),
    "a chunk's extension without end": Bad(CHUNKED + b"4;" + LONG, "not HTTP|broke", "stall"),
    "a compressed body": Bad(OK + b"content-encoding: br\r\ncontent-length: 4\r\n\r\nYes.", "compressed"),
    "two codings, one unseen": Bad(
        OK + b"content-encoding: gzip\r\ncontent-encoding: identity\r\ncontent-length: 4\r\n\r\nYes.",
        "compressed",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_answer_is_a_typed_failure_and_the_next_request_has_its_place(name: str) -> None:
    bad = BAD[name]
    transport = HttpTransport(connections=1)
    async with raw(saying(bad.said, bad.then)) as server:
        with pytest.raises(ProviderFailed, match=bad.why) as failed:
            await asked(transport, server.url, SOON)
        assert (await asked(transport, server.url)).body == b"Yes."
        await transport.close()
    said = f"{failed.value!r} {failed.value.__cause__!r}"
    assert server.url in said
    assert SECRET not in said
    assert "\\n" not in said


def dripping(before: bytes, drop: bytes) -> Answering:
    async def answer(peer: Peer) -> None:
        if peer.number:
            await polite(peer)
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
async def test_bytes_that_lead_to_nothing_do_not_prolong_a_wait(name: str) -> None:
    before, drop, why = DRIPS[name]
    transport = HttpTransport(connections=1)
    async with raw(dripping(before, drop)) as server:
        with pytest.raises(ProviderFailed, match=why):
            await asked(transport, server.url, SOON)
        assert (await asked(transport, server.url)).body == b"Yes."
        await transport.close()


async def test_an_answer_without_end_ends_with_its_time() -> None:
    transport = HttpTransport(connections=1)
    async with raw(dripping(CHUNKED, b"1\r\nx\r\n")) as server:
        with pytest.raises(ProviderFailed, match=r"the exchange took longer than 0.3 s"):
            await asked(transport, server.url, Timeouts(total=0.3))
        assert (await asked(transport, server.url)).body == b"Yes."
        await transport.close()


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_connection_that_ends_at_any_byte_of_an_answer_leaves_room_for_the_next(reset: bool) -> None:
    said = CHUNKED + b"2\r\nYe\r\n2\r\ns.\r\n0\r\n\r\n"
    transport, failed = HttpTransport(connections=1), 0
    for cut in range(len(said)):
        async with raw(saying(said[:cut], "reset" if reset else "close")) as server:
            with pytest.raises(ProviderFailed):
                await asked(transport, server.url)
            failed += 1
            assert (await asked(transport, server.url)).body == b"Yes."
    await transport.close()
    assert failed == len(said)


# ---- answers before the request was taken

HUGE = [b"x" * 4_000_000, b"y" * 100, b"z" * 12_000_000]
TOO_LARGE = b"HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 5\r\n\r\nlarge"


def early(after: Callable[[Peer], object]) -> Answering:
    async def answer(peer: Peer) -> None:
        if peer.number:
            await polite(peer)
            return
        await peer.head()
        await peer.say(TOO_LARGE)
        await after(peer)  # type: ignore[misc]

    return answer


async def silent(peer: Peer) -> None:
    """Keep the connection and read nothing more, until the test is over."""
    await anyio.sleep_forever()


@pytest.mark.parametrize("after", [silent, Peer.gone], ids=["reads no more", "reads on"])
async def test_an_answer_that_comes_before_a_long_request_was_taken_is_read(
    after: Callable[[Peer], object],
) -> None:
    transport = HttpTransport(connections=1)
    async with raw(early(after)) as server:
        answered = await asked(transport, server.url, segments=HUGE)
        assert (answered.status, answered.body) == (413, b"large")
        assert (await asked(transport, server.url)).body == b"Yes."
        assert len(server.peers) == 2
        await transport.close()


async def test_how_long_an_early_answer_may_take_is_not_measured_by_the_request_it_overtook() -> None:
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
            assert (response.status, await whole(response)) == (413, b"large")
        await transport.close()


async def test_a_server_that_takes_no_more_and_says_nothing_is_left() -> None:
    async def answer(peer: Peer) -> None:
        if peer.number:
            await polite(peer)
            return
        await peer.head()
        await anyio.sleep_forever()

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        with pytest.raises(ProviderFailed, match="sending the request took longer"):
            await asked(transport, server.url, SOON, segments=HUGE)
        assert (await asked(transport, server.url)).body == b"Yes."
        await transport.close()


async def test_a_long_request_arrives_as_it_is_and_its_connection_is_kept() -> None:
    received: list[bytes] = []

    async def answer(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            received.append(request.partition(b"\r\n\r\n")[2])
            await peer.say(GOOD)

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        for segments in (HUGE, [b"a", b"", b"b" * 70_000], [BODY[:9], BODY[9:]], []):
            assert (await asked(transport, server.url, segments=segments)).body == b"Yes."
            assert received.pop() == b"".join(segments)
        await transport.close()
    assert len(server.peers) == 1


# ---- kept connections


async def test_what_a_server_says_behind_its_answer_is_not_the_next_answer() -> None:
    forged = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"

    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.say(GOOD + (forged if peer.number == 0 else b""))
        await peer.gone()

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        bodies = [(await asked(transport, server.url)).body for _ in range(2)]
        await transport.close()
    assert bodies == [b"Yes."] * 2
    assert len(server.peers) == 2


async def test_what_a_server_says_while_a_connection_rests_is_not_the_next_answer() -> None:
    rests, said = anyio.Event(), anyio.Event()

    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.say(GOOD)
        if peer.number == 0:
            await rests.wait()
            await peer.say(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
            said.set()
        await peer.gone()

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        await asked(transport, server.url)
        rests.set()
        await said.wait()
        assert (await asked(transport, server.url)).status == 200
        await transport.close()
    assert len(server.peers) == 2


async def test_a_connection_that_was_closed_while_it_rested_is_not_used_and_the_request_goes_out_once() -> (
    None
):
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
        await asked(transport, server.url)
        await closed.wait()
        assert (await asked(transport, server.url)).body == b"Yes."
        await transport.close()
    assert (len(server.peers), len(requests)) == (2, 2)


async def test_a_request_does_not_go_out_again_once_a_byte_of_an_answer_came() -> None:
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
        await asked(transport, server.url)
        with pytest.raises(ProviderFailed, match="ended before the answer did"):
            await asked(transport, server.url)
        await transport.close()
    assert (len(server.peers), len(requests)) == (1, 2)


async def test_a_request_goes_out_again_over_a_new_connection_though_others_rest() -> None:
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
                tasks.start_soon(asked, transport, server.url)
        assert (await asked(transport, server.url)).body == b"Yes."
        await transport.close()
    assert len(server.peers) == 4


async def test_a_long_request_goes_out_again_over_a_new_connection() -> None:
    async def answer(peer: Peer) -> None:
        if peer.number:
            await polite(peer)
            return
        await peer.request()
        await peer.say(GOOD)
        await peer.head()
        await peer.stream.receive()
        peer.reset()

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        await asked(transport, server.url)
        assert (await asked(transport, server.url, segments=HUGE)).body == b"Yes."
        await transport.close()
    assert len(server.peers) == 2


async def test_an_answer_that_is_read_after_its_context_was_left_is_refused() -> None:
    transport = HttpTransport()
    async with raw(polite) as server:
        async with transport.send(server.url, HEADERS, Segments.of(BODY), SOON) as response:
            pass
        with pytest.raises(ProviderFailed, match="context was left"):
            await anext(response.chunks())
        await transport.close()
