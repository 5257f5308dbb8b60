"""Describe a request with one short word for each message.

    S U A[T t c1 c2] R1 R2* U

The words show the order of the messages, and the call that each result answers. S is a system message, U a user
message, A an assistant message; T is thinking, t text, M an image or a document, c1 a tool call, R1 its result, R2* a
synthetic result. Calls are numbered by their canonical ids, not by the ids that the provider sees.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from actors.core.transcript.diagnostics import Report

Wire = dict[str, Any]  # Any: JSON values have many types

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
class CallLabels:
    """The labels of calls and results in the requests to one provider, such as `c1` and `R1*`.

    The labels come from the reports of the renders. If the wire format has no ids, calls and results are identified by
    their order.
    """

    _numbers: dict[str, str] = field(default_factory=dict[str, str])
    _synthetic: set[str] = field(default_factory=set[str])
    _ordered: list[str] = field(default_factory=list[str])
    _calls: int = 0
    _results: int = 0

    def add_report(self, report: Report) -> None:
        """Record the wire ids of the calls in a request, and which results are synthetic."""
        labels = list(map(call_number, report.calls))
        # A transcript that was flattened to text after a refusal has calls but no ids.
        self._numbers.update(zip(report.emitted_calls, labels, strict=False))
        self._ordered += [one for one in labels if one not in self._ordered]
        self._synthetic.update(call_number(call_id) for call_id, _ in report.synthetic)

    def start_body(self) -> None:
        """Start counting the calls and results of a request body."""
        self._calls = self._results = 0

    def next_call(self, wire_id: str) -> str:
        """Return the label of the next call in the body, such as `c3`."""
        self._calls += 1
        return f"c{self._call_label(wire_id, self._calls)}"

    def next_result(self, wire_id: str) -> str:
        """Return the label of the next result in the body: `R3`, or `R3*` for a synthetic result."""
        self._results += 1
        label = self._call_label(wire_id, self._results)
        return f"R{label}*" if label in self._synthetic else f"R{label}"

    def _call_label(self, wire_id: str, index: int) -> str:
        if wire_id:
            return self._numbers.get(wire_id, "?")
        return self._ordered[index - 1] if index <= len(self._ordered) else "?"


def call_number(call_id: str) -> str:
    """Return the number in a canonical call id: `3` for `hist_tool_3`."""
    return call_id.rpartition("_")[2]


def shape(body: bytes, labels: CallLabels) -> list[str]:
    """Return one word for each message of a request body, in any dialect."""
    request = json.loads(body)
    labels.start_body()
    if "contents" in request:
        return [_content_word(content, labels) for content in request["contents"]]
    return [
        _message_word(message, labels) for message in request.get("messages") or request.get("input") or ()
    ]


def split_unchanged(before: list[str], after: list[str]) -> tuple[int, list[str]]:
    """Return the number of words at the beginning that are the same in both lists, and the other words of `after`."""
    same = next(
        (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(before)
    )
    return same, after[same:]


def _message_word(message: Wire, labels: CallLabels) -> str:
    """Return the word of a message. In the Responses dialect, calls, results and reasoning are separate items."""
    match message.get("type"):
        case "function_call":
            return f"A[{labels.next_call(message['call_id'])}]"
        case "function_call_output":
            return labels.next_result(message["call_id"])
        case "reasoning":
            return "A[T]"
        case _:
            pass
    if message["role"] == "tool":
        return labels.next_result(message["tool_call_id"])
    thought = ["T"] if any(message.get(key) for key in _REASONING) else []
    blocks = [*thought, *_block_words(message.get("content"), labels)]
    blocks += [labels.next_call(call["id"]) for call in message.get("tool_calls") or ()]
    return _format_message(_ROLES.get(message["role"], "?"), blocks)


def _content_word(content: Wire, labels: CallLabels) -> str:
    return _format_message(
        "A" if content["role"] == "model" else "U", [_part_words(part, labels) for part in content["parts"]]
    )


def _format_message(role: str, blocks: list[str]) -> str:
    """Return the word of a message from the letter of its role and the labels of its blocks."""
    return role if blocks in (["t"], []) else f"{role}[{' '.join(blocks)}]"


def _block_words(
    content: Any, labels: CallLabels
) -> Iterable[str]:  # Any: a string, null or a list of blocks
    if isinstance(content, str):
        return ["t"] if content else []
    return [_block_word(block, labels) for block in content or ()]


def _block_word(block: Wire, labels: CallLabels) -> str:
    match block.get("type"):
        case "text" | "input_text" | "output_text":
            return "t"
        case "thinking" | "redacted_thinking":
            return "T"
        case "tool_use":
            return labels.next_call(block["id"])
        case "tool_result":
            return labels.next_result(block["tool_use_id"])
        case None:
            return _part_words(block, labels)
        case kind:
            return "M" if kind in _MEDIA else "?"


def _part_words(part: Wire, labels: CallLabels) -> str:
    """Return the words of a part whose key names its kind, as in Gemini and Bedrock Converse.

    Gemini puts the signature of a thought on the part after the thought, so one part may become two words.
    """
    if "thoughtSignature" in part:
        bare = {key: value for key, value in part.items() if key != "thoughtSignature"}
        return "T" if bare == {"text": ""} else f"T {_part_words(bare, labels)}"
    match part:
        case {"thought": True}:
            return "T"
        case {"text": _}:
            return "t"
        case {"functionCall": call}:
            return labels.next_call(call.get("id", ""))
        case {"functionResponse": result}:
            return labels.next_result(result.get("id", ""))
        case {"toolUse": call}:
            return labels.next_call(call["toolUseId"])
        case {"toolResult": result}:
            return labels.next_result(result["toolUseId"])
        case {"reasoningContent": _}:
            return "T"
        case _:
            return "M" if part.keys() & _MEDIA else "?"
