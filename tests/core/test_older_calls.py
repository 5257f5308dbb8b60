"""Calls in records of version 2 are read as the same calls of the present one."""

from typing import Any

import pytest
from msgspec import msgpack

from actors.core.log.codec import decode_event
from actors.core.log.events import Compacted, Instructed, Opened, RoundEnded, Submitted
from actors.core.values.content import Media, ToolCall
from actors.core.values.packed import Packed, unpack

CALLS: dict[str, tuple[bytes, str | None, ToolCall]] = {
    "arguments": (b'{"a":1}', None, ToolCall("c", "f", {"a": 1})),
    "malformed arguments": (b"{}", '{"a": "é', ToolCall("c", "f", raw='{"a": "é')),
    "free text": ('{"input":"\\"é"}'.encode(), '"é', ToolCall.free_form("c", "f", '"é')),
}


def records(message: object) -> dict[type, list[Any]]:  # Any: what msgpack can say
    """Return events of version 2 that hold a message."""
    usage = [0, 0, 0, 0]
    report: list[list[object]] = [[], [], [], []]
    return {
        Submitted: ["submitted", 1, message, None],
        Instructed: ["instructed", 1, message],
        Compacted: ["compacted", 0, 1, message],
        RoundEnded: ["round_ended", 1, 1, message, usage, None, None, 1, [], None],
        Opened: ["opened", "s", "a", None, [message, message], [], 0, report, "", "", None, "", ""],
    }


def messages(event: object) -> list[Packed]:
    match event:
        case Submitted(message=message) | Instructed(message=message) | Compacted(summary=message):
            return [message]
        case RoundEnded(message=message) if message is not None:
            return [message]
        case Opened(messages=held):
            return list(held)
        case _:
            raise AssertionError(event)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("kind", [Submitted, Instructed, Compacted, RoundEnded, Opened])
@pytest.mark.parametrize("what", CALLS)
def test_a_call_of_an_older_record_is_the_same_call(what: str, kind: type, beside: bool) -> None:
    json, raw, expected = CALLS[what]
    blocks = [["t", b'"x"'], ["c", "c", "f", json, raw, None, ""]]
    if beside:
        blocks.append(["m", "image/png", "\0", ""])
    message = msgpack.encode(["model", blocks, 0, None])
    media = ["A" * 4096] if beside else []
    held: object = [message, media] if beside else message
    event = decode_event(msgpack.encode([2, records(held)[kind]]))
    assert type(event) is kind
    for packed in messages(event):
        (call,) = unpack(packed).calls
        assert [block.data for block in unpack(packed).blocks if isinstance(block, Media)] == media
        assert call == expected
        assert (call.raw, call.is_malformed) == (raw, what == "malformed arguments")
