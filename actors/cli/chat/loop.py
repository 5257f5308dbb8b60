"""The chat itself: lines in, turns and commands out, and four ways to leave.

A line is the answer to an open question, a command, or what is asked next. Turns run one after the other; lines are
taken meanwhile, so that a switch or a cancel can be asked for in mid-turn.

Ctrl-C cancels the turn in flight, so that every call of it is closed; lines that wait are asked after that. A second
Ctrl-C, while that takes its time, ends the process at once. With no turn in flight it leaves, and so do Ctrl-D, /quit,
SIGTERM and a terminal that is gone.
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
from actors.cli.chat.face import Control
from actors.cli.chat.questions import Questions
from actors.cli.chat.state import ChatState
from actors.cli.chat.view import View
from actors.cli.exits import OF_SIGNAL, Exit
from actors.cli.screen import safe
from actors.core.log.events import Verdict
from actors.core.stream_events.events import CompleteEvent, ErrorEvent, SessionEvent
from actors.core.stream_events.results import PendingCall
from actors.errors import ActorsError

_Stream: TypeAlias = AbstractAsyncContextManager[AsyncIterator[SessionEvent]]
"""The events of a turn, or of the rest of one."""

PROMPT, CONTINUED = "> ", "... "
WAITING = 16
"""Lines that wait for the turn in flight; one more is refused."""
TICK = 0.2
"""Seconds between two looks at how the calls in flight are getting on."""


class Chat:
    """Reads lines, and has turns and commands run."""

    def __init__(self, state: ChatState, view: View, questions: Questions, approve: Approvals) -> None:
        self._state, self._session, self._face = state, state.session, state.face
        self._view = view
        self._questions, self._approve = questions, approve
        self._waiting: deque[str] = deque()
        self._wanted, self._idle = anyio.Event(), anyio.Event()
        if self._session.pending:  # whoever had the session before was asked, and gave no answer
            self._wanted.set()
        else:
            self._idle.set()
        self._continued: list[str] = []
        self._cancelling = anyio.Event()
        """Set once the turn in flight is being cancelled."""
        self._cancel = anyio.Event()

    async def run(self) -> Exit:
        """Chat until the person leaves, and return the exit code."""
        await self._look_back()
        self._face.put(f"{self._session.target}. /help shows the commands, /quit leaves.", "dim")
        async with anyio.create_task_group() as tasks:
            for task in (self._signals, self._turns, self._ticks, self._cancels):
                tasks.start_soon(task)
            with self._state.reading:
                await self._read()
            tasks.start_soon(self._hard_way_out)
            self._face.live(())
            if not self._idle.is_set():
                self._face.put("  cancelling the turn; Ctrl-C leaves at once", "yellow")
            await self._session.cancel()
            tasks.cancel_scope.cancel()
        return self._state.code or Exit.OK

    async def _look_back(self) -> None:
        """Say which conversation this is, if it began before, and how its last turn ended if that was not well."""
        before = [
            event.result
            async for event in self._session.events(follow=False)
            if isinstance(event, CompleteEvent | ErrorEvent)
            and event.result.status not in ("awaiting", "late")
        ]
        if not before:
            return
        turns = "1 turn" if len(before) == 1 else f"{len(before)} turns"
        self._face.put(f"{safe(self._session.id)} goes on after {turns}; /history shows them.", "dim")
        if before[-1].status in ("failed", "interrupted"):
            self._face.put(
                f"  the last turn: {safe(failure_reason(before[-1], self._state.config))}", "yellow"
            )

    async def _read(self) -> None:
        while True:
            await self._until_a_line_is_wanted()
            if self._idle.is_set():
                self._face.prompt(CONTINUED if self._continued else PROMPT)
            match await self._face.next():
                case Control.END:
                    self._state.leave()
                case Control.GONE:
                    self._state.leave(Exit.HANGUP)
                case Control.INTERRUPT:
                    self._interrupted()
                case Control.CLEARED:
                    self._continued.clear()
                    if not self._idle.is_set():
                        self._interrupted()
                case str(line):
                    await self._line(line)
            await anyio.lowlevel.checkpoint_if_cancelled()

    async def _until_a_line_is_wanted(self) -> None:
        """From a pipe, take the next line only when the last was answered, or a question is open."""
        while not self._face.is_live and not self._idle.is_set() and not self._questions.asked.is_set():
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
        elif self._questions.take(words):
            return
        elif words.startswith("/"):
            self._face.put(f"  no command {words.split()[0][:40]!r}; /help shows them", "yellow")
        elif words and len(self._waiting) >= WAITING:
            self._face.put(f"  {WAITING} lines wait already; this one was not taken", "yellow")
        elif words:
            self._waiting.append(words)
            if not self._idle.is_set():
                self._face.put("  asked when this turn has ended", "dim")
            self._idle = anyio.Event() if self._idle.is_set() else self._idle
            self._wanted.set()

    async def _turns(self) -> None:
        """Go on with a turn that waits, and ask what was said, one after the other."""
        while True:
            await self._wanted.wait()
            self._face.prompt("")
            if self._session.pending:
                await self._turn(None)
            while self._waiting:
                await self._turn(self._session.stream(self._waiting.popleft(), **self._state.bounds))
            self._wanted = anyio.Event()
            self._idle.set()
            self._face.prompt(PROMPT)

    async def _turn(self, asked: _Stream | None) -> None:
        """Show a turn until it has ended. Whatever it waits for the person is asked for, one call after the other."""
        self._cancelling = anyio.Event()
        try:
            if asked is not None:
                await self._showing(asked)
            while self._session.pending:
                brought = await self._brought(self._session.pending[0])
                if brought is None:
                    return await self._given_up()
                await self._showing(brought)
        except ActorsError as error:
            self._face.put(f"  {safe(str(error))}", "red")

    async def _showing(self, stream: _Stream) -> None:
        """Show the events of a turn, to its end or until it waits."""
        async with stream as events:
            async for event in events:
                if isinstance(event, CompleteEvent | ErrorEvent):
                    self._view.settle(await self._session.ledger())
                    self._state.count(event.result)
                self._view.event(event)

    async def _brought(self, waits: PendingCall) -> _Stream | None:
        """Bring what the person answers, and return what goes on with it; None if the turn is cancelled before."""
        brought: _Stream | None = None
        async with anyio.create_task_group() as either:
            either.start_soon(_wait, self._cancelling, either.cancel_scope)
            if waits.kind == "external":
                with self._view.waiting(waits.call.id):
                    result = await self._questions.result(call_text(waits.call))
                brought = self._session.stream_provided({waits.call.id: result})
            else:
                verdict: Verdict = "allow" if await self._approve(waits.call) else "deny"
                brought = self._session.stream_decided(waits.call.id, verdict, digest=waits.digest)
            either.cancel_scope.cancel()
        return brought

    async def _given_up(self) -> None:
        """Show the end of a turn that is cancelled while it waits, which has no stream."""
        await self._session.cancel()
        self._view.settle(await self._session.ledger())
        self._view.cancelled()

    async def _ticks(self) -> None:
        """Show how long the calls in flight have been running, and each that has ended."""
        while True:
            await anyio.sleep(TICK)
            if self._view.calls_run:
                self._view.settle(await self._session.ledger())

    def _interrupted(self) -> None:
        if self._idle.is_set():
            self._state.leave(Exit.INTERRUPTED)
        elif self._cancelling.is_set():
            self._end_now(Exit.INTERRUPTED)
        else:
            self._face.put("  cancelling the turn; Ctrl-C again leaves at once", "yellow")
            if self._waiting:
                self._face.put(f"  asked after that, lines that wait: {len(self._waiting)}", "dim")
            self._cancelling.set()
            self._cancel.set()

    async def _cancels(self) -> None:
        """Cancel the turn in flight whenever the person wants it: no line waits for that."""
        while True:
            await self._cancel.wait()
            self._cancel = anyio.Event()
            await self._session.cancel()

    async def _signals(self) -> None:
        with anyio.open_signal_receiver(*OF_SIGNAL) as signals:
            async for number in signals:
                code = OF_SIGNAL[number]
                if self._state.code is not None:
                    self._end_now(code)
                elif code is Exit.INTERRUPTED:
                    self._interrupted()
                else:
                    self._state.leave(code)

    async def _hard_way_out(self) -> None:
        """While the turn is cancelled because the person leaves, let an interrupt end the process."""
        while (given := await self._face.next()) not in (Control.END, Control.GONE):
            if given in (Control.INTERRUPT, Control.CLEARED):
                self._end_now(Exit.INTERRUPTED)

    def _end_now(self, code: Exit) -> None:
        self._face.restore()
        os._exit(code)


async def _wait(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
