"""The shape of a request: one short word for each message, which shows order and pairing.

    S U A[T t c1 c2] R1 R2* U

S system, U user, A assistant, T thinking, t text, M an image or a document, c1 a tool call, R1 its result, R2* a
synthetic result. Numbers are those of the canonical call ids, not of the ids that the provider sees.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from actors.core.transcript.diagnostics import Report

Wire = dict[str, Any]  # Any: parsed JSON of either dialect

_MEDIA = frozenset(
    {
        "image",
        "document",
        "image_url",
        "document_url",
        "file",
        "input_image",
        "input_file",
        "inlineData",
        "fileData",
    }
)
_REASONING = ("reasoning_content", "reasoning_details", "reasoning")
_ROLES = {"system": "S", "developer": "S", "user": "U", "assistant": "A"}


@dataclass(slots=True)
class Numbers:
    """The labels of the calls in one lane, from the reports of its requests.

    If the wire has no ids, calls and results are identified by position.
    """

    _numbers: dict[str, str] = field(default_factory=dict[str, str])
    _synthetic: set[str] = field(default_factory=set[str])
    _ordered: list[str] = field(default_factory=list[str])
    _calls: int = 0
    _results: int = 0

    def learn(self, report: Report) -> None:
        """Record the wire ids of the calls, and which results are synthetic."""
        labels = list(map(number, report.calls))
        # A transcript that was flattened to text after a refusal has calls but no ids.
        self._numbers.update(zip(report.emitted_calls, labels, strict=False))
        self._ordered += [one for one in labels if one not in self._ordered]
        self._synthetic.update(number(call_id) for call_id, _ in report.synthetic)

    def begin(self) -> None:
        """Start reading a body."""
        self._calls = self._results = 0

    def call(self, wire_id: str) -> str:
        """Return the label of the next call."""
        self._calls += 1
        return f"c{self._label(wire_id, self._calls)}"

    def result(self, wire_id: str) -> str:
        """Return the label of the next result."""
        self._results += 1
        label = self._label(wire_id, self._results)
        return f"R{label}*" if label in self._synthetic else f"R{label}"

    def _label(self, wire_id: str, place: int) -> str:
        if wire_id:
            return self._numbers.get(wire_id, "?")
        return self._ordered[place - 1] if place <= len(self._ordered) else "?"


def number(call_id: str) -> str:
    """Return the number in a canonical call id: `3` for `hist_tool_3`."""
    return call_id.rpartition("_")[2]


def shape(body: bytes, numbers: Numbers) -> list[str]:
    """Return one word for each message of a request body, in any dialect."""
    request = json.loads(body)
    numbers.begin()
    if "contents" in request:
        return [_content(content, numbers) for content in request["contents"]]
    return [_message(message, numbers) for message in request.get("messages") or request.get("input") or ()]


def split_unchanged(before: list[str], after: list[str]) -> tuple[int, list[str]]:
    """Return the number of unchanged messages, and the words of the rest."""
    same = next(
        (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(before)
    )
    return same, after[same:]


def _message(message: Wire, numbers: Numbers) -> str:
    """Return the word of a message. In the Responses dialect, calls, results and reasoning are items of their own."""
    match message.get("type"):
        case "function_call":
            return f"A[{numbers.call(message['call_id'])}]"
        case "function_call_output":
            return numbers.result(message["call_id"])
        case "reasoning":
            return "A[T]"
        case _:
            pass
    if message["role"] == "tool":
        return numbers.result(message["tool_call_id"])
    thought = ["T"] if any(message.get(key) for key in _REASONING) else []
    blocks = [*thought, *_blocks(message.get("content"), numbers)]
    blocks += [numbers.call(call["id"]) for call in message.get("tool_calls") or ()]
    return _word(_ROLES.get(message["role"], "?"), blocks)


def _content(content: Wire, numbers: Numbers) -> str:
    return _word(
        "A" if content["role"] == "model" else "U", [_part(part, numbers) for part in content["parts"]]
    )


def _word(role: str, blocks: list[str]) -> str:
    return role if blocks in (["t"], []) else f"{role}[{' '.join(blocks)}]"


def _blocks(content: Any, numbers: Numbers) -> Iterable[str]:  # Any: a string, null or a list of blocks
    if isinstance(content, str):
        return ["t"] if content else []
    return [_block(block, numbers) for block in content or ()]


def _block(block: Wire, numbers: Numbers) -> str:
    match block.get("type"):
        case "text" | "input_text" | "output_text":
            return "t"
        case "thinking" | "redacted_thinking":
            return "T"
        case "tool_use":
            return numbers.call(block["id"])
        case "tool_result":
            return numbers.result(block["tool_use_id"])
        case None:
            return _part(block, numbers)
        case kind:
            return "M" if kind in _MEDIA else "?"


def _part(part: Wire, numbers: Numbers) -> str:
    """Return the words of a part that is identified by its key, as in Gemini and Bedrock Converse.

    Gemini puts the signature of a thought on the part after it.
    """
    if "thoughtSignature" in part:
        bare = {key: value for key, value in part.items() if key != "thoughtSignature"}
        return "T" if bare == {"text": ""} else f"T {_part(bare, numbers)}"
    match part:
        case {"thought": True}:
            return "T"
        case {"text": _}:
            return "t"
        case {"functionCall": call}:
            return numbers.call(call.get("id", ""))
        case {"functionResponse": result}:
            return numbers.result(result.get("id", ""))
        case {"toolUse": call}:
            return numbers.call(call["toolUseId"])
        case {"toolResult": result}:
            return numbers.result(result["toolUseId"])
        case {"reasoningContent": _}:
            return "T"
        case _:
            return "M" if part.keys() & _MEDIA else "?"
