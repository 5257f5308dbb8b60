"""`actors run`: one ask. The answer on standard output as it arrives, everything else on standard error.

The first SIGINT cancels the turn, so every call of it is closed before the process ends; a second one ends the process
at once. What a tool raises is for the model; `--debug` shows its traceback too.
"""

import argparse
import json
import logging
import os
import signal
import sys
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from actors.cli.advice import advice
from actors.cli.events import as_json
from actors.cli.exits import Exit, of_result
from actors.cli.screen import complain, safe
from actors.cli.targets import target, tools
from actors.core.content import ToolCall
from actors.core.feed import (
    CompleteEvent,
    ErrorEvent,
    SessionEvent,
    StatusEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    TurnResult,
)
from actors.handle import Session
from actors.runtime import Runtime


def main(options: argparse.Namespace) -> Exit:
    """Ask once and return the exit code."""
    prompt = _prompt(options.prompt)
    if not prompt.strip():
        complain("there is nothing to ask; give a prompt, or standard input")
        return Exit.USAGE
    printer: Printer = EventLines() if options.json else AnswerText()
    _show_logs(debug=options.debug)
    return anyio.run(_run, options, prompt, printer, backend=options.backend)


def _show_logs(*, debug: bool) -> None:
    """Have what tools raise, and what the runtime says about itself, shown on standard error; or nowhere."""
    handler: logging.Handler = logging.StreamHandler() if debug else logging.NullHandler()
    handler.setFormatter(_Safe())
    logger = logging.getLogger("actors")
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.INFO)


class _Safe(logging.Formatter):
    """What may reach a terminal of a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return safe(super().format(record))


def _prompt(words: list[str]) -> str:
    """Return the prompt; `-` stands for standard input, and so does saying nothing."""
    if words and "-" not in words:
        return " ".join(words)
    if not words and sys.stdin.isatty():
        return ""
    told = sys.stdin.read().removeprefix("\ufeff")
    before = " ".join(word for word in words if word != "-")
    return f"{before}\n\n{told}" if before else told


async def _run(options: argparse.Namespace, prompt: str, printer: "Printer") -> Exit:
    config, name = target(options)
    offered = tools(options.tools)
    async with Runtime(config) as runtime:
        session = await runtime.open(
            name, tools=offered, system=options.system, approve=lambda call: _approved(call, options)
        )
        return await _Ask(session, printer, options.timeout).answer(prompt)


def _approved(call: ToolCall, options: argparse.Namespace) -> bool:
    if not options.approve_all:
        complain(f"{call.name} wants an approval and was not run; --approve-all gives it")
    return bool(options.approve_all)


class _Ask:
    """One ask, and what may stop it."""

    def __init__(self, session: Session, printer: "Printer", timeout: float | None) -> None:
        self._session = session
        self._printer = printer
        self._timeout = timeout
        self._late = False

    async def answer(self, prompt: str) -> Exit:
        """Ask, show the events, and return the exit code."""
        async with anyio.create_task_group() as watchers:
            watchers.start_soon(self._interrupts, watchers)
            watchers.start_soon(self._time)
            code = await self._print_answer(prompt)
            watchers.cancel_scope.cancel()
            return code
        return Exit.INTERRUPTED

    async def _print_answer(self, prompt: str) -> Exit:
        code = Exit.FAILED
        async with self._session.stream(prompt) as events:
            async for event in events:
                if isinstance(event, CompleteEvent | ErrorEvent):
                    code = self._code(event.result)
                self._printer.event(event, code)
                if isinstance(event, CompleteEvent | ErrorEvent):
                    _say_what_is_missing(event.result)
        return code

    def _code(self, result: TurnResult) -> Exit:
        code = of_result(result)
        if code is Exit.INTERRUPTED and self._late:
            complain(f"no answer within {self._timeout:g} s; the turn was cancelled")
            return Exit.TIMEOUT
        if code is Exit.INTERRUPTED:
            complain("interrupted; the turn was cancelled")
        elif code is not Exit.OK:
            complain(f"{result.served_by} gave no answer: {result.why}{advice(result.attempts[-1])}")
        return code

    async def _interrupts(self, watchers: TaskGroup) -> None:
        with anyio.open_signal_receiver(signal.SIGINT) as interrupts:
            await anext(interrupts)
            watchers.start_soon(self._cancel, watchers.cancel_scope)
            await anext(interrupts)
            complain("interrupted")
            os._exit(Exit.INTERRUPTED)  # whatever still runs: that is what the second one asks for

    async def _cancel(self, scope: anyio.CancelScope) -> None:
        if not await self._session.cancel():
            complain("interrupted")
            scope.cancel()

    async def _time(self) -> None:
        if self._timeout is not None:
            await anyio.sleep(self._timeout)
            self._late = True
            await self._session.cancel()


def _say_what_is_missing(result: TurnResult) -> None:
    """Say of an answer that was given that it is not whole, and what it held beside its words."""
    if result.cut is not None:
        complain(f"the answer was cut ({result.cut}): {result.served_by} stopped with {result.finish!r}")
    if result.left_out:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in result.left_out)
        complain(f"left out of the answer: {kinds}")


class Printer(Protocol):
    """Shows the events of an ask."""

    def event(self, event: SessionEvent, code: Exit) -> None:
        """Show one event. `code` is the exit code, once the event is the last."""


class EventLines:
    """Each event as one line of JSON, flushed, the last with the exit code."""

    def event(self, event: SessionEvent, code: Exit) -> None:
        fields = as_json(event)
        if isinstance(event, CompleteEvent | ErrorEvent):
            fields["exit_code"] = int(code)
        print(json.dumps(fields), flush=True)


class AnswerText:
    """The answer's text as it arrives, exact even where deltas were missed; notes on standard error.

    Deltas are numbered. After a gap no more of them are printed, and the rest of the text follows from the
    whole message at the round's end.
    """

    def __init__(self) -> None:
        self._printed = ""
        self._next = 0
        self._gap = False
        self._any = False

    def event(self, event: SessionEvent, code: Exit) -> None:
        match event:
            case TextEvent() | ThinkingEvent():
                self._delta(event)
            case StatusEvent(status="message", message=message) if message is not None:
                self._rest(message.text, broken=bool(event.detail))
            case StatusEvent(status="failover", detail=name):
                complain(f"going on with {name}")
            case StatusEvent(status="rewritten", detail=why):
                complain(f"the request was refused and is written anew: {why}")
            case CompleteEvent() | ErrorEvent() if self._any:
                self._write("\n")
            case ToolCallEvent() | StatusEvent() | CompleteEvent() | ErrorEvent():
                pass

    def _delta(self, event: TextEvent | ThinkingEvent) -> None:
        self._gap = self._gap or event.offset != self._next
        self._next = event.offset + len(event.text)
        if isinstance(event, TextEvent) and not self._gap:
            if not self._printed and self._any:
                self._write("\n")  # a further round
            self._write(event.text)
            self._printed += event.text

    def _rest(self, text: str, *, broken: bool) -> None:
        """Print what of a round's text has not been; of a broken answer only what was said."""
        if text.startswith(self._printed) and (self._gap or not broken):
            self._write(text[len(self._printed) :])
        self._printed, self._next, self._gap = "", 0, False

    def _write(self, text: str) -> None:
        if text:
            self._any = self._any or text != "\n"
            sys.stdout.write(safe(text))
            sys.stdout.flush()
