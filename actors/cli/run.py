"""`actors run`: ask once. The answer goes to standard output as it arrives, everything else to standard error.

The first SIGINT cancels the turn, which closes its calls before the process ends; a second SIGINT ends the process
immediately. If a tool raises an exception, the model receives the exception; `--debug` shows its traceback to the user.
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

from actors.cli.arguments import add_conversation_options
from actors.cli.conversation import (
    QUESTION,
    Answer,
    Approvals,
    ask_settings,
    event_note,
    failure_reason,
    incomplete_answer_notes,
    open_conversation,
    parse_answer,
    pending_calls_message,
)
from actors.cli.exits import EXIT_BY_SIGNAL, MESSAGES, Exit, exit_for_result
from actors.cli.parser import Parser
from actors.cli.screen import escape_controls, print_notice
from actors.cli.terminal import Keyboard
from actors.config import Config
from actors.core.settings.asking import AskSettings
from actors.core.stream_events.ask_events import AskResult, CompleteEvent, ErrorEvent
from actors.core.stream_events.event_json import event_json
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import (
    MessageEvent,
    RequestSentEvent,
    RoundTextAssembler,
    TextEvent,
    ThinkingEvent,
)
from actors.runtime.handle import Session

EXAMPLES = (
    ("actors run --offline hello", "ask a stand-in, without a key or a network"),
    ("actors run -m openai:gpt-5.2 'explain this:' < main.py", "send a prompt, followed by a file"),
    (
        "actors run -m anthropic:claude-sonnet-5 --tools tools.py --max-rounds 5 'book a room'",
        "offer your own tools",
    ),
    (
        "actors run -m openai:gpt-5.2 --mcp files='npx -y @modelcontextprotocol/server-filesystem .' 'which?'",
        "offer the tools of an MCP server",
    ),
    ("actors run --offline --json 'please roll' | tail -1", "print the last event, which has the exit code"),
)
PIPE_TIMEOUT = 3.0
"""Seconds to wait for data in a pipe on standard input if the command line already contains a prompt."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "prompt",
        nargs="*",
        help="the message; a pipe or file on standard input is appended; `-` waits for it",
    )
    add_conversation_options(parser)
    parser.add_argument("--json", action="store_true", help="print each event as a line of JSON")


def run(options: argparse.Namespace) -> Exit:
    """Ask once, print the answer, and return the exit code."""
    prompt = _read_prompt(options.prompt)
    if not prompt.strip():
        hint = f"; --fork read {options.fork!r} as an id: put --fork after the prompt" if options.fork else ""
        print_notice(f"the prompt is empty; pass it as arguments or on standard input{hint}")
        return Exit.USAGE
    printer: Printer = JsonEventPrinter() if options.json else AnswerPrinter()
    return anyio.run(_run_ask, options, prompt, printer, backend=options.backend)


def _read_prompt(words: list[str]) -> str:
    """Return the prompt: the words on the command line, followed by standard input.

    Without words, or with `-` among them, wait for standard input. Otherwise read standard input if it is a file or a
    pipe, but do not wait for a silent pipe, which the parent process may have left open.
    """
    before = " ".join(word for word in words if word != "-")
    if before and "-" not in words:
        if not _has_input(sys.stdin.fileno()):
            return before
    elif sys.stdin.isatty() and not words:
        return ""
    text = sys.stdin.read().removeprefix("\ufeff")
    return f"{before}\n\n{text}" if before and text.strip() else before or text


def _has_input(descriptor: int, seconds: float = PIPE_TIMEOUT) -> bool:
    """Return True if the descriptor is a file, or a pipe that has data within `seconds`."""
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return stat.S_ISREG(kind)
    try:
        has_data = bool(select.select([descriptor], [], [], seconds)[0])
    except OSError:  # a platform that cannot wait for pipes
        return False
    if not has_data:
        print_notice("standard input is a silent pipe and is ignored; `-` waits for it")
    return has_data


async def _run_ask(options: argparse.Namespace, prompt: str, printer: "Printer") -> Exit:
    approve = Approvals(options.approve, _ask_at_terminal if sys.stdin.isatty() else None)
    async with open_conversation(options, approve) as (session, config):
        if pending := session.pending:  # a new ask would be queued until these calls have a result
            print_notice(pending_calls_message(each.call for each in pending))
            return Exit.NOT_APPROVED
        code = await _Ask(session, config, printer, ask_settings(options)).answer(prompt)
    for name in approve.denied:
        print_notice(f"{name} needs approval and was not run; --approve allow approves all calls")
    return Exit.NOT_APPROVED if code is Exit.OK and approve.denied else code


