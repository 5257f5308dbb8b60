"""A session's life as a table: in which phase it is, what may happen there, and what is to be done about it.

*asking*: an ask is in flight. *awaiting*: its turn waits for its caller.
*recovering*: what a crash left open is being closed. *ending*: the same, and then the
session ends. *closing*: its end is being written. What has no action in a phase cannot happen there: if it does, that
is a programming error.

    begin      take up the oldest ask that waits       apply      write the switch, answer applied
    wait       let it wait for what is under way       hold       keep the switch for the ask's end, answer queued
    refuse     the session is ending                   stop       cancel the ask in flight, then as `wait`
    nothing    answer that there is none               conclude   answer those who wait for the ask's end
    write_end  conclude, then write the log's end      answer     answer those who wait for the session's end
    close      close the turn that waits               go_on      go on with the turn that waits
    record     record results and decisions for its calls
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

Phase: TypeAlias = Literal["idle", "asking", "awaiting", "recovering", "ending", "closing", "ended"]
PhaseEvent: TypeAlias = Literal[
    "submit", "switch", "cancel", "end", "finished", "written", "resolve", "paused", "complete"
]
"""`resolve`: results or decisions come for calls that are awaited; `complete`: none are awaited any more."""
Action: TypeAlias = Literal[
    "begin",
    "wait",
    "refuse",
    "apply",
    "hold",
    "nothing",
    "stop",
    "conclude",
    "write_end",
    "answer",
    "close",
    "go_on",
    "record",
]

_ACTIONS: Mapping[Phase, tuple[Action | None, ...]] = {  # by happening, in the order above
    "idle": ("begin", "apply", "nothing", "write_end", None, None, "record", None, None),
    "asking": ("wait", "hold", "stop", "stop", "conclude", None, "record", "conclude", None),
    "awaiting": ("wait", "hold", "close", "close", None, None, "record", None, "go_on"),
    "recovering": ("wait", "apply", "stop", "stop", "conclude", None, "record", None, None),
    "ending": ("refuse", "refuse", "wait", "wait", "write_end", None, "refuse", "close", None),
    "closing": ("refuse", "refuse", "nothing", "wait", None, "answer", "refuse", None, None),
    "ended": ("refuse", "refuse", "nothing", "answer", None, None, "refuse", None, None),
}
_LEADS_TO: Mapping[tuple[Phase, PhaseEvent], Phase] = {  # all else leaves the phase as it is
    ("idle", "submit"): "asking",
    ("idle", "end"): "closing",
    ("asking", "end"): "ending",
    ("asking", "finished"): "idle",
    ("asking", "paused"): "awaiting",
    ("awaiting", "complete"): "asking",
    ("awaiting", "cancel"): "asking",
    ("awaiting", "end"): "ending",
    ("recovering", "end"): "ending",
    ("recovering", "finished"): "idle",
    ("ending", "finished"): "closing",
    ("closing", "written"): "ended",
}
TABLE: Mapping[tuple[Phase, PhaseEvent], tuple[Action, Phase]] = {
    (phase, happening): (action, _LEADS_TO.get((phase, happening), phase))
    for phase, row in _ACTIONS.items()
    for happening, action in zip(get_args(PhaseEvent), row, strict=True)
    if action is not None
}


def first(*, is_closed: bool, is_open: bool, is_awaiting: bool = False) -> Phase:
    """Return the phase of a session whose log holds its end (`is_closed`), or an ask without one (`is_open`).

    `is_awaiting`: the ask's turn waits for its caller.
    """
    if is_closed:
        return "ended"
    if is_awaiting:
        return "awaiting"
    return "recovering" if is_open else "idle"


def step(phase: Phase, happening: PhaseEvent) -> tuple[Action, Phase]:
    """Return what is to be done, and the phase after it."""
    if (phase, happening) not in TABLE:
        raise AssertionError(f"{happening!r} cannot come while the session is {phase!r}")
    return TABLE[phase, happening]
