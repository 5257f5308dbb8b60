"""`actors chat`: hold a conversation with a session at the terminal.

A line that the user enters answers the open question, runs a command, or is queued as the next message. Turns run one
after the other. Lines are read even during a turn, so that the user can switch or cancel.

Ctrl-C cancels the current turn, which closes its calls; queued lines are sent afterwards. A second Ctrl-C during the
cancellation ends the process immediately. Between turns, Ctrl-C ends the chat. Ctrl-D, /quit, SIGTERM and a closed
terminal end the chat at any time.
"""

import argparse
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import anyio
from anyio.abc import TaskStatus

from actors.cli.arguments import add_conversation_options
from actors.cli.chat.commands import COMMANDS, ChatState, run_command
from actors.cli.chat.view import ChatView, Questions
from actors.cli.conversation import Approvals, ask_settings, call_text, failure_reason, open_conversation
from actors.cli.exits import EXIT_BY_SIGNAL, Exit
from actors.cli.parser import Parser
from actors.cli.screen import escape_controls, screen
from actors.cli.terminal import Terminal
from actors.core.log.events import Verdict
from actors.core.stream_events.ask_events import ApprovalDecision, CompleteEvent, ErrorEvent, PendingCall
from actors.core.stream_events.events import SessionEvent
from actors.errors import ActorsError

EXAMPLES = (
    ("actors chat --offline", "chat with stand-ins; enter `please roll`, then /switch claude"),
    ("actors chat --config actors.toml -m mine --tools app.tools:all", "use your own backends and tools"),
)
_Stream: TypeAlias = AbstractAsyncContextManager[AsyncIterator[SessionEvent]]
"""The events of a turn, or of the rest of a turn that waited."""
PROMPT, CONTINUED = "> ", "... "
_MAX_QUEUED = 16
"""Maximum number of messages in the queue during a turn."""
_POLL_INTERVAL = 0.2
"""Seconds between two reads of the ledger, which shows the calls that have ended."""


def add_arguments(parser: Parser) -> None:
    add_conversation_options(parser)
    parser.add_argument("--hide-thinking", action="store_true", help="do not show the model's thinking")


def run(options: argparse.Namespace) -> Exit:
    """Open the session, chat until the user leaves, and return the exit code."""
    return anyio.run(_run_chat, options, backend=options.backend)


async def _run_chat(options: argparse.Namespace) -> Exit:
    terminal = Terminal(screen(color=options.color))
    questions = Questions(terminal)
    approve = Approvals(options.approve, questions.approve)
    try:
        async with open_conversation(options, approve) as (session, config):
            view = ChatView(terminal, anyio.current_time, config, thinking=not options.hide_thinking)
            approve.while_asking = view.mark_waiting
            state = ChatState(session, config, terminal, ask_settings(options))
            return await Chat(state, view, questions, approve).run()
    finally:
        terminal.end_line()


