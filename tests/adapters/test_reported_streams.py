"""Decode streams from public bug reports to the answer that the model gave.

A file in `cases` has the `data:` of each server-sent event. With `named_events`, an `event:` line with its type
precedes each; with `done`, `data: [DONE]` comes last. `source` names the report.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from actors.adapters.codec import decode
from actors.core.dialects.profiles import PROFILES
from actors.core.values.content import Message
from tests.adapters.wire_streams import dump_json, run

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


def stream(case: dict[str, Any]) -> bytes:  # Any: JSON
    lines = []
    for event in case["events"]:
        named = f"event: {event['type']}\n".encode() if case["named_events"] else b""
        lines.append(named + b"data: " + dump_json(event) + b"\n\n")
    return b"".join(lines) + (b"data: [DONE]\n\n" if case["done"] else b"")


@pytest.mark.parametrize("knows_tools", [True, False])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_stream_from_a_bug_report_is_decoded_to_its_intended_content(path: Path, knows_tools: bool) -> None:
    case = json.loads(path.read_text())
    expected = case["expected"]
    decoder = decode(PROFILES[case["dialect"]], tools={"write", "manual"} if knows_tools else None)
    _, message = run(decoder, [stream(case)])
    assert isinstance(message, Message), message
    assert message.text == expected.get("text", "a" if "usage" in expected else "")
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
    assert calls == expected.get("calls", [])
    assert all(call.raw is None for call in message.calls)
    assert decoder.cut_reason is None
    for name, figure in expected.get("usage", {}).items():
        assert getattr(decoder.usage, name) == figure
