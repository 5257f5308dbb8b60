"""Define the methods of `Runtime` that move sessions to other hosts of the same journal.

`actors.runtime.mover` does the work. This module checks the arguments.
"""

from math import inf
from typing import TYPE_CHECKING

from actors.errors import ConfigError
from actors.runtime.validation import check_nonnegative, checked_session_id

if TYPE_CHECKING:
    from actors.journal.storage.directory import Movement
    from actors.runtime.mover import SessionMover
    from actors.runtime.registry import SessionRegistry
    from actors.runtime.session_host import SessionHost


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

        The method first waits for the turn in flight. Queued asks end with `SessionLeased`. A turn that waits for its
        caller stays open in the log. Once all events are written, the journal assigns the session to the other host in
        one step. After that, this session's handle raises `SessionLeased` with the `address` of the other host, and
        `Runtime.claim` on that host resumes the session. If the caller is cancelled, the handover continues.

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
                them.
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

    async def rebalance(self, *, most: int = 100, rate: float = 10.0, timeout: float = 30.0) -> "Movement":
        """Move idle sessions to other hosts, if this host has more sessions than the mean of the serving hosts.

        Sessions are moved as by `hand_over`, least recently used first, to hosts that have fewer sessions than the
        mean. Sessions with an ask in flight, or with a turn that waits for its caller, are not moved. If every host's
        number of sessions is within 20 % of the mean, no session is moved. Call this method on every host from time to
        time, for example a minute after a host has joined.

        Args:
            most: Maximum number of sessions that this call moves.
            rate: Maximum number of sessions that are moved per second.
            timeout: Seconds to wait for a turn that starts before its session is moved, as in `hand_over`.

        Returns:
            The ids of the sessions that were moved, and of the sessions that are still open in this runtime.

        Raises:
            ConfigError: An argument is not a number that is 0 or more, or `rate` is 0.
            JournalError: The journal cannot list the hosts.
        """
        check_nonnegative(most=most)
        return await self._mover(timeout, rate).rebalance(most)

    def _mover(self, timeout: float, rate: float = inf) -> "SessionMover":
        host = self._running_host()
        host.check_event_loop()
        check_nonnegative(rate=rate, timeout=timeout)
        if not rate:
            raise ConfigError("rate= takes a number of sessions per second greater than 0, not 0")
        from actors.runtime.mover import SessionMover  # imported here, because few programs move sessions

        return SessionMover(host, self._registry, timeout, rate)
