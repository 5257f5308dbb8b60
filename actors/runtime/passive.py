"""What is left of a session that has no actors: asleep, put away, closing or over."""

import anyio
from msgspec import Struct

from actors.errors import Fenced
from actors.journal.log import Replay
from actors.provider.backend import Resolver
from actors.provider.choosing import Affinity


class Passive(Struct, frozen=True):
    """A session without actors.

    Args:
        replay: Its log, folded; None if the log has to be read again.
        affinity: What binds the session to members of pools; None if nothing does.
        dropped: Whether `replay` was there, and had to make room.
        resolver: What its targets mean. Sessions share it, but it is made again if none keeps it.
    """

    replay: Replay | None = None
    affinity: Affinity | None = None
    dropped: bool = False
    resolver: Resolver | None = None


LOGGED, DROPPED = Passive(), Passive(dropped=True)
"""Of a session that is nothing but its log."""


def logged(affinity: Affinity | None, *, dropped: bool = False) -> Passive:
    """Return what is kept of a session beside its log, where that is no more than must be."""
    return Passive(None, affinity, dropped) if affinity else DROPPED if dropped else LOGGED


class Over(Struct, frozen=True):
    """A session that is over. `fenced`: why, if another writer has it now."""

    fenced: Fenced | None = None


class Closing(Struct):
    """A close that is under way. `error`: why it was not done in order."""

    over: "anyio.Event"  # quoted, as wherever it stands outside of a function: anyio imports it when it is named
    error: Exception | None = None