class Chat:
    """A running chat: tasks that read lines, run turns, report ended calls, cancel turns and handle signals."""

    def __init__(self, state: ChatState, view: ChatView, questions: Questions, approve: Approvals) -> None:
        self._state, self._session, self._terminal = state, state.session, state.terminal
        self._view = view
        self._questions, self._approve = questions, approve
        self._queued: deque[str] = deque()
        self._wanted, self._idle = anyio.Event(), anyio.Event()
        if self._session.pending:  # an earlier process left a paused turn
            self._wanted.set()
        else:
            self._idle.set()
        self._continued: list[str] = []
        self._cancelling = anyio.Event()
        """Set when the user cancels the current turn."""
        self._cancel = anyio.Event()

    async def run(self) -> Exit:
        """Chat until the user leaves, and return the exit code."""
        await self._print_introduction()
        self._terminal.print(f"{self._session.target}. /help shows the commands, /quit leaves.", "dim")
        async with anyio.create_task_group() as tasks:
            await tasks.start(
                self._watch_signals
            )  # before the prompt appears, because a user may then press Ctrl-C
            for task in (self._run_turns, self._poll_ended_calls, self._cancel_turns):
                tasks.start_soon(task)
            with self._state.reader_scope:
                await self._read_lines()
            if not self._idle.is_set():
                self._terminal.print("  cancelling the turn; Ctrl-C ends the process", "yellow")
            await self._session.cancel()
            tasks.cancel_scope.cancel()
        return self._state.code or Exit.OK

    async def _print_introduction(self) -> None:
        """If the conversation is continued, print its number of turns and why its last turn failed."""
        before = [
            event.result
            async for event in self._session.events(follow=False)
            if isinstance(event, CompleteEvent | ErrorEvent)
            and event.result.status not in ("awaiting", "late")
        ]
        if not before:
            return
        turns = "1 turn" if len(before) == 1 else f"{len(before)} turns"
        self._terminal.print(
            f"{escape_controls(self._session.id)} continues after {turns}; /history shows them.", "dim"
        )
        if before[-1].status in ("failed", "interrupted"):
            self._terminal.print(
                f"  the last turn: {escape_controls(failure_reason(before[-1], self._state.config))}",
                "yellow",
            )

    async def _read_lines(self) -> None:
        while True:
            await self._wait_until_ready()
            if self._idle.is_set():
                self._terminal.show_prompt(CONTINUED if self._continued else PROMPT)
            line = await self._terminal.read_line()
            if line is None:
                self._state.leave(Exit.HANGUP if self._terminal.is_closed else Exit.OK)
            else:
                await self._handle_line(line)
            await anyio.lowlevel.checkpoint_if_cancelled()

    async def _wait_until_ready(self) -> None:
        """If the input comes from a pipe, wait until the last line is answered or a question is open.

        With a user at a terminal, return at once.
        """
        while (
            not self._terminal.is_interactive
            and not self._idle.is_set()
            and not self._questions.asked.is_set()
        ):
            async with anyio.create_task_group() as either:
                for event in (self._idle, self._questions.asked):
                    either.start_soon(_cancel_when_set, event, either.cancel_scope)

    async def _handle_line(self, line: str) -> None:
        if line.endswith("\\"):
            self._continued.append(line[:-1])
            return
        words, self._continued = "\n".join((*self._continued, line)).strip(), []
        if words.startswith("/") and words.split()[0] in COMMANDS:
            await run_command(self._state, words)
        elif self._questions.answer(words):
            return
        elif words.startswith("/"):
            self._terminal.print(
                f"  no command {words.split()[0][:40]!r}; /help lists the commands", "yellow"
            )
        elif words and len(self._queued) >= _MAX_QUEUED:
            self._terminal.print(f"  {_MAX_QUEUED} lines are queued; this one is ignored", "yellow")
        elif words:
            self._queued.append(words)
            if not self._idle.is_set():
                self._terminal.print("  queued until this turn ends", "dim")
            self._idle = anyio.Event() if self._idle.is_set() else self._idle
            self._wanted.set()

    async def _run_turns(self) -> None:
        """Continue a turn that waits for the user, then run a turn for each queued line."""
        while True:
            await self._wanted.wait()
            self._terminal.show_prompt("")
            if self._session.pending:
                await self._run_turn(None)
            while self._queued:
                await self._run_turn(self._session.stream(self._queued.popleft(), **self._state.settings))
            self._wanted = anyio.Event()
            self._idle.set()
            self._terminal.show_prompt(PROMPT)

    async def _run_turn(self, stream: _Stream | None) -> None:
        """Show a turn until it ends. Ask the user for each approval and result that the turn waits for.

        Args:
            stream: The stream of a new turn. None continues a turn that is already waiting.
        """
        self._cancelling = anyio.Event()
        try:
            if stream is not None:
                await self._show_events(stream)
            while self._session.pending:
                rest = await self._resolve_call(self._session.pending[0])
                if rest is None:
                    return await self._cancel_waiting()
                await self._show_events(rest)
        except ActorsError as error:
            self._terminal.print(f"  {escape_controls(str(error))}", "red")

    async def _show_events(self, stream: _Stream) -> None:
        """Show the events of a stream until its turn ends or waits."""
        async with stream as events:
            async for event in events:
                if isinstance(event, CompleteEvent | ErrorEvent):
                    self._view.show_ended_calls(await self._session.ledger())
                    self._state.add_turn(event.result)
                self._view.show_event(event)

    async def _resolve_call(self, pending: PendingCall) -> _Stream | None:
        """Ask the user about a call, and return a stream of the turn's remaining events.

        Return None if the turn is cancelled first.
        """
        rest: _Stream | None = None
        async with anyio.create_task_group() as either:
            either.start_soon(_cancel_when_set, self._cancelling, either.cancel_scope)
            if pending.kind == "external":
                with self._view.mark_waiting(pending.call.id):
                    result = await self._questions.result(call_text(pending.call))
                rest = self._session.stream(results={pending.call.id: result})
            else:
                verdict: Verdict = "allow" if await self._approve(pending.call) else "deny"
                decision = ApprovalDecision(verdict, digest=pending.digest)
                rest = self._session.stream(approvals={pending.call.id: decision})
            either.cancel_scope.cancel()
        return rest

    async def _cancel_waiting(self) -> None:
        """Cancel a turn that waits, and show the end of the turn, because a waiting turn has no stream of events."""
        await self._session.cancel()
        self._view.show_ended_calls(await self._session.ledger())
        self._view.show_cancellation()

    async def _poll_ended_calls(self) -> None:
        """Show the end of each call while other calls of its batch still run.

        This reads the ledger repeatedly, because the stream reports only the end of the batch.
        """
        while True:
            await anyio.sleep(_POLL_INTERVAL)
            if self._view.has_calls:
                self._view.show_ended_calls(await self._session.ledger())

    def _handle_interrupt(self) -> None:
        if self._idle.is_set():
            self._state.leave(Exit.INTERRUPTED)
        elif self._cancelling.is_set():
            self._exit_now(Exit.INTERRUPTED)
        else:
            self._terminal.print("  cancelling the turn; Ctrl-C again ends the process", "yellow")
            if self._queued:
                self._terminal.print(f"  queued lines: {len(self._queued)}", "dim")
            self._cancelling.set()
            self._cancel.set()

    async def _cancel_turns(self) -> None:
        """Cancel the current turn whenever the user requests it.

        Runs in its own task, so that input is still read in the meantime.
        """
        while True:
            await self._cancel.wait()
            self._cancel = anyio.Event()
            await self._session.cancel()

    async def _watch_signals(self, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(*EXIT_BY_SIGNAL) as signals:
            task_status.started()
            async for number in signals:
                code = EXIT_BY_SIGNAL[number]
                if self._state.code is not None:
                    self._exit_now(code)
                elif code is Exit.INTERRUPTED:
                    self._handle_interrupt()
                else:
                    self._state.leave(code)

    def _exit_now(self, code: Exit) -> None:
        self._terminal.end_line()
        os._exit(code)


async def _cancel_when_set(event: anyio.Event, scope: anyio.CancelScope) -> None:
    """Cancel a scope when an event is set.

    To wait for the first of two events, start two of these tasks in one group.
    """
    await event.wait()
    scope.cancel()
