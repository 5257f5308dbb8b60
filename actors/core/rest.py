"""A session at rest: its state as one plain tuple of plain things, for as long as nobody asks it anything.

A `State` and what it refers to are objects that the collector of garbage visits each time. At rest there are
none of them, and `wake(lay_down(state)) == state`. What can be worked out again is not kept: a ledger that says no
more than the imported messages it was made of is those messages, which the log holds too.
"""

from typing import Any, TypeAlias

from actors.core.door import recorded
from actors.core.history import History
from actors.core.ledger import Ledger
from actors.core.state import State

Rested: TypeAlias = tuple[Any, ...]  # Any: a state's fields in order, its history and its ledger at rest


def lay_down(state: State) -> Rested:
    """Return a state at rest. It shares what the state holds."""
    return (
        state.session,
        state.target,
        state.held,
        state.system,
        state.history.records,
        state.ledger.at_rest,
        state.calls,
        state.asks,
        state.turns,
        state.bound,
        state.closed,
        state.last,
    )


def wake(rested: Rested) -> State:
    """Return the state that was laid down."""
    session, target, held, system, records, kept, *others = rested
    history = History.of(records)
    ledger = Ledger.of(*kept) if isinstance(kept[0], dict) else recorded(kept)
    return State(session, target, held, system, history, ledger, *others)
