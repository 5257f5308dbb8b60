"""Define the methods of `Runtime` that open, resume, claim, find and move sessions.

    open      a new session; with `resume=True`, an existing session too
    resume    a session from the journal
    claim     an open session, or a session from the journal
    session   an open session

`actors.runtime.opening` does the work, and `actors.runtime.mover` moves sessions to other hosts of the same journal.
This module checks the arguments, and whether the runtime accepts new work.
"""

from collections.abc import Iterable, Mapping
from math import inf
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from actors.core.settings.labels import Scalar
from actors.core.settings.spending import Budget
from actors.core.turn.guards import Repeats
from actors.core.values.content import Message
from actors.errors import ConfigError, ShuttingDown
from actors.runtime.handles import OpenSessions, opens_session
from actors.runtime.validation import SessionConfig, check_nonnegative, checked_session_id, session_fields

if TYPE_CHECKING:
    from actors.config import Config
    from actors.core.turn.batch import Approve
    from actors.journal.storage.directory import Movement
    from actors.runtime.handle import Session
    from actors.runtime.mover import SessionMover
    from actors.runtime.opening import SessionOpener
    from actors.runtime.registry import SessionRegistry
    from actors.runtime.session_host import SessionHost
    from actors.tools.toolsets import ToolItem


class SessionMovement:
    """The methods of `Runtime` that move sessions to other hosts of the journal."""

    _registry: "SessionRegistry"

    def _running_host(self) -> "SessionHost":
        """Return the host of the runtime's sessions. Raises `KernelError` if the runtime is not running."""
        raise NotImplementedError

    async def hand_over(
        self,
        id: str,  # noqa: A002  callers expect the name `id`
        /,
        to: str,
        *,
        timeout: float = 30.0,
    ) -> None:
        """Make another host the owner of an open session, so that no caller has to wait until a lease expires.

        The method first waits for the turn in flight. Queued asks end with `SessionLeased`. A paused turn stays open in
        the log. Once all events are written, the journal assigns the session to the other host in one step. After that,
        this session's handle raises `SessionLeased` with the `address` of the other host, and `Runtime.claim` on that
        host resumes the session. If the caller is cancelled, the handover continues.

        Args:
            id: Id of a session that is open in this runtime.
            to: The `address` of another runtime with the same journal.
            timeout: Seconds to wait for the turn in flight before its ask is cancelled. An ask with a `key` can be
                repeated on the other host, where it continues.

        Raises:
            ConfigError: An argument has a wrong type or value.
            SessionClosed, SessionLeased: No session with this id is open, or the session ended during the call.
            HostUnavailable: No other live host with this address accepts sessions. The session stays in this runtime.
            ReentrantCall: A tool of this session called this method. The handover would have to wait for the tool.
            JournalError: The session cannot be handed over. Unless the error is `Fenced`, the session stays usable.
            ShuttingDown: The handover itself was cancelled, because the runtime exited.
        """
        mover = self._mover(timeout)
        session = self._registry.ids[checked_session_id(id)]
        session._check_caller()
        await mover.hand_over(session, to)

    async def drain(self, *, rate: float = 10.0, timeout: float = 30.0) -> "Movement":
        """Move all sessions to other hosts, and open no more sessions. Call this method before you exit the runtime.

        From then on, sessions that are not open in this runtime are refused: `resume`, `claim` and `open` with
        `resume=True` raise `SessionLeased` if another host owns the session already; otherwise, and if `open` would
        create a session, the error is `HostDraining`. Other hosts no longer hand sessions over to this runtime. Each
        open session is handed over, as by `hand_over`, to the serving host with the fewest sessions; until then, it can
        be used. If no other host with an address is serving, the session is released, as by `Session.release`. If you
        exit a runtime without calling this method, all sessions are released at once.

        With a journal in memory, sessions stay in this runtime, because no other host could read them.

        Args:
            rate: Maximum number of sessions that are moved per second. A limit gives the other hosts time to resume
                the sessions.
            timeout: Seconds to wait for the turn of each session, as in `hand_over`.

        Returns:
            The ids of the sessions that were moved, and of the sessions that could not be moved.

        Raises:
            ConfigError: `rate` or `timeout` is not a number that is 0 or more, or `rate` is 0.
            ReentrantCall: A tool of a session of this runtime called this method. The drain would have to wait for the
                tool.
            JournalError: The journal cannot record that this host is draining. Call the method again.
        """
        return await self._mover(timeout, rate).drain()

    async def rebalance(self, *, limit: int = 100, rate: float = 10.0, timeout: float = 30.0) -> "Movement":
        """Move idle sessions to other hosts, if this host has more sessions than the mean of the serving hosts.

        Sessions are moved as by `hand_over`, least recently used first, to hosts that have fewer sessions than the
        mean. Sessions with an ask in flight, or with a paused turn, are not moved. If every host's
        number of sessions is within 20 % of the mean, no session is moved. Call this method on every host from time to
        time, for example a minute after a host has joined.

        Args:
            limit: Maximum number of sessions that this call moves.
            rate: Maximum number of sessions that are moved per second.
            timeout: Seconds to wait for a turn that starts before its session is moved, as in `hand_over`.

        Returns:
            The ids of the sessions that were moved, and of the sessions that are still open in this runtime.

        Raises:
            ConfigError: An argument is not a number that is 0 or more, or `rate` is 0.
            JournalError: The journal cannot list the hosts.
        """
        check_nonnegative(limit=limit)
        return await self._mover(timeout, rate).rebalance(limit)

    def _mover(self, timeout: float, rate: float = inf) -> "SessionMover":
        host = self._running_host()
        host.check_event_loop()
        check_nonnegative(rate=rate, timeout=timeout)
        if not rate:
            raise ConfigError("rate= takes a number of sessions per second greater than 0, not 0")
        from actors.runtime.mover import SessionMover  # imported here, because few programs move sessions

        return SessionMover(host, self._registry, timeout, rate)


