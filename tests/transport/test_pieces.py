"""A request is written in as few pieces as its size allows, and nothing of it is lost or counted twice."""

import anyio
import h11
import pytest

from actors.core.data.persistent import Segments
from actors.transport.connection import SMALL_BODY, WRITE_SIZE, Connection

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("count", "size", "pieces"),
    [
        (3, 1000, 1),
        (SMALL_BODY // 1000 + 1, 1000, 1),
        (WRITE_SIZE // 1000, 1000, 2),
        (1, WRITE_SIZE - 1000, 1),
        (2, WRITE_SIZE + 1, 4),
    ],
)
async def test_the_head_of_a_request_is_written_together_with_the_first_piece_of_its_body(
    count: int, size: int, pieces: int
) -> None:
    body = [bytes([index % 256]) * size for index in range(count)]
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            headers = [("host", "here"), ("content-length", str(count * size))]
            head = h11.Request(method="POST", target="/v1", headers=headers)
            written = [bytes(piece) for piece in Connection(stream).request_pieces(head, Segments.of(*body))]
    start, _, rest = b"".join(written).partition(b"\r\n\r\n")
    assert start.startswith(b"POST /v1 HTTP/1.1\r\n")
    assert rest == b"".join(body)
    assert len(written) == pieces
