"""Send callers' commands to a session's actors, and create the actors if necessary.

This module checks the caller, and converts internal errors to public errors. `actors.runtime.handle` contains the
public methods.
"""

from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar

from actors.core.settings.asking import AskSettings, parse_settings
from actors.core.stream_events.ask_events import Approvals, AskResult, CallResults
from actors.core.stream_events.events import Sink
from actors.core.values.content import Message, Text
from actors.core.values.packed import pack
from actors.errors import (
    ActorFailed,
    ActorsError,
    ActorStopped,
    AskOrderError,
    ReentrantCall,
    SessionClosed,
    SessionError,
    ShuttingDown,
)
from actors.kernel import Query, Ref
from actors.runtime.lifecycle import SessionLifecycle
from actors.runtime.session_actors import SessionActors
from actors.scheduler.executor import is_called_from_tool
from actors.session.commands import Configure, SessionCommand, Switch
from actors.session.inflight import SessionRefs
from actors.session.output import output_of
from actors.session.pending import (
    HostCall,
    HostCompaction,
    HostRewind,
    Resolutions,
    Resolve,
    Submit,
    copy_error,
)
from actors.session.repeats import ask_key
from actors.session.resolutions import check_ask_arguments, resolutions
from actors.session.streams import AnswerSink, AskStream
from actors.session.user_input import UserInput, pack_user_input

R = TypeVar("R")


