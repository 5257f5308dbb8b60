"""Track the session ids that are in use in one runtime: open, or being opened or deleted.

A caller reserves an id before it claims the session in the journal, so an id belongs to one caller at a time.
"""

import os
import re
from collections.abc import Callable
from typing import Literal, TypeAlias

import anyio
from msgspec import Struct

from actors.errors import ConfigError, SessionExists, TooManySessions
from actors.runtime.handle import Session
from actors.runtime.handles import OpenSessions
from actors.runtime.residency import HostedSession
from actors.runtime.session_host import SessionHost

SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

Purpose: TypeAlias = Literal["open", "delete"]


class Reservation(Struct):
    """An id that a caller has reserved. `over`: set when the id is free again, if a caller waits for it."""

    purpose: Purpose
    over: "anyio.Event | None" = None


def session_key() -> str:
    """Return a key that no other session has, in any process.

    The idempotency keys of a session's calls begin with it. It comes from the system's randomness, because a seed, or a
    generator that a fork has copied, would give two processes the same key.
    """
    return os.urandom(8).hex()


class SessionRegistry:
    """The sessions of one runtime by id. `draw_key` returns the key of each new session; simulations replace it."""

    def __init__(self) -> None:
        self.draw_key: Callable[[], str] = session_key
        self.open: dict[str, Session] = {}
        self.ids: OpenSessions = OpenSessions(self.open)
        """A live view of the open sessions, oldest first."""
        self._reserved: dict[str, Reservation] = {}
        self._drawn, self._suffix = 0, ""

    def remove(self, session: HostedSession) -> None:
        """Remove a session that has ended."""
        self.open.pop(session.name, None)

    def is_reserved(self, name: str) -> bool:
        """True if a caller is opening or deleting the session of this id."""
        return name in self._reserved

    def is_taken(self, name: str) -> bool:
        """True if the session of this id is open, or being opened or deleted."""
        return name in self.open or name in self._reserved

    async def find_settled(self, name: str) -> Session | None:
        """Return the open session with this id, or None, after any operation that opens, closes or deletes it."""
        while True:
            if (reservation := self._reserved.get(name)) is not None:
                reservation.over = reservation.over or anyio.Event()
                await reservation.over.wait()
            elif (session := self.open.get(name)) is None:
                return None
            elif (closing := session._lifecycle.closing) is None:
                return session
            else:
                await closing.wait()

    def check_room(self, host: SessionHost) -> None:
        """Check that one more session may be open. A session without a handle makes room for another.

        Raises:
            TooManySessions: The runtime has as many sessions as it may have.
        """
        opening = {name for name, each in self._reserved.items() if each.purpose == "open"}
        most = host.residency.limits.sessions
        if len(self.open.keys() | opening) >= most and not host.residency.let_one_go():
            raise TooManySessions(f"{len(self.open)} sessions are open, as limits.sessions says; close one")

    def reserve(self, given: str | None) -> str:
        """Reserve an id for a session to be opened, and return it. If none is given, an id is generated.

        Raises:
            ConfigError: The id is not usable.
            SessionExists: The session is open, or being opened or deleted.
        """
        if given is None:
            self._drawn += 1
            given = f"session-{self._drawn}{self._suffix}"
        name: object = given  # callers may pass anything
        if not (isinstance(name, str) and SESSION_ID.fullmatch(name)):
            raise ConfigError(
                f"Session id {str(given)[:80]!r} is invalid; use 1 to 64 letters, digits, '_' or '-'"
            )
        if self.is_taken(given):
            raise SessionExists(
                f"Session {given!r} is open already; take another id, or open it with resume=True"
            )
        self._reserved[given] = Reservation("open")
        return given

    def change_suffix(self) -> None:
        """Generate ids with another suffix from now on, because other processes have used the earlier ones."""
        self._suffix = f"-{self.draw_key()}"

    def reserve_for_deletion(self, *names: str) -> None:
        """Keep sessions from being opened while they are deleted."""
        self._reserved |= {name: Reservation("delete") for name in names}

    def free(self, *names: str) -> None:
        """Release reserved ids, and wake the callers that wait for them."""
        for name in names:
            reservation = self._reserved.pop(name, None)
            if reservation is not None and reservation.over is not None:
                reservation.over.set()
