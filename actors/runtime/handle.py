"""Define `Session`, the public handle of one conversation. The methods of a session send commands to its actors."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import EllipsisType
from typing import Any, TypeVar, Unpack, overload

from actors.core.data.jsonio import JsonValue
from actors.core.history.compaction import CompactionResult
from actors.core.history.history import History, with_ledger
from actors.core.lanes.lane import Preview
from actors.core.ledger import Ledger
from actors.core.session.state import SessionState
from actors.core.settings.asking import AskSettings, parse_settings
from actors.core.settings.labels import Scalar
from actors.core.stream_events.ask_events import Approvals, AskResult, CallResults, PendingCall, SwitchOutcome
from actors.core.stream_events.events import SessionEvent
from actors.core.values.content import ToolResult
from actors.errors import ConfigError
from actors.journal.session_events import SessionEvents
from actors.ledger.ledger_actor import DurableLedger
from actors.renderer.renderer_actor import Render
from actors.runtime import departure
from actors.runtime.delivery import SessionCaller
from actors.runtime.lifecycle import SessionLifecycle
from actors.runtime.session_actors import prepare_change
from actors.runtime.validation import check_nonnegative
from actors.session.commands import Cancel, Configure, GetState, Switch
from actors.session.pending import HostCompaction, HostRewind
from actors.session.requests import preview_of
from actors.session.resolutions import build_host_call
from actors.session.streams import AnswerSink, TextStream
from actors.session.user_input import UserInput
from actors.tools.toolsets import ToolItem

R = TypeVar("R")
T = TypeVar("T")


class Session(SessionCaller):
    """A conversation, opened by `Runtime.open`.

    The methods may be called from any task of the runtime's event loop. Cancelling an `ask` or exiting a stream early
    does not stop the turn; `cancel` does.
    """

    __slots__ = ("__weakref__", "metadata", "title")

    def __init__(self, lifecycle: SessionLifecycle) -> None:
        super().__init__(lifecycle)
        self.title: str = lifecycle.spec.title
        self.metadata: Mapping[str, Scalar] = lifecycle.spec.metadata
        """Read-only labels. The session's log contains the title and metadata that were passed to `Runtime.open`."""

    @property
    def target(self) -> str:
        """The target of the next ask. A queued switch changes the target when the switch is applied."""
        return self._lifecycle.target

    @property
    def busy(self) -> bool:
        """True if an ask is in flight or queued."""
        return self._lifecycle.busy

    @overload
    async def ask(
        self,
        message: UserInput,
        *,
        key: str | None = None,
        output: type[T],
        check: bool = True,
        **settings: Unpack[AskSettings],
    ) -> AskResult[T]: ...

    @overload
    async def ask(
        self,
        message: UserInput,
        *,
        key: str | None = None,
        output: Any = None,
        check: bool = True,
        **settings: Unpack[AskSettings],
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
        key: str | None = None,
        output: Any = None,
        check: bool = True,
        **settings: Unpack[AskSettings],
    ) -> AskResult:
        """Send a message to the model, run the tools that it calls, and return the result of the ask.

        With `results` or `approvals` instead of a message, continue the paused turn; `pending` lists
        the calls for which it waits. The results and decisions passed to one `ask` are recorded together or rejected
        together, before any queued ask runs. Once no call is pending, the turn continues on the same binding with its
        own settings; until then, the returned status is `awaiting`. If no turn waits for any of the results, the status
        is `late`, but new results are still recorded.

        Args:
            message: A string, a list of strings and `Media`, or a user `Message`.
            results: Results of external calls, by call id: the value that the tool would return, or the exception with
                which the call failed.
            approvals: Decisions about calls that need approval, by call id.
            key: An idempotency key of 1 to 200 characters, for callers that repeat an ask after a lost connection or
                host. If the session has already accepted an ask with this key and message, on any host, no new ask
                starts. If the earlier ask is queued or running, the call waits for its result; if it has ended, the
                call returns its result at once. If the earlier ask's host ended before the answer, the ask continues in
                another turn. A session remembers its last 256 keys.
            output: The type of the answer (a pydantic model, a dataclass, a `TypedDict`, any annotation) or its JSON
                Schema. The value is `AskResult.output`. If the answer is invalid, the model may correct it a limited
                number of times before the ask fails.
            check: Whether to raise `AskFailed` if the ask fails. With False, return the result of a failed ask, with
                its `status` and `error`.
            settings: Settings for this ask only; see `AskSettings`.

        Raises:
            AskFailed: The ask failed. The session remains usable; `error.result` is the result.
            ConfigError: A setting is unknown, has an invalid value, or forces a tool that the session does not have;
                `output` has no JSON Schema; both a message and `results` or `approvals` were passed, or none of the
                three; or settings were passed together with `results` or `approvals`.
            InvalidIdentifier: The key does not have 1 to 200 printable characters.
            KeyReused: The key belongs to an ask with a different message or a different `output`.
            NotAwaited: A call in `results` is not an external call of this session, or waits for approval; or a call in
                `approvals` does not wait for a decision. Nothing is recorded.
            DecisionRefused: The digest of a decision differs from that of its call, or the decision has invalid
                arguments. Nothing is recorded.
            QueueFull: Too many asks are queued, or too many results wait to be recorded; or this ask was queued for
                `timeout` seconds while an earlier turn was paused.
            ReentrantCall: A tool of this session called this method.
            WrongEventLoop: The caller is not on the runtime's event loop.
            SessionClosed: The session has ended, or ended before the ask.
            SessionLeased: The session was handed over to another host. Send the ask to the `address` of this error.
            SessionError: The session crashed before it accepted the ask, so the ask can be sent again; or the role of
                the message is not `user`.
            JournalError: The log cannot be written (`JournalUnavailable`), or another host has claimed the session
                (`Fenced`).
        """
        self._check_caller()
        sink = AnswerSink(self._ended_error)
        await self._prepare_submission(sink, message, results, approvals, settings, output, key)()
        return self._check_result(await sink.outcome(), check)

    @asynccontextmanager
    async def stream(
        self,
        message: UserInput | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        key: str | None = None,
        output: Any = None,
        **settings: Unpack[AskSettings],
    ) -> AsyncGenerator[AsyncIterator[SessionEvent]]:
        """Send a message as `ask` does, and stream the events of the ask: `async with session.stream("...") as events`.

        The stream ends with exactly one `complete` or `error` event. A slow reader misses deltas; if it misses events
        other than deltas, it receives a `resync` event. Entering the block and reading the events may raise
        the same errors as `ask`, except `AskFailed`: a failed ask ends with an `error` event.

        If the ask repeats an earlier ask (`key`), the stream contains the earlier ask's durable events, from the log.
        If the earlier ask is still in flight, the stream contains its events from now on.
        """
        self._check_caller()
        sink, submit = self._prepare_stream(message, results, approvals, settings, output, key)
        await submit()
        try:
            yield sink
        finally:
            sink.close_reader()

    def stream_text(
        self,
        message: UserInput | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        key: str | None = None,
        **settings: Unpack[AskSettings],
    ) -> TextStream:
        """Send a message as `ask` does, and stream the answer: `async for text in session.stream_text("...")`.

        With `results` or `approvals`, continue the paused turn, and stream the remainder of its
        text.

        The first iteration sends the ask, with the context variables of this call. A blank line separates the texts of
        two rounds. If the ask fails, the loop raises `AskFailed` after the last text. If the ask is cancelled, is
        interrupted or is paused, the loop ends, and the stream's `result` has the status. Breaking out of
        the loop, `aclose` and cancelling the reader do not stop the turn; `cancel` does. This method raises the errors
        of `ask` that concern the arguments and the caller; the loop raises all other errors of `ask`.
        """
        self._check_caller()
        self._lifecycle.configuration.check_forced_tool(parse_settings(settings))
        prepared = self._prepare_stream(message, results, approvals, settings, key=key)
        return TextStream(*prepared, partial(self._check_result, check=True))

    def events(self, after: int = 0, *, follow: bool = True) -> SessionEvents:
        """Return the session's events after number `after`: first the events in its log, then new events as they occur.

        Every reader receives the same durable events, however slow it is; a `resync` event reports missed
        deltas. The deltas of a running ask begin when the reader has reached the end of the log. Reading does not
        activate a hibernating session, and works after the session has ended.

        Args:
            after: The number (`seq`) of the last event that you processed, or 0. If several events share a number, pass
                the number only after the last of them, whose `more` is false.
            follow: Wait for new events until the session ends. With False, stop at the end of the log.

        Reading raises `UnknownSeq` if the log has no event with this number. It raises `SessionClosed` if the session
        ends without a `session_closed` event, because the runtime exited or the session's actors crashed too often.
        """
        host = self._lifecycle.host
        return SessionEvents(
            self.id,
            after,
            follow=follow,
            journal=host.journal,
            readers=host.readers,
            check_caller=self._check_caller,
            is_over=lambda: self._lifecycle.is_over,
            ended_error=self._ended_error,
        )

    async def call_tool(self, name: str, arguments: Mapping[str, JsonValue] | None = None) -> ToolResult:
        """Run one of the session's tools without the model, and return its result.

        The call is queued like an ask. A user message, the call and its result are added to the history, so that the
        model sees them with the next ask. The call needs no approval, but if the tool has `approval="deny"`, it is
        denied.

        Raises:
            SessionError: The session has no tool with this name, or the tool is external.
            QueueFull: Too many asks are queued.
        """
        self._check_caller()
        call = build_host_call(self.id, self._actors.active_config.tools, name, arguments)
        return call.value(self.id, await self._run_operation(call, f"[The program ran the tool {name}.]"))

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls for which the turn waits: external calls without a result, and calls that need a decision."""
        return self._lifecycle.pending_calls

    async def switch(self, target: str) -> SwitchOutcome:
        """Send all later asks to `target`. During a turn, the switch is queued until the turn has ended.

        Raises:
            ConfigError: The target does not exist, cannot be used, or accepts fewer tools than the session has. Nothing
                changes.
        """
        return await self._query(Switch(target))

    async def configure(
        self,
        *,
        system: str | EllipsisType | None = ...,
        tools: Iterable[ToolItem] | EllipsisType = ...,
    ) -> SwitchOutcome:
        """Replace the system prompt, the tools or both. During a turn, the change is queued until the turn has ended.

        An omitted argument changes nothing. If several changes are queued, the latest system prompt and the latest
        tools are applied. A `configured` event reports the change. Earlier calls to a removed tool stay in the
        history. If the model calls a removed tool, the call is answered with an error.

        Args:
            system: The new system prompt; None removes it.
            tools: All tools that the model may call from then on, as for `Runtime.open`. New toolsets are opened first;
                toolsets that are no longer used by any session are closed.

        Raises:
            ConfigError: A tool is invalid, or the session's target does not accept this many tools. Nothing changes.
            ToolsetFailed: A toolset cannot be opened.
        """
        self._check_caller()
        if not isinstance(system, str | EllipsisType | None):
            raise ConfigError(f"system= takes a string, not {type(system).__name__}")
        change = await prepare_change(self._lifecycle.configuration, self._lifecycle.host, system, tools)
        try:
            return await self._query(Configure(change))
        finally:
            self._lifecycle.configuration.drop(change)

    async def cancel(self) -> bool:
        """Cancel the ask in flight, and return when all its calls are closed.

        Returns:
            True if an ask was cancelled. False if no ask was in flight, or if the ask ended before it could be
            cancelled.
        """
        return await self._query(Cancel())

    async def history(self) -> History:
        """Return the conversation so far. Each tool call is followed by its result, or is marked as running.

        The `report` of the history lists the changes to the session's initial messages, and `system` is the system
        prompt.
        """
        state, ledger = await self._current_state()
        return with_ledger(state.history, ledger)

    async def ledger(self) -> Ledger:
        """Return the record of every tool call. A call's end appears in the record once it is durable."""
        return await self._query(DurableLedger(), lambda actors: actors.refs.ledger)

    async def preview(self, target: str, **settings: Unpack[AskSettings]) -> Preview:
        """Return the request that an ask with these settings would now send to `target`. Nothing is sent or stored.

        While tools run, the preview shows their calls as running.

        Raises:
            ConfigError: The target does not exist or cannot be used, or a setting is invalid.
        """
        self._lifecycle.configuration.check_forced_tool(said := parse_settings(settings))
        state, ledger = await self._current_state()
        active_config = self._actors.active_config
        backend = active_config.resolver.backend(active_config.resolver.pool(target).members[0])
        render = Render(backend.binding, state.history, ledger)
        rendered = await self._query(render, lambda actors: actors.refs.renderer)
        return preview_of(rendered, backend, target, (state, ledger, active_config), said)

    async def _current_state(self) -> tuple[SessionState, Ledger]:
        """Return a consistent pair of state and ledger. The ledger includes calls that have not started."""
        state = await self._query(GetState())
        return state, state.ledger_with_open_calls(await self.ledger())

    async def compact(self) -> CompactionResult:
        """Compact the history: summarise its older turns, and shorten long or repeated results in the remaining turns.

        The compaction is queued like an ask and runs in a separate turn. The last turns are not summarised
        (`Compaction.keep_turns`), and the ledger keeps every result. If there is nothing to compact, nothing changes,
        and the returned result reports that.

        Raises:
            CompactionFailed: No summary was written, and no result could be shortened. The history is unchanged.
            QueueFull: Too many asks are queued.
            OverBudget: The session's budget is used up.
        """
        return (call := HostCompaction()).value(self.id, await self._run_operation(call))

    async def rewind(self, to: int) -> int:
        """Cut the history back to the end of turn `to`, and return the number of messages that were removed.

        Nothing else is undone: the log, the ledger, the numbering of turns and calls, the budget usage, the target, the
        system prompt and the tools do not change. A late result of a removed call is recorded, but no model sees it.
        The rewind is queued like an ask, and stays queued even if the caller is cancelled. It does not stop a running
        turn; `cancel` does.

        Args:
            to: The number of a turn, from `AskResult.turn` or from the `turn` of an event or of a model's message; 0
                for the initial history. A second rewind to the same turn has no effect.

        Raises:
            ConfigError: The history does not contain turn `to`: it never existed, was replaced by a summary, or was
                removed by a rewind.
            SessionError: A turn is paused. Cancel it first.
            QueueFull: Too many asks are queued.
        """
        return (call := HostRewind(to)).value(self.id, await self._run_operation(call))

    async def release(self, *, timeout: float = 30.0) -> None:
        """End the session on this host without closing its log, so that any host can claim the session at once.

        The method first waits for the turn in flight. Queued asks end with `SessionClosed`. A paused turn stays open in
        the log. When the method returns, all events are written. From then on, this handle and the readers of `events`
        raise `SessionClosed`; `Runtime.claim` returns a new handle. If the caller is cancelled, the release continues.

        Args:
            timeout: Seconds to wait for the turn in flight before its ask is cancelled. An ask with a `key` can be
                repeated on the next host, where it continues.

        Raises:
            ConfigError: `timeout` is not a number that is 0 or more.
            ReentrantCall: A tool of this session called this method. The release would have to wait for the tool.
            SessionClosed, SessionLeased: The session has already ended on this host.
            JournalError: The session cannot be released. Unless the error is `Fenced`, the session stays usable.
            ShuttingDown: The release itself was cancelled, because the runtime exited.
        """
        self._check_caller()
        check_nonnegative(timeout=timeout)
        await departure.release(self._lifecycle, timeout)

    async def close(self) -> None:
        """Cancel the ask in flight, drop queued asks, log the end of the session, and stop its actors.

        Toolsets that only this session used are closed afterwards; the runtime waits for them when it exits.

        Closing a session again has no effect. If the caller is cancelled, the close continues. A closed session can no
        longer be used, not even to read its history.

        Raises:
            ReentrantCall: A tool of this session called this method. The close would have to wait for the tool.
            JournalError: The end cannot be logged. The session is still open, except after `Fenced`.
            ShuttingDown: The close itself was cancelled, for example by code that cancels all tasks of the event loop.
                The session is still open.
        """
        self._check_caller()
        await self._lifecycle.close()
