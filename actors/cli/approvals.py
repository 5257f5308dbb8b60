"""Who approves of a tool's calls: what the command line says, or else the person at the terminal."""

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

Word: TypeAlias = Literal["yes", "no", "always"]
AskPerson: TypeAlias = Callable[[str], Awaitable[Word]]
"""Puts a question to the person and waits for the answer."""

QUESTION = "[y]es, [n]o, [a]lways?"
_WIDTH = 300


def rules(options: argparse.Namespace) -> dict[str, Literal["allow", "deny"]]:
    """Return what `--allow-tool` and `--deny-tool` say, by tool.

    Raises:
        ConfigError: Both name the same.
    """
    rules: dict[str, Literal["allow", "deny"]] = dict.fromkeys(options.allow_tool, "allow")
    for name in options.deny_tool:
        if name in rules:
            raise ConfigError(f"--allow-tool and --deny-tool both name {name!r}; give one of them")
        rules[name] = "deny"
    return rules


def ruled(
    tools: Sequence[Tool[..., Any]],  # Any: any function
    rules: Mapping[str, Literal["allow", "deny"]],
    *,
    are_all: bool,
) -> list[Tool[..., Any]]:  # Any: as above
    """Return the tools as these rules say. `are_all`: there are no others, so that a rule names one of them.

    Raises:
        ConfigError: One names no tool.
    """
    names = [tool.name for tool in tools]
    for name in rules if are_all else ():
        if name not in names:
            raise ConfigError(f"No tool {name!r} to {rules[name]}; --tools has {', '.join(names) or 'none'}")
    return [replace(tool, approval=rules.get(tool.name, tool.approval)) for tool in tools]


def read_word(line: str) -> Word:
    """Return what a person answered. Whatever is no clear yes is no."""
    word = line.strip().lower()
    if word in ("a", "always"):
        return "always"
    return "yes" if word in ("y", "yes") else "no"


def question(call: ToolCall) -> str:
    """Return a call and its arguments as one line that is safe to show."""
    given = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return one_line(f"{call.name}({given})", _WIDTH)


class Approvals:
    """Decides on calls, one at a time in the order in which they ask.

    Args:
        policy: `allow` or `deny` decide on every call; `ask` puts it to the person.
        ask: None where nobody can be asked: such calls are denied and counted.
    """

    def __init__(self, policy: Literal["ask", "allow", "deny"], ask: AskPerson | None) -> None:
        self._policy = policy
        self._ask = ask
        self._always: set[str] = set()
        self._turn = anyio.Lock()
        self.while_asked: Callable[[CallId], AbstractContextManager[None]] = lambda _call_id: nullcontext()
        """Entered while a call waits for the person."""
        self.unasked: list[str] = []
        """Tools that did not run because there was nobody to ask."""

    async def __call__(self, call: ToolCall) -> bool:
        """Say whether a call may run."""
        if self._policy != "ask":
            return self._policy == "allow"
        if self._ask is None:
            self.unasked.append(call.name)
            return False
        with self.while_asked(call.id):
            word = await self._answer(call)
        return word != "no"

    async def _answer(self, call: ToolCall) -> Word:
        assert self._ask is not None
        async with self._turn:
            if call.name in self._always:
                return "always"
            word = await self._ask(question(call))
        if word == "always":
            self._always.add(call.name)
        return word
