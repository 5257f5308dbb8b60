"""Classify the errors with which a host rejects a request for a session.

    SessionLeased                                    the host at another address owns the session
    HostDraining, ShuttingDown, TooManySessions      the host accepts no more sessions
    JournalUnavailable                               the host cannot write at the moment
    SessionClosed, Fenced                            the session ended on this host during the request

All other errors are answers, which a router returns to its client. A router itself rejects an attempt if the host was
unreachable, or did not answer after it had received the request.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from actors.errors import (
    ActorsError,
    Fenced,
    JournalUnavailable,
    SessionClosed,
    SessionLeased,
    ShuttingDown,
    TooManySessions,
)

RejectionKind: TypeAlias = Literal["leased", "refused", "ended", "unreachable", "lost"]


class Rejection(Struct, frozen=True):
    """The reason why a host did not serve a request, which may now be sent to another host.

    Args:
        kind: `leased`: another host owns the session. `refused`: the host accepts no more sessions. `ended`: the
            session ended on this host. `unreachable`: the host did not receive the request. `lost`: the host may have
            received the request, and ended or stopped answering.
        error: The error for the client if no further host is tried.
        owner: The address of the owner, if the kind is `leased` and the address is known; otherwise empty.
    """

    kind: RejectionKind
    error: ActorsError
    owner: str = ""


def rejection_of(error: BaseException) -> Rejection | None:
    """Return the rejection that an error means. Return None if the error is an answer to the request."""
    if isinstance(error, SessionLeased):
        return Rejection("leased", error, error.address)
    if isinstance(error, ShuttingDown | TooManySessions | JournalUnavailable):
        return Rejection("refused", error)
    if isinstance(error, SessionClosed | Fenced):
        return Rejection("ended", error)
    return None
