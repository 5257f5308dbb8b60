"""The loop of a chat: reads lines, runs turns and commands, and ends in four ways.

A line answers the open question, runs a command, or is asked next. Turns run one after the other, and lines are read
meanwhile, so that the person can switch or cancel during a turn.

Ctrl-C cancels the current turn, which closes its calls; queued lines are asked afterwards. A second Ctrl-C during the
cancellation ends the process at once. Between turns, Ctrl-C leaves. So do
Ctrl-D, /quit, SIGTERM and a closed terminal.
"""

import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import anyio

from actors.cli.answer import failure_reason
from actors.cli.approvals import Approvals, call_text
from actors.cli.chat.commands import COMMANDS, run_command
from actors.cli.chat.questions import Questions
from actors.cli.chat.state import ChatState
from actors.cli.chat.view import View
from actors.cli.exits import OF_SIGNAL, Exit
from actors.cli.screen import escape_controls
from actors.core.log.events import Verdict
from actors.core.stream_events.events import CompleteEvent, ErrorEvent, SessionEvent
from actors.core.stream_events.results import ApprovalDecision, PendingCall
from actors.errors import ActorsError

_Stream: TypeAlias = AbstractAsyncContextManager[AsyncIterator[SessionEvent]]
"""The events of a turn, or of its rest."""

PROMPT, CONTINUED = "> ", "... "
_MAX_QUEUED = 16
"""Lines that may wait for the current turn."""
_POLL_INTERVAL = 0.2
"""Seconds between two queries for calls that have ended."""


