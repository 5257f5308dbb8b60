"""Close a session: log its end, and stop its actors.

`SessionLifecycle.close` runs this in a task of the host, so closing continues even if the caller is cancelled. If the
end cannot be logged, the session stays open. If another host has claimed the session, only the actors are stopped.
"""

from contextlib import suppress
from typing import Protocol

import anyio

from actors.errors import (
    ActorFailed,
    ActorsError,
    ActorStopped,
    Fenced,
    JournalBehind,
    JournalDamaged,
    ShuttingDown,
)
from actors.runtime.session_actors import SessionActors
from actors.session.commands import Close

END_TRIES = 8
"""Maximum attempts to log the end of a session. This is more than the number of times that a session may restart."""


class ClosableSession(Protocol):
    """A session that `close_session` can close. `actors.runtime.lifecycle` implements it."""

    @property
    def actors(self) -> SessionActors | None:
        """The session's actors, or None if it has none."""
        ...

    @property
    def is_over(self) -> bool:
        """True if the session has ended on this host."""
        ...

    def activate(self) -> SessionActors:
        """Return the session's actors, which are created if there are none."""
        ...

    def end(self, error: ActorsError | None = None) -> None:
        """End the session on this host without logging an event."""

    async def actors_ended(self) -> None:
        """If the actors are ending, wait until they have ended; otherwise return at once."""


async def close_session(session: ClosableSession, in_order: bool) -> None:
    """Stop a session's actors, and end the session. If `in_order`, first cancel its ask in flight and log its end.

    Raises:
        JournalUnavailable: The end cannot be logged. The session stays open, but its asks have ended.
        Fenced: Another host has claimed the session, so it has ended here.
    """
    goes_on = False
    try:
        if in_order and not session.is_over:
            # These errors mean that the session has already ended, or that its log cannot be written.
            with suppress(ActorStopped, ShuttingDown, JournalDamaged):
                await _log_end(session)
    except Exception as error:
        goes_on = not isinstance(error, Fenced)
        raise
    finally:
        if not goes_on:
            await _stop(session)


async def _log_end(session: ClosableSession) -> None:
    """Log the end of a session. Retry if the session actor crashes, or if the storage has lost events."""
    for left in reversed(range(END_TRIES)):
        await session.actors_ended()
        try:
            await (session.actors or session.activate()).session.ask(Close())
        except (ActorFailed, JournalBehind) as error:
            if not left and isinstance(error, JournalBehind):
                raise
        else:
            return


async def _stop(session: ClosableSession) -> None:
    """Stop the actors and end the session, even if the caller is cancelled."""
    with anyio.CancelScope(shield=True):
        if session.actors is not None:
            await session.actors.stop()
        session.end()  # has no effect if the session ended when its actors ended
