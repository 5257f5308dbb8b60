"""The shape of a request: one short word for each message, so that a person sees order and pairing.

    S U A[T t c1 c2] R1 R2* U

S system, U user, A assistant, T thinking, t text, c1 a tool call, R1 its result, R2* a synthetic result. Calls
are numbered as the session counts them, whatever id the provider sees.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from actors.core.diagnostics import Report

Wire = dict[str, Any]  # Any: parsed JSON of either dialect

_ROLES = {"system": "S", "developer": "S", "user": "U", "assistant": "A"}


@dataclass(slots=True)
class Numbers:
    """How the calls of one provider's lane are shown, learned from the reports of its requests."""

    _numbers: dict[str, str] = field(default_factory=dict)
    _synthetic: set[str] = field(default_factory=set)

    def learn(self, report: Report) -> None:
        """Take up which wire id stands for which canonical call, and which results are synthetic."""
        numbers = dict(zip(report.emitted_calls, map(number, report.calls), strict=True))
        self._numbers.update(numbers)
        self._synthetic.update(number(call_id) for call_id, _ in report.synthetic)

    def call(self, wire_id: str) -> str:
        """Return how a call is shown."""
        return f"c{self._numbers.get(wire_id, '?')}"

    def result(self, wire_id: str) -> str:
        """Return how a result is shown."""
        shown = self._numbers.get(wire_id, "?")
        return f"R{shown}*" if shown in self._synthetic else f"R{shown}"


def number(call_id: str) -> str:
    """Return the number in a canonical call id: `3` for `hist_tool_3`."""
    return call_id.rpartition("_")[2]


def shape(body: bytes, numbers: Numbers) -> list[str]:
    """Return one word for each message of a request body."""
    return [_message(message, numbers) for message in json.loads(body)["messages"]]


def grown(before: list[str], after: list[str]) -> tuple[int, list[str]]:
    """Return how many messages are as they were, and the words of the rest."""
    same = next(
        (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(before)
    )
    return same, after[same:]


def _message(message: Wire, numbers: Numbers) -> str:
    if message["role"] == "tool":
        return numbers.result(message["tool_call_id"])
    blocks = [*_blocks(message.get("content"), numbers)]
    blocks += [numbers.call(call["id"]) for call in message.get("tool_calls") or ()]
    role = _ROLES.get(message["role"], "?")
    return role if blocks in (["t"], []) else f"{role}[{' '.join(blocks)}]"


def _blocks(content: Any, numbers: Numbers) -> Iterable[str]:  # Any: a string, null or a list of blocks
    if isinstance(content, str):
        return ["t"] if content else []
    return [_block(block, numbers) for block in content or ()]


def _block(block: Wire, numbers: Numbers) -> str:
    match block.get("type"):
        case "text":
            return "t"
        case "thinking" | "redacted_thinking":
            return "T"
        case "tool_use":
            return numbers.call(block["id"])
        case "tool_result":
            return numbers.result(block["tool_use_id"])
        case _:
            return "?"