async def _ask_at_terminal(call: str) -> Answer:
    sys.stderr.write(f"Run {call}? {QUESTION} ")
    sys.stderr.flush()
    return parse_answer(await Keyboard().read_line() or "no")


class _Ask:
    """Runs one ask and determines the exit code. A signal cancels the ask."""

    def __init__(self, session: Session, config: Config, printer: "Printer", settings: AskSettings) -> None:
        self._session = session
        self._config = config
        self._printer = printer
        self._settings = settings
        self._round = 0
        self._cancelled_by = Exit.INTERRUPTED

    async def answer(self, prompt: str) -> Exit:
        """Ask, print the events, and return the exit code."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_signals, tasks)
            code = await self._stream_answer(prompt)
            tasks.cancel_scope.cancel()
            return code
        return self._cancelled_by

    async def _stream_answer(self, prompt: str) -> Exit:
        code = Exit.FAILED
        async with self._session.stream(prompt, **self._settings) as events:
            async for event in events:
                if isinstance(event, RequestSentEvent):
                    self._round = event.round
                if isinstance(event, CompleteEvent | ErrorEvent):
                    code = self._exit_code(event.result)
                self._printer.print_event(event, code)
                if isinstance(event, CompleteEvent | ErrorEvent):
                    for line in incomplete_answer_notes(event.result):
                        print_notice(line)
        return code

    def _exit_code(self, result: AskResult) -> Exit:
        code = exit_for_result(result)
        if code is Exit.INTERRUPTED:
            print_notice(f"{MESSAGES[self._cancelled_by]}; the turn was cancelled")
            return self._cancelled_by
        if code is Exit.OK and 1 < self._round == self._settings.get("max_rounds"):
            print_notice(f"the limit of {self._round} rounds was reached; the last round had no tools")
            return Exit.LIMIT
        if result.status != "complete":
            print_notice(failure_reason(result, self._config))
        return code

    async def _watch_signals(self, tasks: TaskGroup) -> None:
        with anyio.open_signal_receiver(*EXIT_BY_SIGNAL) as signals:
            self._cancelled_by = EXIT_BY_SIGNAL[await anext(signals)]
            tasks.start_soon(self._cancel_turn, tasks.cancel_scope)
            again = EXIT_BY_SIGNAL[await anext(signals)]
            print_notice(MESSAGES[again])
            os._exit(again)  # a second signal must not wait for tools

    async def _cancel_turn(self, scope: anyio.CancelScope) -> None:
        if not await self._session.cancel():
            print_notice(MESSAGES[self._cancelled_by])
            scope.cancel()


class Printer(Protocol):
    """A printer for the events of an ask."""

    def print_event(self, event: SessionEvent, code: Exit) -> None:
        """Print one event. For the last event of the ask, `code` is the exit code."""


class JsonEventPrinter:
    """A printer that writes each event as a line of JSON and flushes it. The last line contains the exit code."""

    def print_event(self, event: SessionEvent, code: Exit) -> None:
        fields = event_json(event)
        if isinstance(event, CompleteEvent | ErrorEvent):
            fields["exit_code"] = int(code)
        print(json.dumps(fields), flush=True)


class AnswerPrinter:
    """A printer that writes the text of the answer as it arrives, and notes about other events on standard error."""

    def __init__(self) -> None:
        self._answer = RoundTextAssembler()
        self._has_text = False
        self._is_in_round = False

    def print_event(self, event: SessionEvent, code: Exit) -> None:
        match event:
            case TextEvent() | ThinkingEvent():
                self._write_fragment(self._answer.add_delta(event))
            case MessageEvent(message=message):
                self._write_fragment(self._answer.end_round(message.text, interrupted=bool(event.error)))
                self._is_in_round = False
            case CompleteEvent() | ErrorEvent() if self._has_text:
                self._write("\n")
            case _ if line := event_note(event):
                print_notice(line)
            case _:
                pass

    def _write_fragment(self, text: str) -> None:
        """Write a fragment of the answer. The text of each round starts on a new line."""
        if text:
            self._write(text if self._is_in_round or not self._has_text else f"\n{text}")
            self._has_text = self._is_in_round = True

    def _write(self, text: str) -> None:
        sys.stdout.write(escape_controls(text))
        sys.stdout.flush()
