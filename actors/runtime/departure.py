"""End a session on this host so that another host can continue it: either release it, or hand it over.

During a departure, commands that would change the session wait (`SessionLifecycle.wait_departed`). The turn in flight
has a time limit, after which it is cancelled, as when the runtime exits. Queued asks end with an error, which names the
next host if it is known. A paused turn stays open in the log. Once all events are written, the storage releases the
session or assigns it to the other host, and the session ends on this host. If the storage fails, the session stays on
this host and remains usable.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import anyio

from actors.errors import ActorsError, Fenced, SessionClosed, SessionLeased
from actors.journal.commands import AssignSession, ReleaseSession
from actors.journal.storage.directory import Host
from actors.runtime.lifecycle import SessionLifecycle
from actors.session.pending import copy_error

POLL = 0.05
"""Seconds between two checks whether the turn in flight has ended. Usually, an event reports the end earlier."""
CANCEL_TIMEOUT = 5.0
"""Maximum seconds to wait for the turn in flight to end after it was cancelled."""
PASSIVATE_TIMEOUT = 1.0
"""Maximum seconds to wait for queries in progress before the actors are stopped."""

Transfer: TypeAlias = Callable[[], Awaitable[None]]
"""Releases a session in the storage, or assigns it to another host."""


async def release(lifecycle: SessionLifecycle, timeout: float) -> None:
    """Release a session, so that any host can claim the session. See `Session.release`."""
    name, host = lifecycle.name, lifecycle.host
    ended = SessionClosed(
        f"Session {name!r} was released by this host; claim the session again, on this or another host"
    )
    await _depart(lifecycle, partial(host.journal.ask, ReleaseSession(name, lifecycle.fence)), ended, timeout)


async def hand_over(lifecycle: SessionLifecycle, other: Host, timeout: float) -> None:
    """Make another host the owner of a session. See `Runtime.hand_over`."""
    name, host = lifecycle.name, lifecycle.host
    ended = SessionLeased(
        f"Session {name!r} was handed over to host {other.name} at {other.address}; use the session at that host",
        host=other.name,
        seconds=other.remaining_lease or 0.0,
        address=other.address,
    )
    assign = AssignSession(name, lifecycle.fence, other.name)
    await _depart(lifecycle, partial(host.journal.ask, assign), ended, timeout)


async def _depart(
    lifecycle: SessionLifecycle, transfer: Transfer, ended: SessionLeased | SessionClosed, timeout: float
) -> None:
    """End a session on this host. If the caller is cancelled, the departure continues.

    Args:
        lifecycle: The lifecycle of the session.
        transfer: Gives up this host's claim in the storage.
        ended: The error that later uses of the session raise.
        timeout: Seconds to wait for the turn in flight before it is cancelled.

    Raises:
        SessionClosed, SessionLeased: The session has already ended on this host.
        Fenced: Another host has claimed the session.
        ActorsError: The transfer failed. The session remains usable on this host.
    """
    if lifecycle.closing is not None:
        await lifecycle.closing.wait()
    await lifecycle.wait_departed()
    if lifecycle.is_over:
        raise copy_error(lifecycle.end_error) or SessionClosed(f"Session {lifecycle.name!r} has ended")
    work = partial(_carry_out, lifecycle, transfer, ended, timeout)
    departure = lifecycle.departure = lifecycle.host.launch(work, f"{lifecycle.name}/departure")
    await departure.result()


async def _carry_out(
    lifecycle: SessionLifecycle, transfer: Transfer, ended: SessionLeased | SessionClosed, timeout: float
) -> None:
    await _end_turn(lifecycle, ended, timeout)
    try:
        await transfer()
    except Fenced as error:
        await _end(lifecycle, error)
        raise
    await _end(lifecycle, ended)


async def _end_turn(lifecycle: SessionLifecycle, error: ActorsError, timeout: float) -> None:
    """End queued asks with an error, wait for the turn in flight, and end the actors once they are idle.

    After `timeout` seconds, the turn is cancelled.
    """
    until = anyio.current_time() + timeout
    lifecycle.drop_queued(error)
    while lifecycle.is_asking and (left := until - anyio.current_time()) > 0:
        await lifecycle.wait_for_ask_end(min(POLL, left))
    with anyio.move_on_after(CANCEL_TIMEOUT):
        await lifecycle.interrupt_asks()
        await lifecycle.actors_ended()
    until = anyio.current_time() + PASSIVATE_TIMEOUT
    while not lifecycle.passivate() and not lifecycle.runs_tools and anyio.current_time() < until:  # noqa: ASYNC110  no event reports the end of a query
        await anyio.sleep(POLL)


async def _end(lifecycle: SessionLifecycle, error: ActorsError) -> None:
    """End the session on this host, then stop its actors, if they still exist because a tool is running.

    Later uses of the session raise `error`.
    """
    actors = lifecycle.actors
    lifecycle.end(error)
    if actors is not None:
        await actors.stop()