class SessionCaller:
    """The private methods of `Session`, which send commands to the session's actors.

    The actors are created if the session has none.

    Args:
        lifecycle: The lifecycle of the session.
    """

    __slots__ = ("_lifecycle", "id")

    def __init__(self, lifecycle: SessionLifecycle) -> None:
        self.id: str = lifecycle.name
        self._lifecycle = lifecycle

    def _check_caller(self) -> None:
        """Raise an error if the caller is on the wrong event loop, or is a tool for which this session waits."""
        host = self._lifecycle.host
        host.check_event_loop()
        if is_called_from_tool(host.system, self.id):
            raise ReentrantCall(
                f"A tool of session {self.id!r} cannot use that session, because the session waits for the tool; "
                "return the value from the tool, or open another session"
            )

    @property
    def _actors(self) -> SessionActors:
        """The session's actors. If the session has no actors, they are created."""
        try:
            return self._lifecycle.activate()
        except (ActorStopped, ShuttingDown):
            raise self._ended_error() from None

    @property
    def _session(self) -> Ref[SessionCommand]:
        return self._actors.session

    @property
    def _refs(self) -> SessionRefs:
        return self._actors.refs

    def _check_result(self, result: AskResult, check: bool) -> AskResult:
        """Return a result, or raise `AskFailed` if the ask failed and `check` is True."""
        if check and result.status == "failed":
            raise self._lifecycle.host.ask_error(result)
        return result

    async def _run_operation(
        self, operation: HostCall | HostCompaction | HostRewind, text: str = ""
    ) -> AskResult:
        """Queue an operation like an ask, and return its result.

        If `text` is not empty, the operation appears in the session's events as an ask with this message.
        """
        self._check_caller()
        sink = AnswerSink(self._ended_error)
        shared_sink = self._lifecycle.host.readers.shared_sink(self.id, sink) if text else sink
        message = pack(Message("user", (Text(text),) if text else ()))
        await self._send(
            Submit(message, shared_sink, copy_context(), operation), lambda actors: actors.session
        )
        return await sink.outcome()

    def _prepare_stream(
        self,
        message: UserInput | None,
        results: CallResults | None,
        approvals: Approvals | None,
        settings: AskSettings,
        output: Any = None,  # Any: any type, or a JSON Schema
        key: str | None = None,
    ) -> tuple[AskStream, Callable[[], Awaitable[None]]]:
        """Return the stream of an ask, and an async function that submits the ask."""
        sink = AskStream(self._ended_error, self._lifecycle.host.check_event_loop)
        return sink, self._prepare_submission(sink, message, results, approvals, settings, output, key)

    def _prepare_submission(
        self,
        sink: Sink,
        message: UserInput | None,
        results: CallResults | None,
        approvals: Approvals | None,
        settings: AskSettings,
        output: Any = None,  # Any: any type, or a JSON Schema
        key: str | None = None,
    ) -> Callable[[], Awaitable[None]]:
        """Return an async function that submits an ask, or results and decisions.

        The context variables of this call apply to the ask.

        Raises:
            ConfigError: An argument is invalid, or the arguments cannot be combined.
            NotAwaited, DecisionRefused: A result or a decision is invalid.
        """
        check_ask_arguments(message, results, approvals, settings, output, key)
        if message is not None:
            return partial(self._submit, message, sink, output, settings, copy_context(), key)
        given = resolutions(results, approvals, self._lifecycle.host.limits.result)
        return partial(self._resolve, given, sink, copy_context())

    async def _submit(
        self,
        message: UserInput,
        ask_sink: Sink,
        output: Any,
        settings: AskSettings,
        variables: Context,
        key: str | None,
    ) -> None:
        """Submit an ask, and return once the session has accepted it."""
        with self._lifecycle.submitting():
            await self._lifecycle.host.wait_to_begin(self._lifecycle.spec.tenant)
            form = None if output is None else output_of(output)
            self._lifecycle.configuration.check_forced_tool(
                said := parse_settings(settings, None if form is None else form.schema)
            )
            packed = pack_user_input(message)
            named = None if key is None else ask_key(key, packed, said)
            sink = self._lifecycle.sink_with_readers(ask_sink, variables)
            await self._deliver(
                Submit(packed, sink, variables, asked=said, output=form, key=named, own=ask_sink)
            )

    async def _resolve(self, new_resolutions: Resolutions, sink: Sink, variables: Context) -> None:
        """Send results and decisions to the turn that waits for them, and return once they are recorded."""
        await self._deliver(
            Resolve(new_resolutions, self._lifecycle.sink_with_readers(sink, variables), variables)
        )

    async def _deliver(self, command: Submit | Resolve) -> None:
        """Send a command. If the session rejects the command, close its stream with the error, then raise the error."""
        try:
            await self._send(command, lambda actors: actors.session)
        except ActorsError as error:
            if isinstance(command, Submit):
                self._lifecycle.record.record_refusal(error)
            command.sink.close(error)
            raise

    async def _query(
        self,
        query: Query[R],
        select_actor: Callable[[SessionActors], Ref[Any]] = lambda actors: (
            actors.session
        ),  # Any: each actor has its own command type
    ) -> R:
        """Check the caller, and send a query to the selected actor; by default, to the session actor."""
        self._check_caller()
        return await self._send(query, select_actor)

    async def _send(
        self, query: Query[R], select_actor: Callable[[SessionActors], Ref[Any]]
    ) -> R:  # Any: as in `_query`
        """Send a query to the selected actor, and return the answer.

        If the actors are ending because the journal failed, wait until they have ended, and create new ones.
        """
        # `object`, so that `isinstance` does not narrow the type of the answer
        command: object = query
        if isinstance(command, Submit | Resolve | Switch | Configure):
            self._lifecycle.host.check_capacity()
            await self._lifecycle.wait_departed()
        if self._lifecycle.is_ending:
            await self._lifecycle.actors_ended()
        try:
            return await select_actor(self._actors).ask(query)
        except (ActorStopped, ShuttingDown):
            raise self._ended_error() from None
        except AskOrderError:
            raise ReentrantCall(
                f"A tool cannot ask session {self.id!r}, because neither the tool nor one of its subagents opened it; "
                "open a new session in the tool"
            ) from None
        except ActorFailed:
            raise SessionError(f"Session {self.id!r} was just restarted; ask again") from None

    def _ended_error(self) -> ActorsError:
        """Return the error for callers of a session that has ended."""
        return copy_error(self._lifecycle.end_error) or SessionClosed(
            f"Session {self.id!r} has ended; open another session"
        )
