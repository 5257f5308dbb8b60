"""Track the session ids that are in use in one runtime, because the sessions are open, or are being opened or deleted.

A caller reserves an id before it claims the session in the journal, so an id belongs to one caller at a time.
"""

import os
import re
from collections.abc import Callable
from typing import Literal, TypeAlias

import anyio
from msgspec import Struct

from actors.errors import InvalidIdentifier, SessionExists, TooManySessions
from actors.runtime.handle import Session
from actors.runtime.handles import OpenSessions
from actors.runtime.residency import HostedSession
from actors.runtime.session_host import SessionHost

SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

Purpose: TypeAlias = Literal["open", "delete"]


class Reservation(Struct):
    """A session id that a caller has reserved.

    Args:
        purpose: Whether the caller opens or deletes the session.
        freed: Set once the id is free again; None if no caller waits for the id.
    """

    purpose: Purpose
    freed: "anyio.Event | None" = None


def session_key() -> str:
    """Return a key that no other session has, in any process.

    The idempotency keys of a session's calls begin with this key. The key comes from the operating system, because two
    processes with equally seeded generators, or with a generator that was copied by a fork, would generate the same
    key.
    """
    return os.urandom(8).hex()


class SessionRegistry:
    """The open sessions of one runtime by id, and the reserved ids.

    The attribute `draw_key` is a function that generates the key of each new session; simulations replace it.
    """

    def __init__(self) -> None:
        self.draw_key: Callable[[], str] = session_key
        self.open: dict[str, Session] = {}
        self.ids: OpenSessions = OpenSessions(self.open)
        """The ids of the open sessions, oldest first. The view changes as sessions open and close."""
        self._reserved: dict[str, Reservation] = {}
        self._drawn, self._suffix = 0, ""

    def remove(self, session: HostedSession) -> None:
        """Remove a session that has ended from the open sessions."""
        self.open.pop(session.name, None)

    def is_reserved(self, name: str) -> bool:
        """Return True if a caller is opening or deleting the session with this id."""
        return name in self._reserved

    def is_taken(self, name: str) -> bool:
        """Return True if the session with this id is open, or is being opened or deleted."""
        return name in self.open or name in self._reserved

    async def find_settled(self, name: str) -> Session | None:
        """Wait until no caller is opening, closing or deleting this session. Return the session, or None if it is not
        open.
        """
        while True:
            if (reservation := self._reserved.get(name)) is not None:
                reservation.freed = reservation.freed or anyio.Event()
                await reservation.freed.wait()
            elif (session := self.open.get(name)) is None:
                return None
            elif (closing := session._lifecycle.closing) is None:
                return session
            else:
                await closing.wait()

    async def wait_settled(self) -> None:
        """Wait until the operations in progress that open or delete sessions have ended."""
        for name in tuple(self._reserved):
            await self.find_settled(name)

    def ensure_room(self, host: SessionHost) -> None:
        """Ensure that one more session may be opened. If the maximum number is open, release a session that no caller
        holds.

        Raises:
            TooManySessions: The maximum number of sessions is open, and none can be released.
        """
        opening = {name for name, each in self._reserved.items() if each.purpose == "open"}
        most = host.residency.limits.sessions
        if len(self.open.keys() | opening) >= most and not host.residency.release_one():
            raise TooManySessions(
                f"{len(self.open)} sessions are open, the most that limits.sessions allows; close a session"
            )

    def reserve(self, requested_id: str | None) -> str:
        """Reserve an id for a session to be opened, and return it. If `requested_id` is None, generate one.

        Raises:
            InvalidIdentifier: The id is invalid.
            SessionExists: The session is open, or is being opened or deleted.
        """
        if requested_id is None:
            self._drawn += 1
            requested_id = f"session-{self._drawn}{self._suffix}"
        name: object = requested_id  # callers may pass any object
        if not (isinstance(name, str) and SESSION_ID.fullmatch(name)):
            raise InvalidIdentifier(
                f"Session id {str(requested_id)[:80]!r} is invalid; use 1 to 64 letters, digits, '_' or '-'"
            )
        if self.is_taken(requested_id):
            raise SessionExists(
                f"Session {requested_id!r} is already open; use another id, or pass resume=True"
            )
        self._reserved[requested_id] = Reservation("open")
        return requested_id

    def change_suffix(self) -> None:
        """Generate ids with a different suffix from now on. Called if a generated id already has a log."""
        self._suffix = f"-{self.draw_key()}"

    def reserve_for_deletion(self, *names: str) -> None:
        """Reserve these ids, so that no caller opens the sessions while they are deleted."""
        self._reserved |= {name: Reservation("delete") for name in names}

    def free(self, *names: str) -> None:
        """End the reservations of these ids, and wake the callers that wait for them."""
        for name in names:
            reservation = self._reserved.pop(name, None)
            if reservation is not None and reservation.freed is not None:
                reservation.freed.set()
