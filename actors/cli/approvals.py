"""Decide whether a tool call may run: by the options, or by asking the person at the terminal."""

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import anyio

from actors.cli.screen import one_line
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import ConfigError
from actors.tools import Tool

Answer: TypeAlias = Literal["yes", "no", "always"]
AskPerson: TypeAlias = Callable[[str], Awaitable[Answer]]
"""Shows a call to the person and returns the answer."""

QUESTION = "[y]es, [n]o, [a]lways?"
_WIDTH = 300


def verdicts(options: argparse.Namespace) -> dict[str, Literal["allow", "deny"]]:
    """Return the verdicts of `--allow-tool` and `--deny-tool`, by tool.

    Raises:
        ConfigError: Both name the same tool.
    """
    found: dict[str, Literal["allow", "deny"]] = dict.fromkeys(options.allow_tool, "allow")
    for name in options.deny_tool:
        if name in found:
            raise ConfigError(f"--allow-tool and --deny-tool both name {name!r}; give one of them")
        found[name] = "deny"
    return found


def with_verdicts(
    tools: Sequence[Tool[..., Any]],  # Any: any function
    verdicts: Mapping[str, Literal["allow", "deny"]],
    *,
    are_all: bool,
) -> list[Tool[..., Any]]:  # Any: any function
    """Return the tools with the verdicts as their approval.

    Args:
        are_all: Whether the session has no other tools, so that each verdict must name one of these.

    Raises:
        ConfigError: A verdict names no tool.
    """
    names = [tool.name for tool in tools]
    for name in verdicts if are_all else ():
        if name not in names:
            raise ConfigError(
                f"No tool {name!r} to {verdicts[name]}; --tools has {', '.join(names) or 'none'}"
            )
    return [replace(tool, approval=verdicts.get(tool.name, tool.approval)) for tool in tools]


def read_answer(line: str) -> Answer:
    """Return a person's answer. Anything but a clear yes is a no."""
    word = line.strip().lower()
    if word in ("a", "always"):
        return "always"
    return "yes" if word in ("y", "yes") else "no"


def call_text(call: ToolCall) -> str:
    """Return a call and its arguments as one line that is safe to show."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return one_line(f"{call.name}({arguments})", _WIDTH)


class Approvals:
    """Decides on calls, one at a time, in the order in which they arrive.

    Args:
        policy: `allow` or `deny` decides on every call; `ask` asks the person.
        ask: None if nobody can be asked: such calls are denied and counted.
    """

    def __init__(self, policy: Literal["ask", "allow", "deny"], ask: AskPerson | None) -> None:
        self._policy = policy
        self._ask = ask
        self._always: set[str] = set()
        self._lock = anyio.Lock()
        self.while_asking: Callable[[CallId], AbstractContextManager[None]] = lambda _call_id: nullcontext()
        """Entered while a call waits for the person."""
        self.denied: list[str] = []
        """Tools that did not run because nobody could be asked."""

    async def __call__(self, call: ToolCall) -> bool:
        """Return True if the call may run."""
        if self._policy != "ask":
            return self._policy == "allow"
        if self._ask is None:
            self.denied.append(call.name)
            return False
        with self.while_asking(call.id):
            return await self._answer(call, self._ask) != "no"

    async def _answer(self, call: ToolCall, ask: AskPerson) -> Answer:
        async with self._lock:
            if call.name in self._always:
                return "always"
            answer = await ask(call_text(call))
        if answer == "always":
            self._always.add(call.name)
        return answer