class Chat:
    """Reads lines, and runs turns and commands."""

    def __init__(self, state: ChatState, view: View, questions: Questions, approve: Approvals) -> None:
        self._state, self._session, self._terminal = state, state.session, state.terminal
        self._view = view
        self._questions, self._approve = questions, approve
        self._queued: deque[str] = deque()
        self._wanted, self._idle = anyio.Event(), anyio.Event()
        if self._session.pending:  # an earlier process left a turn that waits
            self._wanted.set()
        else:
            self._idle.set()
        self._continued: list[str] = []
        self._cancelling = anyio.Event()
        """Set while the current turn is being cancelled."""
        self._cancel = anyio.Event()

    async def run(self) -> Exit:
        """Chat until the person leaves, and return the exit code."""
        await self._introduce()
        self._terminal.print(f"{self._session.target}. /help shows the commands, /quit leaves.", "dim")
        async with anyio.create_task_group() as tasks:
            for task in (self._watch_signals, self._run_turns, self._poll_calls, self._cancel_turns):
                tasks.start_soon(task)
            with self._state.reading:
                await self._read_lines()
            if not self._idle.is_set():
                self._terminal.print("  cancelling the turn; Ctrl-C ends the process", "yellow")
            await self._session.cancel()
            tasks.cancel_scope.cancel()
        return self._state.code or Exit.OK

    async def _introduce(self) -> None:
        """Print which conversation is continued, and why its last turn failed, if it did."""
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
            await self._until_ready()
            if self._idle.is_set():
                self._terminal.prompt(CONTINUED if self._continued else PROMPT)
            line = await self._terminal.line()
            if line is None:
                self._state.leave(Exit.HANGUP if self._terminal.is_closed else Exit.OK)
            else:
                await self._line(line)
            await anyio.lowlevel.checkpoint_if_cancelled()

    async def _until_ready(self) -> None:
        """Unless a person types, wait until the last line is answered or a question is open."""
        while (
            not self._terminal.is_interactive
            and not self._idle.is_set()
            and not self._questions.asked.is_set()
        ):
            async with anyio.create_task_group() as either:
                for event in (self._idle, self._questions.asked):
                    either.start_soon(_wait, event, either.cancel_scope)

    async def _line(self, line: str) -> None:
        if line.endswith("\\"):
            self._continued.append(line[:-1])
            return
        words, self._continued = "\n".join((*self._continued, line)).strip(), []
        if words.startswith("/") and words.split()[0] in COMMANDS:
            await run_command(self._state, words)
        elif self._questions.answer(words):
            return
        elif words.startswith("/"):
            self._terminal.print(f"  no command {words.split()[0][:40]!r}; /help lists them", "yellow")
        elif words and len(self._queued) >= _MAX_QUEUED:
            self._terminal.print(f"  {_MAX_QUEUED} lines are queued; this one is ignored", "yellow")
        elif words:
            self._queued.append(words)
            if not self._idle.is_set():
                self._terminal.print("  queued until this turn ends", "dim")
            self._idle = anyio.Event() if self._idle.is_set() else self._idle
            self._wanted.set()

    async def _run_turns(self) -> None:
        """Continue a turn that waits, then ask the queued lines, one after the other."""
        while True:
            await self._wanted.wait()
            self._terminal.prompt("")
            if self._session.pending:
                await self._run_turn(None)
            while self._queued:
                await self._run_turn(self._session.stream(self._queued.popleft(), **self._state.settings))
            self._wanted = anyio.Event()
            self._idle.set()
            self._terminal.prompt(PROMPT)

    async def _run_turn(self, asked: _Stream | None) -> None:
        """Show a turn to its end. Ask for the approvals and results it waits for, one after the other."""
        self._cancelling = anyio.Event()
        try:
            if asked is not None:
                await self._show(asked)
            while self._session.pending:
                rest = await self._resolve(self._session.pending[0])
                if rest is None:
                    return await self._cancel_waiting()
                await self._show(rest)
        except ActorsError as error:
            self._terminal.print(f"  {escape_controls(str(error))}", "red")

    async def _show(self, stream: _Stream) -> None:
        """Show the events of a turn until it ends or waits."""
        async with stream as events:
            async for event in events:
                if isinstance(event, CompleteEvent | ErrorEvent):
                    self._view.settle(await self._session.ledger())
                    self._state.count(event.result)
                self._view.event(event)

    async def _resolve(self, pending: PendingCall) -> _Stream | None:
        """Ask the person about a call, and return the rest of the turn; None if the turn is cancelled first."""
        rest: _Stream | None = None
        async with anyio.create_task_group() as either:
            either.start_soon(_wait, self._cancelling, either.cancel_scope)
            if pending.kind == "external":
                with self._view.waiting(pending.call.id):
                    result = await self._questions.result(call_text(pending.call))
                rest = self._session.stream(results={pending.call.id: result})
            else:
                verdict: Verdict = "allow" if await self._approve(pending.call) else "deny"
                decision = ApprovalDecision(verdict, digest=pending.digest)
                rest = self._session.stream(approvals={pending.call.id: decision})
            either.cancel_scope.cancel()
        return rest

    async def _cancel_waiting(self) -> None:
        """Cancel a turn that waits, which has no stream, and show its end."""
        await self._session.cancel()
        self._view.settle(await self._session.ledger())
        self._view.show_cancellation()

    async def _poll_calls(self) -> None:
        """Show the end of each call while others of its batch still run."""
        while True:
            await anyio.sleep(_POLL_INTERVAL)
            if self._view.has_calls:
                self._view.settle(await self._session.ledger())

    def _interrupt(self) -> None:
        if self._idle.is_set():
            self._state.leave(Exit.INTERRUPTED)
        elif self._cancelling.is_set():
            self._end_now(Exit.INTERRUPTED)
        else:
            self._terminal.print("  cancelling the turn; Ctrl-C again ends the process", "yellow")
            if self._queued:
                self._terminal.print(f"  queued lines: {len(self._queued)}", "dim")
            self._cancelling.set()
            self._cancel.set()

    async def _cancel_turns(self) -> None:
        """Cancel the current turn on request, in a task of its own, so that lines are still read."""
        while True:
            await self._cancel.wait()
            self._cancel = anyio.Event()
            await self._session.cancel()

    async def _watch_signals(self) -> None:
        with anyio.open_signal_receiver(*OF_SIGNAL) as signals:
            async for number in signals:
                code = OF_SIGNAL[number]
                if self._state.code is not None:
                    self._end_now(code)
                elif code is Exit.INTERRUPTED:
                    self._interrupt()
                else:
                    self._state.leave(code)

    def _end_now(self, code: Exit) -> None:
        self._terminal.end_line()
        os._exit(code)


async def _wait(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
