"""Build Bedrock answers from the wire rules."""

from collections.abc import Mapping

from actors.core.values.identity import Binding
from actors.strict.wires.bedrock import encode_frame
from tests.adapters.wire_streams import dump_json

BEDROCK_BINDING = Binding("bedrock", "bedrock", model="anthropic.claude-test")
SIGNATURE = "EqQBCkgIBRABGAIqQL+/==sig/+é"


def event(kind: str, **payload: object) -> bytes:
    """One frame of an event."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode_frame(headers, dump_json(payload))


def exception(kind: str, **payload: object) -> bytes:
    """One frame of an exception."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return encode_frame(headers, dump_json(payload))


def begin(index: int, call_id: str, name: str) -> bytes:
    """A `contentBlockStart` of a tool call; other blocks have none."""
    return event(
        "contentBlockStart", start={"toolUse": {"toolUseId": call_id, "name": name}}, contentBlockIndex=index
    )


def delta(index: int, **delta: object) -> bytes:
    """A `contentBlockDelta`."""
    return event("contentBlockDelta", delta=delta, contentBlockIndex=index)


def reasoning_delta(index: int, **piece: object) -> bytes:
    """A delta of reasoning."""
    return delta(index, reasoningContent=piece)


def stop(index: int) -> bytes:
    """A `contentBlockStop`."""
    return event("contentBlockStop", contentBlockIndex=index)


def message_stop(reason: str = "end_turn") -> bytes:
    """The `messageStop`."""
    return event("messageStop", stopReason=reason)


def metadata(**usage: int) -> bytes:
    """The `metadata` that comes last."""
    return event("metadata", usage=usage, metrics={"latencyMs": 9})


HEAD = event("messageStart", role="assistant")
WORDS = (
    HEAD,
    reasoning_delta(0, text="Let me "),
    reasoning_delta(0, text="see…"),
    reasoning_delta(0, signature=SIGNATURE),
    stop(0),
    reasoning_delta(1, redactedContent="c2VjcmV0"),
    stop(1),
    delta(2, text="I look "),
    delta(2, text="at 日本 😀."),
    stop(2),
    begin(3, "tooluse_A", "read"),
    delta(3, toolUse={"input": ""}),
    delta(3, toolUse={"input": '{"p"'}),
    delta(3, toolUse={"input": " : 1}"}),
    stop(3),
    begin(4, "tooluse_B", "now"),
    stop(4),
    message_stop("tool_use"),
)
TAIL = metadata(
    inputTokens=5, outputTokens=7, totalTokens=14, cacheReadInputTokens=2, cacheWriteInputTokens=1
)
STREAM = b"".join(WORDS) + TAIL
BLOCKS = (
    ("thinking", "Let me see…", f'"{SIGNATURE}"'),
    ("thinking", "", '"c2VjcmV0"'),
    ("text", "I look at 日本 😀."),
    ("call", "hist_tool_1", "read", '{"p" : 1}', '"tooluse_A"'),
    ("call", "hist_tool_2", "now", "{}", '"tooluse_B"'),
)


def body(*content: Mapping[str, object], reason: str = "end_turn") -> dict[str, object]:
    """An answer that is not streamed."""
    usage = {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12}
    message = {"role": "assistant", "content": list(content)}
    return {"output": {"message": message}, "stopReason": reason, "usage": usage, "metrics": {"latencyMs": 9}}
