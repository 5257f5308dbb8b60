"""Check that our parser of binary event streams agrees with botocore and that damage is a fault."""

from random import Random
from struct import pack
from zlib import crc32

import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer

from actors.adapters.framing import END, FrameParser, ServerEvent
from actors.errors import StreamFault
from actors.strict.wires.bedrock import encode_frame

MAX_FRAME = 1024 * 1024
VALUES = (
    b"\x00",
    b"\x01",
    b"\x02\x7f",
    b"\x03\x01\x02",
    b"\x04\x00\x00\x00\x01",
    b"\x05" + bytes(8),
    b"\x06\x00\x03abc",
    b"\x08" + bytes(8),
    b"\x09" + bytes(16),
)
"""Header values of every type but strings."""


def raw(headers: bytes, payload: bytes) -> bytes:
    prelude = pack(">II", 16 + len(headers) + len(payload), len(headers))
    body = prelude + pack(">I", crc32(prelude)) + headers + payload
    return body + pack(">I", crc32(body))


def string(name: str, value: str) -> bytes:
    return pack(">B", len(name)) + name.encode() + b"\x07" + pack(">H", len(value.encode())) + value.encode()


def a_frame(random: Random) -> bytes:
    """Return a frame with random headers and a JSON-like payload."""
    headers = [
        string(":message-type", "event"),
        string(":event-type", random.choice(("a", "bé", "metadata"))),
    ]
    for number in range(random.randrange(4)):
        headers.append(pack(">B", 2) + b"h%d" % number + random.choice(VALUES))
    random.shuffle(headers)
    return raw(b"".join(headers), b'{"x":"%b"}' % (b"y" * random.choice((0, 1, 30, 3000))))


def theirs(stream: bytes) -> list[ServerEvent]:
    buffer = EventStreamBuffer()
    buffer.add_data(stream)
    return [ServerEvent(seen.headers[":event-type"], seen.payload.decode()) for seen in buffer]


def ours(pieces: list[bytes]) -> list[ServerEvent]:
    parser = FrameParser(MAX_FRAME)
    return [event for piece in pieces for event in parser.feed(piece)]


def test_random_frames_in_random_pieces_are_decoded_to_the_same_values_as_by_botocore() -> None:
    for seed in range(400):
        random = Random(seed)
        stream = b"".join(a_frame(random) for _ in range(random.randrange(1, 6)))
        cuts = sorted(random.randrange(len(stream) + 1) for _ in range(random.randrange(8)))
        pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        assert ours(pieces) == theirs(stream) != [], seed


def test_the_complete_frames_of_a_truncated_stream_are_returned() -> None:
    random = Random(1)
    stream = b"".join(a_frame(random) for _ in range(4))
    for place in range(len(stream)):
        assert ours([stream[:place]]) == theirs(stream[:place]), place
    assert ours([bytes([byte]) for byte in stream]) == theirs(stream)


def test_a_frame_with_a_flipped_bit_is_rejected_if_botocore_rejects_the_frame() -> None:
    whole = encode_frame({":message-type": "event", ":event-type": "a"}, b'{"x":1}')
    for place in range(len(whole)):
        spoilt = bytearray(whole)
        spoilt[place] ^= 4
        with pytest.raises(ChecksumMismatch):
            theirs(bytes(spoilt))
        with pytest.raises(StreamFault, match="checksum"):
            FrameParser(MAX_FRAME).feed(bytes(spoilt))


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (raw(b"\x05abc", b""), "truncated header"),
        (raw(string("a", "b")[:-1], b""), "truncated header"),
        (raw(b"\x01a\x07\x00", b""), "truncated header"),
        (raw(b"\x01a\x04\x00", b""), "truncated header"),
        (raw(b"\x01a\x0a", b""), "header of the unknown type 10"),
        (pack(">II", 16, 1) + pack(">I", crc32(pack(">II", 16, 1))), "inconsistent lengths"),
        (pack(">II", 3, 0) + pack(">I", crc32(pack(">II", 3, 0))), "inconsistent lengths"),
        (pack(">II", 1 << 24, 0) + pack(">I", crc32(pack(">II", 1 << 24, 0))), "larger than"),
    ],
)
def test_a_malformed_frame_is_reported_as_a_fault(stream: bytes, why: str) -> None:
    with pytest.raises(StreamFault, match=why):
        FrameParser(MAX_FRAME).feed(stream)


def test_complete_frames_before_a_fault_are_returned_first() -> None:
    good = encode_frame({":message-type": "event", ":event-type": "a"}, b"{}")
    parser = FrameParser(MAX_FRAME)
    assert parser.feed(good + b"\xff" * 20) == [ServerEvent("a", "{}")]
    with pytest.raises(StreamFault, match="checksum"):
        parser.close()
    with pytest.raises(StreamFault, match="checksum"):
        parser.feed(good)


def test_exception_and_error_frames_become_an_event_with_the_error_type() -> None:
    parser = FrameParser(MAX_FRAME)
    told = parser.feed(
        encode_frame(
            {":message-type": "exception", ":exception-type": "throttlingException"}, b'{"message":"slow"}'
        )
        + encode_frame({":message-type": "exception", ":exception-type": "x"}, b"plain words")
        + encode_frame({":message-type": "error", ":error-code": "500", ":error-message": "broken"}, b"")
    )
    assert told == [
        ServerEvent("exception", '{"message": "slow", "type": "throttlingException"}'),
        ServerEvent("exception", '{"message": "plain words", "type": "x"}'),
        ServerEvent("exception", '{"message": "broken", "type": "500"}'),
    ]


def test_closing_a_frame_reader_reports_the_end_and_drops_a_partial_frame() -> None:
    parser = FrameParser(MAX_FRAME)
    parser.feed(encode_frame({}, b"{}")[:-1])
    assert parser.close() == [END]
