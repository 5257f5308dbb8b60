"""Define the life cycle of an open session as a table of states and events.

`actors.runtime.lifecycle` carries out the actions.

In:  the state of a session, and an event.
Out: the action to take, and the next state.

Before a session enters this table, its id is claimed and its log is written or read (`actors.runtime.opening`). Every
session therefore begins `folded`, whether it was opened, resumed, forked or imported. While a session has actors,
another table describes its phases (`actors.core.session.phases`).

    stored      only the log is kept, with the few values that a log cannot contain
    folded      no actors; the state and the lanes are in memory
    active      the session has actors
    suspended   the journal failed and the actors have ended; tools that they started may still run
    ended       closed, taken over by another host, or given up after too many crashes

Events:

    use         a caller needs the actors
    rest        the actors are idle and are ended to free memory
    evict       memory is short
    fail        the log could not be written or read, and the actors have ended
    end         the session ends on this host

Actions:

    nothing     leave the session unchanged
    read        start actors, which read the log
    restore     start actors from the state and the lanes in memory
    restart     start the actors again, which read the log
    keep        end the actors and keep their state and lanes
    drop        discard the state and the lanes
    forget      discard the memory of the failed actors
    release     release every resource of the session
    refuse      raise the reason why the session has ended

If the table has no action for an event in a state, the event cannot occur there, and `step` raises `AssertionError`.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

LifecycleState: TypeAlias = Literal["stored", "folded", "active", "suspended", "ended"]
LifecycleEvent: TypeAlias = Literal["use", "rest", "evict", "fail", "end"]
LifecycleAction: TypeAlias = Literal[
    "nothing", "read", "restore", "restart", "keep", "drop", "forget", "release", "refuse"
]

# The actions of each state: one per event, in the order of `LifecycleEvent`.
_ACTIONS: Mapping[LifecycleState, tuple[LifecycleAction | None, ...]] = {
    "stored": ("read", "nothing", "nothing", None, "release"),
    "folded": ("restore", "nothing", "drop", None, "release"),
    "active": ("nothing", "keep", None, "forget", "release"),
    "suspended": ("restart", "nothing", "nothing", None, "release"),
    "ended": ("refuse", "nothing", None, None, "nothing"),
}
# The state after an action. Actions that are not listed leave the state unchanged.
_NEXT: Mapping[LifecycleAction, LifecycleState] = {
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
    """Look up the action for an event in a state, and the next state."""
    if (state, event) not in TABLE:
        raise AssertionError(f"{event!r} cannot happen while the session is {state!r}")
    return TABLE[state, event]
