"""Describe a request body of any wire format in the notation of `script.py`.

    shape(body, "anthropic")     'U A[T+ c1 c2] R1 S2 U"go"'

Consecutive messages of one role are one word. The default texts are omitted; `+` is a text or a thought that the
renderer added, `N1` a note with the result of call 1, and `c{}` a call without arguments. A result has the number of
the call that it answers: `R1` contains the value that the tool of call 1 returned, `S1` does not, and `R2!1` contains
the value of call 2.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, TypeAlias

from tests.scenarios.script import SIGNATURE, THOUGHT

_Json: TypeAlias = Any  # a body that is being judged may hold anything


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a body, in order.

    Args:
        text: The text of a message, of arguments or of a result.
        id: The id that pairs a call with its result, or the position if the wire format pairs by position.
        name: A call's name.
        wire_id: A call's id in the body, empty if the body has none.
    """

    side: Literal["user", "assistant"]
    kind: Literal["text", "thought", "call", "result", "picture"]
    text: str = ""
    id: str = ""
    name: str = ""
    wire_id: str = ""


def items(body: bytes, family: str) -> list[Item]:
    """Return the items of a body of a wire family, in order."""
    return list(READERS[family](json.loads(body)))


def shape(body: bytes, family: str) -> str:
    """Return the description of a body of a wire family."""
    return " ".join(_words(items(body, family)))


# ---- the words


_MARK = re.compile(r"\bR(\d+)\.")
_DEFAULT = {"user": "u", "assistant": "a"}
_WHO = {"user": "U", "assistant": "A"}


def _words(items: list[Item]) -> Iterator[str]:
    called: dict[str, str] = {}
    for (side, results), run in groupby(items, key=lambda item: (item.side, item.kind == "result")):
        if results:
            yield from (_answer(item, called) for item in run)
            continue
        inner = [_inner(item, called) for item in run]
        if set(inner) == {f'"{_DEFAULT[side]}"'}:
            yield _WHO[side]
        elif len(inner) == 1 and inner[0][0] in '"+':
            yield _WHO[side] + inner[0]
        else:
            yield f"{_WHO[side]}[{' '.join(inner)}]"


def _inner(item: Item, called: dict[str, str]) -> str:
    match item.kind:
        case "call":
            called[item.id] = number = _number(item.text)
            return f"c{number}"
        case "thought":
            return "T" if item.text in (THOUGHT, SIGNATURE) else "T+"
        case "picture":
            return "I"
        case _:
            return _describe_text(item.text)


def _describe_text(text: str) -> str:
    if text.startswith("("):
        return "+"
    if text.startswith("["):
        return "N" + "".join(_MARK.findall(text)[:1])
    return f'"{text}"'


def _number(arguments: str) -> str:
    try:
        value = json.loads(arguments)
    except ValueError:
        return "?"
    number = value.get("n") if isinstance(value, dict) else "?"
    return "{}" if number is None else str(number)


def _answer(item: Item, called: dict[str, str]) -> str:
    number = called.get(item.id, "?")
    marks = _MARK.findall(item.text)
    if not marks:
        return f"S{number}"
    return f"R{marks[0]}" if number in (marks[0], "{}") else f"R{marks[0]}!{number}"


# ---- the wires


def _call(name: str, arguments: str, call_id: str, place: str | None = None) -> Item:
    return Item("assistant", "call", arguments, call_id if place is None else place, name, call_id)


def _openai_chat(body: _Json) -> Iterator[Item]:
    for message in body["messages"]:
        role, content = message["role"], message.get("content")
        if role == "tool":
            yield Item("user", "result", json.dumps(content), message["tool_call_id"])
            continue
        side: Literal["user", "assistant"] = "assistant" if role == "assistant" else "user"
        for detail in message.get("reasoning_details", ()):
            yield Item(side, "thought", detail.get("text", ""))
        if "reasoning_content" in message:
            yield Item(side, "thought", message["reasoning_content"])
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
        for part in parts:
            yield from _chat_part(part, side)
        for call in message.get("tool_calls") or ():
            function = call["function"]
            yield _call(function["name"], function["arguments"], call.get("id", ""))


def _chat_part(part: _Json, side: Literal["user", "assistant"]) -> Iterator[Item]:
    match part["type"]:
        case "thinking":
            yield Item(side, "thought", "".join(chunk["text"] for chunk in part["thinking"]))
        case "text" if part["text"] or side == "user":
            yield Item(side, "text", part["text"])
        case "image_url":
            yield Item(side, "picture")
        case _:
            return


def _anthropic(body: _Json) -> Iterator[Item]:
    for message in body["messages"]:
        content = message["content"]
        side = message["role"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "tool_use":
                    yield _call(block["name"], json.dumps(block["input"]), block["id"])
                case "tool_result":
                    yield Item("user", "result", json.dumps(block["content"]), block["tool_use_id"])
                case "thinking":
                    yield Item(side, "thought", block["thinking"])
                case "image":
                    yield Item(side, "picture")
                case _:
                    yield Item(side, "text", block["text"])


def _responses(body: _Json) -> Iterator[Item]:
    for item in body["input"]:
        match item.get("type", "message"):
            case "function_call":
                yield _call(item["name"], item["arguments"], item["call_id"])
            case "function_call_output":
                yield Item("user", "result", json.dumps(item["output"]), item["call_id"])
            case "reasoning":
                yield Item("assistant", "thought", item.get("encrypted_content") or "")
            case _:
                yield from _responses_message(item)


def _responses_message(item: _Json) -> Iterator[Item]:
    content = item["content"]
    for part in [{"text": content}] if isinstance(content, str) else content:
        kind: Literal["text", "picture"] = "text" if "text" in part else "picture"
        yield Item(item["role"], kind, part.get("text", ""))


def _gemini(body: _Json) -> Iterator[Item]:
    for at, content in enumerate(body["contents"]):
        side: Literal["user", "assistant"] = "assistant" if content["role"] == "model" else "user"
        calls = answers = 0
        for part in content["parts"]:
            if "thoughtSignature" in part:
                yield Item(side, "thought", part["thoughtSignature"])
            if "functionCall" in part:
                call = part["functionCall"]
                arguments = json.dumps(call["args"])
                yield _call(call["name"], arguments, call.get("id", ""), f"{at}.{calls}")
                calls += 1
            elif "functionResponse" in part:
                response = json.dumps(part["functionResponse"]["response"])
                yield Item("user", "result", response, f"{at - 1}.{answers}")
                answers += 1
            elif "text" in part:
                yield Item(side, "text", part["text"])
            else:
                yield Item(side, "picture")


def _converse(body: _Json) -> Iterator[Item]:
    for message in body["messages"]:
        side = message["role"]
        for block in message["content"]:
            match block:
                case {"toolUse": call}:
                    yield _call(call["name"], json.dumps(call["input"]), call["toolUseId"])
                case {"toolResult": result}:
                    yield Item("user", "result", json.dumps(result["content"]), result["toolUseId"])
                case {"reasoningContent": thought}:
                    yield Item(side, "thought", thought["reasoningText"]["text"])
                case {"text": text}:
                    yield Item(side, "text", text)
                case _:
                    yield Item(side, "picture")


READERS: dict[str, Callable[[_Json], Iterator[Item]]] = {
    "openai_chat": _openai_chat,
    "anthropic": _anthropic,
    "responses": _responses,
    "gemini": _gemini,
    "converse": _converse,
}
