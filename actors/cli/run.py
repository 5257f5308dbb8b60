"""`actors run`: one ask. The answer on standard output as it arrives, everything else on standard error.

The first SIGINT cancels the turn, so every call of it is closed before the process ends; a second one ends the process
at once. What a tool raises is for the model; `--debug` shows its traceback too.
"""

import argparse
import json
import os
import select
import stat
import sys
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from actors.cli.answer import no_answer, what_is_awaited, what_is_missing
from actors.cli.approvals import QUESTION, Approvals, Word, read_word
from actors.cli.conversation import conversation, settings
from actors.cli.exits import OF_SIGNAL, WORD_OF, Exit, of_result
from actors.cli.keyboard import Keyboard
from actors.cli.logs import show_logs
from actors.cli.screen import complain, safe
from actors.config import Config
from actors.core.settings.asking import AskSettings
from actors.core.stream_events.event_json import event_json
from actors.core.stream_events.events import (
    CompleteEvent,
    ErrorEvent,
    FailoverEvent,
    LaneRewrittenEvent,
    MessageEvent,
    RequestSentEvent,
    SessionEvent,
    TextEvent,
    ThinkingEvent,
)
from actors.core.stream_events.results import TurnResult
from actors.core.stream_events.round_text import RoundText
from actors.runtime.handle import Session

SILENCE = 3.0
"""Seconds that a pipe may say nothing, where nobody asked for what it says."""


def main(options: argparse.Namespace) -> Exit:
    """Ask once and return the exit code."""
    prompt = _prompt(options.prompt)
    if not prompt.strip():
        taken = f"; --fork took {options.fork!r} for an id: put it behind the prompt" if options.fork else ""
        complain(f"there is nothing to ask; give a prompt, or standard input{taken}")
        return Exit.USAGE
    printer: Printer = EventLines() if options.json else AnswerText()
    show_logs(debug=options.debug)
    return anyio.run(_run, options, prompt, printer, backend=options.backend)


def _prompt(words: list[str]) -> str:
    """Return the prompt, with standard input behind the words.

    It is waited for where `-` stands for it or nothing else is said. Else a pipe or a file is read, and a pipe that
    says nothing is not waited for: whoever started the process may have left it open.
    """
    before = " ".join(word for word in words if word != "-")
    if before and "-" not in words:
        if not _has_input(sys.stdin.fileno()):
            return before
    elif sys.stdin.isatty() and not words:
        return ""
    told = sys.stdin.read().removeprefix("\ufeff")
    return f"{before}\n\n{told}" if before and told.strip() else before or told


def _has_input(descriptor: int, seconds: float = SILENCE) -> bool:
    """Say whether a file, or a pipe that has begun to speak, stands behind a descriptor."""
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return stat.S_ISREG(kind)
    try:
        spoke = bool(select.select([descriptor], [], [], seconds)[0])
    except OSError:  # a platform that waits for no pipe
        return False
    if not spoke:
        complain("standard input is a pipe that says nothing, and is left alone; `-` waits for it")
    return spoke


async def _run(options: argparse.Namespace, prompt: str, printer: "Printer") -> Exit:
    approve = Approvals(options.approve, _ask_person if sys.stdin.isatty() else None)
    async with conversation(options, approve) as (session, config):
        if waiting := session.pending:  # an ask would wait behind it
            complain(what_is_awaited(each.call for each in waiting))
            return Exit.NOT_APPROVED
        code = await _Ask(session, config, printer, settings(options)).answer(prompt)
    for name in approve.unasked:
        complain(f"{name} wants an approval and was not run; --approve allow gives it")
    return Exit.NOT_APPROVED if code is Exit.OK and approve.unasked else code


async def _ask_person(words: str) -> Word:
    sys.stderr.write(f"Run {words}? {QUESTION} ")
    sys.stderr.flush()
    return read_word(await Keyboard().line() or "no")


