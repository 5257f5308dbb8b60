"""Decide whether a tool call may run, from the command-line options or by asking the user at the terminal."""

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
AskAtTerminal: TypeAlias = Callable[[str], Awaitable[Answer]]
"""Shows one call, as text, to the user and returns the answer."""

QUESTION = "[y]es, [n]o, [a]lways?"
_WIDTH = 300


def verdicts(options: argparse.Namespace) -> dict[str, Literal["allow", "deny"]]:
    """Return the decisions that `--allow-tool` and `--deny-tool` make in advance, by tool name.

    Raises:
        ConfigError: Both options name the same tool.
    """
    found: dict[str, Literal["allow", "deny"]] = dict.fromkeys(options.allow_tool, "allow")
    for name in options.deny_tool:
        if name in found:
            raise ConfigError(f"--allow-tool and --deny-tool both name {name!r}; omit one of them")
        found[name] = "deny"
    return found


def with_verdicts(
    tools: Sequence[Tool[..., Any]],  # Any: tools differ in result type
    verdicts: Mapping[str, Literal["allow", "deny"]],
    *,
    are_all: bool,
) -> list[Tool[..., Any]]:  # Any: tools differ in result type
    """Return copies of the tools, with the `approval` that the verdicts set for their names.

    Args:
        are_all: True if the session has no other tools. Then a verdict for an unknown name is an error.

    Raises:
        ConfigError: A verdict is for a tool that does not exist.
    """
    names = [tool.name for tool in tools]
    for name in verdicts if are_all else ():
        if name not in names:
            raise ConfigError(
                f"--{verdicts[name]}-tool names an unknown tool, {name!r}; --tools has {', '.join(names) or 'none'}"
            )
    return [replace(tool, approval=verdicts.get(tool.name, tool.approval)) for tool in tools]


def parse_answer(line: str) -> Answer:
    """Return the answer in a line that a user typed. Everything except a clear yes or always means no."""
    word = line.strip().lower()
    if word in ("a", "always"):
        return "always"
    return "yes" if word in ("y", "yes") else "no"


def call_text(call: ToolCall) -> str:
    """Return one line that shows a call and its arguments, without control characters."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return one_line(f"{call.name}({arguments})", _WIDTH)


class Approvals:
    """The approval callback of a command. It decides about calls one at a time, in order of arrival.

    Args:
        policy: `allow` or `deny` applies to every call; `ask` asks the user.
        ask: Asks the user about a call. Without a terminal, this is None: calls are denied, and `denied` lists them.
    """

    def __init__(self, policy: Literal["ask", "allow", "deny"], ask: AskAtTerminal | None) -> None:
        self._policy = policy
        self._ask = ask
        self._always: set[str] = set()
        self._lock = anyio.Lock()
        self.while_asking: Callable[[CallId], AbstractContextManager[None]] = lambda _call_id: nullcontext()
        """Returns a context manager that is entered while a call waits for the user's answer."""
        self.denied: list[str] = []
        """Names of the tools that did not run because there was no terminal to ask at."""

    async def __call__(self, call: ToolCall) -> bool:
        """Return True if the call may run."""
        if self._policy != "ask":
            return self._policy == "allow"
        if self._ask is None:
            self.denied.append(call.name)
            return False
        with self.while_asking(call.id):
            return await self._ask_person(call, self._ask) != "no"

    async def _ask_person(self, call: ToolCall, ask: AskAtTerminal) -> Answer:
        async with self._lock:
            if call.name in self._always:
                return "always"
            answer = await ask(call_text(call))
        if answer == "always":
            self._always.add(call.name)
        return answer
