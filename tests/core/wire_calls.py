"""Parse the calls, results and texts of a request body of any dialect."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

Json = Any  # JSON, walked by its own keys


class Said(NamedTuple):
    """One item of a request: `kind` is `call`, `result` or `words`."""

    kind: str
    id: str
    content: Json


def read_body(body: bytes) -> list[Said]:
    """Return the calls, results and texts of a body in order."""
    request = json.loads(body)
    messages = next(request[key] for key in ("messages", "input", "contents") if key in request)
    return [said for message in messages for said in _message(message)]


def _message(message: Json) -> Iterator[Said]:
    if message.get("role") == "tool":
        yield Said("result", message["tool_call_id"], message["content"])
        return
    if "type" in message and message["type"] != "message":
        yield from _block(message)
        return
    content = message.get("content", message.get("parts"))
    for block in [{"text": content}] if isinstance(content, str) else content or ():
        yield from _block(block)
    for call in message.get("tool_calls", ()):
        yield Said("call", call["id"], json.loads(call["function"]["arguments"]))


def _block(block: Json) -> Iterator[Said]:
    match block:
        case {"type": "tool_use", "id": call_id, "input": given}:
            yield Said("call", call_id, given)
        case {"type": "tool_result", "tool_use_id": call_id, "content": content}:
            yield Said("result", call_id, content)
        case {"type": "function_call", "call_id": call_id, "arguments": given}:
            yield Said("call", call_id, json.loads(given))
        case {"type": "function_call_output", "call_id": call_id, "output": output}:
            yield Said("result", call_id, output)
        case {"functionCall": {"args": given} as call}:
            yield Said("call", call.get("id", ""), given)
        case {"functionResponse": {"response": response} as answer}:
            yield Said("result", answer.get("id", ""), next(iter(response.values())))
        case {"toolUse": {"toolUseId": call_id, "input": given}}:
            yield Said("call", call_id, given)
        case {"toolResult": {"toolUseId": call_id, "content": [{"text": content}]}}:
            yield Said("result", call_id, content)
        case {"text": str(words)} if words:
            yield Said("words", "", words)