class _Ask:
    """One ask, and what may stop it."""

    def __init__(self, session: Session, config: Config, printer: "Printer", bounds: AskSettings) -> None:
        self._session = session
        self._config = config
        self._printer = printer
        self._bounds = bounds
        self._round = 0
        self._stopped = Exit.INTERRUPTED
        """What a cancelled turn was cancelled for."""

    async def answer(self, prompt: str) -> Exit:
        """Ask, show the events, and return the exit code."""
        async with anyio.create_task_group() as watchers:
            watchers.start_soon(self._interrupts, watchers)
            code = await self._print_answer(prompt)
            watchers.cancel_scope.cancel()
            return code
        return self._stopped

    async def _print_answer(self, prompt: str) -> Exit:
        code = Exit.FAILED
        async with self._session.stream(prompt, **self._bounds) as events:
            async for event in events:
                if isinstance(event, RequestSentEvent):
                    self._round = event.round
                if isinstance(event, CompleteEvent | ErrorEvent):
                    code = self._code(event.result)
                self._printer.event(event, code)
                if isinstance(event, CompleteEvent | ErrorEvent):
                    for text in what_is_missing(event.result):
                        complain(text)
        return code

    def _code(self, result: TurnResult) -> Exit:
        code = of_result(result)
        if code is Exit.INTERRUPTED:
            complain(f"{WORD_OF[self._stopped]}; the turn was cancelled")
            return self._stopped
        if code is Exit.OK and 1 < self._round == self._bounds.get("max_rounds"):
            complain(f"the limit of {self._round} rounds was reached; the last was asked for without tools")
            return Exit.LIMIT
        if result.status != "complete":
            complain(no_answer(result, self._config))
        return code

    async def _interrupts(self, watchers: TaskGroup) -> None:
        with anyio.open_signal_receiver(*OF_SIGNAL) as signals:
            self._stopped = OF_SIGNAL[await anext(signals)]
            watchers.start_soon(self._cancel, watchers.cancel_scope)
            again = OF_SIGNAL[await anext(signals)]
            complain(WORD_OF[again])
            os._exit(again)  # whatever still runs: that is what the second one asks for

    async def _cancel(self, scope: anyio.CancelScope) -> None:
        if not await self._session.cancel():
            complain(WORD_OF[self._stopped])
            scope.cancel()


class Printer(Protocol):
    """Shows the events of an ask."""

    def event(self, event: SessionEvent, code: Exit) -> None:
        """Show one event. `code` is the exit code, once the event is the last."""


class EventLines:
    """Each event as one line of JSON, flushed, the last with the exit code."""

    def event(self, event: SessionEvent, code: Exit) -> None:
        fields = event_json(event)
        if isinstance(event, CompleteEvent | ErrorEvent):
            fields["exit_code"] = int(code)
        print(json.dumps(fields), flush=True)


class AnswerText:
    """The answer's text as it arrives; notes on standard error."""

    def __init__(self) -> None:
        self._answer = RoundText()
        self._any = False
        self._begun = False

    def event(self, event: SessionEvent, code: Exit) -> None:
        match event:
            case TextEvent() | ThinkingEvent():
                self._write(self._answer.delta(event))
            case MessageEvent(message=message):
                self._write(self._answer.rest(message.text, broken=bool(event.error)))
                self._begun = False
            case FailoverEvent(backend=name):
                complain(f"going on with {name}")
            case LaneRewrittenEvent(reason=reason, detail=why) if reason != "media":
                complain(f"the request is written anew: {why}")
            case CompleteEvent() | ErrorEvent() if self._any:
                self._put("\n")
            case _:
                pass

    def _write(self, text: str) -> None:
        """Write what a round says; a further round begins on a line of its own."""
        if text:
            self._put(text if self._begun or not self._any else f"\n{text}")
            self._any = self._begun = True

    def _put(self, text: str) -> None:
        sys.stdout.write(safe(text))
        sys.stdout.flush()