class SessionAccess(SessionMovement):
    """The methods of `Runtime` that open, resume, claim and find sessions."""

    config: "Config"

    @opens_session
    async def open(
        self,
        target: str,
        *,
        tools: "Iterable[ToolItem]" = (),
        id: str | None = None,  # noqa: A002  callers expect the name `id`
        system: str | None = None,
        messages: Iterable[Message] = (),
        approve: "Approve | None" = None,
        deps: object = None,
        tenant: str = "",
        budget: Budget | None = None,
        on_repeat: Repeats | None = None,
        title: str = "",
        metadata: Mapping[str, Scalar] | None = None,
        resume: bool = False,
    ) -> "Session":
        """Open a session.

        With `await`, the session stays open until it is closed. With `async with`, it is released on exit. A session
        that every caller has released hibernates once no ask is in flight. If its log is in memory, the session is
        closed instead, unless a turn is paused. If this call is cancelled, neither a session nor a log
        remains.

        Args:
            target: `provider:model`, or the name of a configured backend or pool.
            tools: The tools that the model may call; functions are converted to tools. A toolset (an async context
                manager that returns tools or a `ToolSource`) is opened first, and closed with the last session that
                uses it. A string is the name of an MCP server in the configuration.
            id: The session's id: 1 to 64 letters, digits, `_` and `-`; generated by default.
            system: System prompt, until `Session.configure` replaces it; by default, the system prompt in `messages`.
            messages: The initial history, for example from `from_wire`. `Session.history` keeps the report of this
                history.
            approve: Called before a call of a tool with `approval="ask"` runs. True allows the call, and any other
                value denies it; a string is the reason for the denial. The function may be async; a plain function runs
                in a thread. Without `approve`, the turn waits for a decision (`approvals` of `Session.ask`).
            deps: Any object that the tools need, such as a database. Tools read it from `ToolContext.deps`.
            tenant: Name of the tenant, at most 64 characters. Queued requests are scheduled fairly between tenants.
            budget: The limits of the session over its lifetime. When a limit is reached, the turn ends before its next
                request, with every call closed, and later asks raise `OverBudget`.
            on_repeat: How to treat repeated calls that return the same result; None for the setting `limits.on_repeat`.
            title: The title in lists of sessions: at most 200 characters, without control characters.
            metadata: Labels of the session, which `journal.list(metadata=)` matches: at most 16 keys of up to 64
                characters. A value is a string of up to 512 characters, an int of 64 bits, a finite float or a bool.
                Postgres indexes metadata of up to 2,500 bytes of JSON; a list by metadata examines all sessions with
                longer metadata. The session's log contains the title and the metadata; requests, logging and metrics do
                not.
            resume: If a session with this `id` exists, return it. An open session is returned unchanged. A session that
                is not open is resumed with the `tools`, `approve`, `deps` and `on_repeat` of this call; everything
                else, including title and metadata, comes from its log. If the log is in memory and has ended, a new log
                replaces it. Concurrent callers receive the same session.

        Raises:
            ConfigError: The target, a tool, the id, the tenant, the budget, the title or the metadata is invalid; the
                target accepts fewer tools; or the budget limits the cost and a price is missing.
            SessionExists: A session with this id is open or has a log; or, with `resume`, it belongs to another
                `tenant`.
            SessionClosed, SessionLeased, HostDraining: As for `Runtime.resume`.
            TranscriptError: `messages` contains an object that is not a valid message.
            ToolsetFailed: A toolset cannot be opened. The toolsets that were opened for this call are closed again.
            JournalError: The log cannot be written. The session is not open.
        """
        opener = self._opener()
        fields = session_fields(tenant, budget, title, metadata)
        new = await opener.make_new_session(target, system, messages, fields)
        self.config.resolve(target)
        config = SessionConfig(tools, approve, deps, on_repeat)
        if not resume:
            return await opener.open(id, new, config)
        if id is None:
            raise ConfigError("resume=True needs id=, the id of the session to open or resume")
        return await opener.open_or_resume(checked_session_id(id), new, config)

    @opens_session
    async def resume(
        self,
        id: str,  # noqa: A002  callers expect the name `id`
        *,
        tools: "Iterable[ToolItem]" = (),
        approve: "Approve | None" = None,
        deps: object = None,
        system: str | EllipsisType | None = ...,
        target: str | None = None,
        on_repeat: Repeats | None = None,
        output: Any = None,  # Any: any type, or a JSON Schema
        wait: float = 0.0,
    ) -> "Session":
        """Resume a session from the journal, after its runtime exited or its process was killed.

        If a turn was running, it ends as `interrupted`. Calls that had ended keep their results. A call that had
        started is reported as `outcome_unknown`, or runs again if its tool allows that. After that, a turn is open only
        if it waits for results or decisions (`Session.pending`). It continues when you pass them to `Session.ask`.

        Args:
            id: Id of the session.
            tools, approve, deps, on_repeat: As for `open`, because the log does not contain them. If the tools have
                changed, the effect is that of `Session.configure`: the next request declares the new tools, and a call
                of a removed tool is answered with an error.
            system: System prompt; unchanged by default.
            target: Target of the next ask; unchanged by default.
            output: The `output` of the ask that waits, if there is one. The log contains its schema but not its type,
                so without this argument, the answer is plain JSON.
            wait: If another host has claimed the session, the maximum number of seconds to wait until that host
                releases the session or the host's lease expires.

        Raises:
            SessionUnknown: The session has no log.
            SessionClosed: The session was closed.
            SessionExists: The session is open in this runtime.
            SessionLeased: Another host has claimed the session, and the host's lease has not expired.
            HostDraining: This runtime is draining (`Runtime.drain`), and no other host owns the session.
            ConfigError: The target or a tool cannot be used, or `output` differs from that of the ask that waits.
            ToolsetFailed: A toolset cannot be opened.
            JournalError: The log is damaged, or cannot be read or written.
        """
        config = SessionConfig(tools, approve, deps, on_repeat, output, system, target, wait)
        return await self._opener().resume(checked_session_id(id), config)

    @opens_session
    async def claim(
        self,
        id: str,  # noqa: A002  callers expect the name `id`
        *,
        tools: "Iterable[ToolItem]" = (),
        approve: "Approve | None" = None,
        deps: object = None,
        system: str | EllipsisType | None = ...,
        target: str | None = None,
        on_repeat: Repeats | None = None,
        output: Any = None,  # Any: any type, or a JSON Schema
        wait: float = 0.0,
    ) -> "Session":
        """Return an existing session, for a program that receives requests for any session of the journal.

        If the session is open in this runtime, it is returned unchanged. If no live host has claimed the session, it is
        resumed as by `resume`. If another live host has claimed the session, the method raises `SessionLeased`; send
        the request to the `address` of that error. `open` with `resume=True` does the same, but creates the session if
        it does not exist.

        Args:
            id: Id of the session.
            tools, approve, deps, system, target, on_repeat, output, wait: As for `resume`. They have no effect on a
                session that is open in this runtime.

        Raises:
            SessionUnknown: The session has no log.
            SessionLeased: Another host has claimed the session, and the host's lease has not expired.
            HostDraining: This runtime is draining (`Runtime.drain`), the session is not open in this runtime, and no
                other host owns the session.
            ActorsError: Any other error that `resume` raises.
        """
        config = SessionConfig(tools, approve, deps, on_repeat, output, system, target, wait)
        return await self._opener().claim(checked_session_id(id), config)

    def session(self, id: str) -> "Session":  # noqa: A002  callers expect the name `id`
        """Return an open session by its id.

        Raises:
            ConfigError: The id is not a string.
            SessionClosed: No session with this id is open.
        """
        self._running_host().check_event_loop()
        return self.sessions[checked_session_id(id)]

    @property
    def sessions(self) -> OpenSessions:
        """The ids of the open sessions, oldest first, as a live view. `sessions[id]` is the session."""
        return self._registry.ids

    def _opener(self) -> "SessionOpener":
        from actors.runtime.opening import SessionOpener  # imported by the constructor of `Runtime`

        return SessionOpener(self._opening_host(), self._registry)

    def _opening_host(self) -> "SessionHost":
        """Return the host if a session may be opened now.

        Raises:
            KernelError: The runtime is not running, or is exiting.
            JournalUnavailable: The journal is so slow that it accepts no new work.
            TooManySessions: The sessions already use as much memory as they may.
            WrongEventLoop: The caller is not on the runtime's event loop.
        """
        host = self._running_host()
        host.check_event_loop()
        if not host.running:
            raise ShuttingDown("This runtime is closing and cannot open sessions; create a new Runtime")
        host.check_capacity()
        return host
