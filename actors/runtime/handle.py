"""What a user holds of a session."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import EllipsisType
from typing import Any, TypeVar, Unpack, overload

from actors.core.data.jsonio import JsonValue
from actors.core.history.compaction import CompactionResult
from actors.core.history.history import History, with_ledger
from actors.core.lanes.preview import Preview
from actors.core.ledger import Ledger
from actors.core.session.state import SessionState
from actors.core.settings.asking import AskSettings, parse_settings
from actors.core.settings.labels import Scalar
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.results import Approvals, AskResult, CallResults, PendingCall, SwitchOutcome
from actors.core.values.content import ToolResult
from actors.errors import (
    ConfigError,
)
from actors.journal.session_events import SessionEvents
from actors.ledger.ledger_actor import DurableLedger
from actors.renderer.renderer_actor import Render
from actors.runtime.delivery import SessionCaller
from actors.runtime.lifecycle import SessionLifecycle
from actors.session.commands import Cancel, Configure, GetState, Switch
from actors.session.pending import HostCompaction, HostRewind
from actors.session.preview import preview_of
from actors.session.resolutions import host_call
from actors.session.streams import AnswerSink, TextStream
from actors.session.user_input import UserInput
from actors.tools.toolsets import ToolItem

R = TypeVar("R")
T = TypeVar("T")


class Session(SessionCaller):
    """One conversation. Made by `Runtime.open`.

    Its methods may be called from any task of the runtime's loop. Abandoning one (a cancelled `ask`, a stream that is
    left early) does not stop the turn: `cancel` does.
    """

    __slots__ = ("__weakref__", "metadata", "title")

    def __init__(self, lifecycle: SessionLifecycle) -> None:
        super().__init__(lifecycle)
        self.title: str = lifecycle.spec.title
        self.metadata: Mapping[str, Scalar] = lifecycle.spec.metadata
        """What `Runtime.open` was given, and its log has; a title may be empty, and the mapping cannot be changed."""

    @property
    def target(self) -> str:
        """Whom the next ask goes to. A switch that is held counts once it is applied."""
        return self._lifecycle.target

    @property
    def busy(self) -> bool:
        """True if an ask is in flight, or waits."""
        return self._lifecycle.busy

    @overload
    async def ask(
        self, message: UserInput, *, output: type[T], check: bool = True, **settings: Unpack[AskSettings]
    ) -> AskResult[T]: ...

    @overload
    async def ask(
        self, message: UserInput, *, output: Any = None, check: bool = True, **settings: Unpack[AskSettings]
    ) -> AskResult: ...

    @overload
    async def ask(
        self,
        message: None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        check: bool = True,
    ) -> AskResult: ...

    async def ask(
        self,
        message: UserInput | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        output: Any = None,
        check: bool = True,
        **settings: Unpack[AskSettings],
    ) -> AskResult:
        """Send a message to the model and return how the ask came out: text, status, who served it, at what cost.

        With `results` or `approvals` in place of a message, continue the ask whose turn waits, ahead of those in the
        queue: `pending` has the calls that it waits for. All that is passed at once is recorded together, or refused
        together. The same turn continues, on the same binding and with its own settings, once nothing is awaited any
        more; until then the status is `awaiting`. If no turn waits for any of the results, the status is `late`: what
        is new in them is kept.

        Args:
            message: A text, a list of texts and `Media`, or a user `Message`.
            results: What external calls returned, by call id, each as a tool would return it; or the exception with
                which the call failed.
            approvals: Decisions about calls that wait for approval, by call id.
            output: The form of the answer, which is `AskResult.output` then: a type (a pydantic model, a dataclass, a
                `TypedDict`, any annotation) or a JSON Schema. An answer without it is corrected a bounded number of
                times; then the ask has failed.
            check: Raise if the ask fails. Without it the result is returned then too, with its `status` and `error`.
            settings: What holds for this ask alone; see `AskSettings`.

        Raises:
            AskFailed: There is no answer. The session can go on; `error.result` is the result.
            ConfigError: There is no such setting, it takes no such value, or it forces a tool that the session does not
                have; or `output` has no JSON Schema. Or there is a message beside `results` or `approvals`, or none of
                the three; or the ask that waits is given settings.
            NotAwaited: A call of `results` was never handed out, or waits for an approval; or one of `approvals` waits
                for no decision. Nothing is recorded.
            DecisionRefused: The digest is another, or the arguments are wrong. Nothing is recorded.
            QueueFull: Too many asks wait, or too many results wait to be recorded; or an earlier turn has waited for
                its caller for `timeout` seconds.
            ReentrantCall: A tool of this session asks.
            WrongEventLoop: The caller is not on the runtime's event loop.
            SessionClosed: The session has ended, or ends before the ask does.
            SessionError: It crashed just now, and did not take the ask; or the message is not of role `user`.
            JournalError: It cannot be written (`JournalUnavailable`), or another writer has the session (`Fenced`).
        """
        self._check()
        sink = AnswerSink(self._ended_error)
        await self._prepare(sink, message, results, approvals, settings, output)()
        return self._check_result(await sink.outcome(), check)

    @asynccontextmanager
    async def stream(
        self,
        message: UserInput | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        output: Any = None,
        **settings: Unpack[AskSettings],
    ) -> AsyncGenerator[AsyncIterator[SessionEvent]]:
        """Ask, or continue the ask that waits, and give its events: `async with session.stream("...") as events`.

        The events end after exactly one `complete` or `error`. A reader that is too slow misses deltas, and is told
        by a `status` event `resync` if it missed more. Raises as `ask` does, the events included; but if the ask fails,
        its last event says so, and nothing is raised.
        """
        self._check()
        sink, submit = self._prepare_stream(message, results, approvals, settings, output)
        await submit()
        try:
            yield sink
        finally:
            sink.leave()

    def stream_text(
        self,
        message: UserInput | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        **settings: Unpack[AskSettings],
    ) -> TextStream:
        """Ask, and return the text of the answer as it arrives: `async for text in session.stream_text("...")`.

        With `results` or `approvals`, continue the ask that waits, and return the rest of its text.

        The ask begins with the first step of the loop, with the context variables of this call. A blank line stands
        between the texts of two rounds. If the ask fails, the loop raises `AskFailed` after the text that came before;
        an ask that was cancelled, was interrupted or waits for its caller ends the loop, and `result` of what this
        returns has its status. Leaving the loop, `aclose` and cancelling the reader do not stop the turn: `cancel`
        does. Raises as `ask` does: about the arguments and the caller at once, else in the loop.
        """
        self._check()
        self._lifecycle.configuration.check(parse_settings(settings))
        prepared = self._prepare_stream(message, results, approvals, settings)
        return TextStream(*prepared, partial(self._check_result, check=True))

    def events(self, after: int = 0, *, follow: bool = True) -> SessionEvents:
        """Return the session's events past number `after`, as they are in its log, and then as they come.

        Durable events are the same for every reader, whenever it comes, and a slow one misses none: it is told by a
        `status` event `resync` that it missed deltas. Those of a running ask come along from when the reader has
        caught up. Reading wakes no session, and one that has ended can be read.

        Args:
            after: The number (`seq`) of the last event that was seen, or 0. Of several events of one number it is seen
                when the last is, whose `more` is false.
            follow: Wait for what comes, until the session ends; else end where the log ends.

        Reading raises `UnknownSeq` if there is no such number, and `SessionClosed` if the session ends without its last
        event, `closed`: the runtime was left, or its actors crashed too often.
        """
        host = self._lifecycle.host
        return SessionEvents(
            self.id,
            after,
            follow=follow,
            journal=host.journal,
            readers=host.readers,
            check=self._check,
            is_over=lambda: self._lifecycle.is_over,
            gone=self._ended_error,
        )

    async def call_tool(self, name: str, arguments: Mapping[str, JsonValue] | None = None) -> ToolResult:
        """Run one of the session's tools, without asking the model; return its result.

        It waits as an ask does for those before it. The history gets a message of the program's and one call, which is
        answered like any, so the model knows of it with the next ask. Nobody is asked for approval: you run it. A tool
        whose approval is `deny` is denied all the same.

        Raises:
            SessionError: The session has no such tool, or it has no body.
            QueueFull: Too many asks wait.
        """
        self._check()
        call = host_call(self.id, self._actors.equipment.tools, name, arguments)
        return call.value(self.id, await self._perform(call, f"[The program ran the tool {name}.]"))

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls that the turn in flight waits for: their results, or somebody's approval."""
        return self._lifecycle.pending_calls

    async def switch(self, target: str) -> SwitchOutcome:
        """Send the next ask to `target`, at once or, while a turn is in flight, when that turn has ended.

        Raises:
            ConfigError: The target does not exist, cannot be used, or takes fewer tools. Nothing has changed.
        """
        return await self._query(Switch(target))

    async def configure(
        self,
        *,
        system: str | EllipsisType | None = ...,
        tools: Iterable[ToolItem] | EllipsisType = ...,
    ) -> SwitchOutcome:
        """Replace the system prompt or the tools from the next ask on; queued while a turn is in flight.

        What is not given stays as it is. Of several that wait the latest counts, of system prompt and tools each by
        itself; a `status` event `configured` says when they are in force. Calls that were made of a tool that is gone
        stay in the history; one that the model makes of it is answered as unknown.

        Args:
            system: The system prompt, or None for none.
            tools: All that the model may call from then on, as for `Runtime.open`. Toolsets are opened first, and those
                no longer used are closed.

        Raises:
            ConfigError: A tool cannot be used, or there are more than the session's target takes. Nothing has changed.
            ToolsetFailed: A toolset cannot be opened.
        """
        self._check()
        if not isinstance(system, str | EllipsisType | None):
            raise ConfigError(f"system= takes a text, not {type(system).__name__}")
        change = await self._lifecycle.change(system, tools)
        try:
            return await self._query(Configure(change))
        finally:
            self._lifecycle.configuration.drop(change)

    async def cancel(self) -> bool:
        """Cancel the ask in flight; return when every call of it is closed.

        False if there was none, or if it had come to its own end before the cancel reached it.
        """
        return await self._query(Cancel())

    async def history(self) -> History:
        """Return the conversation so far, tool results in their places; of a call that is running, that it is.

        Its `report` says what was done to the messages that the session was opened with, `system` is its prompt.
        """
        state, ledger = await self._current_state()
        return with_ledger(state.history, ledger)

    async def ledger(self) -> Ledger:
        """Return the record of every tool call. It shows how a call ended only once that is durable."""
        return await self._query(DurableLedger(), lambda actors: actors.refs.ledger)

    async def preview(self, target: str, **settings: Unpack[AskSettings]) -> Preview:
        """Return what would be sent to `target` now, by an ask with these settings. Nothing is sent or kept.

        While tools run, it says of their calls that they are running.

        Raises:
            ConfigError: The target does not exist or cannot be used, or a setting is refused as in `ask`.
        """
        self._lifecycle.configuration.check(said := parse_settings(settings))
        state, ledger = await self._current_state()
        equipment = self._actors.equipment
        backend = equipment.resolver.backend(equipment.resolver.pool(target).members[0])
        render = Render(backend.binding, state.history, ledger)
        rendered = await self._query(render, lambda actors: actors.refs.renderer)
        return preview_of(rendered, backend, target, (state, ledger, equipment), said)

    async def _current_state(self) -> tuple[SessionState, Ledger]:
        """Return the state and the ledger of one moment. The ledger includes calls that have not started yet."""
        state = await self._query(GetState())
        return state, state.ledger_with_open_calls(await self.ledger())

    async def compact(self) -> CompactionResult:
        """Make the history shorter: its older turns become a summary, and long or repeated results of others a mark.

        It waits for the asks before it, and is a turn of its own. The last turns stay as they are
        (`Compaction.keep_turns`), and the ledger keeps every result. The result says if there was nothing to do.

        Raises:
            CompactionFailed: No summary was written, and there was nothing else to make shorter. All is as it was.
            QueueFull: Too many asks wait.
            OverBudget: The session's budget is used up.
        """
        return (call := HostCompaction()).value(self.id, await self._perform(call))

    async def rewind(self, to: int) -> int:
        """Let the history end where turn `to` ended, 0 for how it was opened; return how many messages left it.

        All else stays: the log, the ledger, the numbers of turns and calls that were given, what was used of budgets,
        the target, the system prompt and the tools. What comes late of a call that left is kept, and no model is told.
        It waits as an ask does for those before it, also if its caller leaves, and cuts no turn short: `cancel` does.

        Args:
            to: `AskResult.turn`, or the `turn` of an event or of a model's message. Going there twice is going once.

        Raises:
            ConfigError: The history has no such turn: there was none, a summary stands for it, or a rewind removed it.
            SessionError: A turn waits for its caller. Cancel it first.
            QueueFull: Too many asks wait.
        """
        return (call := HostRewind(to)).value(self.id, await self._perform(call))

    async def close(self) -> None:
        """Cancel the ask in flight, drop those that wait, write that the session has ended, and end its actors.

        Toolsets that nobody else uses are closed behind it; leaving the runtime waits for that.

        Closing twice is closing once, and a caller that is cancelled does not take it back. The session cannot be used
        after it, not even to be read.

        Raises:
            ReentrantCall: A tool of this session asks. It would wait for itself.
            JournalError: The end cannot be written. The session is still open, but for one that is `Fenced`.
            ShuttingDown: The close was cancelled before it was done, such as by a caller that cancels all tasks of
                the event loop. The session is still open.
        """
        self._check()
        await self._lifecycle.close()
