"""Define the phases of a session with running actors, as a table with the action for each event.

`SessionActor` uses this table. `actors.core.session.lifecycle` describes sessions with and without actors.

Phases:

    idle        no ask is in flight
    asking      an ask is in flight
    awaiting    the turn of the ask is paused: it waits for results or approvals from its caller
    recovering  the turn that a crash left open is being closed; it keeps its configuration, but not its target
    ending      like asking or recovering, but the session ends afterwards
    closing     the `Closed` event is being written
    ended       the `Closed` event is durable

Actions:

    begin       start the oldest queued ask            apply      write the switch, reply `applied`
    wait        queue the command                      hold       defer the switch to the ask's end, reply `queued`
    refuse      reject: the session is ending          stop       cancel the ask in flight, then act as for `wait`
    nothing     reply that no ask is in flight         conclude   reply to the callers that wait for the ask's end
    write_end   conclude, then write `Closed`          answer     reply to the callers that wait for the session's end
    close       close the paused turn                  go_on      resume the paused turn
    record      record results or decisions

If the table has no action for an event in a phase, the event cannot occur there, and `step` raises `AssertionError`.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

Phase: TypeAlias = Literal["idle", "asking", "awaiting", "recovering", "ending", "closing", "ended"]
PhaseEvent: TypeAlias = Literal[
    "submit", "switch", "cancel", "end", "finished", "written", "resolve", "paused", "complete"
]
"""An event in the life of a session. `resolve`: results or decisions arrive for pending calls. `complete`: no call is
pending any more.
"""
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

# The actions of each phase: one per event, in the order of `PhaseEvent`.
_ACTIONS: Mapping[Phase, tuple[Action | None, ...]] = {
    "idle": ("begin", "apply", "nothing", "write_end", None, None, "record", None, None),
    "asking": ("wait", "hold", "stop", "stop", "conclude", None, "record", "conclude", None),
    "awaiting": ("wait", "hold", "close", "close", None, None, "record", None, "go_on"),
    "recovering": ("wait", "apply", "stop", "stop", "conclude", None, "record", None, None),
    "ending": ("refuse", "refuse", "wait", "wait", "write_end", None, "refuse", "close", None),
    "closing": ("refuse", "refuse", "nothing", "wait", None, "answer", "refuse", None, None),
    "ended": ("refuse", "refuse", "nothing", "answer", None, None, "refuse", None, None),
}
# The phase after an event in a phase. Events that are not listed leave the phase unchanged.
_LEADS_TO: Mapping[tuple[Phase, PhaseEvent], Phase] = {
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


def _next_phase(phase: Phase, event: PhaseEvent) -> Phase:
    return _LEADS_TO.get((phase, event), phase)


_EVENTS: tuple[PhaseEvent, ...] = get_args(PhaseEvent)
TABLE: Mapping[tuple[Phase, PhaseEvent], tuple[Action, Phase]] = {
    (phase, event): (action, _next_phase(phase, event))
    for phase, row in _ACTIONS.items()
    for event, action in zip(_EVENTS, row, strict=True)
    if action is not None
}


def initial_phase(*, is_closed: bool, is_open: bool, is_awaiting: bool = False) -> Phase:
    """Return the phase in which a session's actors start.

    Args:
        is_closed: True if the log contains `Closed`.
        is_open: True if the log ends inside an ask.
        is_awaiting: True if the ask's turn is paused.
    """
    if is_closed:
        return "ended"
    if is_awaiting:
        return "awaiting"
    return "recovering" if is_open else "idle"


def step(phase: Phase, event: PhaseEvent) -> tuple[Action, Phase]:
    """Look up the action for an event in a phase, and the next phase."""
    if (phase, event) not in TABLE:
        raise AssertionError(f"{event!r} cannot happen while the session is {phase!r}")
    return TABLE[phase, event]
