"""Decode the tool results of a request body of any family, independently of the adapters."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from actors.core.dialects.dialect import Dialect


class Told(NamedTuple):
    """A result as a provider reads it."""

    words: str
    failed: bool


def parse_results(body: bytes, dialect: Dialect) -> list[Told]:
    """Return the results of a body in order. Without an error flag, a prefix of the text marks a failed tool."""
    read = json.loads(body)
    match dialect.family:
        case "openai_chat":
            texts = [message["content"] for message in read["messages"] if message["role"] == "tool"]
            return [_without_prefix(text, dialect.turns.error_prefix) for text in texts]
        case "responses":
            outputs = [item["output"] for item in read["input"] if item["type"] == "function_call_output"]
            return [_without_prefix(_result_text(output), dialect.turns.error_prefix) for output in outputs]
        case "anthropic":
            blocks = _blocks(read["messages"], "content")
            results = [block for block in blocks if block["type"] == "tool_result"]
            return [Told(_result_text(block["content"]), block.get("is_error", False)) for block in results]
        case "gemini":
            parts = [
                part["functionResponse"]["response"]
                for part in _blocks(read["contents"], "parts")
                if "functionResponse" in part
            ]
            return [Told(next(iter(response.values())), "error" in response) for response in parts]
        case "converse":
            held = [
                block["toolResult"] for block in _blocks(read["messages"], "content") if "toolResult" in block
            ]
            return [Told(_result_text(result["content"]), result["status"] == "error") for result in held]


def _blocks(messages: list[Any], key: str) -> Iterator[Any]:  # Any: blocks of a body under test
    for message in messages:
        yield from message[key]


def _result_text(content: str | list[Any]) -> str:  # Any: as above
    """Return the text of a result: a string, or the first of several blocks, except names of documents."""
    if isinstance(content, str):
        return content
    return content[0].get("text", "") if content else ""


def _without_prefix(text: str, prefix: str) -> Told:
    return Told(text.removeprefix(prefix), text.startswith(prefix))
