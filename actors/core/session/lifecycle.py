"""The life of an open session as a table: what is in memory of it, and what changes that.

In:  the state of a session, and an event.
Out: the action to take, and the next state.

Before its life begins, a session's id is claimed and its log is written or read (`actors.runtime.opening`), so every
session begins `folded`, whether it was opened, resumed, forked or imported. Another table has the phases of a session
with actors (`actors.core.session.phases`).

    stored      only the log is kept, and the little that no log holds
    folded      no actors; what the log folds to is in memory: the state and the lanes
    active      the session has actors
    suspended   the journal failed, and the actors have ended; tools that they started may still run
    ended       closed, left to another host, or given up after too many crashes

Events:

    use         a caller needs the actors
    rest        the actors have nothing to do, and give their place to others
    evict       memory is short
    fail        an event could not be written, or the log not be read, and the actors have ended
    end         the session ends on this host

Actions:

    nothing     leave the session as it is
    read        make actors, which read the log
    restore     make actors from the fold
    restart     start the actors again, which read the log
    keep        end the actors and keep their state and lanes
    drop        forget the fold
    forget      forget what the actors knew
    release     give back all that the session has
    refuse      raise the reason why the session has ended

An event without an action in a state is a programming error there.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

LifecycleState: TypeAlias = Literal["stored", "folded", "active", "suspended", "ended"]
LifecycleEvent: TypeAlias = Literal["use", "rest", "evict", "fail", "end"]
LifecycleAction: TypeAlias = Literal[
    "nothing", "read", "restore", "restart", "keep", "drop", "forget", "release", "refuse"
]

_ACTIONS: Mapping[LifecycleState, tuple[LifecycleAction | None, ...]] = {  # by event, in the order above
    "stored": ("read", "nothing", "nothing", None, "release"),
    "folded": ("restore", "nothing", "drop", None, "release"),
    "active": ("nothing", "keep", None, "forget", "release"),
    "suspended": ("restart", "nothing", "nothing", None, "release"),
    "ended": ("refuse", "nothing", None, None, "nothing"),
}
_NEXT: Mapping[LifecycleAction, LifecycleState] = {  # every other action leaves the state as it is
    "read": "active",
    "restore": "active",
    "restart": "active",
    "keep": "folded",
    "drop": "stored",
    "forget": "suspended",
    "release": "ended",
}
TABLE: Mapping[tuple[LifecycleState, LifecycleEvent], tuple[LifecycleAction, LifecycleState]] = {
    (state, event): (action, _NEXT.get(action, state))
    for state, row in _ACTIONS.items()
    for event, action in zip(get_args(LifecycleEvent), row, strict=True)
    if action is not None
}


def step(state: LifecycleState, event: LifecycleEvent) -> tuple[LifecycleAction, LifecycleState]:
    """Return the action for an event in a state, and the next state."""
    if (state, event) not in TABLE:
        raise AssertionError(f"{event!r} cannot happen while the session is {state!r}")
    return TABLE[state, event]
