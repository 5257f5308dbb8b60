"""Count the callers that hold a session, and look up open sessions.

Several callers may hold the same session. A caller that uses `await runtime.open(...)` holds the session until the
session is closed. A caller that uses `async with` releases the session on exit. A session that no caller holds
hibernates, or is closed if its log is in memory (`actors.runtime.lifecycle`).
"""

from collections.abc import Callable, Collection, Coroutine, Generator, Iterator, Mapping
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec

from actors.errors import SessionClosed

if TYPE_CHECKING:
    from actors.runtime.handle import Session

P = ParamSpec("P")


class SessionOpening(Coroutine[Any, Any, "Session"]):  # Any: set by the event loop
    """An awaitable that opens a session. Use it once, either with `await` or with `async with`.

    A session from `await` stays open until `Session.close`. `async with` releases the session on exit. Once every
    caller has released the session, it hibernates or, if its log is in memory, is closed. An ask in flight is not
    stopped: the session is closed once the ask has ended and no turn is paused.
    """

    __slots__ = ("_opening", "_session")

    def __init__(self, opening: Coroutine[Any, Any, "Session"]) -> None:  # Any: set by the event loop
        self._opening = _open_and_hold(opening)
        self._session: Session | None = None

    def __await__(self) -> Generator[Any, Any, "Session"]:  # Any: set by the event loop
        return self._opening.__await__()

    def send(self, value: Any, /) -> Any:  # Any: set by the event loop
        """Resume the opening. See `Coroutine.send`."""
        return self._opening.send(value)

    def throw(self, *failure: Any) -> Any:  # Any: the argument forms of `Coroutine.throw`
        """Raise an exception in the opening. See `Coroutine.throw`."""
        return self._opening.throw(*failure)

    def close(self) -> None:
        """Close the opening without awaiting it. See `Coroutine.close`."""
        self._opening.close()

    async def __aenter__(self) -> "Session":
        self._session = await self._opening
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session._lifecycle.give_back()


async def _open_and_hold(opening: Coroutine[Any, Any, "Session"]) -> "Session":  # Any: set by the event loop
    """Open a session, and count one more caller that holds it."""
    session = await opening
    session._lifecycle.handles += 1
    return session


def opens_session(
    method: Callable[P, Coroutine[Any, Any, "Session"]],
) -> Callable[P, SessionOpening]:  # Any: set by the event loop
    """Decorate a coroutine method that opens a session. The decorated method returns a `SessionOpening`."""

    @wraps(method)
    def opening(*args: P.args, **kwargs: P.kwargs) -> SessionOpening:
        return SessionOpening(method(*args, **kwargs))

    return opening


class OpenSessions(Collection[str]):
    """A live view of the ids of the open sessions. `sessions[id]` is the session.

    `in` takes constant time. Iteration covers the sessions that are open when it begins.
    """

    def __init__(self, sessions: Mapping[str, "Session"]) -> None:
        self._sessions = sessions

    def __getitem__(self, id: str) -> "Session":  # noqa: A002  callers expect the name `id`
        """Return an open session. Raises `SessionClosed` if no session with this id is open."""
        if id not in self:
            name = str(id)[:80]
            raise SessionClosed(
                f"No session {name!r} is open; open or resume it with open(target, id={name!r}, resume=True)"
            )
        return self._sessions[id]

    def __contains__(self, id: object) -> bool:  # noqa: A002  callers expect the name `id`
        return isinstance(id, str) and id in self._sessions

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._sessions))

    def __len__(self) -> int:
        return len(self._sessions)

    def __repr__(self) -> str:
        return f"OpenSessions({', '.join(self._sessions)})"
